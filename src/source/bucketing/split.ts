import { type Column, type ColumnBatch, sliceBatch } from '../../core/columns/column.ts'
import { takeBatch } from '../../core/columns/take.ts'
import { type Bucket, bucket } from '../../core/ids.ts'
import { check } from '../../core/never.ts'
import { bucketsOf } from './buckets.ts'
import type { BucketFormat } from './key-encoding.ts'

/** Records for one bucket, in the order they were given. */
export type BucketPart = { readonly bucket: Bucket; readonly records: ColumnBatch }

/** Records of an input that go to one bucket before the next one's turn. Never change: lakes rely on it. */
export const blockRecords = 1024

/**
 * Gives the records of an input to the buckets in turn, in blocks of 1,024 counted from the input's
 * first record, so that a replay fills the same buckets however it is cut. Copies no values; a bucket
 * may come up more than once.
 *
 * @param startOrdinal Records of the input before this batch.
 */
export function splitByPlace(
  startOrdinal: bigint,
  batch: ColumnBatch,
  count: number,
): readonly BucketPart[] {
  check(startOrdinal >= 0n && count >= 1, 'a place is not negative and a table has buckets')
  if (batch.length === 0) return []
  if (count === 1) return [{ bucket: bucket(0), records: batch }]
  const parts: BucketPart[] = []
  let turn = Number((startOrdinal / BigInt(blockRecords)) % BigInt(count))
  let to = Math.min(batch.length, blockRecords - Number(startOrdinal % BigInt(blockRecords)))
  for (let from = 0; from < batch.length; ) {
    parts.push({ bucket: bucket(turn), records: sliceBatch(batch, from, to) })
    turn = (turn + 1) % count
    from = to
    to = Math.min(batch.length, from + blockRecords)
  }
  return parts
}

/**
 * Gathers the records of each bucket, by the hash of the key column; each bucket comes once.
 *
 * @throws SluiceError RECORD_REFUSED as `bucketsOf` does.
 */
export function splitByKey(
  key: Column,
  batch: ColumnBatch,
  over: { readonly count: number; readonly format: BucketFormat },
): readonly BucketPart[] {
  check(key.length === batch.length, 'a key column is as long as its batch')
  return gatherBuckets(bucketsOf(key, over.count, over.format), batch, over.count)
}

/** Gathers the records of each bucket when the bucket of each is known; a stable counting sort. */
export function gatherBuckets(
  buckets: Int32Array,
  batch: ColumnBatch,
  count: number,
): readonly BucketPart[] {
  const ends = new Int32Array(count + 1)
  for (const each of buckets) ends[each + 1] = (ends[each + 1] ?? 0) + 1
  for (let each = 0; each < count; each += 1)
    ends[each + 1] = (ends[each + 1] ?? 0) + (ends[each] ?? 0)
  const next = ends.slice()
  const rows = new Int32Array(batch.length)
  for (let row = 0; row < batch.length; row += 1) {
    const each = buckets[row] ?? 0
    const at = next[each] ?? 0
    rows[at] = row
    next[each] = at + 1
  }
  const parts: BucketPart[] = []
  for (let each = 0; each < count; each += 1) {
    const from = ends[each] ?? 0
    const to = ends[each + 1] ?? 0
    if (from === to) continue
    const records =
      to - from === batch.length ? batch : takeBatch(batch, rows.subarray(from, to), to - from)
    parts.push({ bucket: bucket(each), records })
  }
  return parts
}
