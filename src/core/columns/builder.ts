import { SluiceError } from '../errors.ts'
import { unreachable } from '../never.ts'
import type { DataType } from '../schema/types.ts'
import { BytesBuilder } from './bytes-builder.ts'
import { type ColumnBatch, layoutOf } from './column.ts'
import {
  BitBuilder,
  Float32Builder,
  Float64Builder,
  Int128Builder,
  Int32Builder,
  Int64Builder,
} from './fixed-builders.ts'
import { ListBuilder, MapBuilder, StructBuilder } from './nested-builders.ts'

/**
 * Grows one column element by element. `truncate` forgets the elements from a length on, also half
 * appended ones, so that a record that turns out bad leaves no trace. `finish` hands the column over and starts anew, so a builder
 * can be kept for the next batch. Nothing is checked against the type's range here: parsers do that,
 * since they know the place to name.
 */
export type ColumnBuilder =
  | BitBuilder
  | Int32Builder
  | Int64Builder
  | Int128Builder
  | Float32Builder
  | Float64Builder
  | BytesBuilder
  | ListBuilder
  | MapBuilder
  | StructBuilder

export function columnBuilder(type: DataType): ColumnBuilder {
  switch (type.kind) {
    case 'array':
      return new ListBuilder(type, columnBuilder(type.element))
    case 'map':
      return new MapBuilder(type, columnBuilder(type.key), columnBuilder(type.value))
    case 'row':
      return new StructBuilder(
        type,
        type.fields.map((field) => columnBuilder(field.type)),
      )
    default:
      break
  }
  const layout = layoutOf(type)
  switch (layout) {
    case 'bit':
      return new BitBuilder(type)
    case 'int32':
      return new Int32Builder(type)
    case 'int64':
      return new Int64Builder(type)
    case 'int128':
      return new Int128Builder(type)
    case 'float32':
      return new Float32Builder(type)
    case 'float64':
      return new Float64Builder(type)
    case 'bytes':
      return new BytesBuilder(type)
    case 'list':
    case 'map':
    case 'struct':
      throw new SluiceError('INVARIANT_BROKEN', 'nested types are built above')
    default:
      return unreachable(layout)
  }
}

export function finishBatch(builders: readonly ColumnBuilder[]): ColumnBatch {
  const columns = builders.map((builder) => builder.finish())
  return { length: columns[0]?.length ?? 0, columns }
}
