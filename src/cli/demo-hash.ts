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

const lanes = [
  { seed: 0x9e3779b9, factor: 0x2c1b3c6d },
  { seed: 0x7f4a7c15, factor: 0x297a2d39 },
] as const

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
    const words = batch.columns.map(wordsOf)
    const sums = new Map<number, Sums>()
    for (let row = 0; row < batch.length; row += 1) {
      const offset = place.offsetAt(row)
      let high: number = lanes[0].seed
      let low: number = lanes[1].seed
      const mix = (word: number): void => {
        high = Math.imul(high ^ word, lanes[0].factor)
        high ^= high >>> 15
        low = Math.imul(low ^ word, lanes[1].factor)
        low ^= low >>> 15
      }
      mix(offset >>> 0)
      for (const column of words) {
        mix(column.low[row] ?? 0)
        if (column.high !== undefined) mix(column.high[row] ?? 0)
      }
      const bucket = place.bucketAt(row)
      const sum = sums.get(bucket)
      if (sum === undefined) {
        sums.set(bucket, { rows: 1, first: offset, last: offset, high: high >>> 0, low: low >>> 0 })
      } else {
        sum.rows += 1
        sum.first = Math.min(sum.first, offset)
        sum.last = Math.max(sum.last, offset)
        sum.high += high >>> 0
        sum.low += low >>> 0
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
  const steps = words.map((word, index) => `${word} as w${index.toString()}`)
  for (const [lane, { seed, factor }] of lanes.entries()) {
    let before = seed.toString()
    words.forEach((_, index) => {
      const name = `l${lane.toString()}_${index.toString()}`
      steps.push(
        `(xor(${before}::bigint, w${index.toString()}) * ${factor.toString()} % 4294967296) as ${name}m`,
        `xor(${name}m, ${name}m >> 15) as ${name}`,
      )
      before = name
    })
  }
  const last = (words.length - 1).toString()
  return (
    `select __bucket, count(*), min(__offset), max(__offset), sum(l0_${last}), sum(l1_${last}) ` +
    `from (select __bucket, __offset, ${steps.join(', ')} from ${relation}) group by 1 order by 1`
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

type Words = { readonly low: Uint32Array; readonly high: Uint32Array | undefined }

function wordsOf(column: Column): Words {
  const { length } = column
  const low = new Uint32Array(length)
  switch (column.layout) {
    case 'int64': {
      const high = new Uint32Array(length)
      for (let row = 0; row < length; row += 1) {
        const value = column.values[row] ?? 0n
        low[row] = Number(value & 0xffffffffn)
        high[row] = Number((value >> 32n) & 0xffffffffn)
      }
      return { low, high }
    }
    case 'int128':
      for (let row = 0; row < length; row += 1) {
        low[row] = Number((column.values[2 * row] ?? 0n) & 0xffffffffn)
      }
      return { low, high: undefined }
    case 'int32':
      low.set(column.values.subarray(0, length))
      return { low, high: undefined }
    case 'bytes':
      for (let row = 0; row < length; row += 1) {
        const text = column.values.subarray(column.offsets[row], column.offsets[row + 1])
        low[row] = isNull(column, row) ? nullWord : textWord(text)
      }
      return { low, high: undefined }
    default:
      throw new SluiceError('INVARIANT_BROKEN', `the demo has no ${column.layout} columns`)
  }
}

/** The demo has few different texts, and a digest of each is dear. */
const knownTexts = new Map<string, number>()

function textWord(bytes: Uint8Array): number {
  const key = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
  const known = knownTexts.get(key)
  if (known !== undefined) return known
  const word = createHash('md5').update(bytes).digest().readUInt32LE(8)
  knownTexts.set(key, word)
  return word
}
