import {
  type Data,
  DataType as Arrow,
  type DataType as ArrowType,
  Precision,
  TimeUnit,
} from 'apache-arrow'
import type { DataType } from '../schema/types.ts'
import type { Scope } from './arrow-blame.ts'
import { bytesOf, elements, int32sOf, int64sOf, malformed } from './arrow-memory.ts'
import { dateDivisor } from './arrow-type.ts'
import { type Column, isNull } from './column.ts'

type Base = Pick<Column, 'type' | 'length' | 'nullCount' | 'validity' | 'bitOffset'>

const microsPerDay = 86_400_000_000n

/** A column of values of one size. */
export function fixedValues(
  type: DataType,
  data: Data,
  base: Base,
  path: string,
  scope: Scope,
): Column {
  const arrow: ArrowType = data.type
  const { length } = base
  const values: unknown = data.values
  switch (type.kind) {
    case 'boolean': {
      const bits = bytesOf(values, path)
      const isKnown = base.nullCount < length
      if (isKnown && bits.length * 8 < base.bitOffset + length) {
        throw malformed(path, 'it holds fewer values than it says')
      }
      return { ...base, layout: 'bit', values: bits }
    }
    case 'tinyint':
    case 'smallint':
    case 'int':
      return { ...base, layout: 'int32', values: integers(arrow, values, length, path) }
    case 'bigint':
      return { ...base, layout: 'int64', values: bigIntegers(arrow, values, length, path) }
    case 'float':
      return { ...base, layout: 'float32', values: floats(arrow, values, length, path) }
    case 'double': {
      const bytes = elements(values, length, 8, path)
      const doubles = new Float64Array(bytes.buffer, bytes.byteOffset, length)
      return { ...base, layout: 'float64', values: doubles }
    }
    case 'decimal':
      return decimals(
        { ...base, layout: 'int128', values: decimalWords(arrow, values, length, path) },
        path,
        scope,
      )
    case 'date':
      return { ...base, layout: 'int32', values: dates(arrow, values, base, path, scope) }
    case 'time':
    case 'timestamp':
    case 'timestamp_ltz': {
      const micros = {
        ...base,
        layout: 'int64',
        values: toMicros(arrow, values, base, path, scope),
      } as const
      if (type.kind === 'time') checkTimes(micros, path, scope)
      return micros
    }
    default:
      throw malformed(path, `${type.kind} has no values of one size`)
  }
}

function integers(arrow: ArrowType, values: unknown, length: number, path: string): Int32Array {
  if (!Arrow.isInt(arrow)) throw malformed(path, 'it holds no integers')
  const size = arrow.bitWidth / 8
  if (size === 4) return int32sOf(values, length, path)
  const { buffer, byteOffset } = elements(values, length, size, path)
  if (size === 1) {
    const narrow = new Uint8Array(buffer, byteOffset, length)
    return Int32Array.from(narrow, arrow.isSigned ? (value) => (value << 24) >> 24 : undefined)
  }
  const narrow = new Uint16Array(buffer, byteOffset, length)
  return Int32Array.from(narrow, arrow.isSigned ? (value) => (value << 16) >> 16 : undefined)
}

function bigIntegers(
  arrow: ArrowType,
  values: unknown,
  length: number,
  path: string,
): BigInt64Array {
  if (!Arrow.isInt(arrow)) throw malformed(path, 'it holds no integers')
  if (arrow.bitWidth === 64) return int64sOf(values, length, path)
  const widened = new BigInt64Array(length)
  new Int32Array(widened.buffer).set(spread(int32sOf(values, length, path)))
  return widened
}

/** Unsigned 32-bit integers with a zero word behind each. */
function spread(words: Int32Array): Int32Array {
  const wide = new Int32Array(2 * words.length)
  for (let at = 0; at < words.length; at += 1) wide[2 * at] = words[at] ?? 0
  return wide
}

function floats(arrow: ArrowType, values: unknown, length: number, path: string): Float32Array {
  if (Arrow.isFloat(arrow) && arrow.precision === Precision.HALF) {
    const { buffer, byteOffset } = elements(values, length, 2, path)
    return Float32Array.from(new Uint16Array(buffer, byteOffset, length), halfFloat)
  }
  const { buffer, byteOffset } = elements(values, length, 4, path)
  return new Float32Array(buffer, byteOffset, length)
}

/** IEEE 754 binary16. */
function halfFloat(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1
  const exponent = (bits >> 10) & 0x1f
  const fraction = bits & 0x3ff
  if (exponent === 0) return sign * 2 ** -24 * fraction
  if (exponent === 0x1f) return fraction === 0 ? sign * Infinity : NaN
  return sign * 2 ** (exponent - 15) * (1 + fraction / 1024)
}

function decimalWords(
  arrow: ArrowType,
  values: unknown,
  length: number,
  path: string,
): BigInt64Array {
  if (Arrow.isInt(arrow)) return unsignedWords(values, length, path)
  if (!Arrow.isDecimal(arrow)) throw malformed(path, 'it holds no decimals')
  const wordsEach = arrow.bitWidth / 64
  if (wordsEach < 1) {
    const narrow = int32sOf(values, length, path)
    return BigInt64Array.from({ length: 2 * length }, (_, at) => {
      const value = BigInt(narrow[at >> 1] ?? 0)
      return at & 1 ? value >> 63n : value
    })
  }
  const words = int64sOf(values, length * wordsEach, path)
  if (wordsEach === 2) return words
  // At most 38 digits: what lies above 128 bits only repeats the sign, which `decimals` checks.
  return BigInt64Array.from({ length: 2 * length }, (_, at) => {
    if (wordsEach === 1) return at & 1 ? (words[at >> 1] ?? 0n) >> 63n : (words[at >> 1] ?? 0n)
    return words[wordsEach * (at >> 1) + (at & 1)] ?? 0n
  })
}

/** Unsigned 64-bit integers with a zero word above each. */
function unsignedWords(values: unknown, length: number, path: string): BigInt64Array {
  const narrow = int64sOf(values, length, path)
  const wide = new BigInt64Array(2 * length)
  for (let at = 0; at < length; at += 1) wide[2 * at] = narrow[at] ?? 0n
  return wide
}

function decimals(
  column: Column & { readonly layout: 'int128' },
  path: string,
  { blame }: Scope,
): Column {
  const { type, values } = column
  const digits = type.kind === 'decimal' ? type.precision : 38
  const limit = 10n ** BigInt(digits)
  for (let at = 0; at < column.length; at += 1) {
    const value = ((values[2 * at + 1] ?? 0n) << 64n) | BigInt.asUintN(64, values[2 * at] ?? 0n)
    if ((value >= limit || value <= -limit) && !isNull(column, at)) {
      blame(at, `a decimal in ${path} has over ${digits} digits`)
    }
  }
  return column
}

function dates(
  arrow: ArrowType,
  values: unknown,
  base: Base,
  path: string,
  { blame }: Scope,
): Int32Array {
  const divisor = dateDivisor(arrow)
  if (divisor === undefined) return int32sOf(values, base.length, path)
  const days = new Int32Array(base.length)
  const column = { ...base, layout: 'int64', values: int64sOf(values, base.length, path) } as const
  for (let at = 0; at < base.length; at += 1) {
    if (isNull(column, at)) continue
    const day = Number(column.values[at] ?? 0n) / divisor
    if (!Number.isInteger(day) || day !== (day | 0)) {
      blame(at, `a date in the column ${path} is not a whole day: ${String(column.values[at])} ms`)
    }
    days[at] = day
  }
  return days
}

function toMicros(
  arrow: ArrowType,
  values: unknown,
  base: Base,
  path: string,
  { cut, blame }: Scope,
): BigInt64Array {
  const { length } = base
  if (!Arrow.isTime(arrow) && !Arrow.isTimestamp(arrow)) throw malformed(path, 'it holds no times')
  const isWide = Arrow.isTimestamp(arrow) || arrow.bitWidth === 64
  const source = isWide
    ? int64sOf(values, length, path)
    : BigInt64Array.from(int32sOf(values, length, path), BigInt)
  const { unit } = arrow
  if (unit === TimeUnit.MICROSECOND) return source
  const column = { ...base, layout: 'int64', values: source } as const
  const micros = new BigInt64Array(length)
  const factor = unit === TimeUnit.SECOND ? 1_000_000n : 1000n
  const symbol = unit === TimeUnit.SECOND ? 's' : 'ms'
  for (let at = 0; at < length; at += 1) {
    if (isNull(column, at)) continue
    const value = source[at] ?? 0n
    if (unit === TimeUnit.NANOSECOND) {
      const rest = ((value % factor) + factor) % factor
      if (rest !== 0n) cut.values += 1
      micros[at] = (value - rest) / factor
    } else {
      const scaled = value * factor
      if (BigInt.asIntN(64, scaled) !== scaled) {
        blame(at, `a timestamp in ${path} exceeds 64 bits of micros: ${value} ${symbol}`)
      }
      micros[at] = scaled
    }
  }
  return micros
}

function checkTimes(
  column: Column & { readonly layout: 'int64' },
  path: string,
  { blame }: Scope,
): void {
  for (let at = 0; at < column.length; at += 1) {
    const value = column.values[at] ?? 0n
    if ((value < 0n || value >= microsPerDay) && !isNull(column, at)) {
      blame(at, `a time in the column ${path} is outside one day`)
    }
  }
}
