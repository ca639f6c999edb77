/**
 * Column types of Fluss, as a closed union. `nullable` is part of the type at every level, as it is
 * in Fluss and in Iceberg.
 */
export type DataType = { readonly nullable: boolean } & (
  | { readonly kind: 'boolean' }
  | { readonly kind: 'tinyint' }
  | { readonly kind: 'smallint' }
  | { readonly kind: 'int' }
  | { readonly kind: 'bigint' }
  | { readonly kind: 'float' }
  | { readonly kind: 'double' }
  /** 1 ≤ precision ≤ 38, 0 ≤ scale ≤ precision. */
  | { readonly kind: 'decimal'; readonly precision: number; readonly scale: number }
  | { readonly kind: 'char'; readonly length: number }
  | { readonly kind: 'string' }
  | { readonly kind: 'binary'; readonly length: number }
  | { readonly kind: 'bytes' }
  | { readonly kind: 'date' }
  /** Digits of a second, 0 to 9; finer than 6 only where the column allows the loss. */
  | { readonly kind: 'time'; readonly precision: number }
  | { readonly kind: 'timestamp'; readonly precision: number }
  | { readonly kind: 'timestamp_ltz'; readonly precision: number }
  | { readonly kind: 'array'; readonly element: DataType }
  | { readonly kind: 'map'; readonly key: DataType; readonly value: DataType }
  | { readonly kind: 'row'; readonly fields: readonly Field[] }
)

export type DataTypeKind = DataType['kind']

export type Field = {
  readonly name: string
  readonly type: DataType
  readonly comment?: string
  /** Allows TIMESTAMP(7..9) and TIME(7..9) to be cut to micros; counted in the receipt. */
  readonly allowPrecisionLoss?: boolean
}

/** What the user defines: the columns of a table, without system columns. */
export type TableSchema = { readonly fields: readonly Field[] }

/** A field with the ids that a lake table gave to it and to its children. */
export type IdField = {
  readonly id: number
  readonly name: string
  readonly type: DataType
  readonly comment?: string
  /** ARRAY: `[element]`; MAP: `[key, value]`; ROW: its fields; otherwise empty. */
  readonly children: readonly IdField[]
}

/** Columns every tiered log table ends with, after those of the user. All are required. */
export const systemColumns = {
  bucket: '__bucket',
  offset: '__offset',
  timestamp: '__timestamp',
} as const

export const systemFields: readonly Field[] = [
  { name: systemColumns.bucket, type: { kind: 'int', nullable: false } },
  { name: systemColumns.offset, type: { kind: 'bigint', nullable: false } },
  { name: systemColumns.timestamp, type: { kind: 'timestamp_ltz', precision: 6, nullable: false } },
]
