import { decodeBase64 } from '../../core/values/base64.ts'
import { exactNumber, nearestFloat, unscaled } from '../../core/values/exact-number.ts'
import {
  epochSeconds,
  type InstantText,
  newInstantText,
  parseDate,
  parseInstant,
  parseTime,
} from '../../core/values/temporal.ts'
import { unreachable } from '../../core/never.ts'
import type { ScalarNode } from './value-node.ts'

/**
 * Why a value was not taken: more than that it has another type, or an empty text. Nothing when it
 * was appended.
 */
export type Refusal = string | undefined

/** Values whose digits after the sixth were cut, as their column allows. */
export type LossCount = { losses: number }

const otherType = ''

/** A JSON number's text, whose grammar has been checked. */
export function appendNumber(node: ScalarNode, data: Buffer, from: number, to: number): Refusal {
  switch (node.kind) {
    case 'bigint': {
      const small = shortInteger(data, from, to)
      if (!Number.isNaN(small)) {
        node.builder.appendSafe(small)
        return undefined
      }
      const value = integerOf(data, from, to)
      if (typeof value !== 'bigint') return value
      if (BigInt.asIntN(64, value) !== value) return 'beyond 64 bits'
      node.builder.append(value)
      return undefined
    }
    case 'small': {
      let value = shortInteger(data, from, to)
      if (Number.isNaN(value)) {
        const exact = integerOf(data, from, to)
        if (typeof exact !== 'bigint') return exact
        value = Number(exact)
      }
      if (value < node.min || value > node.max) return `outside ${node.min} to ${node.max}`
      node.builder.append(value)
      return undefined
    }
    case 'double': {
      const short = shortFraction(data, from, to)
      if (!Number.isNaN(short)) {
        node.builder.append(short)
        return undefined
      }
      const text = data.toString('latin1', from, to)
      const value = Number(text)
      if (!Number.isFinite(value)) return 'beyond the range of DOUBLE'
      if (isIntegerText(text) && Math.abs(value) >= 2 ** 53 && !isWithin(text, 2n ** 53n)) {
        return 'an integer beyond 2^53 would lose digits'
      }
      node.builder.append(value)
      return undefined
    }
    case 'float': {
      const text = data.toString('latin1', from, to)
      const value = nearestFloat(text)
      if (!Number.isFinite(value)) return 'beyond the range of FLOAT'
      if (isIntegerText(text) && Math.abs(value) >= 2 ** 24 && !isWithin(text, 2n ** 24n)) {
        return 'an integer beyond 2^24 would lose digits'
      }
      node.builder.append(value)
      return undefined
    }
    case 'decimal': {
      const exact = exactNumber(data.toString('latin1', from, to))
      if (exact === undefined) return otherType
      const value = unscaled(exact, node.scale)
      if (value === 'fine') return `more than ${node.scale} fraction digits`
      if (value === 'large' || value >= node.bound || value <= -node.bound) return 'too many digits'
      node.builder.append(value)
      return undefined
    }
    case 'string':
      node.builder.append(data, from, to)
      return undefined
    case 'boolean':
    case 'char':
    case 'bytes':
    case 'date':
    case 'time':
    case 'timestamp':
    case 'timestamp_ltz':
      return otherType
    default:
      return unreachable(node)
  }
}

/** The text of a JSON string, unescaped. */
export function appendString(
  node: ScalarNode,
  data: Buffer,
  from: number,
  to: number,
  count: LossCount,
): Refusal {
  switch (node.kind) {
    case 'string':
      node.builder.append(data, from, to)
      return undefined
    case 'timestamp':
    case 'timestamp_ltz':
      if (!parseInstant(data, from, to, instant)) return 'not ISO 8601'
      if (instant.zoned !== (node.kind === 'timestamp_ltz')) {
        return instant.zoned ? 'it has a zone' : 'it has no zone'
      }
      return appendInstant(node, epochSeconds(instant), count)
    case 'date': {
      const days = parseDate(data, from, to)
      if (days === undefined) return 'not YYYY-MM-DD'
      node.builder.append(days)
      return undefined
    }
    case 'time':
      if (!parseTime(data, from, to, instant)) return 'not hh:mm:ss'
      return appendInstant(node, instant.seconds, count)
    case 'decimal': {
      if (scanNumber(data, from) !== to) return otherType
      return appendNumber(node, data, from, to)
    }
    case 'double':
    case 'float': {
      const value = unusualFloats.get(data.toString('latin1', from, Math.min(to, from + 10)))
      if (value === undefined) return otherType
      node.builder.append(value)
      return undefined
    }
    case 'char': {
      const length = codePoints(data, from, to)
      if (length > node.length) return `${length} characters`
      node.builder.append(data, from, to)
      return undefined
    }
    case 'bytes': {
      const bytes = decodeBase64(data, from, to)
      if (bytes === undefined) return 'not base64'
      if (node.length !== undefined && bytes.length !== node.length) return `${bytes.length} bytes`
      node.builder.append(bytes)
      return undefined
    }
    case 'boolean':
    case 'small':
    case 'bigint':
      return otherType
    default:
      return unreachable(node)
  }
}

/** Text without a type of its own: a CSV field, or the key of a MAP. */
export function appendPlain(
  node: ScalarNode,
  data: Buffer,
  from: number,
  to: number,
  count: LossCount,
): Refusal {
  switch (node.kind) {
    case 'boolean': {
      const text = data.toString('latin1', from, Math.min(to, from + 6))
      if (text !== 'true' && text !== 'false') return otherType
      node.builder.append(text === 'true')
      return undefined
    }
    case 'small':
    case 'bigint':
      return scanNumber(data, from) === to ? appendNumber(node, data, from, to) : otherType
    case 'float':
    case 'double':
    case 'decimal': {
      if (scanNumber(data, from) === to) return appendNumber(node, data, from, to)
      const number = shortenedNumber(data, from, to)
      if (number === undefined) return appendString(node, data, from, to, count)
      return appendNumber(node, Buffer.from(number), 0, number.length)
    }
    case 'string':
    case 'char':
    case 'bytes':
    case 'date':
    case 'time':
    case 'timestamp':
    case 'timestamp_ltz':
      return appendString(node, data, from, to, count)
    default:
      return unreachable(node)
  }
}

/** Index after the JSON number at `at`, or -1 when there is none. */
export function scanNumber(data: Uint8Array, from: number): number {
  let at = from
  let byte = data[at] ?? 0
  if (byte === 45) byte = data[++at] ?? 0
  if (byte === 48) byte = data[++at] ?? 0
  else if (byte >= 49 && byte <= 57) {
    do byte = data[++at] ?? 0
    while (byte >= 48 && byte <= 57)
  } else return -1
  if (byte === 46) {
    const first = ++at
    byte = data[at] ?? 0
    while (byte >= 48 && byte <= 57) byte = data[++at] ?? 0
    if (at === first) return -1
  }
  if (byte === 101 || byte === 69) {
    byte = data[++at] ?? 0
    if (byte === 43 || byte === 45) byte = data[++at] ?? 0
    const first = at
    while (byte >= 48 && byte <= 57) byte = data[++at] ?? 0
    if (at === first) return -1
  }
  return at
}

/**
 * The JSON text of a fraction that lacks its zero before or after the point, as CSV writers leave it
 * out: `.097`, `-.5`, `5.`; nothing for any other text.
 */
export function shortenedNumber(data: Buffer, from: number, to: number): string | undefined {
  const first = data[from] === 45 ? from + 1 : from
  const byte = data[first] ?? 0
  if (byte !== 46 && (byte < 48 || byte > 57)) return undefined
  if (to - from > shortenedMax) return undefined
  const parts = shortened.exec(data.toString('latin1', from, to))
  if (parts === null) return undefined
  const [, sign = '', whole = '0', fraction = '0', power = ''] = parts
  return `${sign}${whole}.${fraction}${power}`
}

const shortened = /^(-?)(?:(0|[1-9]\d*)\.|\.(\d+))([eE][+-]?\d+)?$/
/** Bounds the work for long text that only begins like a number. */
const shortenedMax = 1000

const instant: InstantText = newInstantText()

const unusualFloats: ReadonlyMap<string, number> = new Map([
  ['NaN', Number.NaN],
  ['Infinity', Number.POSITIVE_INFINITY],
  ['-Infinity', Number.NEGATIVE_INFINITY],
])

/** Powers of ten that a double holds exactly. */
const powersOfTen = Array.from({ length: 23 }, (_, power) => Number(`1e${power}`))

function appendInstant(
  node: ScalarNode & { readonly kind: 'time' | 'timestamp' | 'timestamp_ltz' },
  seconds: number,
  count: LossCount,
): Refusal {
  const digits = instant.fractionDigits
  if (digits > node.precision) return `more than ${node.precision} fraction digits`
  if (digits > 6) count.losses += 1
  const micros = Math.floor(instant.nanos / 1000)
  // 9 × 10^9 seconds (the year 2255) keep their micros below 2^53.
  if (seconds > -9e9 && seconds < 9e9) node.builder.appendSafe(seconds * 1e6 + micros)
  else node.builder.append(BigInt(seconds) * 1_000_000n + BigInt(micros))
  return undefined
}

/** The integer, when it has at most 15 digits and nothing else; otherwise NaN. */
function shortInteger(data: Uint8Array, from: number, to: number): number {
  const negative = data[from] === 45
  let at = negative ? from + 1 : from
  if (to - at > 15) return Number.NaN
  let value = 0
  for (; at < to; at += 1) {
    const digit = (data[at] ?? 0) - 48
    if (digit < 0 || digit > 9) return Number.NaN
    value = value * 10 + digit
  }
  return negative ? -value : value
}

/**
 * The number, when it has at most 15 digits and no exponent: digits and power of ten are then exact
 * as doubles, so one division rounds correctly.
 */
function shortFraction(data: Uint8Array, from: number, to: number): number {
  const negative = data[from] === 45
  let at = negative ? from + 1 : from
  if (to - at > 16) return Number.NaN
  let value = 0
  let point = to
  for (; at < to; at += 1) {
    const byte = data[at] ?? 0
    if (byte === 46) {
      point = at + 1
      continue
    }
    if (byte < 48 || byte > 57) return Number.NaN
    value = value * 10 + (byte - 48)
  }
  if (value >= 1e15) return Number.NaN
  if (point < to) value /= powersOfTen[to - point] ?? Number.NaN
  return negative ? -value : value
}

function integerOf(data: Buffer, from: number, to: number): bigint | string {
  const exact = exactNumber(data.toString('latin1', from, to))
  if (exact === undefined) return otherType
  const value = unscaled(exact, 0)
  return typeof value === 'bigint'
    ? value
    : value === 'fine'
      ? 'it has a fraction'
      : 'too many digits'
}

function isIntegerText(text: string): boolean {
  return !/[.eE]/.test(text)
}

function isWithin(integer: string, bound: bigint): boolean {
  const value = BigInt(integer)
  return value <= bound && value >= -bound
}

function codePoints(data: Uint8Array, from: number, to: number): number {
  let count = 0
  for (let at = from; at < to; at += 1) if (((data[at] ?? 0) & 0xc0) !== 0x80) count += 1
  return count
}
