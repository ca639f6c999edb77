import type { RecordBatch } from 'apache-arrow'
import { fromArrow } from '../../core/columns/arrow.ts'
import { type ColumnBatch, sliceBatch } from '../../core/columns/column.ts'
import { decoderReason } from '../../core/columns/decoder-reason.ts'
import { takeBatch } from '../../core/columns/take.ts'
import { type Details, SluiceError, isSluiceError } from '../../core/errors.ts'
import type { Field } from '../../core/schema/types.ts'
import { BadRecords, type BadRecordRules } from './bad-records.ts'
import type { BadRow, InputBatch, InputFormat, InputReader, InputTarget } from './input.ts'
import type { InputBytes } from './input-bytes.ts'
import { type ColumnMatch, matchColumns, RowFaults } from './match-columns.ts'
import { rowJson } from './row-json.ts'
import { nullColumn } from './widen.ts'

export type WholeReaderOptions = {
  readonly name: string
  readonly format: InputFormat & ('parquet' | 'arrow')
  readonly target: InputTarget
  readonly rules: BadRecordRules
  /** Record batches of the file in order; ended by `return`. */
  readonly batches: AsyncIterator<RecordBatch>
  /** SHA-256 of the whole file; empty for a stream, which cannot be read twice. */
  readonly digest: string
  /** Rows that are in already, and the records among them. */
  readonly skip: { readonly rows: bigint; readonly records: bigint }
  readonly recordsMax: number
  readonly bytes: InputBytes
}

/** Rows of a file as they were read at once. */
type Rows = {
  /** In the columns of the table. */
  readonly records: ColumnBatch
  readonly faults: RowFaults
  /** In the columns of the file, to show a bad row as it is. */
  readonly fields: readonly Field[]
  readonly source: ColumnBatch
}

/** Reads a Parquet or Arrow file as a whole: positions are rows, the digest is that of the file. */
export class WholeReader implements InputReader {
  readonly name: string
  readonly format: InputFormat
  readonly #options: WholeReaderOptions
  readonly #badRecords: BadRecords
  readonly #allowLoss: ReadonlySet<string>
  #match: ColumnMatch | undefined
  #current: Rows | undefined
  /** First row of `#current` that was not handed out. */
  #from = 0
  #losses = 0
  #row = 0n
  #records: bigint
  #done = false
  /** Said once everything before it was handed out. */
  #failure: SluiceError | undefined

  constructor(options: WholeReaderOptions) {
    this.#options = options
    this.name = options.name
    this.format = options.format
    this.#badRecords = new BadRecords(options.name, options.rules)
    this.#records = options.skip.records
    const lossy = options.target.fields.filter((field) => field.allowPrecisionLoss === true)
    this.#allowLoss = new Set(lossy.map((field) => field.name))
  }

  progress(): { bytesRead: number; bytesTotal: number | undefined } {
    const { bytesRead, bytesTotal } = this.#options.bytes
    return { bytesRead: this.#done ? (bytesTotal ?? bytesRead) : bytesRead, bytesTotal }
  }

  async next(): Promise<InputBatch | undefined> {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#done) return undefined
    const current = await this.#rowsLeft()
    if (current === undefined) {
      this.#done = true
      return this.#batch({ length: 0, columns: emptyColumns(this.#options.target) }, [], 0)
    }
    const from = this.#from
    const bad: BadRow[] = []
    const { records, failure } = this.#goodRows(current, bad)
    this.#failure = failure
    if (failure !== undefined && records.length === 0 && bad.length === 0) throw failure
    return this.#batch(records, bad, this.#from - from)
  }

  async close(): Promise<void> {
    this.#done = true
    await this.#options.batches.return?.()
    await this.#options.bytes.close()
  }

  #batch(records: ColumnBatch, bad: readonly BadRow[], rows: number): InputBatch {
    const startRecord = this.#records
    const startPosition = this.#row
    this.#records += BigInt(records.length)
    this.#row += BigInt(rows)
    const precisionLosses = this.#losses
    this.#losses = 0
    return {
      records,
      startRecord,
      startPosition,
      endPosition: this.#row,
      digest: () => this.#options.digest,
      bad,
      ended: this.#done,
      endedWithoutNewline: false,
      precisionLosses,
    }
  }

  /** Rows of which some were not handed out and are not in already; nothing at the end. */
  async #rowsLeft(): Promise<Rows | undefined> {
    for (;;) {
      const current = this.#current
      if (current !== undefined && this.#from < current.records.length) return current
      this.#from = 0
      this.#current = await this.#read()
      if (this.#current === undefined) return undefined
      const before = this.#options.skip.rows - this.#row
      if (before <= 0n) continue
      const { length } = this.#current.records
      this.#from = before < BigInt(length) ? Number(before) : length
      this.#row += BigInt(this.#from)
    }
  }

  /** Takes the next rows: those that fit, up to one that ends the run. */
  #goodRows(
    { records, faults, fields, source }: Rows,
    bad: BadRow[],
  ): { readonly records: ColumnBatch; readonly failure: SluiceError | undefined } {
    let failure: SluiceError | undefined
    const from = this.#from
    let to = Math.min(records.length, from + this.#options.recordsMax)
    const good = new Int32Array(to - from)
    let count = 0
    for (let at = from; at < to && faults.size > 0; at += 1) {
      const fault = faults.at(at)
      if (fault === undefined) {
        good[count++] = at
        continue
      }
      const { reason, kind, column } = fault
      const record: BadRow = {
        kind: 'row',
        row: this.#row + BigInt(at - from),
        code: 'RECORD_REFUSED',
        reason,
        raw: rowJson(fields, source, at, column),
      }
      const before = { records: this.#records + BigInt(count) }
      failure = this.#badRecords.judge(record, kind, before)
      if (failure === undefined) bad.push(record)
      else to = at
    }
    this.#from = to
    const isWhole = faults.size === 0 || count === to - from
    return {
      records: isWhole ? sliceBatch(records, from, to) : takeBatch(records, good, count),
      failure,
    }
  }

  async #read(): Promise<Rows | undefined> {
    const { name, format, target, rules } = this.#options
    try {
      const next = await this.#options.batches.next()
      if (next.done === true) return undefined
      const faults = new RowFaults()
      const { fields, batch, cutValues } = fromArrow(next.value, {
        allowPrecisionLoss: this.#allowLoss,
        onUnfit: (at, reason, column) => {
          faults.add(at, { reason, kind: 'value', column })
        },
      })
      this.#match ??= matchColumns(fields, target, name, rules.onUnknownField)
      this.#losses += cutValues
      return { records: this.#match(batch, faults), faults, fields, source: batch }
    } catch (error) {
      const place = { input: name, row: this.#row, recordsBefore: this.#records }
      throw corrupt(error, name, format, place)
    }
  }
}

/** What an error of a decoder means to the user; our own errors stay as they are. */
export function corrupt(
  error: unknown,
  name: string,
  format: string,
  details: Details = {},
): SluiceError {
  if (isSluiceError(error)) {
    const isOurs = error.message.startsWith(name)
    // Memory that contradicts itself is what a damaged file decodes to.
    const code = !isOurs && error.code === 'INPUT_UNREADABLE' ? 'DATA_CORRUPT' : error.code
    const fix = error.fix ?? (code === 'DATA_CORRUPT' ? mend(name, details) : undefined)
    return new SluiceError(code, isOurs ? error.message : `${name}: ${error.message}`, {
      details: { ...error.details, ...details },
      cause: error,
      ...(fix === undefined ? {} : { fix }),
    })
  }
  const what = format === 'parquet' ? 'Parquet' : 'Arrow'
  const message = `${name}: not a whole ${what} file (${decoderReason(error)})`
  return new SluiceError('DATA_CORRUPT', message, {
    details: { input: name, ...details },
    cause: error,
    fix: mend(name, details),
  })
}

/** Another file is another input: what is in of the damaged one would be in twice. */
function mend(name: string, { recordsBefore }: Details): string {
  const isSome = typeof recordsBefore === 'bigint' && recordsBefore > 0n
  return isSome
    ? `roll the table back, get a whole copy of ${name} and run the same command again`
    : `get a whole copy of ${name}`
}

function emptyColumns(target: InputTarget): ColumnBatch['columns'] {
  return target.fields.map((field) => nullColumn(field.type, 0))
}
