import { isUtf8 } from 'node:buffer'
import { bitAt, type Column, type ColumnBatch, isNull } from '../../core/columns/column.ts'
import { type JsonValue, stringifyJson } from '../../core/json64.ts'
import { check, unreachable } from '../../core/never.ts'
import type { Field } from '../../core/schema/types.ts'
import { decimalText } from '../../core/values/exact-number.ts'
import { dateText, timeText, timestampText } from '../../core/values/temporal.ts'

/** A row as JSON text, in the forms that NDJSON has for the same values. */
export function rowJson(
  fields: readonly Field[],
  batch: ColumnBatch,
  row: number,
  /** A column that could not be read there. */
  unread?: string,
): Uint8Array {
  const members = fields.flatMap((field, at) => {
    const column = batch.columns[at]
    if (column === undefined) return []
    const isKept = field.name !== unread || keptUnread.has(column.type.kind)
    return [[field.name, isKept ? jsonAt(column, row) : null] as const]
  })
  return Buffer.from(stringifyJson(Object.fromEntries(members)))
}

/** Kinds whose values are as they were although their column cannot hold them. */
const keptUnread: ReadonlySet<string> = new Set(['string', 'decimal', 'time'])

function jsonAt(column: Column, at: number): JsonValue {
  if (isNull(column, at)) return null
  switch (column.layout) {
    case 'bit':
      return bitAt(column, at)
    case 'int32': {
      const value = column.values[at] ?? 0
      return column.type.kind === 'date' ? dateText(value) : value
    }
    case 'int64':
      return longJson(column, column.values[at] ?? 0n)
    case 'float32':
    case 'float64': {
      const value = column.values[at] ?? 0
      return Number.isFinite(value) ? value : String(value)
    }
    case 'int128': {
      const low = BigInt.asUintN(64, column.values[2 * at] ?? 0n)
      const value = ((column.values[2 * at + 1] ?? 0n) << 64n) | low
      return decimalText(value, column.type.kind === 'decimal' ? column.type.scale : 0)
    }
    case 'bytes': {
      const bytes = column.values.subarray(column.offsets[at], column.offsets[at + 1])
      const isText = column.type.kind === 'string' || column.type.kind === 'char'
      const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
      return buffer.toString(isText && isUtf8(bytes) ? 'utf8' : 'base64')
    }
    case 'list':
      return within(column.offsets, at).map((each) => jsonAt(column.element, each))
    case 'map':
      return Object.fromEntries(
        within(column.offsets, at).map((each) => {
          const key = jsonAt(column.key, each)
          const text = typeof key === 'string' ? key : stringifyJson(key)
          return [text, jsonAt(column.value, each)]
        }),
      )
    case 'struct': {
      check(column.type.kind === 'row', 'a struct column has a ROW type')
      const { fields } = column.type
      return Object.fromEntries(
        column.fields.map((child, index) => [fields[index]?.name ?? '', jsonAt(child, at)]),
      )
    }
    default:
      return unreachable(column)
  }
}

function longJson(column: Column, value: bigint): JsonValue {
  switch (column.type.kind) {
    case 'time':
      return timeText(value)
    case 'timestamp':
      return timestampText(value)
    case 'timestamp_ltz':
      return `${timestampText(value)}Z`
    default:
      return value
  }
}

function within(offsets: Int32Array, at: number): readonly number[] {
  const from = offsets[at] ?? 0
  return Array.from({ length: (offsets[at + 1] ?? 0) - from }, (_, index) => from + index)
}
