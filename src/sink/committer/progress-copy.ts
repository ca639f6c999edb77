import { createHash } from 'node:crypto'
import type { LoadedTable } from '../../catalog/ports.ts'
import { type Bucket, bucket, type Offset, offset, type SnapshotId } from '../../core/ids.ts'
import type { BucketEnds } from '../../source/ports.ts'
import { decodeLedger, encodeLedger, endsOf, type Ledger } from './ledger.ts'
import { propertyKeys } from './lineage.ts'

/** Catalogs backed by Hive cap one property near 4,000 characters. */
const propertyBytesMax = 2048

/**
 * The copy of a ledger in the table property `sluice.progress`. A rollback moves the branch and leaves
 * properties behind, so the copy counts only where it is proven to belong to the lineage.
 */
export type ProgressCopy = {
  readonly snapshot: bigint
  readonly sequence: bigint
  /** Absent when there are too many buckets for a property. */
  readonly ends: BucketEnds | undefined
  /** Absent when it is too large for a property: then ends alone cannot resume inputs. */
  readonly ledger: Ledger | undefined
}

/** As much of the ledger as fits: all of it, its ends, or a digest of them. */
export function encodeCopy(ledger: Ledger, snapshot: SnapshotId, sequence: bigint): string {
  const place = { snapshot: String(snapshot), sequence: String(sequence) }
  const ends = [...endsOf(ledger)]
    .sort(([a], [b]) => a - b)
    .map(([each, end]) => [null, each, String(end)])
  // A property has little room, and the blocks of inputs are only for a better message.
  const text = encodeLedger(ledger, { blocks: false })
  const whole = JSON.stringify({ ...place, ends, ledger: text })
  if (Buffer.byteLength(whole) <= propertyBytesMax) return whole
  const short = JSON.stringify({ ...place, ends })
  if (Buffer.byteLength(short) <= propertyBytesMax) return short
  const sha256 = createHash('sha256').update(JSON.stringify(ends)).digest('hex')
  return JSON.stringify({ ...place, sha256 })
}

/** @returns undefined when there is no copy, or none that can be read. */
export function readCopy(table: LoadedTable): ProgressCopy | undefined {
  const text = table.properties.get(propertyKeys.progress)
  if (text === undefined) return undefined
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof parsed !== 'object' || parsed === null) return undefined
  if (!('snapshot' in parsed) || !('sequence' in parsed)) return undefined
  const [snapshot, sequence] = [whole(parsed.snapshot), whole(parsed.sequence)]
  if (snapshot === undefined || sequence === undefined) return undefined
  return {
    snapshot,
    sequence,
    ends: 'ends' in parsed ? readEnds(parsed.ends) : undefined,
    ledger: 'ledger' in parsed ? readLedger(parsed.ledger) : undefined,
  }
}

/** What shows that a copy belongs to the lineage. */
export type Proof = 'parent-expired' | 'rows'

/**
 * Proofs for a copy when the chain breaks at `missing` (expired by another tool). Either the recorded
 * snapshot is the very parent that is gone; or the data itself says so: rows of a bucket are added as
 * a prefix and a rollback takes a suffix away, so the last recorded row being there proves the rest.
 * Sequence numbers, times and the snapshot list prove nothing: a foreign append after a rollback has a
 * higher number.
 *
 * @param dataEnds One more than the highest `__offset` in the live files of each bucket; undefined
 *   when a file does not say.
 */
export function prove(
  copy: ProgressCopy,
  missing: SnapshotId | undefined,
  dataEnds: ReadonlyMap<Bucket, bigint> | undefined,
): Proof | undefined {
  if (missing !== undefined && copy.snapshot === missing) return 'parent-expired'
  if (copy.ends === undefined || dataEnds === undefined) return undefined
  const buckets = new Set<Bucket>([...copy.ends.keys(), ...dataEnds.keys()])
  for (const each of buckets) {
    if (copy.ends.get(each) !== dataEnds.get(each)) return undefined
  }
  return 'rows'
}

function readEnds(value: unknown): BucketEnds | undefined {
  if (!Array.isArray(value)) return undefined
  const ends = new Map<Bucket, Offset>()
  for (const each of value as readonly unknown[]) {
    if (!Array.isArray(each)) return undefined
    const [partition, which, end] = each as readonly unknown[]
    const count = whole(end)
    if (partition !== null || typeof which !== 'number' || count === undefined) return undefined
    if (!Number.isSafeInteger(which) || which < 0) return undefined
    ends.set(bucket(which), offset(count))
  }
  return ends
}

function readLedger(value: unknown): Ledger | undefined {
  if (typeof value !== 'string') return undefined
  try {
    return decodeLedger(value, 'sluice.progress')
  } catch {
    return undefined
  }
}

function whole(value: unknown): bigint | undefined {
  return typeof value === 'string' && /^\d{1,19}$/.test(value) ? BigInt(value) : undefined
}
