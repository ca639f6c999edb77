import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { columnBuilder } from '../../../src/core/columns/builder.ts'
import type { Column } from '../../../src/core/columns/column.ts'
import { sliceColumn } from '../../../src/core/columns/column.ts'
import { isSluiceError } from '../../../src/core/errors.ts'
import type { DataType } from '../../../src/core/schema/types.ts'
import { bucketOfKey, bucketsOf } from '../../../src/source/bucketing/buckets.ts'
import {
  type BucketFormat,
  requireKeyType,
  writeKey,
} from '../../../src/source/bucketing/key-encoding.ts'
import { KeyWriter } from '../../../src/source/bucketing/key-writer.ts'
import { flussHash, murmur3, murmur3Long } from '../../../src/source/bucketing/murmur.ts'

const required = { nullable: false } as const
const int: DataType = { kind: 'int', ...required }
const bigint: DataType = { kind: 'bigint', ...required }
const string: DataType = { kind: 'string', ...required }
const timestamp = (precision: number): DataType => ({ kind: 'timestamp', precision, ...required })
const decimal = (precision: number, scale: number): DataType => {
  return { kind: 'decimal', precision, scale, ...required }
}

type Scalar = number | bigint | string | boolean | Uint8Array | null

function column(type: DataType, ...values: readonly Scalar[]): Column {
  const builder = columnBuilder(type)
  for (const value of values) {
    if (value === null) builder.appendNull()
    else if (builder.layout === 'bit') builder.append(value === true)
    else if (builder.layout === 'int64') builder.append(value as bigint)
    else if (builder.layout === 'int128') builder.append(value as bigint)
    else if (builder.layout === 'bytes') {
      builder.append(typeof value === 'string' ? Buffer.from(value) : (value as Uint8Array))
    } else if (
      builder.layout === 'list' ||
      builder.layout === 'map' ||
      builder.layout === 'struct'
    ) {
      throw new Error('scalars only')
    } else builder.append(Number(value))
  }
  return builder.finish()
}

function encode(format: BucketFormat, ...columns: readonly Column[]): string {
  const key = new KeyWriter()
  writeKey(key, columns, 0, format)
  return Buffer.from(key.bytes.subarray(0, key.length)).toString('hex')
}

function hashes(hex: string): { fluss: number; iceberg: number } {
  const bytes = Buffer.from(hex, 'hex')
  return { fluss: flussHash(bytes, 0, bytes.length), iceberg: murmur3(bytes, 0, bytes.length, 0) }
}

describe('hashes of encoded keys', () => {
  const cases = [
    { key: '000a', count: 7, fluss: 1, paimon: 1, iceberg: 3 },
    { key: '000a0a0a', count: 12, fluss: 0, paimon: 11, iceberg: 4 },
    {
      key: Buffer.from('2bb87d68-baf9-4e64-90f9-f80910419fa6').toString('hex'),
      count: 16,
      fluss: 6,
      paimon: 12,
      iceberg: 12,
    },
  ]
  for (const each of cases) {
    test(`puts ${each.key} of ${each.count} buckets where the other clients put it`, () => {
      const bytes = Buffer.from(each.key, 'hex')
      for (const format of ['fluss', 'paimon', 'iceberg'] as const) {
        const over = { count: each.count, format }
        assert.equal(bucketOfKey(bytes, 0, bytes.length, over), each[format], format)
      }
    })
  }

  test('gives the published murmur3 values for tails of one to three bytes', () => {
    // Reference values of MurmurHash3_x86_32 as listed by its users (seed, text, hash).
    const cases: readonly [number, string, number][] = [
      [0, '', 0],
      [1, '', 0x514e28b7],
      [0x9747b28c, 'a', 0x7fa09ea6],
      [0x9747b28c, 'aa', 0x5d211726],
      [0x9747b28c, 'aaa', 0x283e0130],
      [0x9747b28c, 'aaaa', 0x5a97808a],
      [0x9747b28c, 'Hello, world!', 0x24884cba],
    ]
    for (const [seed, text, hash] of cases) {
      const bytes = Buffer.from(text)
      assert.equal(murmur3(bytes, 0, bytes.length, seed) >>> 0, hash, text)
    }
  })

  test('hashes an int64 by halves as by bytes', () => {
    for (const value of [0n, 34n, -1n, 2n ** 40n + 7n, -(2n ** 63n), 2n ** 63n - 1n]) {
      const bytes = Buffer.alloc(8)
      bytes.writeBigInt64LE(value)
      const byHalves = murmur3Long(bytes.readInt32LE(0), bytes.readInt32LE(4), 0)
      assert.equal(byHalves, murmur3(bytes, 0, 8, 0))
    }
  })
})

describe('key encodings', () => {
  test('encodes INT 34 in each format', () => {
    const key = column(int, 34)
    assert.equal(encode('fluss', key), '22')
    assert.equal(encode('paimon', key), '0000000000000000' + '2200000000000000')
    assert.equal(encode('iceberg', key), '2200000000000000')
    assert.equal(hashes(encode('paimon', key)).fluss, 1010298847)
    assert.equal(hashes(encode('iceberg', key)).iceberg, 2017239379)
  })

  test('encodes STRING customer-1 in each format', () => {
    const key = column(string, 'customer-1')
    assert.equal(encode('fluss', key), '0a' + Buffer.from('customer-1').toString('hex'))
    assert.equal(encode('paimon', key).length, 64)
    assert.equal(hashes(encode('paimon', key)).fluss, -1119036046)
    assert.equal(hashes(encode('iceberg', key)).iceberg, 2082362020)
  })

  test('encodes a key of two columns', () => {
    const key = [column(int, 7), column(string, 'x')]
    assert.equal(encode('fluss', ...key), '070178')
    assert.equal(hashes(encode('paimon', ...key)).fluss, -1252423430)
    const over = (format: BucketFormat) => ({ count: 16, format })
    const bucket = (format: BucketFormat) => {
      const bytes = Buffer.from(encode(format, ...key), 'hex')
      return bucketOfKey(bytes, 0, bytes.length, over(format))
    }
    assert.equal(bucket('fluss'), 4)
    assert.equal(bucket('paimon'), 6)
  })

  test('keeps seven bytes of text inside the slot of a binary row', () => {
    assert.equal(
      encode('paimon', column(string, 'iceberg')),
      '0000000000000000' + '6963656265726787',
    )
  })

  test('encodes decimals as the fewest big-endian bytes for Iceberg', () => {
    const cases: readonly [bigint, string][] = [
      [1420n, '058c'],
      [0n, '00'],
      [127n, '7f'],
      [128n, '0080'],
      [-128n, '80'],
      [-129n, 'ff7f'],
    ]
    for (const [value, hex] of cases) {
      assert.equal(encode('iceberg', column(decimal(9, 2), value)), hex)
    }
    assert.equal(hashes('058c').iceberg, -500754589)
  })

  test('encodes negative numbers without zigzag', () => {
    assert.equal(encode('fluss', column(int, -1)), 'ffffffff0f')
    assert.equal(encode('fluss', column(bigint, -1n)), 'ffffffffffffffffff01')
    assert.equal(encode('fluss', column({ kind: 'smallint', ...required }, -2)), 'feff')
    assert.equal(encode('iceberg', column(int, -1)), 'ffffffffffffffff')
    assert.equal(encode('paimon', column(int, -1)).slice(16), 'ffffffff00000000')
  })

  test('splits timestamps finer than milliseconds, before 1970 too', () => {
    const early = column(timestamp(6), -1n)
    assert.equal(encode('fluss', early), 'ffffffffffffffffff01' + 'd8fc3c')
    assert.equal(encode('paimon', early), '00'.repeat(8) + '583e0f0010000000' + 'ff'.repeat(8))
    assert.equal(encode('fluss', column(timestamp(3), 5_000n)), '05')
    assert.equal(encode('paimon', column(timestamp(3), 5_000n)).slice(16), '0500000000000000')
    assert.equal(encode('iceberg', early), 'ffffffffffffffff')
  })

  test('encodes wide decimals with their length', () => {
    const wide = column(decimal(38, 0), 1420n)
    assert.equal(encode('fluss', wide), '02058c')
    const tail = '058c' + '00'.repeat(14)
    assert.equal(encode('paimon', wide), '00'.repeat(8) + '0200000010000000' + tail)
  })
})

describe('bucketsOf', () => {
  const rows: readonly {
    type: DataType
    value: Scalar
    buckets: Partial<Record<BucketFormat, number>>
  }[] = [
    { type: int, value: 34, buckets: { fluss: 6, paimon: 15, iceberg: 3 } },
    { type: string, value: 'customer-1', buckets: { fluss: 2, paimon: 14, iceberg: 4 } },
  ]
  for (const { type, value, buckets } of rows) {
    test(`puts ${String(value)} of 16 buckets where the other clients put it`, () => {
      for (const format of ['fluss', 'paimon', 'iceberg'] as const) {
        assert.deepEqual([...bucketsOf(column(type, value), 16, format)], [buckets[format]], format)
      }
    })
  }

  test("agrees with the vectors of Iceberg's specification", () => {
    // Appendix B of the table specification: hashes of 34 as int and long, 14.20, dates and times,
    // text, and bytes 00 01 02 03.
    const cases: readonly [DataType, Scalar, number][] = [
      [int, 34, 2017239379],
      [bigint, 34n, 2017239379],
      [decimal(4, 2), 1420n, -500754589],
      [{ kind: 'date', ...required }, 17486, -653330422],
      [{ kind: 'time', precision: 6, ...required }, 81_068_000_000n, -662762989],
      [timestamp(6), 1_510_871_468_000_000n, -2047944441],
      [timestamp(6), 1_510_871_468_000_001n, -1207196810],
      [string, 'iceberg', 1210000089],
      [{ kind: 'bytes', ...required }, Uint8Array.of(0, 1, 2, 3), -188683207],
    ]
    for (const count of [1, 2, 7, 16, 4096]) {
      for (const [type, value, hash] of cases) {
        const buckets = bucketsOf(column(type, value), count, 'iceberg')
        assert.deepEqual([...buckets], [(hash & 0x7fff_ffff) % count], type.kind)
      }
    }
  })

  test('hashes a slice as its elements', () => {
    for (const whole of [
      column(bigint, 5n, 34n, -9n, 11n),
      column(string, 'a', 'customer-1', 'xyz', 'é'),
      column(decimal(9, 2), 1n, 1420n, -3n, 4n),
    ]) {
      for (const format of ['fluss', 'paimon', 'iceberg'] as const) {
        const all = bucketsOf(whole, 16, format)
        assert.deepEqual(bucketsOf(sliceColumn(whole, 1, 4), 16, format), all.subarray(1))
      }
    }
  })

  test('refuses a null or empty key and names its row', () => {
    const nullable: DataType = { kind: 'string', nullable: true }
    for (const [values, row, reason] of [
      [['a', null, 'b'], 1, 'bucket-key-null'],
      [['a', 'b', ''], 2, 'bucket-key-empty'],
    ] as const) {
      for (const format of ['fluss', 'paimon', 'iceberg'] as const) {
        assert.throws(
          () => bucketsOf(column(nullable, ...values), 4, format),
          (error) => {
            assert.ok(isSluiceError(error, 'RECORD_REFUSED'))
            assert.deepEqual(error.details, { row, reason })
            return true
          },
        )
      }
    }
  })
})

describe('requireKeyType', () => {
  test('refuses the types that have no bucket in Iceberg', () => {
    for (const kind of ['boolean', 'tinyint', 'smallint', 'float', 'double'] as const) {
      assert.throws(
        () => {
          requireKeyType('k', { kind, nullable: false }, 'iceberg')
        },
        (error) => isSluiceError(error, 'SCHEMA_UNSUPPORTED'),
      )
    }
    requireKeyType('k', bigint, 'iceberg')
    requireKeyType('k', { kind: 'boolean', nullable: false }, 'fluss')
    assert.throws(() => {
      requireKeyType('k', { kind: 'row', nullable: false, fields: [] }, 'fluss')
    })
  })
})
