import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { readVector, writeVectors } from '../../../src/catalog/iceberg/format/puffin.ts'
import { decodePositions, encodePositions } from '../../../src/catalog/iceberg/format/roaring.ts'
import { isSluiceError } from '../../../src/core/errors.ts'

// The hex and the digests are what CRoaring makes of the same positions (BitMap64.serialize).
const few = Uint32Array.of(0, 1, 7, 65_535, 65_536, 4_294_967_295)
const fewHex =
  '0100000000000000000000003a300000030000000000030001000000ffff0000' +
  '20000000280000002a000000000001000700ffff0000ffff'
const evens = (count: number): Uint32Array => Uint32Array.from({ length: count }, (_, i) => 2 * i)
const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from }, (_, i) => from + i)

test('positions are a portable 64-bit Roaring bitmap', () => {
  assert.equal(Buffer.from(encodePositions(few)).toString('hex'), fewHex)
  assert.deepEqual(decodePositions(Buffer.from(fewHex, 'hex'), 'it'), few)
})

test('4,096 values are an array, one more a bitmap', () => {
  const cases = [
    [4096, 'b95d4872f8923293f43ea169957925c6a83c9679e3d012c4c93c4c8b66248c6c'],
    [4097, '9edcbcd1a21f69ad5b5d6488a655669c1c19e26a3ee9003910a52ecee72cfdbd'],
  ] as const
  for (const [count, digest] of cases) {
    const bytes = encodePositions(evens(count))
    assert.equal(bytes.length, 8220)
    assert.equal(createHash('sha256').update(bytes).digest('hex'), digest)
    assert.deepEqual(decodePositions(bytes, 'it'), evens(count))
  }
})

test('runs of other writers are read, with and without offsets', () => {
  const one = '0100000000000000000000003b300100010000154e0100000001000a00154e7011'
  assert.deepEqual(
    decodePositions(Buffer.from(one, 'hex'), 'it'),
    Uint32Array.from([...range(10, 20_000), 70_000]),
  )
  const five =
    '0100000000000000000000003b3004001f00008413010084130200841303008413040084132d000000330000003900' +
    '00003f00000045000000010003008413010003008413010003008413010003008413010003008413'
  const expected = range(0, 5).flatMap((block) => range(block * 65_536 + 3, block * 65_536 + 5000))
  assert.deepEqual(decodePositions(Buffer.from(five, 'hex'), 'it'), Uint32Array.from(expected))
})

test('no position is a set without bitmaps', () => {
  assert.equal(Buffer.from(encodePositions(new Uint32Array(0))).toString('hex'), '00'.repeat(8))
  assert.equal(decodePositions(Buffer.alloc(8), 'it').length, 0)
})

test('damaged bytes are refused wherever they are cut', () => {
  const whole = Buffer.from(fewHex, 'hex')
  for (let length = 0; length < whole.length; length += 1) {
    assert.throws(
      () => decodePositions(whole.subarray(0, length), 'it'),
      (error) => isSluiceError(error, 'DATA_CORRUPT'),
      String(length),
    )
  }
  const beyond = Buffer.from(whole)
  beyond[8] = 1
  assert.throws(
    () => decodePositions(beyond, 'it'),
    (error) => isSluiceError(error, 'DATA_CORRUPT'),
  )
})

test('a Puffin file holds a vector for each data file, framed and checked', () => {
  const { bytes, blobs } = writeVectors([
    { dataFile: 'file:///lake/a.parquet', positions: few },
    { dataFile: 'file:///lake/b.parquet', positions: evens(5000) },
  ])
  const file = Buffer.from(bytes)
  assert.equal(file.subarray(0, 4).toString(), 'PFA1')
  assert.equal(file.subarray(-4).toString(), 'PFA1')
  const size = file.readUInt32LE(file.length - 12)
  const start = file.length - 12 - size
  assert.equal(file.subarray(start - 4, start).toString(), 'PFA1')
  const footer = JSON.parse(file.subarray(start, start + size).toString('utf8')) as {
    blobs: { type: string; offset: number; length: number; properties: Record<string, string> }[]
  }
  assert.deepEqual(
    footer.blobs.map(({ type, offset, length, properties }) => [type, offset, length, properties]),
    [
      [
        'deletion-vector-v1',
        4,
        few.length * 2 + 44 + 12,
        { 'referenced-data-file': 'file:///lake/a.parquet', cardinality: '6' },
      ],
      [
        'deletion-vector-v1',
        4 + 68,
        8228 + 4,
        { 'referenced-data-file': 'file:///lake/b.parquet', cardinality: '5000' },
      ],
    ],
  )
  const [first] = blobs
  assert.ok(first !== undefined)
  const blob = file.subarray(first.offset, first.offset + first.bytes)
  assert.deepEqual(readVector(blob, 'it'), few)
  const flipped = Buffer.from(blob)
  flipped[20] = (flipped[20] ?? 0) ^ 1
  assert.throws(
    () => readVector(flipped, 'it'),
    (error) => isSluiceError(error, 'DATA_CORRUPT'),
  )
})
