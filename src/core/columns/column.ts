import { check, unreachable } from '../never.ts'
import type { DataType } from '../schema/types.ts'

type Base = {
  readonly type: DataType
  /** Number of elements, nulls included. */
  readonly length: number
  readonly nullCount: number
  /** Arrow validity bitmap, 1 = not null, least significant bit first; absent when no element is null. */
  readonly validity: Uint8Array | undefined
  /** Element `i` is bit `bitOffset + i` of `validity` and of the values of a `bit` column. */
  readonly bitOffset: number
}

/**
 * One column in Arrow layout. `values[i]` (and for `int128` the two words at `2i`, low word first)
 * belongs to element `i`; a null's value is unspecified. `offsets` has `length + 1` entries and need
 * not begin with 0: element `i` is `[offsets[i], offsets[i + 1])` of `values` or of the child.
 *
 * BOOLEAN is `bit`; TINYINT to INT and DATE (days since 1970) are `int32`; BIGINT, TIME, TIMESTAMP
 * and TIMESTAMP_LTZ (microseconds) are `int64`; every DECIMAL is `int128` (unscaled).
 */
export type Column =
  | (Base & { readonly layout: 'bit'; readonly values: Uint8Array })
  | (Base & { readonly layout: 'int32'; readonly values: Int32Array })
  | (Base & { readonly layout: 'int64'; readonly values: BigInt64Array })
  | (Base & { readonly layout: 'int128'; readonly values: BigInt64Array })
  | (Base & { readonly layout: 'float32'; readonly values: Float32Array })
  | (Base & { readonly layout: 'float64'; readonly values: Float64Array })
  | (Base & { readonly layout: 'bytes'; readonly offsets: Int32Array; readonly values: Uint8Array })
  | (Base & { readonly layout: 'list'; readonly offsets: Int32Array; readonly element: Column })
  | (Base & {
      readonly layout: 'map'
      readonly offsets: Int32Array
      readonly key: Column
      readonly value: Column
    })
  | (Base & { readonly layout: 'struct'; readonly fields: readonly Column[] })

export type Layout = Column['layout']

/** Columns of equal length; what moves from ingest over the log to the file. */
export type ColumnBatch = { readonly length: number; readonly columns: readonly Column[] }

export function layoutOf(type: DataType): Layout {
  switch (type.kind) {
    case 'boolean':
      return 'bit'
    case 'tinyint':
    case 'smallint':
    case 'int':
    case 'date':
      return 'int32'
    case 'bigint':
    case 'time':
    case 'timestamp':
    case 'timestamp_ltz':
      return 'int64'
    case 'decimal':
      return 'int128'
    case 'float':
      return 'float32'
    case 'double':
      return 'float64'
    case 'char':
    case 'string':
    case 'binary':
    case 'bytes':
      return 'bytes'
    case 'array':
      return 'list'
    case 'map':
      return 'map'
    case 'row':
      return 'struct'
    default:
      return unreachable(type)
  }
}

export function isNull(column: Base, index: number): boolean {
  if (column.validity === undefined) return false
  const bit = column.bitOffset + index
  return (((column.validity[bit >> 3] ?? 0) >> (bit & 7)) & 1) === 0
}

/** Reads element `index` of a `bit` column. */
export function bitAt(column: Column & { readonly layout: 'bit' }, index: number): boolean {
  const bit = column.bitOffset + index
  return (((column.values[bit >> 3] ?? 0) >> (bit & 7)) & 1) === 1
}

/** Elements `[from, to)` without copying a value. */
export function sliceColumn(column: Column, from: number, to: number): Column {
  check(from >= 0 && from <= to && to <= column.length, 'a slice lies inside its column')
  if (from === 0 && to === column.length) return column
  const length = to - from
  const bitOffset = column.bitOffset + from
  const nullCount =
    column.validity === undefined ? 0 : length - countOnes(column.validity, bitOffset, length)
  const base = {
    type: column.type,
    length,
    nullCount,
    validity: nullCount === 0 ? undefined : column.validity,
    bitOffset,
  }
  switch (column.layout) {
    case 'bit':
      return { ...base, layout: 'bit', values: column.values }
    case 'int32':
      return { ...base, layout: 'int32', values: column.values.subarray(from, to) }
    case 'int64':
      return { ...base, layout: 'int64', values: column.values.subarray(from, to) }
    case 'int128':
      return { ...base, layout: 'int128', values: column.values.subarray(2 * from, 2 * to) }
    case 'float32':
      return { ...base, layout: 'float32', values: column.values.subarray(from, to) }
    case 'float64':
      return { ...base, layout: 'float64', values: column.values.subarray(from, to) }
    case 'bytes':
      return {
        ...base,
        layout: 'bytes',
        offsets: column.offsets.subarray(from, to + 1),
        values: column.values,
      }
    case 'list':
      return {
        ...base,
        layout: 'list',
        offsets: column.offsets.subarray(from, to + 1),
        element: column.element,
      }
    case 'map':
      return {
        ...base,
        layout: 'map',
        offsets: column.offsets.subarray(from, to + 1),
        key: column.key,
        value: column.value,
      }
    case 'struct':
      return {
        ...base,
        layout: 'struct',
        fields: column.fields.map((field) => sliceColumn(field, from, to)),
      }
    default:
      return unreachable(column)
  }
}

export function sliceBatch(batch: ColumnBatch, from: number, to: number): ColumnBatch {
  return { length: to - from, columns: batch.columns.map((each) => sliceColumn(each, from, to)) }
}

/** Bytes the elements take, not the buffers they may share with others. For budgets. */
export function columnBytes(column: Column): number {
  const validity = column.validity === undefined ? 0 : (column.length + 7) >> 3
  switch (column.layout) {
    case 'bit':
      return validity + ((column.length + 7) >> 3)
    case 'int32':
    case 'float32':
      return validity + 4 * column.length
    case 'int64':
    case 'float64':
      return validity + 8 * column.length
    case 'int128':
      return validity + 16 * column.length
    case 'bytes':
      return validity + 4 * (column.length + 1) + span(column.offsets, column.length)
    case 'list':
      return validity + 4 * (column.length + 1) + childBytes(column.element, column)
    case 'map':
      return (
        validity +
        4 * (column.length + 1) +
        childBytes(column.key, column) +
        childBytes(column.value, column)
      )
    case 'struct':
      return column.fields.reduce((sum, field) => sum + columnBytes(field), validity)
    default:
      return unreachable(column)
  }
}

export function batchBytes(batch: ColumnBatch): number {
  return batch.columns.reduce((sum, column) => sum + columnBytes(column), 0)
}

/** Number of set bits among `length` bits from bit `from`. */
export function countOnes(bitmap: Uint8Array, from: number, length: number): number {
  let ones = 0
  let bit = from
  const end = from + length
  for (; bit < end && (bit & 7) !== 0; bit += 1) ones += ((bitmap[bit >> 3] ?? 0) >> (bit & 7)) & 1
  for (; bit + 8 <= end; bit += 8) ones += onesIn[bitmap[bit >> 3] ?? 0] ?? 0
  for (; bit < end; bit += 1) ones += ((bitmap[bit >> 3] ?? 0) >> (bit & 7)) & 1
  return ones
}

const onesIn = Uint8Array.from({ length: 256 }, (_, byte) => {
  let ones = 0
  for (let rest = byte; rest > 0; rest >>= 1) ones += rest & 1
  return ones
})

function span(offsets: Int32Array, length: number): number {
  return (offsets[length] ?? 0) - (offsets[0] ?? 0)
}

function childBytes(child: Column, parent: { offsets: Int32Array; length: number }): number {
  const from = parent.offsets[0] ?? 0
  const to = parent.offsets[parent.length] ?? 0
  return columnBytes(sliceColumn(child, from, to))
}
