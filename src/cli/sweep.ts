import { shownLocation } from '../catalog/iceberg/location.ts'
import { isPlainFile } from '../catalog/store/plain-file.ts'
import { formatDuration, parseDuration } from '../core/duration.ts'
import { isSluiceError, SluiceError } from '../core/errors.ts'
import { formatTableName } from '../core/table-name.ts'
import {
  deleteOrphans,
  findOrphans,
  type FoundOrphans,
  olderThanDefaultMs,
  type SweepPorts,
} from '../sink/sweeper/sweep.ts'
import type { SweepPlan } from '../sink/sweeper/sweep-plan.ts'
import type { Command, CommandContext } from './command.ts'
import { writeJson } from './json.ts'
import type { LakeEntry } from './lake-tables.ts'
import { type LakeRequest, machinePorts, openRequested, readLakeRequest } from './lake-request.ts'
import { renderSweep, sweepJson, type TableSweep } from './render-sweep.ts'
import { settingsOf } from './settings.ts'

type SweepRequest = LakeRequest & {
  readonly deletes: boolean
  readonly olderThanMs: number
  readonly force: boolean
}

/**
 * `sluice sweep`. All tables are looked through before the first file of any is deleted, so that a
 * read that fails leaves everything as it was.
 */
export const sweepCommand: Command = async (context) => {
  const request = readRequest(context)
  const { terminal, json, stop } = context
  const ports = machinePorts()
  const { store, entries } = await openRequested(request, ports)
  const sweeper: SweepPorts = { store, ids: ports.ids, isPlainFile }
  const found = await findAll(entries, request, sweeper, context)
  const swept: TableSweep[] = []
  for (const { name, orphans } of found) {
    const plan: SweepPlan = request.deletes
      ? await deleteOrphans(orphans, sweeper, stop.signal)
      : orphans
    swept.push({ table: name, folder: orphans.folder, ...plan })
  }
  const view = { dryRun: !request.deletes, olderThan: formatDuration(request.olderThanMs) }
  if (json !== undefined) terminal.result(writeJson(sweepJson(swept, view), json))
  else {
    terminal.result(renderSweep(swept, { ...view, style: terminal.outStyle }))
    if (view.dryRun && swept.some(({ orphans, uploads }) => orphans.length + uploads.length > 0)) {
      terminal.note('nothing was deleted; the same command with --delete removes these')
    }
  }
  return 0
}

type Found = { readonly name: string; readonly orphans: FoundOrphans }

async function findAll(
  entries: readonly LakeEntry[],
  request: SweepRequest,
  ports: SweepPorts,
  { terminal, verbose, stop }: CommandContext,
): Promise<readonly Found[]> {
  const found: Found[] = []
  for (const entry of entries) {
    const name = formatTableName(entry.name)
    if (stop.signal.aborted) throw new SluiceError('STOPPED', 'the sweep was interrupted')
    if (verbose) terminal.note(`  reading ${name}`)
    try {
      found.push({ name, orphans: await findOrphans(entry.at, request, ports) })
    } catch (error) {
      // A lake may hold tables of other catalogs. One that was named is not passed over.
      if (entries.length === 1 || !isSluiceError(error, 'TABLE_MISMATCH')) throw error
      terminal.note(`  ${terminal.style.dim('note')}  ${name} is left out: ${error.message}`)
    }
  }
  return found
}

function readRequest(context: CommandContext): SweepRequest {
  const { given, found, around } = context
  const settings = settingsOf(given, around.environment, around.config)
  const request = readLakeRequest(context, 'sweep')
  const force = settings.has('force')
  const olderThanMs = found.attempt(() => {
    const value = settings.get('older-than')
    if (value === undefined) return olderThanDefaultMs
    return parseDuration(value.text, value.subject, { zero: 'allowed' })
  })
  if (request !== undefined && /\.metadata\.json(?:\.gz)?$/.test(request.lake.url)) {
    found.add(
      'CONFIG_INVALID',
      `${request.lake.shown}: sweep takes a warehouse or a table folder`,
      {
        fix: `sluice sweep ${shownLocation(request.lake.url.replace(/\/[^/]*\/[^/]*$/, ''))}`,
      },
    )
  }
  found.settle()
  if (request === undefined || olderThanMs === undefined) {
    throw new SluiceError('INVARIANT_BROKEN', 'a request without problems is complete')
  }
  return { ...request, olderThanMs, force, deletes: settings.has('delete') }
}
