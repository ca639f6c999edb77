import { availableParallelism } from 'node:os'
import { basename } from 'node:path'
import { parseDuration } from '../core/duration.ts'
import { SluiceError } from '../core/errors.ts'
import { parseSize } from '../core/size.ts'
import { formatTableName, parseTableName } from '../core/table-name.ts'
import { displayWidth, escapeText, quoteValue } from '../core/text.ts'
import type { Arguments } from './args.ts'
import type { Config, Environment } from './config.ts'
import { expandInputs, missingInput } from './inputs.ts'
import { readLocation } from './location.ts'
import type { Problems } from './problems.ts'
import { readS3Options } from './s3-options.ts'
import { choice, type Given, type Settings, settingsOf, wholeNumber } from './settings.ts'
import { readKeyedRequest } from './keyed-options.ts'
import { readProperties } from './tier-properties.ts'
import type { TierRequest } from './tier-request.ts'

const bucketsMax = 4096
const memoryMin = 32 * 1024 ** 2
const inputIdMax = 200

export type Surroundings = {
  readonly environment: Environment
  readonly folder: string
  readonly config: Config | undefined
}

/**
 * Reads the options of `sluice tier`. Everything that is wrong goes to `problems`.
 * @returns undefined when something is wrong
 */
export function readTierRequest(
  given: Arguments,
  around: Surroundings,
  problems: Problems,
): TierRequest | undefined {
  const inputs = readInputs(given, around.folder, problems)
  const general = settingsOf(given, around.environment, around.config)
  const table = readTable(general, inputs, around.folder, problems)
  const tableConfig =
    table === undefined ? undefined : around.config?.tables.get(formatTableName(table))
  const settings = settingsOf(given, around.environment, around.config, tableConfig)
  const read = <T>(option: string, reader: (value: Given) => T): T | undefined => {
    const value = settings.get(option)
    return value === undefined ? undefined : problems.attempt(() => reader(value))
  }
  const warehouse = readWarehouse(settings, around.folder, problems)
  const s3 = readS3Options(settings, around, problems)
  refuseLater(settings, problems)
  const buckets = read('buckets', readBuckets)
  const bucketKey = read('bucket-key', nonEmpty)
  const keyed = readKeyedRequest(settings, around, problems)
  const schemaFile = read('schema', nonEmpty)
  const inputFormat = read('input-format', readInputFormat)
  const inputId = read('input-id', (value) => readInputId(value, inputs))
  const delimiter = read('csv-delimiter', readDelimiter)
  const nullText = read('csv-null', (value) => value.text)
  const encoder = read('encoder', readEncoder)
  const properties = readProperties(settings, around.config, tableConfig, problems)
  const freshness = properties.get('table.datalake.freshness')
  const freshnessMs =
    freshness === undefined
      ? undefined
      : problems.attempt(() => parseDuration(freshness.text, freshness.subject))
  const columns = tableConfig?.columns
  const request = {
    sampleRecords: read('sample-records', readSample) ?? 10_000,
    hasHeader: read('csv-header', (value) => choice(value, ['yes', 'no'])) !== 'no',
    onBadRecord: read('on-bad-record', readOnBadRecord) ?? 'fail',
    badRecordsMax: read('bad-records-max', (value) =>
      wholeNumber(value, { least: 0, most: 1_000_000_000, noun: 'record' }),
    ),
    onUnknownField: read('on-unknown-field', readUnknownField) ?? 'fail',
    readers: read('readers', readReaders) ?? Math.min(16, availableParallelism()),
    memoryBytes: read('memory', (value) => parseSize(value.text, value.subject, memoryMin)),
    shutdownTimeoutMs: read('shutdown-timeout', (value) =>
      parseDuration(value.text, value.subject, { zero: 'allowed' }),
    ),
  }
  if (inputs === undefined || warehouse === undefined || table === undefined) return undefined
  if (problems.list.length > 0) return undefined
  return {
    inputs,
    warehouse,
    ...(warehouse.startsWith('s3:') ? { s3 } : {}),
    table,
    properties: new Map([...properties].map(([key, value]) => [key, value.text])),
    sampleRecords: request.sampleRecords,
    csv: {
      hasHeader: request.hasHeader,
      ...(delimiter === undefined ? {} : { delimiter }),
      ...(nullText === undefined ? {} : { nullText }),
    },
    onBadRecord: request.onBadRecord,
    badRecordsMax: request.badRecordsMax ?? 1000,
    onUnknownField: request.onUnknownField,
    follow: settings.has('follow'),
    readers: request.readers,
    memoryBytes: request.memoryBytes ?? 512 * 1024 ** 2,
    shutdownTimeoutMs: request.shutdownTimeoutMs ?? 30_000,
    ...(buckets === undefined ? {} : { buckets }),
    ...(bucketKey === undefined ? {} : { bucketKey }),
    ...keyed,
    ...(schemaFile === undefined ? {} : { schemaFile }),
    ...(columns === undefined || schemaFile !== undefined
      ? {}
      : { columns: new Map([...columns].map(([name, type]) => [name, type.text])) }),
    ...(inputFormat === undefined ? {} : { inputFormat }),
    ...(inputId === undefined ? {} : { inputId }),
    ...(freshnessMs === undefined ? {} : { freshnessMs }),
    ...(encoder === undefined ? {} : { encoder }),
  }
}

function readInputs(
  given: Arguments,
  folder: string,
  problems: Problems,
): readonly string[] | undefined {
  if (given.positionals.length === 0) {
    problems.add('CONFIG_INVALID', 'tier needs an input: a file, a glob, or - for stdin', {
      fix: 'sluice tier flights.ndjson --warehouse ./lake',
    })
    return undefined
  }
  return problems.attempt(() => expandInputs(given.positionals, folder))
}

/** Shared by all commands: nothing is written to or read from a place the user did not name. */
export function readWarehouse(
  settings: Settings,
  folder: string,
  problems: Problems,
): string | undefined {
  const value = settings.get('warehouse')
  if (value !== undefined) return problems.attempt(() => readLocation(value, folder).url)
  problems.add(
    'CONFIG_INVALID',
    '--warehouse is missing: nothing is written to a place not named',
    {
      fix: '--warehouse ./lake, or SLUICE_WAREHOUSE',
    },
  )
  return undefined
}

function readTable(
  settings: Settings,
  inputs: readonly string[] | undefined,
  folder: string,
  problems: Problems,
): readonly string[] | undefined {
  const value = settings.get('table')
  if (value !== undefined) return problems.attempt(() => parseTableName(value.text))
  if (inputs === undefined) return undefined
  const [only] = inputs
  const stem = inputs.length === 1 && only !== undefined && only !== '-' ? stemOf(only) : undefined
  if (stem !== undefined && plainStem.test(stem)) return ['default', stem]
  const missing = stem === undefined ? undefined : missingInput(only ?? '', folder)
  if (missing !== undefined) {
    // What comes of a misspelt name says nothing.
    problems.add(missing.code, missing.message, { details: missing.details })
    return undefined
  }
  const why =
    stem === undefined
      ? inputs.length > 1
        ? `there are ${inputs.length} inputs`
        : 'stdin has no name'
      : `${quoteValue(stem)} is no plain name`
  problems.add('CONFIG_INVALID', `--table is missing: ${why}`, { fix: '--table demo.flights' })
  return undefined
}

const plainStem = /^[\p{L}_][\p{L}\p{N}_-]*$/u
const extension =
  /(?:\.(?:ndjson|jsonl|json|csv|tsv|parquet|arrow|arrows|ipc|feather))?(?:\.(?:gz|gzip|zst|zstd))?$/i

/** `data/flights.ndjson.gz` → `flights`. */
function stemOf(path: string): string {
  return basename(path).replace(extension, '')
}

function readBuckets(value: Given): number {
  if (/^\d{1,30}$/.test(value.text) && Number(value.text) > bucketsMax) {
    throw new SluiceError(
      'CONFIG_INVALID',
      `${value.subject} ${value.text}: at most ${bucketsMax} buckets ` +
        '(each is a log, a split and a file per round)',
    )
  }
  return wholeNumber(value, { least: 1, most: bucketsMax, noun: 'bucket' })
}

function readReaders(value: Given): number {
  return wholeNumber(value, { least: 1, most: 256, noun: 'reader' })
}

function readSample(value: Given): number | 'all' {
  if (value.text === 'all') return 'all'
  return wholeNumber(value, { least: 1, most: 1_000_000_000, noun: 'record' })
}

function readInputFormat(value: Given): NonNullable<TierRequest['inputFormat']> {
  return choice(value, ['ndjson', 'csv', 'parquet', 'arrow'])
}

function readEncoder(value: Given): NonNullable<TierRequest['encoder']> {
  return choice(value, ['columnar', 'parquet-wasm', 'parquetjs-lite'])
}

function readOnBadRecord(value: Given): 'fail' | 'quarantine' {
  return choice(value, ['fail', 'quarantine'])
}

function readUnknownField(value: Given): 'fail' | 'quarantine' {
  const chosen = choice(value, ['fail', 'quarantine', 'evolve'])
  if (chosen !== 'evolve') return chosen
  throw new SluiceError(
    'CONFIG_INVALID',
    `${value.subject} evolve comes with schema evolution, not in this version`,
    { fix: 'fail, quarantine' },
  )
}

function readInputId(value: Given, inputs: readonly string[] | undefined): string {
  const { text, subject } = value
  if (inputs !== undefined && inputs.length > 1) {
    throw new SluiceError(
      'CONFIG_INVALID',
      `${subject}: there are ${inputs.length} inputs for one id`,
    )
  }
  if (text === '' || text.length > inputIdMax || escapeText(text) !== text || /[/\\]/.test(text)) {
    throw new SluiceError(
      'CONFIG_INVALID',
      `${subject} ${quoteValue(text)}: 1 to ${inputIdMax} characters without slashes ` +
        'and control characters',
    )
  }
  return text
}

function readDelimiter(value: Given): string {
  const text = value.text === '\\t' || value.text === 'tab' ? '\t' : value.text
  if (
    text.length === 1 &&
    text !== '"' &&
    text !== '\n' &&
    text !== '\r' &&
    displayWidth(text) < 2
  ) {
    if (text.charCodeAt(0) < 128) return text
  }
  throw new SluiceError(
    'CONFIG_INVALID',
    `${value.subject} ${quoteValue(value.text)}: one ASCII character, and no quote or line break`,
    { fix: `',' ';' '|' tab` },
  )
}

function nonEmpty(value: Given): string {
  if (value.text !== '') return value.text
  throw new SluiceError('CONFIG_INVALID', `${value.subject}: the value is empty`)
}

function refuseLater(settings: Settings, problems: Problems): void {
  const format = settings.get('lake-format')
  if (format !== undefined && format.text !== 'iceberg') {
    const known = format.text === 'paimon'
    problems.add(
      'CONFIG_INVALID',
      known
        ? `${format.subject} paimon comes with a later version`
        : `${format.subject} ${quoteValue(format.text)} is not known`,
      { fix: 'leave it out: tables are written as iceberg' },
    )
  }
  refuseCatalog(settings, problems)
}

/** The one catalog of this version needs no option; a URL or a name is refused. */
export function refuseCatalog(settings: Settings, problems: Problems): void {
  const catalog = settings.get('catalog')
  if (catalog === undefined || catalog.text === 'file') return
  if (/^[^/]*:\/\/[^/]*@/.test(catalog.text)) {
    problems.add('LOCATION_REFUSED', `${catalog.subject}: the URL contains credentials`, {
      fix: 'put them in SLUICE_CATALOG_CREDENTIAL',
    })
    return
  }
  problems.add(
    'CONFIG_INVALID',
    `${catalog.subject}: REST catalogs come with a later version; this one knows file`,
    { fix: 'leave it out' },
  )
}
