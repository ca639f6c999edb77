import type { ColumnBatch } from '../core/columns/column.ts'
import type { Bucket, Millis, Offset, TableId } from '../core/ids.ts'
import type { TableSchema } from '../core/schema/types.ts'

export type SourceTable = {
  readonly id: TableId
  /** As users write it: `demo.flights`. */
  readonly name: string
  readonly kind: 'log' | 'primary-key'
  /** Stable id of source and table, written into every ledger. A table made anew has a new one. */
  readonly sourceId: string
  readonly schema: TableSchema
  /** Columns of the primary key, in order; absent for a log table. */
  readonly primaryKey?: readonly string[]
  readonly bucketCount: number
  readonly bucketKey: string | undefined
  readonly freshnessMs: number
}

/** Records of one bucket with consecutive offsets from `baseOffset`. */
export type LogBatch = {
  readonly baseOffset: Offset
  /** When the log took them; becomes `__timestamp`. */
  readonly committedAt: Millis
  readonly records: ColumnBatch
  /** One `ChangeType` for each record of a primary-key table; absent where all are appends. */
  readonly changes?: Uint8Array
}

/** The whole state of one bucket of a primary-key table, as it was before the change at `offset`. */
export type KvSnapshot = {
  readonly id: bigint
  readonly bucket: Bucket
  /** Changes below it are in the snapshot; the changelog goes on from here. */
  readonly offset: Offset
}

/** Holds a KV snapshot until it is released, so that a live round never loses it (I-29). */
export interface KvSnapshotLease {
  readonly snapshot: KvSnapshot
  /**
   * All rows in the order of their keys, in batches of bounded size.
   * @throws SluiceError LEASE_LOST when the snapshot is gone.
   */
  read(): AsyncIterable<ColumnBatch>
  release(): void
}

/** What a source of primary-key tables has beside their changelogs. */
export interface KvSnapshots {
  /** The newest complete snapshot of each bucket that has one. */
  newest(id: TableId): Promise<ReadonlyMap<Bucket, KvSnapshot>>
  /** @throws SluiceError LEASE_LOST when it is no longer kept. */
  lease(id: TableId, snapshot: KvSnapshot): KvSnapshotLease
}

export type BucketRange = {
  readonly bucket: Bucket
  /** The oldest offset the log still has. */
  readonly earliest: Offset
  /** End (exclusive) of what readers may see. */
  readonly end: Offset
}

/** End offset (exclusive) of each bucket that has one. A bucket without an entry has none: never 0. */
export type BucketEnds = ReadonlyMap<Bucket, Offset>

/**
 * Digests on the way through the beginning of an input, to tell where a change of it begins. There are
 * few of them, however long it is.
 */
export type BlockDigests = {
  /** Bytes of a block; each ends with a digest. */
  readonly bytes: number
  /** 8 hex digits a block, the first of the SHA-256 of everything before its end. */
  readonly digests: string
}

/**
 * How far one input is in the lake, committed with the rows. After `position` some records may be
 * in already, because buckets are cut separately: `extra` says how many per bucket.
 */
export type InputProgress = {
  /** Shown to people; the file name for a file. */
  readonly name: string
  /** Where a replay starts: a byte, a row, or the caller's own string. */
  readonly position: string
  /** Records before `position`. */
  readonly records: bigint
  /** SHA-256 in hex of everything before `position`; absent for inputs without bytes. */
  readonly digest?: string
  /** Of what `digest` is of. */
  readonly blocks?: BlockDigests
  /** When the log took what ends at `position`. */
  readonly tieredAt?: Millis
  readonly extra: ReadonlyMap<Bucket, bigint>
  /**
   * A mark beyond which nothing of `extra` lies. The input up to here is in the lake at least in
   * part, so it must still be the same when it is read again.
   */
  readonly ahead?: Required<Pick<InputProgress, 'position' | 'digest'>> &
    Pick<InputProgress, 'blocks' | 'tieredAt'>
  /** What else the reader of this input must know to go on, for example an unended last line. */
  readonly notes?: Readonly<Record<string, string>>
}

export type InputsProgress = ReadonlyMap<string, InputProgress>

/** What the tiering job asks of a source. */
export interface LogSource {
  /** Absent where the source has no primary-key tables. */
  readonly kv?: KvSnapshots
  tables(): readonly SourceTable[]
  table(id: TableId): SourceTable | undefined
  /** All buckets, ascending. */
  ranges(id: TableId): Promise<readonly BucketRange[]>
  /**
   * Reads `[start, stop)` of a bucket in order, each offset once, in batches of bounded size.
   * @throws SluiceError LOG_TRUNCATED when the log no longer has an offset asked for.
   */
  read(id: TableId, bucket: Bucket, start: Offset, stop: Offset): AsyncIterable<LogBatch>
  /** Keeps everything from `start` on until released, so that a live round never loses a record. */
  pin(id: TableId, bucket: Bucket, start: Offset): { release(): void }
  /** How far each input is in, once the lake holds everything below `ends`. */
  inputs(id: TableId, ends: BucketEnds): InputsProgress
  /** Tells that the lake holds everything below `ends`; the log may trim what nobody needs. */
  committed(id: TableId, ends: BucketEnds): void
}
