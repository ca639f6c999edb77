import { deepEqual, equal, ok } from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { compareBlocks, PrefixHash } from '../../../src/source/ingest/prefix-hash.ts'

const block = 65_536
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** Bytes that repeat nowhere near. */
const bytes = Buffer.alloc(9 * 1024 * 1024)
for (let at = 0; at < bytes.length; at += 4) bytes.writeUInt32LE(at ^ 0x5bd1e995, at)

function hashOf(part: Uint8Array, cuts: readonly number[] = []): PrefixHash {
  const hash = new PrefixHash()
  let from = 0
  for (const to of [...cuts, part.length]) {
    hash.update(part.subarray(from, to))
    from = to
  }
  return hash
}

test('each block ends with the digest of everything before its end', () => {
  const { digest, blocks } = hashOf(bytes.subarray(0, 2 * block + 1)).here()
  equal(digest(), sha256(bytes.subarray(0, 2 * block + 1)))
  deepEqual(blocks, {
    bytes: block,
    digests:
      sha256(bytes.subarray(0, block)).slice(0, 8) +
      sha256(bytes.subarray(0, 2 * block)).slice(0, 8),
  })
  equal(hashOf(bytes.subarray(0, block - 1)).here().blocks, undefined)
})

test('an input that grows keeps at most 64 blocks, twice as wide when they were too many', () => {
  const widths: (readonly [number, number])[] = []
  for (const count of [64, 65, 66, 128, 129, 130, 144]) {
    const { blocks } = hashOf(bytes.subarray(0, count * block)).here()
    ok(blocks)
    widths.push([blocks.bytes / block, blocks.digests.length / 8])
    const ends = blocks.digests.match(/.{8}/g) ?? []
    ends.forEach((digest, index) => {
      equal(digest, sha256(bytes.subarray(0, (index + 1) * blocks.bytes)).slice(0, 8))
    })
  }
  deepEqual(widths, [
    [1, 64],
    [2, 32],
    [2, 33],
    [2, 64],
    [2, 64],
    [4, 32],
    [4, 36],
  ])
})

test('the digests are of the bytes alone, however they come and wherever one looks on the way', () => {
  const size = fc.integer({ min: 0, max: 300_000 })
  fc.assert(
    fc.property(size, fc.array(size, { maxLength: 5 }), (end, places) => {
      const cuts = places.filter((each) => each < end).sort((a, b) => a - b)
      const part = bytes.subarray(0, end)
      const one = hashOf(part, cuts)
      const here = one.here()
      one.update(Buffer.from('more'))
      equal(here.digest(), sha256(part))
      deepEqual(here.blocks, hashOf(part).here().blocks)
    }),
    { numRuns: 50 },
  )
})

test('the block in which two inputs begin to differ is found also where one has grown', () => {
  const whole = bytes.subarray(0, 100 * block)
  const known = hashOf(whole.subarray(0, 40 * block + 5)).here().blocks
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 40 * block - 1 }), (at) => {
      const other = Buffer.from(whole)
      other[at] = (other[at] ?? 0) ^ 1
      const found = hashOf(other).here().blocks
      ok(found)
      const width = found.bytes
      deepEqual(compareBlocks(known, found), {
        same: Math.floor(at / width) * width,
        differs: true,
      })
    }),
    { numRuns: 30 },
  )
  deepEqual(compareBlocks(known, hashOf(whole).here().blocks), { same: 40 * block, differs: false })
  equal(compareBlocks(known, undefined), undefined)
})
