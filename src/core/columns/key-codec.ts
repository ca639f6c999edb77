import { SluiceError } from '../errors.ts'
import type { Field } from '../schema/types.ts'
import { type ColumnBuilder, columnBuilder, finishBatch } from './builder.ts'
import { BytesBuilder } from './bytes-builder.ts'
import { BitBuilder, Int128Builder, Int32Builder, Int64Builder } from './fixed-builders.ts'
import { bitAt, type Column, type ColumnBatch } from './column.ts'

/*
 * Keys of primary-key tables as bytes: two rows have the same key if and only if the bytes are equal.
 * Values are as exact as their columns, unlike in bucket keys, where a TIME has milliseconds. A column
 * with values of different lengths is preceded by its length, unless it is the only one.
 */

/** @param columns The key's columns, in the order of the key, without nulls. */
export function encodeKeys(columns: readonly Column[], length: number): readonly Uint8Array[] {
  const [only] = columns
  if (only !== undefined && columns.length === 1 && only.layout === 'bytes') {
    return Array.from({ length }, (_, row) =>
      // A copy, so that a key that is kept does not keep its batch.
      only.values.slice(only.offsets[row] ?? 0, only.offsets[row + 1] ?? 0),
    )
  }
  const fixed = columns.reduce((sum, column) => sum + fixedBytes(column), 0)
  return Array.from({ length }, (_, row) => {
    let size = fixed
    for (const column of columns) {
      if (column.layout === 'bytes') size += valueBytes(column, row)
    }
    const key = new Uint8Array(size)
    const view = new DataView(key.buffer)
    let at = 0
    for (const column of columns) at = writeValue(view, at, column, row)
    return key
  })
}

/** The columns that the keys were made of. */
export function decodeKeys(fields: readonly Field[], keys: readonly Uint8Array[]): ColumnBatch {
  const builders = fields.map(({ type }) => columnBuilder({ ...type, nullable: false }))
  for (const key of keys) {
    const view = new DataView(key.buffer, key.byteOffset, key.length)
    let at = 0
    for (const builder of builders) at = readValue(view, at, builder, builders.length === 1)
  }
  return finishBatch(builders)
}

function readValue(view: DataView, at: number, builder: ColumnBuilder, isOnly: boolean): number {
  if (builder instanceof BitBuilder) {
    builder.append(view.getUint8(at) === 1)
    return at + 1
  }
  if (builder instanceof Int32Builder) {
    builder.append(view.getInt32(at, true))
    return at + 4
  }
  if (builder instanceof Int64Builder) {
    builder.append(view.getBigInt64(at, true))
    return at + 8
  }
  if (builder instanceof Int128Builder) {
    builder.append((view.getBigInt64(at + 8, true) << 64n) | view.getBigUint64(at, true))
    return at + 16
  }
  if (builder instanceof BytesBuilder) {
    const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
    const from = isOnly ? at : at + 4
    const to = isOnly ? bytes.length : from + view.getUint32(at, true)
    builder.append(bytes, from, to)
    return to
  }
  throw notAKey()
}

function fixedBytes(column: Column): number {
  switch (column.layout) {
    case 'bit':
      return 1
    case 'int32':
    case 'bytes':
      return 4
    case 'int64':
      return 8
    case 'int128':
      return 16
    default:
      throw notAKey()
  }
}

function valueBytes(column: Column & { readonly layout: 'bytes' }, row: number): number {
  return (column.offsets[row + 1] ?? 0) - (column.offsets[row] ?? 0)
}

function writeValue(view: DataView, at: number, column: Column, row: number): number {
  switch (column.layout) {
    case 'bit':
      view.setUint8(at, bitAt(column, row) ? 1 : 0)
      return at + 1
    case 'int32':
      view.setInt32(at, column.values[row] ?? 0, true)
      return at + 4
    case 'int64':
      view.setBigInt64(at, column.values[row] ?? 0n, true)
      return at + 8
    case 'int128':
      view.setBigInt64(at, column.values[2 * row] ?? 0n, true)
      view.setBigInt64(at + 8, column.values[2 * row + 1] ?? 0n, true)
      return at + 16
    case 'bytes': {
      const [from, to] = [column.offsets[row] ?? 0, column.offsets[row + 1] ?? 0]
      view.setUint32(at, to - from, true)
      new Uint8Array(view.buffer).set(column.values.subarray(from, to), at + 4)
      return at + 4 + to - from
    }
    default:
      throw notAKey()
  }
}

function notAKey(): SluiceError {
  return new SluiceError('INVARIANT_BROKEN', 'a column of this type is no key')
}
