import type { ColumnBatch } from '../../core/columns/column.ts'
import type { KeptColumns } from '../changelog/change-batch.ts'
import type { RecordFault } from './record-fault.ts'

export type ParseBounds = {
  readonly from: number
  /** Text is there up to here. Behind it the buffer has room for one sentinel byte. */
  readonly to: number
  /** Nothing follows `to`. */
  readonly final: boolean
  /** Stop after this many records, or after the first record that ends at or behind `stopAt`. */
  readonly recordsMax: number
  readonly stopAt: number
  /** The line that `from` is in, from 1. */
  readonly line: number
  /** Some byte of the text is known not to be UTF-8, so each record has to be checked. */
  readonly doubtful: boolean
}

export type ParseStop = {
  /** Everything before is consumed; of a bad record, where the next record begins. */
  readonly at: number
  readonly records: number
  /** Newlines consumed. */
  readonly lines: number
  /** `more`: no whole record is left. `full`: a bound was met. */
  readonly why: 'more' | 'full' | 'bad'
  /** Why the last consumed record is bad, and where it lies. */
  readonly bad?: { readonly fault: RecordFault; readonly from: number; readonly to: number }
}

/** What a parser knows of records that are changes. */
export type ParsedChanges = {
  readonly ops: Uint8Array
  readonly kept?: KeptColumns
  readonly tombstones: number
  /** The line that each change is in, as `ParseBounds` counts them. */
  readonly lines: Uint32Array
}

/** Turns text into columns; keeps only its builders between calls. */
export interface RecordParser {
  /** The last record is half of what belongs into one batch. */
  readonly isOpen?: boolean
  parse(data: Buffer, bounds: ParseBounds): ParseStop
  /** Takes the columns of all records since the last call. */
  take(): {
    readonly records: ColumnBatch
    readonly precisionLosses: number
    readonly changes?: ParsedChanges
  }
}

/** Newlines in `[from, to)`. */
export function countLines(data: Buffer, from: number, to: number): number {
  let lines = 0
  for (let at = data.indexOf(10, from); at !== -1 && at < to; at = data.indexOf(10, at + 1)) {
    lines += 1
  }
  return lines
}
