import type { RecordBatch } from 'apache-arrow'
import { fromArrow } from '../../core/columns/arrow.ts'
import { type ColumnBatch, sliceBatch } from '../../core/columns/column.ts'
import { SluiceError, isSluiceError } from '../../core/errors.ts'
import type { InputBatch, InputFormat, InputReader, InputTarget } from './input.ts'
import type { InputBytes } from './input-bytes.ts'
import { type ColumnMatch, matchColumns } from './match-columns.ts'
import { nullColumn } from './widen.ts'

export type WholeReaderOptions = {
  readonly name: string
  readonly format: InputFormat & ('parquet' | 'arrow')
  readonly target: InputTarget
  /** Record batches of the file in order; ended by `return`. */
  readonly batches: AsyncIterator<RecordBatch>
  /** SHA-256 of the whole file; empty for a stream, which cannot be read twice. */
  readonly digest: string
  /** Rows that are in already. */
  readonly skip: bigint
  readonly recordsMax: number
  readonly bytes: InputBytes
}

/** Reads a Parquet or Arrow file as a whole: positions are rows, the digest is that of the file. */
export class WholeReader implements InputReader {
  readonly name: string
  readonly format: InputFormat
  readonly #options: WholeReaderOptions
  readonly #allowLoss: ReadonlySet<string>
  #match: ColumnMatch | undefined
  /** Rows of the file's batch that is being handed out. */
  #current: ColumnBatch | undefined
  #from = 0
  #losses = 0
  #row = 0n
  #done = false
  /** A row that does not fit: said once everything before it was handed out. */
  #refused: SluiceError | undefined

  constructor(options: WholeReaderOptions) {
    this.#options = options
    this.name = options.name
    this.format = options.format
    const lossy = options.target.fields.filter((field) => field.allowPrecisionLoss === true)
    this.#allowLoss = new Set(lossy.map((field) => field.name))
  }

  progress(): { bytesRead: number; bytesTotal: number | undefined } {
    const { bytesRead, bytesTotal } = this.#options.bytes
    return { bytesRead: this.#done ? (bytesTotal ?? bytesRead) : bytesRead, bytesTotal }
  }

  async next(): Promise<InputBatch | undefined> {
    if (this.#done) return undefined
    while (this.#current === undefined || this.#from >= this.#current.length) {
      if (this.#refused !== undefined) throw this.#refused
      this.#current = await this.#read()
      this.#from = 0
      if (this.#current === undefined) {
        this.#done = true
        return this.#batch({ length: 0, columns: emptyColumns(this.#options.target) })
      }
      const before = this.#options.skip - this.#row
      if (before <= 0n) continue
      const skipped = before < BigInt(this.#current.length) ? Number(before) : this.#current.length
      this.#from = skipped
      this.#row += BigInt(skipped)
    }
    const to = Math.min(this.#current.length, this.#from + this.#options.recordsMax)
    const records = sliceBatch(this.#current, this.#from, to)
    this.#from = to
    return this.#batch(records)
  }

  async close(): Promise<void> {
    this.#done = true
    await this.#options.batches.return?.()
    await this.#options.bytes.close()
  }

  #batch(records: ColumnBatch): InputBatch {
    const startRecord = this.#row
    this.#row += BigInt(records.length)
    const precisionLosses = this.#losses
    this.#losses = 0
    return {
      records,
      startRecord,
      startPosition: startRecord,
      endPosition: this.#row,
      digest: () => this.#options.digest,
      bad: [],
      ended: this.#done,
      endedWithoutNewline: false,
      precisionLosses,
    }
  }

  async #read(): Promise<ColumnBatch | undefined> {
    const { name, format, target } = this.#options
    const batch = await this.#nextArrow()
    if (batch === undefined) return undefined
    try {
      const options = { allowPrecisionLoss: this.#allowLoss }
      const { fields, batch: columns, cutValues } = fromArrow(batch, options)
      this.#match ??= matchColumns(fields, target, name)
      this.#losses += cutValues
      const { records, refused } = this.#match(columns, this.#row)
      this.#refused = refused
      return records
    } catch (error) {
      throw corrupt(error, name, format)
    }
  }

  async #nextArrow(): Promise<RecordBatch | undefined> {
    try {
      const next = await this.#options.batches.next()
      return next.done === true ? undefined : next.value
    } catch (error) {
      throw corrupt(error, this.name, this.#options.format)
    }
  }
}

/** What an error of a decoder means to the user; our own errors stay as they are. */
export function corrupt(error: unknown, name: string, format: string): SluiceError {
  if (isSluiceError(error)) {
    return error.message.startsWith(name)
      ? error
      : new SluiceError(error.code, `${name}: ${error.message}`, {
          details: error.details,
          cause: error,
          ...(error.fix === undefined ? {} : { fix: error.fix }),
        })
  }
  const reason = (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? ''
  const what = format === 'parquet' ? 'Parquet' : 'Arrow'
  return new SluiceError('DATA_CORRUPT', `${name}: not a whole ${what} file (${reason})`, {
    cause: error,
    fix: `get a whole copy of ${name}`,
  })
}

function emptyColumns(target: InputTarget): ColumnBatch['columns'] {
  return target.fields.map((field) => nullColumn(field.type, 0))
}
