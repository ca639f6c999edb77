import { unreachable } from '../never.ts'
import type { DataType } from '../schema/types.ts'
import { exactNumber, unscaled } from '../values/exact-number.ts'
import {
  epochSeconds,
  newInstantText,
  parseDate,
  parseInstant,
  parseTime,
} from '../values/temporal.ts'
import { type ColumnBuilder } from './builder.ts'
import { BytesBuilder } from './bytes-builder.ts'
import {
  BitBuilder,
  Float32Builder,
  Float64Builder,
  Int128Builder,
  Int32Builder,
  Int64Builder,
} from './fixed-builders.ts'
import { ListBuilder, MapBuilder, StructBuilder } from './nested-builders.ts'
import type { Value } from './rows.ts'

/** A value that its type does not take: `delay is "n/a"`, and what the type would take. */
export class ValueFault extends Error {
  override readonly name = 'ValueFault'
  readonly detail: string

  constructor(path: string, value: unknown, detail: string) {
    super(`${path} is ${shownValue(value)}`)
    this.detail = detail === '' ? '' : ` (${detail})`
  }
}

/**
 * Appends one JavaScript value by the rules of docs/inputs.md: a safe integer for BIGINT, ISO text for
 * dates and times, a `Date` for TIMESTAMP_LTZ. @throws ValueFault, leaving nested builders half full
 */
export function appendValue(
  builder: ColumnBuilder,
  type: DataType,
  value: Value,
  path: string,
): void {
  if (value === null) {
    if (!type.nullable) throw new ValueFault(path, value, '')
    builder.appendNull()
    return
  }
  const fault = (detail: string): ValueFault => new ValueFault(path, value, detail)
  switch (type.kind) {
    case 'boolean':
      if (typeof value !== 'boolean' || !(builder instanceof BitBuilder)) throw fault('')
      builder.append(value)
      return
    case 'tinyint':
    case 'smallint':
    case 'int': {
      if (!(builder instanceof Int32Builder)) throw fault('')
      builder.append(integerWithin(value, type.kind, fault))
      return
    }
    case 'bigint': {
      if (!(builder instanceof Int64Builder)) throw fault('')
      builder.append(longOf(value, fault))
      return
    }
    case 'float':
    case 'double': {
      const number = typeof value === 'bigint' ? Number(value) : value
      if (typeof number !== 'number') throw fault('')
      const bound = type.kind === 'float' ? 2 ** 24 : 2 ** 53
      if (typeof value === 'bigint' && Math.abs(number) > bound) throw fault('digits would be lost')
      if (builder instanceof Float32Builder) {
        const float = Math.fround(number)
        if (!Number.isFinite(float) && Number.isFinite(number)) throw fault('beyond its range')
        builder.append(float)
      } else if (builder instanceof Float64Builder) builder.append(number)
      return
    }
    case 'decimal': {
      const text = typeof value === 'bigint' || typeof value === 'number' ? String(value) : value
      const exact = typeof text === 'string' ? exactNumber(text) : undefined
      if (exact === undefined || !(builder instanceof Int128Builder)) throw fault('')
      const number = unscaled(exact, type.scale)
      if (number === 'fine') throw fault(`more than ${type.scale} fraction digits`)
      const bound = 10n ** BigInt(type.precision)
      if (number === 'large' || number >= bound || number <= -bound) throw fault('too many digits')
      builder.append(number)
      return
    }
    case 'char':
    case 'string': {
      if (typeof value !== 'string' || !(builder instanceof BytesBuilder)) throw fault('')
      if (/\p{Surrogate}/u.test(value)) throw fault('half of a surrogate pair')
      const length = type.kind === 'char' ? Array.from(value).length : 0
      if (type.kind === 'char' && length > type.length) throw fault(`${length} characters`)
      builder.appendText(value)
      return
    }
    case 'binary':
    case 'bytes': {
      if (!(value instanceof Uint8Array) || !(builder instanceof BytesBuilder)) throw fault('')
      if (type.kind === 'binary' && value.length !== type.length)
        throw fault(`${value.length} bytes`)
      builder.append(value)
      return
    }
    case 'date': {
      if (!(builder instanceof Int32Builder)) throw fault('')
      const text = typeof value === 'string' ? Buffer.from(value) : undefined
      const days = text === undefined ? value : parseDate(text, 0, text.length)
      if (typeof days !== 'number' || (days | 0) !== days) throw fault('days, or YYYY-MM-DD')
      builder.append(days)
      return
    }
    case 'time':
    case 'timestamp':
    case 'timestamp_ltz':
      if (!(builder instanceof Int64Builder)) throw fault('')
      builder.append(microsOf(value, type, fault))
      return
    case 'array': {
      if (!Array.isArray(value) || !(builder instanceof ListBuilder)) throw fault('')
      const elements: readonly Value[] = value
      elements.forEach((element, index) => {
        appendValue(builder.element, type.element, element, `${path}[${index}]`)
      })
      builder.close()
      return
    }
    case 'map': {
      if (!(value instanceof Map) || !(builder instanceof MapBuilder)) throw fault('a Map')
      const entries: ReadonlyMap<Value, Value> = value
      for (const [key, entry] of entries) {
        appendValue(builder.key, type.key, key, `key of ${path}`)
        appendValue(builder.value, type.value, entry, `${path}{}`)
      }
      builder.close()
      return
    }
    case 'row': {
      if (!isRecord(value) || !(builder instanceof StructBuilder)) throw fault('an object')
      const unknown = Object.keys(value).find((name) => !type.fields.some((f) => f.name === name))
      if (unknown !== undefined) throw fault(`it has no field "${unknown}"`)
      type.fields.forEach((field, index) => {
        const child = builder.fields[index]
        const part = Object.hasOwn(value, field.name) ? value[field.name] : undefined
        if (child !== undefined)
          appendValue(child, field.type, part ?? null, `${path}.${field.name}`)
      })
      builder.close()
      return
    }
    default:
      return unreachable(type)
  }
}

type Faulter = (detail: string) => ValueFault

const bits = { tinyint: 8, smallint: 16, int: 32 } as const

function integerWithin(value: Value, kind: 'tinyint' | 'smallint' | 'int', fault: Faulter): number {
  const number = typeof value === 'bigint' ? Number(value) : value
  if (typeof number !== 'number' || !Number.isInteger(number)) throw fault('')
  const half = 2 ** (bits[kind] - 1)
  if (number < -half || number >= half) throw fault(`outside ${-half} to ${half - 1}`)
  return number
}

function longOf(value: Value, fault: Faulter): bigint {
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value)) throw fault('not a safe integer; use a bigint')
    return BigInt(value)
  }
  if (typeof value !== 'bigint') throw fault('')
  if (BigInt.asIntN(64, value) !== value) throw fault('beyond 64 bits')
  return value
}

function microsOf(
  value: Value,
  type: DataType & { readonly kind: 'time' | 'timestamp' | 'timestamp_ltz' },
  fault: Faulter,
): bigint {
  if (value instanceof Date) {
    if (type.kind !== 'timestamp_ltz') throw fault('a Date is an instant')
    const time = value.getTime()
    if (Number.isNaN(time)) throw fault('it is no time')
    return checkedMicros(BigInt(time) * 1000n, type, fault)
  }
  if (typeof value !== 'string') return checkedMicros(longOf(value, fault), type, fault)
  const text = Buffer.from(value)
  const instant = newInstantText()
  if (type.kind === 'time') {
    if (!parseTime(text, 0, text.length, instant)) throw fault('not hh:mm:ss')
  } else {
    if (!parseInstant(text, 0, text.length, instant)) throw fault('not ISO 8601')
    if (instant.zoned !== (type.kind === 'timestamp_ltz')) {
      throw fault(instant.zoned ? 'it has a zone' : 'it has no zone')
    }
  }
  if (instant.fractionDigits > Math.min(6, type.precision)) {
    throw fault(`more than ${Math.min(6, type.precision)} fraction digits`)
  }
  return BigInt(epochSeconds(instant)) * 1_000_000n + BigInt(Math.floor(instant.nanos / 1000))
}

/** A value in micros must not be finer than its column, and a time must lie within its day. */
function checkedMicros(
  micros: bigint,
  type: DataType & { readonly kind: 'time' | 'timestamp' | 'timestamp_ltz' },
  fault: Faulter,
): bigint {
  const unit = 10n ** BigInt(Math.max(0, 6 - type.precision))
  if (micros % unit !== 0n) throw fault(`more than ${type.precision} fraction digits`)
  if (type.kind === 'time' && (micros < 0n || micros >= 86_400_000_000n))
    throw fault('not a time of day')
  return micros
}

function isRecord(value: Value): value is { readonly [name: string]: Value } {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}

function shownValue(value: unknown): string {
  if (typeof value === 'bigint') return `${String(value)}n`
  const text = JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'bigint' ? `${String(part)}n` : part,
  )
  const shown = typeof text === 'string' ? text : String(value)
  return shown.length > 80 ? `${shown.slice(0, 79)}…` : shown
}
