import type { Column, ColumnBatch } from '../core/columns/column.ts'
import type { Chance } from '../core/ports.ts'
import type { DataType, Field } from '../core/schema/types.ts'
import { SluiceError } from '../core/errors.ts'
import type { DemoTable } from './demo-tables.ts'

export type RecordsPlace = {
  /** Number of the first record. */
  readonly first: number
  readonly count: number
  /** Microseconds since 1970 of the first record, and from one to the next. */
  readonly at: bigint
  readonly step: bigint
}

/** Makes up records: the same for the same chance. Columns are filled directly, not row by row. */
export function demoRecords(table: DemoTable, chance: Chance, place: RecordsPlace): ColumnBatch {
  const columns = table.schema.fields.map((field) => columnOf(field, chance, place))
  return { length: place.count, columns }
}

function columnOf(field: Field, chance: Chance, place: RecordsPlace): Column {
  const { type } = field
  switch (field.name) {
    case 'id':
      return longs(type, place.count, (row) => place.first + row)
    case 'at': {
      const [at, step] = [Number(place.at), Number(place.step)]
      return longs(type, place.count, (row) => at + row * step)
    }
    case 'user_id':
    case 'customer_id':
      return longs(type, place.count, () => chance.below(50_000))
    case 'latency_ms':
      return ints(type, place.count, () => 3 + chance.below(40) * chance.below(30))
    case 'amount':
    case 'credit':
      return decimals(type, place.count, () => 99 + chance.below(50_000_00))
    case 'url':
      return texts(type, place.count, urls, () => chance.below(urls.length))
    case 'status':
      return texts(type, place.count, statuses, () => chance.below(statuses.length))
    case 'name':
      return texts(type, place.count, names, () => chance.below(names.length))
    case 'country':
      // One in sixteen is not known.
      return texts(type, place.count, countries, () =>
        chance.below(16) === 0 ? -1 : chance.below(countries.length),
      )
    default:
      throw new SluiceError('INVARIANT_BROKEN', `the demo has no column ${field.name}`)
  }
}

function base(
  type: DataType,
  length: number,
): { type: DataType; length: number; nullCount: 0; validity: undefined; bitOffset: 0 } {
  return { type, length, nullCount: 0, validity: undefined, bitOffset: 0 }
}

/** @param valueAt From 0 to 2^53: a bigint for each value would be most of the work. */
function longs(type: DataType, length: number, valueAt: (row: number) => number): Column {
  const values = new BigInt64Array(length)
  const words = new Int32Array(values.buffer)
  for (let row = 0; row < length; row += 1) {
    const value = valueAt(row)
    words[2 * row] = value | 0
    words[2 * row + 1] = Math.floor(value / 2 ** 32)
  }
  return { ...base(type, length), layout: 'int64', values }
}

function ints(type: DataType, length: number, valueAt: (row: number) => number): Column {
  const values = new Int32Array(length)
  for (let row = 0; row < length; row += 1) values[row] = valueAt(row)
  return { ...base(type, length), layout: 'int32', values }
}

/** @param valueAt From 0 to 2^31. */
function decimals(type: DataType, length: number, valueAt: (row: number) => number): Column {
  const values = new BigInt64Array(2 * length)
  const words = new Int32Array(values.buffer)
  for (let row = 0; row < length; row += 1) words[4 * row] = valueAt(row)
  return { ...base(type, length), layout: 'int128', values }
}

/** @param pick Number of a text, or -1 for null. */
function texts(
  type: DataType,
  length: number,
  dictionary: readonly Uint8Array[],
  pick: (row: number) => number,
): Column {
  const offsets = new Int32Array(length + 1)
  const picks = new Int32Array(length)
  const validity = new Uint8Array((length + 7) >> 3).fill(255)
  let nullCount = 0
  let bytes = 0
  for (let row = 0; row < length; row += 1) {
    const picked = pick(row)
    picks[row] = picked
    if (picked < 0) {
      nullCount += 1
      validity[row >> 3] = (validity[row >> 3] ?? 0) & ~(1 << (row & 7))
    } else {
      bytes += dictionary[picked]?.length ?? 0
    }
    offsets[row + 1] = bytes
  }
  const values = new Uint8Array(bytes)
  for (let row = 0, at = 0; row < length; row += 1) {
    const text = dictionary[picks[row] ?? -1]
    if (text === undefined) continue
    // They are short: a loop takes less than a call of `set`.
    for (let byte = 0; byte < text.length; byte += 1) values[at + byte] = text[byte] ?? 0
    at += text.length
  }
  return {
    ...base(type, length),
    nullCount,
    validity: nullCount === 0 ? undefined : validity,
    layout: 'bytes',
    offsets,
    values,
  }
}

function encoded(words: readonly string[]): readonly Uint8Array[] {
  const encoder = new TextEncoder()
  return words.map((word) => encoder.encode(word))
}

const urls = encoded(
  ['/', '/search', '/cart', '/checkout', '/account', '/help'].concat(
    Array.from({ length: 90 }, (_, item) => `/item/${(1000 + 37 * item).toString()}`),
  ),
)
const statuses = encoded(['placed', 'paid', 'packed', 'sent', 'delivered', 'returned'])
const countries = encoded('AT BR CA CN DE EG ES FR GB IN IT JP KE KR MX NG NO PL SE US'.split(' '))
const names = encoded(
  'Ada Grace Alan Edsger Barbara Donald Frances Ken Radia Tony Leslie Sophie'
    .split(' ')
    .flatMap((first) =>
      'Abe Braun Costa Dubois Eriksen Fuchs García Haas Ito Jónsdóttir Kim Łukasik Müller 李'
        .split(' ')
        .map((last) => `${first} ${last}`),
    ),
)
