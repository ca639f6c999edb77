import { isSluiceError, SluiceError } from '../../core/errors.ts'
import type { ColumnBatch } from '../../core/columns/column.ts'
import { checkSchema } from '../../core/schema/check-schema.ts'
import type { Field } from '../../core/schema/types.ts'
import { type Inferred, inferFields } from '../../core/schema/infer.ts'
import {
  newObserved,
  type Observed,
  observedField,
  observeNumber,
  observeString,
} from '../../core/schema/observe.ts'
import { csvShape, type CsvShape } from './csv-header.ts'
import { CsvParser, type CsvSink } from './csv-parser.ts'
import type { CsvScanner } from './csv-scanner.ts'
import { ChangeObserver } from './infer-changes.ts'
import type { BadLine, ChangeForm, CsvOptions, InputBatch, InputFormat } from './input.ts'
import { InputBytes } from './input-bytes.ts'
import { isText, stemOf } from './input-format.ts'
import type { JsonCursor } from './json-cursor.ts'
import { type JsonSink, NdjsonParser } from './ndjson-parser.ts'
import { orDamage } from './damage.ts'
import { RecordFault } from './record-fault.ts'
import { PrefixHash } from './prefix-hash.ts'
import type { RecordParser } from './record-parser.ts'
import { placeText } from './refused.ts'
import { scanNumber, shortenedNumber } from './scalar-values.ts'
import { recordBytesDefault, TextReader } from './text-reader.ts'

export { isText }

const sampleBytes = 16 * 1024 * 1024
/** A first record may be larger than a sample: a header and the largest record end before this. */
const firstRecordBytes = 66 * 1024 * 1024

export type InferOptions = {
  readonly bytes: InputBytes
  /** See `detectFormat`. */
  readonly format: InputFormat
  readonly csv?: CsvOptions
  /** By default 10,000 records, and never more than 16 MiB and one record unless `all`. */
  readonly sampleRecords?: number | 'all'
  readonly primaryKey?: readonly string[]
  /** How records say what they change; they are rows unless given. */
  readonly changes?: ChangeForm
}

/**
 * The columns of a new table from the first records of an input, none of which is taken: the input can
 * be opened afterwards. Parquet and Arrow carry theirs. Records that cannot be read are left to the reader to refuse.
 * @throws SluiceError SCHEMA_UNSUPPORTED, INPUT_UNREADABLE (no record to learn from)
 */
export async function inferInput(options: InferOptions): Promise<Inferred> {
  const { bytes, format, primaryKey } = options
  if (!isText(format)) {
    const { wholeFields } = await import('./open-whole.ts')
    return await wholeFields(bytes, format, primaryKey)
  }
  try {
    return await inferText(options, format)
  } catch (error) {
    // What a damaged stream unfolds to may be anything.
    throw isSluiceError(error) ? await orDamage(bytes, error) : error
  }
}

async function inferText(options: InferOptions, format: 'ndjson' | 'csv'): Promise<Inferred> {
  const { bytes, primaryKey } = options
  const shape = format === 'csv' ? await csvShape(bytes, options.csv ?? {}) : undefined
  let root = newObserved()
  let changes = observerOf(root, options)
  let sampled = await observe(options, parserOf(root, shape, changes), 0)
  while (sampled.records === 0 && sampled.isCut && sampled.bytes < firstRecordBytes) {
    root = newObserved()
    changes = observerOf(root, options)
    const bytesMin = Math.min(2 * Math.max(sampled.bytes, sampleBytes), firstRecordBytes)
    sampled = await observe(options, parserOf(root, shape, changes), bytesMin)
  }
  if (sampled.records === 0) throw nothingToLearnFrom(bytes.name, shape, sampled)
  const declared = changes?.connectFields
  if (declared !== undefined)
    return { fields: withKey(declared, primaryKey, bytes.name), notes: [] }
  return inferFields(root, {
    input: bytes.name,
    form: format === 'csv' ? 'csv' : 'json',
    ...(primaryKey === undefined ? {} : { primaryKey }),
  })
}

/** Says what is wrong with the first record, since none could be read. */
function nothingToLearnFrom(
  name: string,
  shape: CsvShape | undefined,
  { firstBad, isCut }: Sampled,
): SluiceError {
  if (firstBad === undefined && isCut) {
    const line = shape?.hasHeader === true ? 2 : 1
    const limit = recordBytesDefault.toLocaleString('en-US')
    return new SluiceError(
      'RECORD_REFUSED',
      `${name} line ${line}: a record of more than ${limit} bytes, so no column types`,
      { fix: 'shorten the record, or declare the columns with --schema', details: { input: name } },
    )
  }
  if (firstBad === undefined) {
    const what = shape?.names === undefined ? 'no records' : 'a header without records'
    return new SluiceError('INPUT_UNREADABLE', `${name}: ${what}, so no column types`, {
      fix: 'declare the columns with --schema',
    })
  }
  const { line, place, reason, raw, fix } = firstBad
  const isPretty = shape === undefined && Buffer.from(raw).toString('latin1').trim() === '{'
  return new SluiceError(
    'INPUT_UNREADABLE',
    isPretty
      ? `${name} has objects over several lines; tier wants one record per line`
      : `${name} line ${String(line)}: ${reason}; no record can be read, so no column types`,
    {
      where: placeText(name, place),
      fix: isPretty
        ? `jq -c . ${name} | npx sluice tier - --input-id ${stemOf(name)} …`
        : (fix ?? 'correct the line and run the same command again'),
      details: { input: name, line: place.line, column: place.column, byte: place.byte },
    },
  )
}

/** Columns that a Connect schema gives: all nullable but those of the key. */
function withKey(
  fields: readonly Field[],
  primaryKey: readonly string[] | undefined,
  name: string,
): readonly Field[] {
  checkSchema(fields, name)
  return fields.map((field) =>
    primaryKey?.includes(field.name) === true
      ? { ...field, type: { ...field.type, nullable: false } }
      : field,
  )
}

function observerOf(root: Observed, { changes }: InferOptions): ChangeObserver | undefined {
  if (changes === undefined || changes.kind === 'upserts') return undefined
  return new ChangeObserver(root, changes, observeValue)
}

function parserOf(
  root: Observed,
  shape: CsvShape | undefined,
  changes: ChangeObserver | undefined,
): RecordParser {
  if (shape === undefined) return new NdjsonParser(changes ?? new JsonObserver(root))
  const { delimiter, hasHeader } = shape
  return new CsvParser(new CsvObserver(root, shape), { delimiter, skipHeader: hasHeader })
}

type Sampled = {
  readonly records: number
  readonly bytes: number
  readonly isCut: boolean
  readonly firstBad: BadLine | undefined
}

/** Feeds the sample to the parser; how many records it had, and whether the input goes on behind it. */
async function observe(
  options: InferOptions,
  parser: RecordParser,
  bytesMin: number,
): Promise<Sampled> {
  const { bytes, format, sampleRecords = 10_000 } = options
  const { name, location } = bytes
  const all = sampleRecords === 'all'
  if (all && location.kind === 'stream') {
    throw new SluiceError('CONFIG_INVALID', `${name}: --sample-records all needs a file`, {
      fix: 'leave --sample-records out, or declare the columns with --schema',
    })
  }
  const { head, isCut } = all
    ? { head: Buffer.alloc(0), isCut: false }
    : await enoughRecords(bytes, sampleRecords, bytesMin)
  const stream = async function* (): AsyncGenerator<Uint8Array> {
    yield await Promise.resolve(head)
    // It goes on in no way: then the last record of the sample is not whole.
    if (bytes.failure !== undefined) throw bytes.failure
  }
  const sample = await InputBytes.open({
    name,
    location: all ? location : { kind: 'stream', bytes: stream() },
  })
  const reader = new TextReader({
    bytes: sample,
    format,
    parser,
    onBadRecord: 'quarantine',
    onUnknownField: 'quarantine',
    badRecordsMax: Number.POSITIVE_INFINITY,
    limits: all ? {} : { batchRecordsMax: sampleRecords, batchBytesMax: 2 * sampleBytes },
    // The last record of a sample may be cut off.
    follow: isCut,
    start: {
      position: 0n,
      records: 0n,
      lines: 0n,
      hash: new PrefixHash(),
      rest: Buffer.alloc(0),
      awaitsNewline: false,
    },
  })
  try {
    let records = 0
    let firstBad: BadLine | undefined
    for (;;) {
      const batch = await nextOr(reader, records > 0)
      records += batch?.records.length ?? 0
      firstBad ??= batch?.bad.find((bad) => bad.kind === 'line')
      if (batch === undefined || batch.ended || !all) {
        return { records, bytes: head.length, isCut, firstBad }
      }
    }
  } finally {
    await reader.close()
  }
}

/** What cannot be read on is left to the reader, as long as something was learned. */
async function nextOr(reader: TextReader, hasSome: boolean): Promise<InputBatch | undefined> {
  try {
    return await reader.next()
  } catch (error) {
    if (hasSome && isSluiceError(error)) return undefined
    throw error
  }
}

/** The start of the input with at least this many lines and bytes, as far as the sample goes. */
async function enoughRecords(
  bytes: InputBytes,
  records: number,
  bytesMin: number,
): Promise<{ readonly head: Buffer; readonly isCut: boolean }> {
  const bytesMax = Math.max(sampleBytes, bytesMin)
  for (let size = Math.max(1024 * 1024, bytesMin); ; size *= 4) {
    const asked = Math.min(size, bytesMax)
    const head = await bytes.head(asked)
    const isCut = head.length >= asked
    if (!isCut || asked === bytesMax) return { head, isCut }
    let lines = 0
    for (let at = head.indexOf(10); at !== -1 && lines <= records; at = head.indexOf(10, at + 1)) {
      lines += 1
    }
    // A CSV record may take several lines; then the sample is smaller, which does no harm.
    if (lines > records) return { head, isCut }
  }
}

/** Keeps no values, so there is nothing to forget but what a bad record added to the types. */
class JsonObserver implements JsonSink {
  readonly #root: Observed

  constructor(root: Observed) {
    this.#root = root
  }

  read(cursor: JsonCursor, line: number): void {
    const start = cursor.at
    if (cursor.skipSpace() !== 123) throw cursor.unexpected('an object')
    // Checked as a whole first, so that a bad record leaves no trace in the types.
    cursor.skipValue()
    if (cursor.skipSpace() !== 10) throw cursor.unexpected('the end of the line')
    cursor.at = start
    observeValue(cursor, this.#root, line)
  }

  truncate(): void {
    // Nothing was kept of a bad record.
  }

  take(records: number): ColumnBatch {
    return { length: records, columns: [] }
  }
}

function observeValue(cursor: JsonCursor, observed: Observed, line: number): void {
  const byte = cursor.skipSpace()
  const at = cursor.at
  if (byte === 34) {
    cursor.scanString()
    observeString(observed, cursor.text, { from: cursor.textFrom, to: cursor.textTo, line })
  } else if (byte === 123) observeObject(cursor, observed, line)
  else if (byte === 91) observeArray(cursor, observed, line)
  else {
    cursor.skipValue()
    const text = cursor.data.toString('latin1', at, cursor.at)
    if (text === 'true' || text === 'false') observed.boolean ??= { line, text }
    else if (text !== 'null') observeNumber(observed, text, line)
  }
}

function observeObject(cursor: JsonCursor, observed: Observed, line: number): void {
  observed.object ??= { line, text: '{' }
  cursor.enter()
  if (cursor.skipSpace() !== 125) {
    for (;;) {
      cursor.skipSpace()
      cursor.scanString()
      const name = cursor.text.toString('utf8', cursor.textFrom, cursor.textTo)
      cursor.expect(58, '":"')
      observeValue(cursor, observedField(observed, name), line)
      if (cursor.skipSpace() === 125) break
      cursor.at += 1
    }
  }
  cursor.leave()
}

function observeArray(cursor: JsonCursor, observed: Observed, line: number): void {
  observed.array ??= { line, text: '[' }
  cursor.enter()
  if (cursor.skipSpace() !== 93) {
    observed.element ??= newObserved()
    for (;;) {
      observeValue(cursor, observed.element, line)
      if (cursor.skipSpace() === 93) break
      cursor.at += 1
    }
  }
  cursor.leave()
}

class CsvObserver implements CsvSink {
  losses = 0
  readonly #columns: readonly Observed[]
  readonly #nullText: Buffer

  constructor(root: Observed, shape: CsvShape) {
    this.#columns = (shape.names ?? []).map((name) => observedField(root, name))
    this.#nullText = Buffer.from(shape.nullText)
  }

  read(data: Buffer, scanner: CsvScanner, line: number): void {
    const { bounds, fields } = scanner
    if (fields !== this.#columns.length) throw new RecordFault(bounds[0] ?? 0, 'another width')
    for (const [index, observed] of this.#columns.entries()) {
      const from = bounds[3 * index] ?? 0
      const to = bounds[3 * index + 1] ?? 0
      const quoted = bounds[3 * index + 2] !== 0
      if (!quoted && this.#nullText.equals(data.subarray(from, to))) continue
      observePlain(observed, data, { from, to, line })
    }
  }

  truncate(): void {
    // Nothing was kept of a bad record.
  }

  take(records: number): ColumnBatch {
    return { length: records, columns: [] }
  }
}

function observePlain(
  observed: Observed,
  data: Buffer,
  range: { readonly from: number; readonly to: number; readonly line: number },
): void {
  const { from, to, line } = range
  if (scanNumber(data, from) === to) {
    observeNumber(observed, data.toString('latin1', from, to), line)
    return
  }
  const shortened = shortenedNumber(data, from, to)
  if (shortened !== undefined) {
    observeNumber(observed, shortened, line)
    return
  }
  const text = to - from > 5 ? '' : data.toString('latin1', from, to)
  if (text === 'true' || text === 'false') observed.boolean ??= { line, text }
  else observeString(observed, data, range)
}
