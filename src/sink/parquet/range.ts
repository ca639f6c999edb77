import type { Column } from '../../core/columns/column.ts'
import type { Part } from './plain.ts'

/** Least and greatest value as Parquet writes them in statistics. */
export type Extremes = { readonly min: Uint8Array; readonly max: Uint8Array }

/** Least and greatest of the values seen so far. */
export interface Range {
  /** NaN among the values; they are in no bound. */
  readonly nanCount: number
  add(column: Column, part: Part): void
  /** Undefined when there was no value, or only NaN. */
  extremes(): Extremes | undefined
  /** Takes what `other`, of the same leaf, has seen. */
  merge(other: Range): void
}
