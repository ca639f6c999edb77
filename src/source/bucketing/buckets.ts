import { type Column, isNull } from '../../core/columns/column.ts'
import { SluiceError } from '../../core/errors.ts'
import { check, unreachable } from '../../core/never.ts'
import { type BucketFormat, writeKey } from './key-encoding.ts'
import { KeyWriter } from './key-writer.ts'
import { flussFold, flussHash, murmur3, murmur3Long } from './murmur.ts'

/** Bucket of a key that is encoded already, by the rule of the format. */
export function bucketOfKey(
  key: Uint8Array,
  from: number,
  to: number,
  over: { readonly count: number; readonly format: BucketFormat },
): number {
  switch (over.format) {
    case 'iceberg':
      return (murmur3(key, from, to, 0) & 0x7fff_ffff) % over.count
    case 'paimon':
      return Math.abs(flussHash(key, from, to) % over.count)
    case 'fluss':
      return flussFold(flussHash(key, from, to)) % over.count
    default:
      return unreachable(over.format)
  }
}

/**
 * Bucket of each row, by the rule of the format, from a key column whose type the format allows.
 *
 * @throws SluiceError RECORD_REFUSED with the first `row` whose key is null or empty: neither has a
 * bucket.
 */
export function bucketsOf(column: Column, count: number, format: BucketFormat): Int32Array {
  check(count >= 1, 'a table has at least one bucket')
  refuseNulls(column)
  refuseEmpty(column)
  const buckets = new Int32Array(column.length)
  if (format === 'iceberg' && hashIceberg(column, buckets, count)) return buckets
  const key = new KeyWriter()
  const over = { count, format }
  const columns = [column]
  for (let row = 0; row < column.length; row += 1) {
    writeKey(key, columns, row, format)
    buckets[row] = bucketOfKey(key.bytes, 0, key.length, over)
  }
  return buckets
}

/** Hashes the common layouts in place; false for the others. */
function hashIceberg(column: Column, buckets: Int32Array, count: number): boolean {
  switch (column.layout) {
    case 'int32':
      for (let row = 0; row < column.length; row += 1) {
        const value = column.values[row] ?? 0
        buckets[row] = (murmur3Long(value, value >> 31, 0) & 0x7fff_ffff) % count
      }
      return true
    case 'int64': {
      const { buffer, byteOffset } = column.values
      const halves = new Int32Array(buffer, byteOffset, 2 * column.length)
      for (let row = 0; row < column.length; row += 1) {
        const hash = murmur3Long(halves[2 * row] ?? 0, halves[2 * row + 1] ?? 0, 0)
        buckets[row] = (hash & 0x7fff_ffff) % count
      }
      return true
    }
    case 'bytes':
      for (let row = 0; row < column.length; row += 1) {
        const from = column.offsets[row] ?? 0
        const to = column.offsets[row + 1] ?? 0
        buckets[row] = (murmur3(column.values, from, to, 0) & 0x7fff_ffff) % count
      }
      return true
    default:
      return false
  }
}

function refuseNulls(column: Column): void {
  if (column.nullCount === 0) return
  for (let row = 0; row < column.length; row += 1) {
    if (isNull(column, row)) throw refusal(row, 'null')
  }
}

function refuseEmpty(column: Column): void {
  if (column.layout !== 'bytes') return
  for (let row = 0; row < column.length; row += 1) {
    if (column.offsets[row] === column.offsets[row + 1]) throw refusal(row, 'empty')
  }
}

function refusal(row: number, what: 'null' | 'empty'): SluiceError {
  return new SluiceError(
    'RECORD_REFUSED',
    `record ${row} of the batch: its bucket key is ${what}`,
    {
      details: { row, reason: `bucket-key-${what}` },
    },
  )
}
