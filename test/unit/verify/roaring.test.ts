import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSluiceError } from '../../../src/core/errors.ts'
import { readRoaring } from '../../../src/verify/roaring.ts'

// What CRoaring writes (BitMap64.serialize).
const few =
  '0100000000000000000000003a300000030000000000030001000000ffff0000' +
  '20000000280000002a000000000001000700ffff0000ffff'
const runs = '0100000000000000000000003b300100010000154e0100000001000a00154e7011'
const fiveRuns =
  '0100000000000000000000003b3004001f00008413010084130200841303008413040084132d000000330000003900' +
  '00003f00000045000000010003008413010003008413010003008413010003008413010003008413'

function read(hex: string): { readonly count: number; readonly ranges: number[][] } {
  const ranges: number[][] = []
  const count = readRoaring(Buffer.from(hex, 'hex'), (from, to) => ranges.push([from, to]))
  return { count, ranges }
}

test('arrays, runs with and without offsets, and no set at all', () => {
  const { count, ranges } = read(few)
  assert.equal(count, 6)
  const positions = [0, 1, 7, 65_535, 65_536, 4_294_967_295]
  assert.deepEqual(
    ranges,
    positions.map((position) => [position, position + 1]),
  )
  assert.deepEqual(read(runs), {
    count: 19_991,
    ranges: [
      [10, 20_000],
      [70_000, 70_001],
    ],
  })
  const blocks = [0, 1, 2, 3, 4].map((block) => [block * 65_536 + 3, block * 65_536 + 5000])
  assert.deepEqual(read(fiveRuns), { count: 5 * 4997, ranges: blocks })
  assert.deepEqual(read('00'.repeat(8)), { count: 0, ranges: [] })
})

test('a bitmap of the even numbers, and a second bitmap above 32 bits', () => {
  const head = Buffer.alloc(28)
  head.writeBigUInt64LE(1n, 0)
  head.writeUInt32LE(12_346, 12)
  head.writeUInt32LE(1, 16)
  head.writeUInt16LE(32_767, 22)
  head.writeUInt32LE(16, 24)
  const even = Buffer.concat([head, Buffer.alloc(8192, 0x55)])
  let next = 0
  const count = readRoaring(even, (from, to) => {
    assert.deepEqual([from, to], [next, next + 1])
    next += 2
  })
  assert.equal(count, 32_768)

  const twice = Buffer.from(`02${few.slice(2)}01000000${few.slice(24)}`, 'hex')
  const all = read(twice.toString('hex'))
  assert.equal(all.count, 12)
  assert.deepEqual(all.ranges[6], [2 ** 32, 2 ** 32 + 1])
})

test('what is cut, out of order, longer or of another size is refused', () => {
  const isDamage = (error: unknown): boolean => isSluiceError(error, 'DATA_CORRUPT')
  for (const hex of [few, runs, fiveRuns]) {
    for (let length = 0; length < hex.length; length += 2) {
      assert.throws(() => read(hex.slice(0, length)), isDamage, String(length))
    }
    assert.throws(() => read(`${hex}00`), isDamage)
  }
  const changes: readonly (readonly [number, string])[] = [
    [88, '05'], // the first position is 5, the second 1
    [24, '3c'], // another cookie
    [44, '02'], // a container with fewer positions than there are
    [64, '21'], // an offset of a container that is elsewhere
  ]
  for (const [at, byte] of changes) {
    const changed = few.slice(0, at) + byte + few.slice(at + 2)
    assert.throws(() => read(changed), isDamage, String(at))
  }
})
