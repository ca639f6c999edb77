import {
  DuckDBArrayValue,
  DuckDBBlobValue,
  DuckDBListValue,
  DuckDBMapValue,
  DuckDBStructValue,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  type DuckDBType,
  type DuckDBValue,
} from '@duckdb/node-api'
import type { JsonValue } from '../core/json64.ts'

/**
 * How instants are shown: in local time with offset to a person at a terminal, otherwise in UTC.
 */
export type TimeView = 'local' | 'utc'

/** A value as text with every digit, as DuckDB would write it. Null is undefined. */
export function valueText(
  value: DuckDBValue,
  type: DuckDBType,
  times: TimeView,
): string | undefined {
  if (value === null) return undefined
  if (typeof value === 'number') return numberText(value, type)
  if (value instanceof DuckDBTimestampTZValue) return instantText(value, times)
  // Texts of nested values, BLOBs and decimals name every digit and byte.
  return value.toString()
}

/**
 * A value as JSON: int64 and wider stay integers, DECIMAL is text, as is what JSON cannot say
 * (`NaN`). BLOBs are base64, maps are lists of `key` and `value`.
 */
export function valueJson(value: DuckDBValue): JsonValue {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value
  if (typeof value === 'bigint') return value
  if (typeof value === 'number') return Number.isFinite(value) ? value : doubleText(value)
  if (value instanceof DuckDBTimestampTZValue) return instantText(value, 'utc')
  if (value instanceof DuckDBTimestampValue) return value.toString().replace(' ', 'T')
  if (value instanceof DuckDBBlobValue) return Buffer.from(value.bytes).toString('base64')
  if (value instanceof DuckDBListValue || value instanceof DuckDBArrayValue) {
    return value.items.map(valueJson)
  }
  if (value instanceof DuckDBMapValue) {
    return value.entries.map((entry) => ({
      key: valueJson(entry.key),
      value: valueJson(entry.value),
    }))
  }
  if (value instanceof DuckDBStructValue) {
    return Object.fromEntries(
      Object.entries(value.entries).map(([name, member]) => [name, valueJson(member)]),
    )
  }
  return value.toString()
}

/** Whether a column holds numbers, which stand at the right and are never cut. */
export function isNumeric(type: DuckDBType): boolean {
  return /^(?:U?(?:TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)|FLOAT|DOUBLE|DECIMAL\(\d+, ?\d+\))$/.test(
    type.toString(),
  )
}

function numberText(value: number, type: DuckDBType): string {
  const name = type.toString()
  if (name === 'FLOAT') return doubleText(shortestSingle(value))
  return name === 'DOUBLE' ? doubleText(value) : value.toString()
}

/** The shortest text that reads back as the same number; whole ones keep their `.0`. */
function doubleText(value: number): string {
  if (Object.is(value, -0)) return '-0.0'
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? 'Infinity' : '-Infinity'
  const text = value.toString()
  return /^-?\d+$/.test(text) ? `${text}.0` : text
}

/** A single as a number with few digits: 0.1 and not 0.10000000149011612. */
function shortestSingle(value: number): number {
  if (!Number.isFinite(value)) return value
  for (let digits = 1; digits < 9; digits += 1) {
    const short = Number(value.toPrecision(digits))
    if (Math.fround(short) === value) return short
  }
  return value
}

/** `2020-01-01T00:00:00.000001Z`, or local time with its offset. */
function instantText(value: DuckDBTimestampTZValue, times: TimeView): string {
  const { micros } = value
  const millis = Number(micros / 1000n) - (micros % 1000n < 0n ? 1 : 0)
  const date = new Date(millis)
  if (!value.isFinite || Number.isNaN(date.getTime())) return value.toString()
  const fraction = fractionOf(micros)
  if (times === 'utc') return `${date.toISOString().slice(0, -5)}${fraction}Z`
  const offset = -date.getTimezoneOffset()
  const local = new Date(millis + offset * 60_000).toISOString().slice(0, -5).replace('T', ' ')
  const size = Math.abs(offset)
  const hours = Math.floor(size / 60)
    .toString()
    .padStart(2, '0')
  const minutes = (size % 60).toString().padStart(2, '0')
  return `${local}${fraction}${offset < 0 ? '-' : '+'}${hours}:${minutes}`
}

function fractionOf(micros: bigint): string {
  const rest = ((micros % 1_000_000n) + 1_000_000n) % 1_000_000n
  return rest === 0n ? '' : `.${rest.toString().padStart(6, '0').replace(/0+$/, '')}`
}
