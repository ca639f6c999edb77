import { userInfo } from 'node:os'
import { SluiceError } from '../core/errors.ts'
import { type Bucket, bucket, type Offset, offset } from '../core/ids.ts'
import { silentJournal } from '../core/ports.ts'
import { formatTableName } from '../core/table-name.ts'
import { quoteValue } from '../core/text.ts'
import { openTableFolder } from '../library/open-table.ts'
import { progressReport } from '../library/progress-report.ts'
import { type Decision, recordDecision, type RecordedDecision } from '../sink/committer/override.ts'
import type { Command, CommandContext } from './command.ts'
import { writeJson } from './json.ts'
import { type LakeRequest, machinePorts, openRequested, readLakeRequest } from './lake-request.ts'
import { decisionText, progressJson, renderProgress } from './render-progress.ts'
import { type Given, settingsOf } from './settings.ts'

type ProgressRequest = LakeRequest & { readonly decision: Decision | undefined }

/** `sluice progress`. */
export const progressCommand: Command = async (context) => {
  const { terminal, json } = context
  const request = readRequest(context)
  const ports = machinePorts()
  const opened = await openRequested(request, ports)
  const [entry, second] = opened.entries
  if (entry === undefined || second !== undefined) {
    throw new SluiceError('CONFIG_INVALID', `${request.lake.shown}: progress is of one table`, {
      fix: `sluice progress ${request.lake.shown} ${formatTableName(entry?.name ?? ['demo', 'flights'])}`,
    })
  }
  const name = formatTableName(entry.name)
  const lake = await openTableFolder({ name: entry.name, folder: entry.at }, opened.store, ports)
  const source = `embedded:${name}`
  let recorded: RecordedDecision | undefined
  if (request.decision !== undefined) {
    await opened.requireSafe()
    const commitPorts = { ...ports, journal: silentJournal }
    recorded = await recordDecision(lake, source, request.decision, commitPorts)
  }
  const report = await progressReport(lake, source)
  if (json !== undefined) terminal.result(writeJson(progressJson(name, report, recorded), json))
  else {
    const { marks, outStyle: style } = terminal
    if (recorded !== undefined) terminal.result(decisionText(name, recorded))
    terminal.result(renderProgress(name, report, { marks, style }))
  }
  return report.verdict.kind === 'lost' || report.verdict.kind === 'replaced' ? 1 : 0
}

function readRequest(context: CommandContext): ProgressRequest {
  const { given, found, around } = context
  const settings = settingsOf(given, around.environment, around.config)
  const request = readLakeRequest(context, 'progress')
  const ends = found.attempt(() => readEnds(settings.all('set')))
  const reason = settings.get('reason')
  if (settings.has('skip-gap')) {
    found.add(
      'CONFIG_INVALID',
      '--skip-gap: the logs of this source are never trimmed, so they have no gap to skip',
      { fix: 'it is for the Fluss source (--fluss), which comes with a later version' },
    )
  }
  if (ends !== undefined && ends.size === 0 && (reason !== undefined || settings.has('force'))) {
    found.add('CONFIG_INVALID', '--reason and --force belong to --set BUCKET=OFFSET')
  }
  if (ends !== undefined && ends.size > 0) {
    found.attempt(() => {
      checkReason(reason)
    })
  }
  if (request !== undefined && /\.metadata\.json(?:\.gz)?$/.test(request.lake.url)) {
    found.add(
      'CONFIG_INVALID',
      `${request.lake.shown}: progress takes a warehouse or a table folder`,
    )
  }
  found.settle()
  if (request === undefined || ends === undefined) {
    throw new SluiceError('INVARIANT_BROKEN', 'a request without problems is complete')
  }
  if (ends.size === 0) return { ...request, decision: undefined }
  const text = reason?.text ?? ''
  const decision = { ends, by: userName(), reason: text, force: settings.has('force') }
  return { ...request, decision }
}

const reasonMax = 500

function checkReason(reason: Given | undefined): void {
  if (reason === undefined || reason.text.trim() === '') {
    throw new SluiceError('CONFIG_INVALID', '--set needs --reason TEXT', {
      fix: '--reason "expired by mistake, rows checked by hand"',
    })
  }
  if (reason.text.length <= reasonMax) return
  throw new SluiceError('CONFIG_INVALID', `--reason: at most ${String(reasonMax)} characters`)
}

function readEnds(values: readonly Given[]): ReadonlyMap<Bucket, Offset> {
  const ends = new Map<Bucket, Offset>()
  for (const { text, subject } of values) {
    const [, which = '', end = ''] = /^(\d{1,4})=(\d{1,18})$/.exec(text) ?? []
    if (end === '') {
      throw new SluiceError(
        'CONFIG_INVALID',
        `${subject} ${quoteValue(text)} is not BUCKET=OFFSET`,
        {
          fix: '--set 0=1928: offsets below 1928 of bucket 0 are in the table',
        },
      )
    }
    const at = bucket(Number.parseInt(which, 10))
    if (ends.has(at)) {
      throw new SluiceError('CONFIG_INVALID', `${subject}: bucket ${which} is set twice`)
    }
    ends.set(at, offset(BigInt(end)))
  }
  return ends
}

/** Who decides, as the system knows them. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    // A process may run under an id that has no name.
    return process.getuid === undefined ? 'unknown' : `uid ${String(process.getuid())}`
  }
}
