import { formatDuration, parseDuration } from '../core/duration.ts'
import { SluiceError } from '../core/errors.ts'
import { silentJournal } from '../core/ports.ts'
import type { JsonObject } from '../core/json64.ts'
import { counted, formatCount, formatSeconds } from '../core/text.ts'
import type { TieringEvent } from '../sink/job/events.ts'
import type { Command, CommandContext } from './command.ts'
import { checkLake, type DemoCheck } from './demo-check.ts'
import { prepareFolder } from './demo-folder.ts'
import { commitLine, renderScreen } from './demo-screen.ts'
import { type DemoCommit, DemoWorld } from './demo-world.ts'
import { writeJson } from './json.ts'
import { type Location, readLocation } from './location.ts'
import { epochOf } from './render-receipt.ts'
import { type Given, settingsOf, wholeNumber } from './settings.ts'
import { pad } from './style.ts'

type DemoRequest = {
  readonly lake: Location
  /** Undefined: the usual speed, or what it takes to be over in time. */
  readonly speed: number | undefined
  readonly seed: number
  readonly readers: number
  readonly durationMs: number
}

const redrawMs = 100
const speedDefault = 20
const durationDefaultMs = 300_000
/** What all of it takes, where what comes after the walkthrough lasts twice as long as what came before. */
const wholeMs = 18_000
const playedMinMs = 5000

/** `sluice demo`: the walkthrough of the tiering service on a fast clock, checked at the end. */
export const demoCommand: Command = async (context) => {
  const { terminal, json } = context
  const request = readRequest(context)
  const startedAt = context.now()
  if (await prepareFolder(request.lake)) {
    terminal.note(`  note  the demo that was in ${request.lake.shown} is removed`)
  }
  if (json === undefined) terminal.note(titleOf(request, context))
  const world = await DemoWorld.open({
    ...request,
    speed: () => {
      const speed = speedOf(request, process.uptime() * 1000)
      if (json === undefined && speed > (request.speed ?? speedDefault)) {
        terminal.note(
          `  note  this machine is busy: the clock runs ${terminal.marks.times}${speed}`,
        )
      }
      return speed
    },
    warehouse: request.lake.url,
    journal: silentJournal,
    signal: context.stop.signal,
    realNow: context.now,
    wallNow: Date.now(),
  })
  const view = { style: terminal.style, marks: terminal.marks }
  const drawScreen = (when: 'soon' | 'now'): void => {
    if (!terminal.isLive) return
    const { commits, parts } = world
    const at = world.now()
    const isDraining = at >= request.durationMs / 1000
    const lines = renderScreen({ at, parts, job: world.view(), commits, isDraining }, view)
    terminal.draw(lines, when)
  }
  const timer = setInterval(() => {
    drawScreen('soon')
  }, redrawMs)
  try {
    await world.play((event, at, commit) => {
      if (json !== undefined) terminal.result(writeJson(eventJson(event, at), json))
      else if (commit !== undefined && !terminal.isLive) terminal.note(commitLine(commit, view))
    })
    drawScreen('now')
  } catch (error) {
    if (!context.stop.signal.aborted) throw error
    throw new SluiceError('STOPPED', 'the demo was interrupted', { cause: error })
  } finally {
    clearInterval(timer)
    terminal.settle()
    await world.close()
  }
  const check = await checkLake(world.store, world.parts)
  const seconds = (context.now() - startedAt) / 1000
  return tell(check, world, request, { context, seconds })
}

/** A machine that is busy plays faster instead of longer, unless it was told how fast. */
export function speedOf(
  { speed, durationMs }: Pick<DemoRequest, 'speed' | 'durationMs'>,
  sinceStart: number,
): number {
  if (speed !== undefined) return speed
  if (durationMs > durationDefaultMs) return speedDefault
  const left = Math.max(wholeMs - 3 * sinceStart, playedMinMs)
  return Math.max(speedDefault, Math.round(durationMs / left))
}

function readRequest({ given, found, around }: CommandContext): DemoRequest {
  const settings = settingsOf(given, around.environment, around.config)
  const number = (option: string, least: number, most: number): number | undefined => {
    const value = settings.get(option)
    if (value === undefined) return undefined
    return found.attempt(() => wholeNumber(value, { least, most, noun: option }))
  }
  const speed = number('speed', 1, 1000)
  const seed = number('seed', 0, 2 ** 32 - 1) ?? 1
  const readersGiven = settings.get('readers')
  const readers =
    readersGiven === undefined
      ? 16
      : found.attempt(() => wholeNumber(readersGiven, { least: 1, most: 64, noun: 'reader' }))
  const duration = settings.get('duration')
  const durationMs =
    duration === undefined
      ? durationDefaultMs
      : found.attempt(() => {
          const ms = parseDuration(duration.text, duration.subject)
          if (ms >= 1000 && ms <= 3_600_000) return ms
          throw new SluiceError('CONFIG_INVALID', `${duration.subject} ${duration.text}: 1s to 1h`)
        })
  // The place a demo is left in is named by its documentation; a shared warehouse is not for it.
  const flag = settings.get('warehouse')
  const place = flag ?? { text: './sluice-demo', subject: 'the demo', origin: 'flag' as const }
  const lake = found.attempt(() => readFolder(place, around.folder))
  if (given.positionals.length > 0) {
    found.add('CONFIG_INVALID', 'demo takes no arguments, only options')
  }
  found.settle()
  if (lake === undefined || readers === undefined || durationMs === undefined) {
    throw new SluiceError('INVARIANT_BROKEN', 'a request without problems is complete')
  }
  return { lake, speed, seed, readers, durationMs }
}

/** The demo removes what an earlier one left, which is for a folder of this machine only. */
function readFolder(place: Given, folder: string): Location {
  const lake = readLocation(place, folder)
  if (lake.url.startsWith('file:')) return lake
  throw new SluiceError('LOCATION_REFUSED', `${lake.shown}: the demo writes into a local folder`, {
    fix: '--warehouse ./sluice-demo',
  })
}

function titleOf(request: DemoRequest, { terminal }: CommandContext): string {
  const { style, marks } = terminal
  const parts = [
    `embedded source ${marks.arrow} Iceberg v2 in ${request.lake.shown}`,
    `clock ${marks.times}${request.speed ?? speedDefault}`,
    `seed ${request.seed}`,
    `readers ${request.readers}`,
  ]
  return `${style.bold('sluice demo')}   ${parts.join('   ')}\n`
}

function tell(
  check: DemoCheck,
  world: DemoWorld,
  request: DemoRequest,
  around: { readonly context: CommandContext; readonly seconds: number },
): number {
  const { context, seconds } = around
  const { terminal, json } = context
  const isEqual = check.tables.every((table) => table.difference === undefined)
  if (json !== undefined) {
    terminal.result(writeJson(receiptJson(check, world, { ...request, seconds }), json))
    return isEqual ? 0 : 1
  }
  const { outStyle: style, marks } = terminal
  const compares = 'the Parquet files of the three tables and compares them with what was produced'
  terminal.result(`\n${check.reader} reads ${compares}`)
  terminal.result(
    style.dim(check.isIndependent ? "(Sluice's metadata reader names the files)" : noDuckDb),
  )
  const head = `${pad('TABLE', 10)}${pad('PRODUCED', 11, 'end')}${pad('IN LAKE', 13, 'end')}     `
  terminal.result(style.dim(`${head}${pad('EQUAL', 26)}OFFSETS`))
  for (const table of check.tables) {
    const { produced, inLake, buckets, difference } = table
    const counts = pad(formatCount(produced), 11, 'end') + pad(formatCount(inLake), 13, 'end')
    const verdict =
      difference === undefined
        ? `${pad(style.green('yes, every column'), 26)}${pad(buckets.toString(), 2, 'end')} buckets contiguous`
        : `${style.red(marks.fail)} ${difference}`
    terminal.result(`${pad(table.table, 10)}${counts}     ${verdict}`)
  }
  const commits = counted(world.commits.length, 'commit')
  const end = `${commits}, ${world.fences.toString()} fenced, ${formatSeconds(seconds)}`
  terminal.result(
    isEqual
      ? `${style.green(marks.ok)} ${style.bold('nothing lost, nothing doubled')}: ${end}`
      : `${style.red(marks.fail)} ${style.bold('the lake is not what was produced')}: ${end}`,
  )
  const { shown } = request.lake
  terminal.result(`Look around:  npx sluice query ${shown} "select count(*) from demo.clicks"`)
  return isEqual ? 0 : 1
}

const noDuckDb =
  '(DuckDB is not installed, so this is no independent check: npm install @duckdb/node-api)'

function eventJson(event: TieringEvent, at: number): JsonObject {
  const start = { event: event.event, t: at, table: event.table }
  const epoch = { incarnation: event.incarnation, epoch: event.epoch }
  switch (event.event) {
    case 'state':
      return { ...start, state: event.state, ...epoch }
    case 'committed':
      return { ...start, ...commitJson(event) }
    case 'rejected':
      return { ...start, ...epoch, code: event.error.code, message: event.error.message }
  }
}

function commitJson(commit: Omit<DemoCommit, 'at' | 'peakLag'>): JsonObject {
  return {
    round: commit.round,
    incarnation: commit.incarnation,
    epoch: commit.epoch,
    snapshot_id: commit.snapshotId.toString(),
    rows: commit.rows,
    files: commit.files,
    bytes: commit.bytes,
    force_finished: commit.forceFinished,
    attempts: commit.attempts,
    seconds: commit.seconds,
  }
}

function receiptJson(
  check: DemoCheck,
  world: DemoWorld,
  run: DemoRequest & { readonly seconds: number },
): JsonObject {
  return {
    event: 'receipt',
    schema: 'sluice.receipt/1',
    ok: check.tables.every((table) => table.difference === undefined),
    warehouse: run.lake.url,
    rows: world.commits.reduce((sum, commit) => sum + commit.rows, 0n),
    files: world.commits.reduce((sum, commit) => sum + commit.files, 0),
    bytes: world.commits.reduce((sum, commit) => sum + commit.bytes, 0n),
    tables: check.tables.map((table) => ({
      table: `demo.${table.table}`,
      produced: table.produced,
      in_lake: table.inLake,
      buckets: table.buckets,
      equal: table.difference === undefined,
      difference: table.difference ?? null,
    })),
    rounds: world.commits.map((commit) => ({
      t: commit.at,
      table: commit.table,
      epoch_text: epochOf(commit),
      ...commitJson(commit),
      peak_lag_seconds: commit.peakLag,
    })),
    reader: check.reader,
    speed: world.speed,
    seed: run.seed,
    clock: formatDuration(run.durationMs),
    seconds: Number(run.seconds.toFixed(3)),
    error: null,
  }
}
