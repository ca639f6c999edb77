import { SluiceError, isSluiceError } from '../errors.ts'
import { check, unreachable } from '../never.ts'
import { formatType } from '../schema/format-type.ts'
import type { DataType, Field } from '../schema/types.ts'
import { didYouMean } from '../suggest.ts'
import { decimalText } from '../values/exact-number.ts'
import { columnBuilder, finishBatch } from './builder.ts'
import { bitAt, type Column, type ColumnBatch, isNull } from './column.ts'
import { appendValue, ValueFault } from './append-value.ts'

/** A value of the library's rows; which one belongs to which type says docs/inputs.md. */
export type Value =
  | null
  | boolean
  | number
  | bigint
  | string
  | Date
  | Uint8Array
  | readonly Value[]
  | ReadonlyMap<Value, Value>
  | { readonly [name: string]: Value }

export type Row = { readonly [column: string]: Value }

/**
 * Rows as columns, taken whole or refused whole. A column that is absent or `undefined` is null.
 * @throws SluiceError RECORD_REFUSED naming row, column and value; `details.row` counts from 0.
 */
export function rowsToBatch(fields: readonly Field[], rows: readonly Row[]): ColumnBatch {
  const builders = fields.map((field) => columnBuilder(field.type))
  const names = new Set(fields.map((field) => field.name))
  rows.forEach((row: unknown, index) => {
    if (!isRow(row)) {
      const found = row === null ? 'null' : Array.isArray(row) ? 'an array' : `a ${typeof row}`
      throw new SluiceError('RECORD_REFUSED', `row ${index}: ${found} is no row`, {
        details: { row: index },
        fix: 'a row is an object with a member for each column',
      })
    }
    for (const name of Object.keys(row)) {
      if (!names.has(name)) {
        throw refused(index, name, `"${name}" is not a column${didYouMean(name, names)}`)
      }
    }
    fields.forEach((field, column) => {
      const builder = builders[column]
      check(builder !== undefined, 'each field has a builder')
      const value = Object.hasOwn(row, field.name) ? row[field.name] : undefined
      try {
        appendValue(builder, field.type, value ?? null, field.name)
      } catch (error) {
        if (isSluiceError(error) || !(error instanceof ValueFault)) throw error
        const type = formatType(field.type)
        throw refused(
          index,
          field.name,
          `${error.message}, column ${field.name} is ${type}${error.detail}`,
        )
      }
    })
  })
  return { ...finishBatch(builders), length: rows.length }
}

/** Callers without types may give anything. */
function isRow(row: unknown): row is Row {
  return typeof row === 'object' && row !== null && !Array.isArray(row)
}

/** Columns as rows, by the rules of docs/inputs.md for reading. */
export function batchToRows(fields: readonly Field[], batch: ColumnBatch): Row[] {
  check(fields.length === batch.columns.length, 'a batch has the columns of its schema')
  return Array.from({ length: batch.length }, (_, index) =>
    named(
      fields.map((field) => field.name),
      batch.columns,
      index,
    ),
  )
}

/** Element `index` of a column. */
export function valueAt(column: Column, index: number): Value {
  if (isNull(column, index)) return null
  switch (column.layout) {
    case 'bit':
      return bitAt(column, index)
    case 'int32':
    case 'float32':
    case 'float64':
      return column.values[index] ?? null
    case 'int64':
      return column.values[index] ?? null
    case 'int128': {
      const low = BigInt.asUintN(64, column.values[2 * index] ?? 0n)
      const value = ((column.values[2 * index + 1] ?? 0n) << 64n) | low
      return decimalText(value, column.type.kind === 'decimal' ? column.type.scale : 0)
    }
    case 'bytes': {
      const bytes = column.values.subarray(column.offsets[index], column.offsets[index + 1])
      return isText(column.type) ? textOf(bytes) : new Uint8Array(bytes)
    }
    case 'list':
      return indices(column.offsets, index).map((at) => valueAt(column.element, at))
    case 'map':
      return new Map(
        indices(column.offsets, index).map((at) => [
          valueAt(column.key, at),
          valueAt(column.value, at),
        ]),
      )
    case 'struct': {
      check(column.type.kind === 'row', 'a struct column has a ROW type')
      return named(
        column.type.fields.map((field) => field.name),
        column.fields,
        index,
      )
    }
    default:
      return unreachable(column)
  }
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
}

function isText(type: DataType): boolean {
  return type.kind === 'string' || type.kind === 'char'
}

function indices(offsets: Int32Array, index: number): number[] {
  const from = offsets[index] ?? 0
  return Array.from({ length: (offsets[index + 1] ?? 0) - from }, (_, at) => from + at)
}

/** Plain objects by `defineProperty`, so that a column named `__proto__` is a column. */
function named(names: readonly string[], columns: readonly Column[], index: number): Row {
  const row: Record<string, Value> = {}
  names.forEach((name, at) => {
    const column = columns[at]
    check(column !== undefined, 'each name has a column')
    const value = valueAt(column, index)
    if (name === '__proto__') {
      Object.defineProperty(row, name, { value, enumerable: true, writable: true })
    } else row[name] = value
  })
  return row
}

function refused(row: number, column: string, reason: string): SluiceError {
  return new SluiceError('RECORD_REFUSED', `row ${row}: ${reason}`, { details: { row, column } })
}
