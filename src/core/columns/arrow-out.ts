import {
  Binary,
  BufferType,
  Bool,
  Data,
  type DataType as ArrowType,
  DateDay,
  Decimal,
  Field as ArrowField,
  Float32,
  Float64,
  Int16,
  Int32,
  Int64,
  Int8,
  List,
  Map_,
  RecordBatch,
  Schema,
  Struct,
  TimeMicrosecond,
  TimestampMicrosecond,
  Utf8,
} from 'apache-arrow'
import { check } from '../never.ts'
import type { DataType, Field, IdField } from '../schema/types.ts'
import { bitmapFrom } from './bitmap.ts'
import { type Column, type ColumnBatch, sliceColumn } from './column.ts'

/** Key of Arrow field metadata under which Parquet writers look for a field id. */
const fieldIdKey = 'PARQUET:field_id'

/**
 * The batch as an Arrow record batch over the same memory; only bitmaps that do not begin at a byte,
 * and offsets that do not begin at 0, are copied. TINYINT and SMALLINT become int8 and int16.
 *
 * @param fields With `IdField`, every level carries its id as `PARQUET:field_id`.
 */
export function toArrow(fields: readonly (Field | IdField)[], batch: ColumnBatch): RecordBatch {
  const arrowFields = fields.map((field) => arrowField(field.name, field.type, field))
  const children = batch.columns.map((column, at) => {
    const field = arrowFields[at]
    check(field !== undefined, 'a batch has as many columns as fields')
    return dataOf(field.type, column)
  })
  const type = new Struct(arrowFields)
  return new RecordBatch(
    new Schema(arrowFields),
    new Data(type, 0, batch.length, 0, undefined, children),
  )
}

export function arrowSchema(fields: readonly (Field | IdField)[]): Schema {
  return new Schema(fields.map((field) => arrowField(field.name, field.type, field)))
}

function arrowField(
  name: string,
  type: DataType,
  from: Field | IdField | undefined,
): ArrowField<ArrowType> {
  const ids = from !== undefined && 'id' in from ? from : undefined
  const metadata = new Map(ids === undefined ? [] : [[fieldIdKey, String(ids.id)]])
  return new ArrowField(name, arrowType(type, ids?.children ?? []), type.nullable, metadata)
}

function arrowType(type: DataType, children: readonly IdField[]): ArrowType {
  switch (type.kind) {
    case 'boolean':
      return new Bool()
    case 'tinyint':
      return new Int8()
    case 'smallint':
      return new Int16()
    case 'int':
      return new Int32()
    case 'bigint':
      return new Int64()
    case 'float':
      return new Float32()
    case 'double':
      return new Float64()
    case 'decimal':
      return new Decimal(type.scale, type.precision, 128)
    case 'char':
    case 'string':
      return new Utf8()
    case 'binary':
    case 'bytes':
      return new Binary()
    case 'date':
      return new DateDay()
    case 'time':
      return new TimeMicrosecond()
    case 'timestamp':
      return new TimestampMicrosecond()
    case 'timestamp_ltz':
      return new TimestampMicrosecond('UTC')
    case 'array':
      return new List(arrowField('element', type.element, children[0]))
    case 'map': {
      const key = arrowField('key', { ...type.key, nullable: false }, children[0])
      const entry = new Struct<{ key: ArrowType; value: ArrowType }>([
        key,
        arrowField('value', type.value, children[1]),
      ])
      return new Map_(new ArrowField('entries', entry, false))
    }
    case 'row':
      return new Struct(
        type.fields.map(
          (field, at): ArrowField<ArrowType> =>
            arrowField(field.name, field.type, children[at] ?? field),
        ),
      )
    default:
      return type satisfies never
  }
}

function dataOf(type: ArrowType, column: Column): Data {
  const { length, nullCount, validity, bitOffset } = column
  const nullBitmap =
    nullCount === 0 || validity === undefined ? undefined : bitmapFrom(validity, bitOffset, length)
  const made = (buffers: Buffers, children: readonly Data[] = []): Data =>
    new Data(
      type,
      0,
      length,
      nullCount,
      {
        ...(buffers.offsets && { [BufferType.OFFSET]: buffers.offsets }),
        ...(buffers.values && { [BufferType.DATA]: buffers.values }),
        ...(nullBitmap && { [BufferType.VALIDITY]: nullBitmap }),
      },
      [...children],
    )
  switch (column.layout) {
    case 'bit':
      return made({ values: bitmapFrom(column.values, bitOffset, length) })
    case 'int32':
      return made({ values: narrowed(type, column.values) })
    case 'int64':
    case 'float32':
    case 'float64':
      return made({ values: column.values })
    case 'int128': {
      const { buffer, byteOffset, byteLength } = column.values
      return made({ values: new Uint32Array(buffer, byteOffset, byteLength >> 2) })
    }
    case 'bytes':
      return made({ offsets: column.offsets.subarray(0, length + 1), values: column.values })
    case 'list': {
      const { offsets, from, to } = fromZero(column)
      return made({ offsets }, [dataOf(childType(type, 0), sliceColumn(column.element, from, to))])
    }
    case 'map': {
      const { offsets, from, to } = fromZero(column)
      const entry = childType(type, 0)
      const pairs = [
        dataOf(childType(entry, 0), sliceColumn(column.key, from, to)),
        dataOf(childType(entry, 1), sliceColumn(column.value, from, to)),
      ]
      return made({ offsets }, [new Data(entry, 0, to - from, 0, undefined, pairs)])
    }
    case 'struct':
      return made(
        {},
        column.fields.map((field, at) => dataOf(childType(type, at), field)),
      )
    default:
      return column satisfies never
  }
}

type Buffers = { readonly offsets?: Int32Array; readonly values?: ArrayBufferView }

function childType(type: ArrowType, at: number): ArrowType {
  const child: ArrowField<ArrowType> | undefined = type.children[at]
  check(child !== undefined, 'a column has the children of its type')
  return child.type
}

function narrowed(type: ArrowType, values: Int32Array): Int8Array | Int16Array | Int32Array {
  if (type instanceof Int8) return Int8Array.from(values)
  if (type instanceof Int16) return Int16Array.from(values)
  return values
}

function fromZero(column: { readonly offsets: Int32Array; readonly length: number }): {
  offsets: Int32Array
  from: number
  to: number
} {
  const from = column.offsets[0] ?? 0
  const to = column.offsets[column.length] ?? 0
  const offsets = column.offsets.subarray(0, column.length + 1)
  return { offsets: from === 0 ? offsets : offsets.map((each) => each - from), from, to }
}
