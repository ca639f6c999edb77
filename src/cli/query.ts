import { openStore } from '../catalog/store/open-store.ts'
import type { S3Options } from '../catalog/store/s3-client.ts'
import type { StorePorts } from '../catalog/store/s3-store.ts'
import { isSluiceError, SluiceError } from '../core/errors.ts'
import { millis } from '../core/ids.ts'
import { seededChance, systemClock, systemIds } from '../core/system.ts'
import { formatTableName } from '../core/table-name.ts'
import { counted, formatSeconds, quoteValue } from '../core/text.ts'
import type { ScanPoint } from '../catalog/iceberg/scan.ts'
import type { Command, CommandContext } from './command.ts'
import { type DuckDb, openDuckDb } from './duckdb.ts'
import { createView, type NamedScan } from './duckdb-views.ts'
import { scanTables, tablesAt } from './lake-tables.ts'
import { isLocation, type Location, nameForLake, readLocation } from './location.ts'
import { credentialNotes, readS3Options } from './s3-options.ts'
import { type Settings, settingsOf } from './settings.ts'
import { type StagedFiles, stageFiles } from './stage-files.ts'
import { refuseCatalog } from './tier-options.ts'

/** `sluice query`. */
export const queryCommand: Command = async (context) => {
  const request = await readRequest(context)
  const startedAt = context.now()
  const { store } = await openStore(request.lake.url, { ports: systemPorts(), s3: request.s3 })
  const note = (message: string): void => {
    context.terminal.note(`  ${context.terminal.style.dim('note')}  ${message}`)
  }
  if (isRemote(request.lake)) credentialNotes(context.around).forEach(note)
  const entries = await tablesAt(store, request.lake)
  const found = await scanTables(store, entries, { ...request, note })
  const db = await openDuckDb('query')
  const { writeRows } = await import('./query-output.ts')
  const interrupt = (): void => {
    db.interrupt()
  }
  const { signal } = context.stop
  signal.addEventListener('abort', interrupt, { once: true })
  let staged: StagedFiles | undefined
  try {
    if (isRemote(request.lake)) staged = await stageFiles(store, found, { signal, note })
    const scans = staged?.scans ?? found
    for (const scan of scans) await createView(db, store, scan)
    const rows = await db.query(request.sql)
    const files = scans.reduce((sum, { scan }) => sum + scan.files.length, 0)
    const count = await writeRows(rows, {
      context,
      form: request.form,
      reader: readerText(files, db),
      snapshots: snapshotsOf(scans),
      seconds: () => (context.now() - startedAt) / 1000,
    })
    if (request.form === 'box') footer(count, scans, db, context, startedAt)
    return 0
  } catch (error) {
    throw asQueryError(
      error,
      context,
      entries.map(({ name }) => formatTableName(name)),
    )
  } finally {
    signal.removeEventListener('abort', interrupt)
    db.close()
    await staged?.[Symbol.asyncDispose]()
  }
}

type QueryRequest = {
  readonly lake: Location
  readonly s3: S3Options
  readonly sql: string
  readonly point: ScanPoint
  readonly form: 'box' | 'csv' | 'json'
}

async function readRequest(context: CommandContext): Promise<QueryRequest> {
  const { given, found, around } = context
  const settings = settingsOf(given, around.environment, around.config)
  const [first, second, ...more] = given.positionals
  refuseCatalog(settings, found)
  if (more.length > 0) {
    found.add('CONFIG_INVALID', 'query takes a lake and one SQL text', {
      fix: 'put the SQL into quotes: sluice query ./lake "select 1"',
    })
  }
  const lake = found.attempt(() => readLake(settings, around.folder, first, second))
  const s3 = readS3Options(settings, around, found)
  const sql = second ?? (first !== undefined && lakeIsFirst(first, second) ? undefined : first)
  if (sql === undefined || sql.trim() === '') {
    found.add('CONFIG_INVALID', 'query needs SQL', {
      fix: 'sluice query ./lake "select count(*) from demo.flights"',
    })
  }
  const point = found.attempt(() => readPoint(settings))
  if (settings.has('csv') && settings.has('json')) {
    found.add('CONFIG_INVALID', '--csv and --json cannot both be')
  }
  found.settle()
  if (lake === undefined || sql === undefined || point === undefined) {
    throw new SluiceError('INVARIANT_BROKEN', 'a request without problems is complete')
  }
  const form = settings.has('csv') ? 'csv' : settings.has('json') ? 'json' : 'box'
  return { lake, s3, point, form, sql: sql === '-' ? await readAll(context.stdin) : sql }
}

function isRemote(lake: Location): boolean {
  return !lake.url.startsWith('file:')
}

function systemPorts(): StorePorts {
  const chance = seededChance(Number.parseInt(systemIds.bits128().slice(0, 7), 16))
  return { clock: systemClock, chance, ids: systemIds }
}

/** With one argument it is the SQL, unless it can only be a place. */
function lakeIsFirst(first: string, second: string | undefined): boolean {
  return second !== undefined || (isLocation(first) && !/\s/.test(first.trim()))
}

function readLake(
  settings: Settings,
  folder: string,
  first: string | undefined,
  second: string | undefined,
): Location {
  if (first !== undefined && lakeIsFirst(first, second)) {
    if (!isLocation(first)) throw nameForLake(first, { command: 'query', rest: second, folder })
    return readLocation({ text: first, subject: 'LAKE', origin: 'flag' }, folder)
  }
  const warehouse = settings.get('warehouse')
  if (warehouse !== undefined) return readLocation(warehouse, folder)
  if (first !== undefined && /^[\w.-]+$/.test(first)) {
    throw nameForLake(first, { command: 'query', rest: 'select …', folder })
  }
  throw new SluiceError('CONFIG_INVALID', 'query needs a lake: a warehouse or a table folder', {
    fix: 'sluice query ./lake "…", or SLUICE_WAREHOUSE',
  })
}

function readPoint(settings: Settings): ScanPoint {
  const snapshot = settings.get('snapshot')
  const asOf = settings.get('as-of')
  if (snapshot !== undefined && asOf !== undefined) {
    throw new SluiceError('CONFIG_INVALID', '--snapshot and --as-of cannot both be')
  }
  if (snapshot !== undefined) {
    if (/^[1-9]\d{0,18}$/.test(snapshot.text)) return { snapshot: BigInt(snapshot.text) }
    throw new SluiceError(
      'CONFIG_INVALID',
      `${snapshot.subject} ${quoteValue(snapshot.text)} is not a snapshot id`,
    )
  }
  if (asOf === undefined) return {}
  const time = timeForm.test(asOf.text) ? new Date(asOf.text.replace(' ', 'T')).getTime() : NaN
  if (Number.isNaN(time) || time < 0) {
    throw new SluiceError(
      'CONFIG_INVALID',
      `${asOf.subject} ${quoteValue(asOf.text)} is not a time`,
      { fix: '2026-11-30T14:02:00Z, 2026-11-30T15:02:00+01:00, 2026-11-30 (midnight UTC)' },
    )
  }
  return { asOf: millis(time) }
}

const timeForm = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?$/

const sqlBytesMax = 16 * 1024 * 1024

async function readAll(stdin: NodeJS.ReadableStream): Promise<string> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of stdin) {
    const buffer = Buffer.from(piece)
    bytes += buffer.length
    if (bytes > sqlBytesMax) {
      throw new SluiceError('CONFIG_INVALID', 'stdin: the SQL is longer than 16 MiB')
    }
    pieces.push(buffer)
  }
  const sql = Buffer.concat(pieces).toString('utf8')
  if (sql.trim() === '') throw new SluiceError('CONFIG_INVALID', 'stdin: there is no SQL')
  return sql
}

function readerText(files: number, db: DuckDb): string {
  return (
    `Sluice's metadata reader named ${counted(files, 'file')}; ` +
    `DuckDB ${db.version} read the Parquet`
  )
}

function snapshotsOf(scans: readonly NamedScan[]): ReadonlyMap<string, bigint | undefined> {
  return new Map(scans.map(({ name, scan }) => [formatTableName(name), scan.snapshot?.id]))
}

function footer(
  count: number,
  scans: readonly NamedScan[],
  db: DuckDb,
  context: CommandContext,
  startedAt: number,
): void {
  const [only] = scans
  const seconds = formatSeconds((context.now() - startedAt) / 1000)
  const snapshot =
    scans.length === 1 && only?.scan.snapshot !== undefined
      ? `   snapshot ${only.scan.snapshot.id.toString()}`
      : ''
  const files = scans.reduce((sum, { scan }) => sum + scan.files.length, 0)
  context.terminal.note(`${counted(count, 'row')}${snapshot}   ${seconds}`)
  if (scans.length > 0) context.terminal.note(context.terminal.style.dim(readerText(files, db)))
}

/** What DuckDB says about a query is the user's to mend: its words, without ours around them. */
function asQueryError(error: unknown, context: CommandContext, tables: readonly string[]): unknown {
  if (isSluiceError(error) || !(error instanceof Error)) return error
  if (context.stop.signal.aborted) {
    return new SluiceError('STOPPED', 'the query was interrupted', { cause: error })
  }
  const [first = '', ...rest] = error.message
    .replace('Failed to extract statements: ', '')
    .split('\n')
  const place = rest.filter((line) => line.startsWith('LINE ')).at(0)
  const options = { cause: error, ...(place === undefined ? {} : { where: place.trim() }) }
  if (/No files found that match/.test(first)) {
    return new SluiceError(
      'DATA_CORRUPT',
      `a file that the metadata names is not there: ${first}`,
      {
        ...options,
        fix: 'restore the file, or query an older state with --as-of',
      },
    )
  }
  if (/at or near "default"/.test(first)) {
    const fix = 'default is a word of SQL: write the table alone, or "default".name'
    return new SluiceError('CONFIG_INVALID', first, { ...options, fix })
  }
  if (/^(?:Catalog|Binder) Error: (?:Table|.*does not exist)/.test(first)) {
    const shown = tables.slice(0, 20).join(', ')
    const fix = `tables here: ${shown}${tables.length > 20 ? ', …' : ''}`
    return new SluiceError('CONFIG_INVALID', first, { ...options, fix })
  }
  return new SluiceError('CONFIG_INVALID', first, options)
}
