import { createHash } from 'node:crypto'
import { type Column, type ColumnBatch, isNull } from '../core/columns/column.ts'
import { SluiceError } from '../core/errors.ts'
import type { Field } from '../core/schema/types.ts'
import { quoteName } from './duckdb.ts'

/**
 * What is compared of a bucket. Each row gives two words of 32 bits that depend on every column and
 * on its offset; their sums do not depend on the order of the rows. The same can be computed here
 * and in SQL, so that two programs that share no code can be compared.
 */
export type BucketDigest = {
  readonly rows: bigint
  readonly first: bigint
  readonly last: bigint
  /** Sums of the two words of each row. */
  readonly high: bigint
  readonly low: bigint
}

/**
 * A lane takes bits 16 to 47 of `(lane xor word) * factor`. With factors below 2^21 the product is
 * exact in a double, and in SQL each step names the one before once, so that the text stays short.
 */
const lanes = [
  { seed: 0x9e3779b9, factor: 2_097_143 },
  { seed: 0x7f4a7c15, factor: 1_700_057 },
] as const
const cut = 65_536

const nullWord = 0x5bd1e995

/** Collects the digests of the buckets of one table. */
export class Digests {
  readonly #buckets = new Map<number, BucketDigest>()

  /** Adds rows of one bucket, `offsetAt` giving each its offset, `bucketAt` its bucket. */
  add(
    batch: ColumnBatch,
    place: {
      readonly bucketAt: (row: number) => number
      /** Below 2^53: a demo does not last that long. */
      readonly offsetAt: (row: number) => number
    },
  ): void {
    const { length } = batch
    const offsets = new Int32Array(length)
    for (let row = 0; row < length; row += 1) offsets[row] = place.offsetAt(row) | 0
    const high = new Int32Array(length).fill(lanes[0].seed)
    const low = new Int32Array(length).fill(lanes[1].seed)
    for (const { words, stride, shift } of [
      { words: offsets, stride: 1, shift: 0 },
      ...batch.columns.flatMap(wordsOf),
    ]) {
      for (let row = 0; row < length; row += 1) {
        const word = words[row * stride + shift] ?? 0
        high[row] = (((((high[row] ?? 0) ^ word) >>> 0) * lanes[0].factor) / cut) | 0
        low[row] = (((((low[row] ?? 0) ^ word) >>> 0) * lanes[1].factor) / cut) | 0
      }
    }
    const sums = new Map<number, Sums>()
    for (let row = 0; row < length; row += 1) {
      const offset = place.offsetAt(row)
      const h = (high[row] ?? 0) >>> 0
      const l = (low[row] ?? 0) >>> 0
      const bucket = place.bucketAt(row)
      const sum = sums.get(bucket)
      if (sum === undefined) {
        sums.set(bucket, { rows: 1, first: offset, last: offset, high: h, low: l })
      } else {
        sum.rows += 1
        sum.first = Math.min(sum.first, offset)
        sum.last = Math.max(sum.last, offset)
        sum.high += h
        sum.low += l
      }
    }
    for (const [bucket, sum] of sums) this.#merge(bucket, sum)
  }

  buckets(): ReadonlyMap<number, BucketDigest> {
    return this.#buckets
  }

  #merge(bucket: number, sum: Sums): void {
    const known = this.#buckets.get(bucket)
    const [first, last] = [BigInt(sum.first), BigInt(sum.last)]
    this.#buckets.set(bucket, {
      rows: (known?.rows ?? 0n) + BigInt(sum.rows),
      first: known === undefined || first < known.first ? first : known.first,
      last: known === undefined || last > known.last ? last : known.last,
      high: (known?.high ?? 0n) + BigInt(sum.high),
      low: (known?.low ?? 0n) + BigInt(sum.low),
    })
  }
}

/** Of one batch: sums of 32-bit words stay exact in a number up to two million rows. */
type Sums = { rows: number; first: number; last: number; high: number; low: number }

/** SQL that gives one row per bucket: bucket, rows, first, last, high, low. */
export function digestSql(relation: string, fields: readonly Field[]): string {
  const words = ['(__offset & 4294967295)', ...fields.flatMap(sqlWords)]
  const lane = ({ seed, factor }: (typeof lanes)[number]): string =>
    words.reduce(
      (before, word) => `((xor(${before}, ${word}) * ${factor.toString()} >> 16) & 4294967295)`,
      `${seed.toString()}::bigint`,
    )
  return (
    `select __bucket, count(*), min(__offset), max(__offset), ` +
    `sum(${lane(lanes[0])}), sum(${lane(lanes[1])}) from ${relation} group by 1 order by 1`
  )
}

function sqlWords(field: Field): readonly string[] {
  const name = quoteName(field.name)
  switch (field.type.kind) {
    case 'bigint':
      return [`(${name} & 4294967295)`, `(${name} >> 32)`]
    case 'timestamp_ltz':
      return [`(epoch_us(${name}) & 4294967295)`, `(epoch_us(${name}) >> 32)`]
    case 'int':
      return [`${name}::bigint`]
    case 'decimal':
      return [`(${name} * ${(10 ** field.type.scale).toString()})::bigint`]
    case 'string':
      return [`coalesce((md5_number_lower(${name}) % 4294967296)::bigint, ${nullWord.toString()})`]
    default:
      throw new SluiceError('INVARIANT_BROKEN', `the demo has no ${field.type.kind}`)
  }
}

/** Word `row * stride + shift` of `words` belongs to a row. */
type Words = { readonly words: Int32Array; readonly stride: number; readonly shift: number }

/** The low and, for 64 bits, the high word of each value. Typed arrays are little-endian here. */
function wordsOf(column: Column): readonly Words[] {
  const { length } = column
  switch (column.layout) {
    case 'int64': {
      const words = wordsIn(column.values)
      return [
        { words, stride: 2, shift: 0 },
        { words, stride: 2, shift: 1 },
      ]
    }
    case 'int128':
      return [{ words: wordsIn(column.values), stride: 4, shift: 0 }]
    case 'int32':
      return [{ words: column.values, stride: 1, shift: 0 }]
    case 'bytes': {
      const words = new Int32Array(length)
      const { values, offsets } = column
      for (let row = 0; row < length; row += 1) {
        words[row] = isNull(column, row)
          ? nullWord
          : textWord(values, offsets[row] ?? 0, offsets[row + 1] ?? 0)
      }
      return [{ words, stride: 1, shift: 0 }]
    }
    default:
      throw new SluiceError('INVARIANT_BROKEN', `the demo has no ${column.layout} columns`)
  }
}

function wordsIn(values: BigInt64Array): Int32Array {
  return new Int32Array(values.buffer, values.byteOffset, 2 * values.length)
}

type KnownText = { readonly bytes: Uint8Array; readonly word: number }

/** The demo has few different texts, and a digest of each is dear, as would be a string to look it up. */
const knownTexts: (KnownText | undefined)[] = new Array<KnownText | undefined>(4096)

function textWord(values: Uint8Array, start: number, end: number): number {
  let at = end - start
  for (let byte = start; byte < end; byte += 1) at = (Math.imul(at, 31) + (values[byte] ?? 0)) | 0
  at &= knownTexts.length - 1
  const known = knownTexts[at]
  if (known !== undefined && isText(known.bytes, values, start, end)) return known.word
  const bytes = values.slice(start, end)
  const word = createHash('md5').update(bytes).digest().readUInt32LE(8)
  knownTexts[at] = { bytes, word }
  return word
}

function isText(text: Uint8Array, values: Uint8Array, start: number, end: number): boolean {
  if (text.length !== end - start) return false
  for (let byte = 0; byte < text.length; byte += 1) {
    if (text[byte] !== values[start + byte]) return false
  }
  return true
}
