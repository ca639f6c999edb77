import type { Field, RecordBatch } from 'apache-arrow'
import { fromArrow } from '../core/columns/arrow.ts'
import { type Column, isNull } from '../core/columns/column.ts'
import { readFooter } from '../core/columns/parquet-groups.ts'
import { parquetBatches } from '../core/columns/parquet-in.ts'
import { SluiceError } from '../core/errors.ts'
import { damage } from './damage.ts'
import { fieldIdOf, type Tallies, tally } from './leaves.ts'
import { bucketOf } from './murmur.ts'
import { OffsetRuns, type Run } from './offsets.ts'
import { checkPages } from './page-checksums.ts'

/** What the audit wants to know of a data file besides its statistics. */
export type FileQuestions = {
  /** Columns by id; the name is for files without ids. */
  readonly bucket: { readonly id: number; readonly name: string } | undefined
  readonly offset: { readonly id: number; readonly name: string } | undefined
  /** The bucket transform of its partition spec. */
  readonly hash: { readonly columnId: number; readonly buckets: number } | undefined
  /** The value its partition has. */
  readonly partition: number | null | undefined
}

/** A row whose bucket is not that of its file. */
export type Stray = {
  readonly row: bigint
  readonly column: string
  readonly found: number | null
}

export type FileFacts = {
  readonly rows: bigint
  readonly tallies: Tallies
  /** What the file calls its top-level columns, by id; nothing where it has no ids. */
  readonly names: ReadonlyMap<number, string>
  /** Undefined when the file has no offsets. */
  readonly offsets: OffsetRuns | undefined
  readonly runs: readonly Run[] | undefined
  /** The one `__bucket` of all its rows; undefined when there is none or several. */
  readonly bucket: number | undefined
  /** The first row whose `__bucket` differs from the partition. */
  readonly strayBucket: Stray | undefined
  readonly strayCount: bigint
  /** The first row whose key belongs into another bucket. */
  readonly strayKey: Stray | undefined
}

/**
 * Decodes a whole data file, one row group in memory at a time, and holds its pages to their checksums.
 * @throws SluiceError DATA_CORRUPT
 */
export async function readFacts(blob: Blob, questions: FileQuestions): Promise<FileFacts> {
  const reading = new Reading(questions)
  for await (const batch of parquetBatches(blob, 'the file', { inspect: checkPages })) {
    try {
      reading.take(batch)
    } catch (error) {
      if (error instanceof SluiceError) throw error
      throw damage(error instanceof Error ? error.message : String(error))
    }
  }
  return reading.finish()
}

/** The rows that the footer of a Parquet file counts. @throws SluiceError DATA_CORRUPT */
export async function footerRows(blob: Blob): Promise<bigint> {
  const { rows, groups } = await readFooter(blob)
  const inGroups = groups.reduce((sum, group) => sum + group.rows, 0n)
  if (inGroups === rows) return rows
  throw damage(`its footer says ${rows.toString()} rows, its row groups ${inGroups.toString()}`)
}

class Reading {
  readonly #questions: FileQuestions
  readonly #tallies: Tallies = new Map()
  readonly #names = new Map<number, string>()
  readonly #offsets = new OffsetRuns()
  readonly #buckets = new Set<number | null>()
  #hasOffsets = false
  #rows = 0n
  #strayBucket: Stray | undefined
  #strayCount = 0n
  #strayKey: Stray | undefined

  constructor(questions: FileQuestions) {
    this.#questions = questions
  }

  take(batch: RecordBatch): void {
    const { bucket, offset, hash } = this.#questions
    for (const [at, field] of batch.schema.fields.entries()) {
      const id = fieldIdOf(field)
      if (id !== undefined && this.#rows === 0n) this.#names.set(id, field.name)
      const column = columnAt(batch, at, field)
      if (column === undefined) continue
      tally(this.#tallies, field, column)
      const is = (wanted: { readonly id: number; readonly name: string } | undefined): boolean =>
        wanted !== undefined &&
        (fieldIdOf(field) === undefined
          ? field.name === wanted.name
          : fieldIdOf(field) === wanted.id)
      if (is(offset) && column.layout === 'int64') {
        this.#hasOffsets = true
        this.#offsets.add(column.values, column.length, (row) => !isNull(column, row))
      }
      if (is(bucket)) this.#takeBuckets(column, field.name)
      if (hash !== undefined && fieldIdOf(field) === hash.columnId) {
        this.#takeKeys(column, field.name, hash.buckets)
      }
    }
    this.#rows += BigInt(batch.numRows)
  }

  finish(): FileFacts {
    const [only] = this.#buckets.size === 1 ? this.#buckets : []
    const runs = this.#offsets.finish()
    return {
      rows: this.#rows,
      tallies: this.#tallies,
      names: this.#names,
      offsets: this.#hasOffsets ? this.#offsets : undefined,
      runs,
      bucket: only ?? undefined,
      strayBucket: this.#strayBucket,
      strayCount: this.#strayCount,
      strayKey: this.#strayKey,
    }
  }

  #takeBuckets(column: Column, name: string): void {
    if (column.layout !== 'int32') return
    const { partition } = this.#questions
    for (let row = 0; row < column.length; row += 1) {
      const found = isNull(column, row) ? null : (column.values[row] ?? 0)
      if (this.#buckets.size < 3) this.#buckets.add(found)
      // A row of another writer may have no bucket; where it is, its own partition decides.
      if (found === partition || partition === undefined || found === null) continue
      this.#strayCount += 1n
      this.#strayBucket ??= { row: this.#rows + BigInt(row), column: name, found }
    }
  }

  #takeKeys(column: Column, name: string, buckets: number): void {
    if (this.#strayKey !== undefined) return
    const { partition } = this.#questions
    for (let row = 0; row < column.length; row += 1) {
      const found = bucketOf(column, row, buckets)
      if (found === partition || found === undefined || partition === undefined) continue
      this.#strayKey = { row: this.#rows + BigInt(row), column: name, found }
      return
    }
  }
}

/** A column on its own, so that one of a type we have no form for hides no other. */
export function columnAt(batch: RecordBatch, at: number, field: Field): Column | undefined {
  try {
    return fromArrow(batch.selectAt([at])).batch.columns[0]
  } catch (error) {
    if (error instanceof SluiceError && error.code === 'SCHEMA_UNSUPPORTED') return undefined
    if (error instanceof SluiceError) throw error
    throw damage(`column ${field.name}: ${error instanceof Error ? error.message : String(error)}`)
  }
}
