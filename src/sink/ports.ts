import type { DataFile } from '../catalog/ports.ts'
import type {
  Bucket,
  CommitId,
  Epoch,
  Incarnation,
  Offset,
  SnapshotId,
  TableId,
} from '../core/ids.ts'
import type { SluiceError } from '../core/errors.ts'
import type { KvSnapshot, SourceTable } from '../source/ports.ts'

/** A table handed to a job by the coordinator. The token is echoed in every message about it. */
export type Assignment = {
  readonly table: TableId
  readonly incarnation: Incarnation
  readonly epoch: Epoch
  /** The end of the attempt before is not known: write a fence before progress is read. */
  readonly takeOver: boolean
}

/** One bucket's work in one round: the offsets `[start, stop)`. */
export type LogSplit = {
  readonly kind: 'log'
  readonly bucket: Bucket
  /** Where the round of this bucket must begin: its end in the lake, or the origin if it has none. */
  readonly start: Offset
  readonly stop: Offset
  /** True when the lake has no end for this bucket yet; absent is not 0. */
  readonly isFirst: boolean
}

/** The first round of a bucket of a primary-key table: its whole state, all of it or nothing. */
export type SnapshotSplit = {
  readonly kind: 'snapshot'
  readonly bucket: Bucket
  readonly snapshot: KvSnapshot
  /** Both are the offset of the snapshot: origin and end of the bucket once the round is in. */
  readonly start: Offset
  readonly stop: Offset
  readonly isFirst: true
}

export type Split = LogSplit | SnapshotSplit

/**
 * What a split of a primary-key table did, once for each key it touched. Arrays are parallel; `file`
 * is an index into the files of the result, and -1 where the key's last change deletes it.
 */
export type TouchedKeys = {
  readonly keys: readonly Uint8Array[]
  readonly file: Int32Array
  readonly row: Uint32Array
  /** Rows of the result's own files that a later change of the same split replaced, by file. */
  readonly replaced: ReadonlyMap<number, readonly number[]>
}

/** Everything a round needs to know to be read, written and judged. */
export type RoundPlan = {
  readonly assignment: Assignment
  readonly table: SourceTable
  readonly splits: readonly Split[]
  /** What the planner read and the committer needs back; opaque to the job. */
  readonly context: unknown
}

export type SplitResult = {
  readonly bucket: Bucket
  readonly start: Offset
  /** Equal to `start` when nothing was read. */
  readonly end: Offset
  readonly files: readonly DataFile[]
  /** Rows in the files. Of a log table one for each offset. */
  readonly rows: number
  /** The whole state of the bucket was read; absent for a range of the log. */
  readonly isSnapshot?: true
  /** Of a primary-key table only. */
  readonly touched?: TouchedKeys
}

export type CommitResult =
  | {
      readonly kind: 'committed'
      readonly snapshotId: SnapshotId
      readonly round: number
      readonly attempts: number
      readonly commitId?: CommitId
      /** That of the token in the lake, where it is not the one of the assignment. */
      readonly incarnation?: Incarnation
      /** The commit was found to have landed although its reply was lost. */
      readonly alreadyApplied: boolean
      /** Of a primary-key table: rows that were taken away, by how many delete files. */
      readonly deleted?: { readonly rows: bigint; readonly files: number }
    }
  /** Nothing had to be committed: no bucket moved. */
  | { readonly kind: 'nothing' }
  /** Not in the lake. The files may be deleted only if `error.effect` is `none`. */
  | { readonly kind: 'rejected'; readonly error: SluiceError }
  /** Some attempt may still land. Keep every file; the next round finds out by reading. */
  | { readonly kind: 'unknown'; readonly error: SluiceError }

/** Reads progress from the lake and decides what a round reads. */
export interface RoundPlanner {
  /** @throws SluiceError PROGRESS_LOST, TABLE_REPLACED, LOG_TRUNCATED, SOURCE_BEHIND, COMMIT_FENCED */
  plan(assignment: Assignment): Promise<RoundPlan>
}

/** Tells a running split to end with the prefix it has. */
export type StopSignal = { readonly stopped: boolean }

/** Reads one split and writes its files. Nothing it writes is visible before the commit. */
export interface SplitRunner {
  run(plan: RoundPlan, split: Split, stop: StopSignal): Promise<SplitResult>
  /** Removes the files of results that are proven not to be in the lake. Never throws. */
  discard(results: readonly SplitResult[]): Promise<void>
}

/** Commits complete rounds; the job calls it for one round at a time. */
export interface RoundCommitter {
  commit(plan: RoundPlan, results: readonly SplitResult[], final: boolean): Promise<CommitResult>
}
