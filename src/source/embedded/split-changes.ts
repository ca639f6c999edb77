import { takeBatch } from '../../core/columns/take.ts'
import { type Bucket, bucket } from '../../core/ids.ts'
import type { ChangeBatch } from '../changelog/change-batch.ts'

/** The changes of one bucket, in their order. */
export type ChangesOfBucket = { readonly bucket: Bucket; readonly batch: ChangeBatch }

/** @param buckets The bucket of each change. */
export function splitChanges(
  batch: ChangeBatch,
  buckets: Int32Array,
  count: number,
): readonly ChangesOfBucket[] {
  const rows = Array.from({ length: count }, (): number[] => [])
  buckets.forEach((each, row) => rows[each]?.push(row))
  return rows.flatMap((of, each) =>
    of.length === 0
      ? []
      : [{ bucket: bucket(each), batch: takeChanges(batch, Int32Array.from(of)) }],
  )
}

/** The changes at these places, in that order. */
export function takeChanges(batch: ChangeBatch, rows: Int32Array): ChangeBatch {
  const { kept } = batch
  return {
    records: takeBatch(batch.records, rows, rows.length),
    ops: Uint8Array.from(rows, (row) => batch.ops[row] ?? 0),
    ...(kept === undefined
      ? {}
      : { kept: { ...kept, columns: kept.columns.map((bits) => takeBits(bits, rows)) } }),
  }
}

function takeBits(bits: Uint8Array | undefined, rows: Int32Array): Uint8Array | undefined {
  if (bits === undefined) return undefined
  const taken = new Uint8Array((rows.length + 7) >> 3)
  rows.forEach((row, at) => {
    if ((((bits[row >> 3] ?? 0) >> (row & 7)) & 1) === 0) return
    taken[at >> 3] = (taken[at >> 3] ?? 0) | (1 << (at & 7))
  })
  return taken
}
