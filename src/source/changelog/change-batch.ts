import type { ColumnBatch } from '../../core/columns/column.ts'

/** What a change asks of the row of its key. */
export const changeOp = {
  upsert: 0,
  delete: 1,
  /**
   * The row before an update. With an upsert of the same key right behind it in the same batch the two
   * are one update; otherwise it deletes.
   */
  before: 2,
  /** Nothing: a change that was refused, which keeps its place among those of its input. */
  none: 3,
} as const

/** Changes in order, with the columns of the table. Of a delete only the key's columns count. */
export type ChangeBatch = {
  readonly records: ColumnBatch
  /** One `changeOp` for each record. */
  readonly ops: Uint8Array
  /** Columns that keep their old values; absent where every upsert has all of them. */
  readonly kept?: KeptColumns
}

export type KeptColumns = {
  /**
   * For each column undefined, or a bitmap in which 1 says that the record's value is to be kept from
   * the row there is (least significant bit first).
   */
  readonly columns: readonly (Uint8Array | undefined)[]
  /** What a kept value is where there is no row: null, or the record is refused. */
  readonly without: 'null' | 'refuse'
}

export type MergeEngine =
  /** The last row wins. */
  | { readonly kind: 'last_row' }
  /** The first row wins; later ones change nothing. */
  | { readonly kind: 'first_row' }
  /** A row is replaced by one whose version is not lower. */
  | { readonly kind: 'versioned'; readonly column: string }

export type ChangelogOptions = {
  readonly engine: MergeEngine
  /** `full` writes the row before an update and the row after it, `wal` only the one after it. */
  readonly image: 'full' | 'wal'
  readonly deletes: 'allow' | 'ignore' | 'disable'
}
