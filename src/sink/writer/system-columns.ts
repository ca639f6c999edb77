import type { Column, ColumnBatch } from '../../core/columns/column.ts'
import type { Bucket } from '../../core/ids.ts'
import { systemFields } from '../../core/schema/types.ts'
import type { LogBatch } from '../../source/ports.ts'
import { SluiceError } from '../../core/errors.ts'

const microsMax = 2n ** 63n - 1n

/**
 * Appends `__bucket`, `__offset` and `__timestamp` to a batch of the log. The timestamp is when the
 * log took the records, in microseconds, never the reader's clock.
 */
export function withSystemColumns(batch: LogBatch, bucket: Bucket): ColumnBatch {
  const micros = BigInt(batch.committedAt) * 1000n
  if (micros > microsMax) {
    throw new SluiceError(
      'DATA_CORRUPT',
      `the commit time ${String(batch.committedAt)} is out of range`,
    )
  }
  const offsets = new BigInt64Array(batch.records.length)
  let next: bigint = batch.baseOffset
  for (let i = 0; i < offsets.length; i += 1) offsets[i] = next++
  return withColumns(batch.records, bucket, offsets, micros)
}

/** Rows of a KV snapshot came by no change of the log that is known: offset and time are -1. */
export function withSnapshotColumns(records: ColumnBatch, bucket: Bucket): ColumnBatch {
  return withColumns(records, bucket, new BigInt64Array(records.length).fill(-1n), -1000n)
}

function withColumns(
  { length, columns }: ColumnBatch,
  bucket: Bucket,
  offsets: BigInt64Array,
  micros: bigint,
): ColumnBatch {
  const [bucketField, offsetField, timestampField] = systemFields
  const column = { length, nullCount: 0, validity: undefined, bitOffset: 0 }
  const system: Column[] = []
  if (bucketField !== undefined) {
    const values = new Int32Array(length).fill(bucket)
    system.push({ ...column, type: bucketField.type, layout: 'int32', values })
  }
  if (offsetField !== undefined) {
    system.push({ ...column, type: offsetField.type, layout: 'int64', values: offsets })
  }
  if (timestampField !== undefined) {
    const values = new BigInt64Array(length).fill(micros)
    system.push({ ...column, type: timestampField.type, layout: 'int64', values })
  }
  return { length, columns: [...columns, ...system] }
}
