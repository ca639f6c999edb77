import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Column } from '../../../src/core/columns/column.ts'
import { bucketOf } from '../../../src/verify/murmur.ts'
import { OffsetRuns, type Run } from '../../../src/verify/offsets.ts'
import { tile } from '../../../src/verify/tiling.ts'

const run = (start: number, end: number): Run => ({ start: BigInt(start), end: BigInt(end) })

const runs = fc.array(fc.tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 1, max: 12 })), {
  maxLength: 12,
})

/** How often each offset is there, counted one by one. */
function covered(pieces: readonly Run[], offset: bigint): number {
  return pieces.filter(({ start, end }) => start <= offset && offset < end).length
}

test('tiling finds exactly the offsets that are in no file, and those that are in two', () => {
  fc.assert(
    fc.property(runs, runs, fc.integer({ min: 0, max: 20 }), (held, declared, from) => {
      const pieces = held.map(([start, length], file) => ({ ...run(start, start + length), file }))
      const holes = declared.map(([start, length]) => run(start, start + length))
      const whole = run(from, from + 25)
      const { gaps, overlaps } = tile(pieces, holes, whole)
      for (let offset = whole.start; offset < whole.end; offset += 1n) {
        const times = covered(pieces, offset)
        const isHole = covered(holes, offset) > 0
        assert.equal(covered(gaps, offset), times === 0 && !isHole ? 1 : 0, `gap ${String(offset)}`)
        assert.equal(covered(overlaps, offset) > 0, times > 1, `overlap ${String(offset)}`)
      }
      assert.ok(
        [...gaps, ...overlaps].every(({ start, end }) => whole.start <= start && end <= whole.end),
      )
    }),
  )
})

test('the runs of a file are the offsets it holds, in whatever order they come', () => {
  const offsets = fc.uniqueArray(fc.bigInt({ min: 0n, max: 60n }), { maxLength: 50 })
  fc.assert(
    fc.property(offsets, fc.integer({ min: 1, max: 7 }), (values, size) => {
      const taken = new OffsetRuns()
      for (let at = 0; at < values.length; at += size) {
        const part = BigInt64Array.from(values.slice(at, at + size))
        taken.add(part, part.length, () => true)
      }
      const found = taken.finish() ?? []
      const sorted = [...values].sort((a, b) => (a < b ? -1 : 1))
      const listed = found.flatMap(({ start, end }) =>
        Array.from({ length: Number(end - start) }, (_, each) => start + BigInt(each)),
      )
      assert.deepEqual(listed, sorted)
      assert.equal(taken.count, BigInt(values.length))
      assert.equal(taken.lower, sorted[0])
      assert.equal(taken.upper, sorted.at(-1))
      assert.equal(taken.doubled, undefined)
      const isOrdered = values.every((value, at) => at === 0 || value > (values[at - 1] ?? -1n))
      assert.equal(taken.disorder === undefined, isOrdered)
    }),
  )
})

test('an offset that is twice in a file is found, nulls and -1 do not count', () => {
  const taken = new OffsetRuns()
  taken.add(BigInt64Array.of(4n, 5n, -1n, 9n, 6n, 5n), 6, (index) => index !== 3)
  assert.deepEqual(taken.finish(), [{ start: 4n, end: 7n }])
  assert.equal(taken.doubled, 5n)
  assert.equal(taken.count, 4n)
})

test('a file of very many runs is known by its count and bounds', () => {
  const taken = new OffsetRuns()
  const values = BigInt64Array.from({ length: 300_000 }, (_, at) => BigInt(2 * at))
  taken.add(values, values.length, () => true)
  assert.equal(taken.finish(), undefined)
  assert.equal(taken.count, 300_000n)
  assert.deepEqual([taken.lower, taken.upper], [0n, 599_998n])
})

test('the bucket hash is that of the Iceberg spec, appendix B', () => {
  const base = { length: 1, nullCount: 0, validity: undefined, bitOffset: 0 } as const
  const long = (value: bigint): Column => ({
    ...base,
    type: { kind: 'bigint', nullable: false },
    layout: 'int64',
    values: BigInt64Array.of(value),
  })
  const bytes = (value: Uint8Array): Column => ({
    ...base,
    type: { kind: 'bytes', nullable: false },
    layout: 'bytes',
    offsets: Int32Array.of(0, value.length),
    values: value,
  })
  const decimal = (value: bigint): Column => ({
    ...base,
    type: { kind: 'decimal', precision: 9, scale: 2, nullable: false },
    layout: 'int128',
    values: BigInt64Array.of(BigInt.asIntN(64, value), value >> 64n),
  })
  const int: Column = {
    ...base,
    type: { kind: 'int', nullable: false },
    layout: 'int32',
    values: Int32Array.of(34),
  }
  // The spec lists signed hashes; the bucket takes the low 31 bits.
  const all = 2 ** 31
  const expected = (hash: number): number => hash & 0x7fff_ffff
  assert.equal(bucketOf(int, 0, all), expected(2017239379))
  assert.equal(bucketOf(long(34n), 0, all), expected(2017239379))
  assert.equal(bucketOf(decimal(1420n), 0, all), expected(-500754589))
  assert.equal(bucketOf(long(17_486n), 0, all), expected(-653330422))
  assert.equal(bucketOf(long(81_068_000_000n), 0, all), expected(-662762989))
  assert.equal(bucketOf(long(1_510_871_468_000_000n), 0, all), expected(-2047944441))
  assert.equal(bucketOf(bytes(Buffer.from('iceberg')), 0, all), expected(1210000089))
  assert.equal(bucketOf(bytes(Uint8Array.of(0, 1, 2, 3)), 0, all), expected(-188683207))
})
