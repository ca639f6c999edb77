import { SluiceError } from '../../core/errors.ts'
import type { Bucket, Offset } from '../../core/ids.ts'
import type { BucketEnds, BucketRange, KvSnapshot } from '../../source/ports.ts'
import type { Split } from '../ports.ts'

/**
 * One split for each bucket that has something new, ascending by bucket. `ends` is what the lake
 * holds; a bucket it does not name starts with its KV snapshot, if the source has one, or else at the
 * oldest record there is, which need not be 0. What came after the snapshot is the next round's.
 *
 * @throws SluiceError LOG_TRUNCATED when records that are not in the lake are gone from the log,
 *   SOURCE_BEHIND when the lake holds more than the log ever had, TABLE_REPLACED when the lake holds
 *   a bucket that the table does not have.
 */
export function planSplits(
  table: string,
  ranges: readonly BucketRange[],
  ends: BucketEnds,
  snapshots: ReadonlyMap<Bucket, KvSnapshot> = new Map(),
): readonly Split[] {
  refuseUnknownBuckets(table, ranges, ends)
  return ranges.flatMap((range): Split[] => {
    const { bucket, end: stop } = range
    const end = ends.get(bucket)
    const snapshot = end === undefined ? snapshots.get(bucket) : undefined
    if (snapshot !== undefined) {
      const { offset } = snapshot
      return [{ kind: 'snapshot', bucket, snapshot, start: offset, stop: offset, isFirst: true }]
    }
    if (end !== undefined) refuseGap(table, range, end)
    const start = end ?? range.earliest
    if (start >= stop) return []
    return [{ kind: 'log', bucket, start, stop, isFirst: end === undefined }]
  })
}

function refuseGap(table: string, range: BucketRange, end: Offset): void {
  const { bucket, earliest, end: logEnd } = range
  if (end > logEnd) {
    throw new SluiceError(
      'SOURCE_BEHIND',
      `${table} bucket ${bucket}: the lake ends at offset ${String(end)}, the log at ${String(logEnd)}`,
      { details: { table, bucket, lakeEnd: end, logEnd } },
    )
  }
  if (earliest > end) {
    const missing = earliest - end
    throw new SluiceError(
      'LOG_TRUNCATED',
      `${table} bucket ${bucket}: the log has lost ${String(missing)} records after offset ${String(end)}`,
      { details: { table, bucket, lakeEnd: end, earliest, missing } },
    )
  }
}

function refuseUnknownBuckets(
  table: string,
  ranges: readonly BucketRange[],
  ends: BucketEnds,
): void {
  const known = new Set<Bucket>(ranges.map((range) => range.bucket))
  for (const bucket of ends.keys()) {
    if (known.has(bucket)) continue
    throw new SluiceError(
      'TABLE_REPLACED',
      `${table}: the lake holds bucket ${bucket}, the table has ${known.size} buckets`,
      { details: { table, bucket, buckets: known.size } },
    )
  }
}
