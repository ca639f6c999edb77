import type { ColumnBatch } from '../../core/columns/column.ts'
import type { Field } from '../../core/schema/types.ts'
import type { SluiceError } from '../../core/errors.ts'
import type { KeptColumns } from '../changelog/change-batch.ts'
import type { BlockDigests } from '../ports.ts'

export const inputFormats = ['ndjson', 'csv', 'parquet', 'arrow'] as const
export type InputFormat = (typeof inputFormats)[number]

export type CsvOptions = {
  /** One ASCII character; by default `,`, and a tab for `.tsv`. */
  readonly delimiter?: string
  /** By default the first record names the columns. */
  readonly header?: boolean
  /** The unquoted text that means null; by default the empty one. */
  readonly nullText?: string
}

export type RecordPolicy = 'fail' | 'quarantine'

export type InputLimits = {
  /** Records in a batch; by default 8192. */
  readonly batchRecordsMax?: number
  /** Bytes of text in a batch, after which it ends; by default 4 MiB. */
  readonly batchBytesMax?: number
  /** Bytes of one record; by default 64 MiB. */
  readonly recordBytesMax?: number
}

/** Where reading goes on, as the lake remembers it. */
export type ResumePoint = {
  /** A byte of the text, a row of a Parquet or Arrow file. */
  readonly position: bigint
  /** Records before it. */
  readonly records: bigint
  /** SHA-256 in hex of everything before it. */
  readonly digest: string
  /** What else the lake says of it, for the message when it is another. */
  readonly blocks?: BlockDigests
  readonly tieredAt?: number
  /** The last record before it had no newline, so only a newline may follow. */
  readonly endedWithoutNewline?: boolean
}

/** What a reader needs to know about the table. */
export type InputTarget = {
  /** As messages name it: `demo.flights`. */
  readonly table: string
  readonly fields: readonly Field[]
  /** Column whose hash is the bucket: a record whose value there is null or empty has none. */
  readonly bucketKey?: string
  /** Columns of the primary key; its records are changes then. */
  readonly primaryKey?: readonly string[]
  /** How a record says what it changes; `upserts` unless given. */
  readonly changes?: ChangeForm
}

/** How the records of a primary-key table's input say what they do. */
export type ChangeForm =
  /** They do not: each is the new row of its key. */
  | { readonly kind: 'upserts' }
  /** A column has the operation, and is not stored. */
  | { readonly kind: 'op-column'; readonly column: string }
  /** Debezium envelopes, with the rows before and after. */
  | { readonly kind: 'debezium' }

/** What the records of a batch do. One record may be no change, or two. */
export type InputChanges = {
  /** One `changeOp` for each of the batch's `records`, which are changes. */
  readonly ops: Uint8Array
  readonly kept?: KeptColumns
  /** Records that are no change. */
  readonly tombstones: number
  /**
   * For a change that could be read and not be made: its record becomes a bad one.
   * @param row Of the change.
   */
  refuse(row: number, reason: string): RefusedChange
}

export type RefusedChange = {
  readonly bad: BadRecord
  /** The changes `[first, end)` are of the record. */
  readonly first: number
  readonly end: number
  /** What the run ends with; undefined where the record is set aside. */
  readonly error: SluiceError | undefined
  /** Everything before the record. */
  readonly before: Pick<InputBatch, 'endPosition' | 'digest' | 'blocks'>
}

/** A place in a text, as people find it: line and character from 1, byte of the decompressed text. */
export type TextPlace = { readonly line: bigint; readonly column: number; readonly byte: bigint }

/** A record that was set aside; it takes no place among the records. */
export type BadRecord = BadLine | BadRow

export type BadLine = {
  readonly kind: 'line'
  readonly row?: undefined
  /** From 1, in lines of the text; the line the record begins at. */
  readonly line: bigint
  /** Of the value that is wrong. */
  readonly place: TextPlace
  /** First byte of the record in the decompressed text. */
  readonly byte: bigint
  readonly code: 'RECORD_REFUSED'
  readonly reason: string
  readonly fix?: string
  /** The record as read, without its newline; of one that is too long, its beginning. */
  readonly raw: Uint8Array
}

/** A row of a Parquet or Arrow file. */
export type BadRow = {
  readonly kind: 'row'
  readonly line?: undefined
  readonly fix?: undefined
  /** From 0, as positions are. */
  readonly row: bigint
  readonly code: 'RECORD_REFUSED'
  readonly reason: string
  /** The row as JSON text. */
  readonly raw: Uint8Array
}

export type InputBatch = {
  readonly records: ColumnBatch
  /** Of an input whose records are changes that say what they do. */
  readonly changes?: InputChanges
  /** Ordinal of the first record, counted from 0 at the start of the input. */
  readonly startRecord: bigint
  readonly startPosition: bigint
  /** Where a replay goes on after this batch: a byte of the decompressed text, or a row. */
  readonly endPosition: bigint
  /** SHA-256 in hex of everything before `endPosition`; of the whole file for Parquet and Arrow. */
  digest(): string
  /** Of the same bytes; undefined for few of them, and for Parquet and Arrow. */
  readonly blocks?: BlockDigests | undefined
  readonly bad: readonly BadRecord[]
  /** Nothing follows, for now. */
  readonly ended: boolean
  /** The last record had no newline; the next run must be told (`ResumePoint`). */
  readonly endedWithoutNewline: boolean
  /** Values cut to microseconds, as their column allows. */
  readonly precisionLosses: number
}

export interface InputReader {
  readonly name: string
  readonly format: InputFormat
  /** Bytes read so far as they are stored, and how many there are if that is known. */
  progress(): { readonly bytesRead: number; readonly bytesTotal: number | undefined }
  /**
   * The next batch; nothing after the one that has `ended`.
   * @throws SluiceError after everything before it has been returned: RECORD_REFUSED at a bad record,
   * LIMIT_EXCEEDED at one too many, DATA_CORRUPT where the input is damaged; INPUT_CHANGED,
   * INPUT_UNREADABLE.
   */
  next(): Promise<InputBatch | undefined>
  close(): Promise<void>
}
