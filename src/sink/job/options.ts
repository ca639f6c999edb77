import type { CoordinatorPort } from '../../coordinator/ports.ts'
import type { Chance, Clock, Journal } from '../../core/ports.ts'
import type { BucketEnds, SourceTable } from '../../source/ports.ts'
import type { RoundCommitter, RoundPlanner, SplitRunner } from '../ports.ts'
import type { TieringEvent } from './events.ts'
import type { JobView } from './job-view.ts'

/** `tiering.poll.table.interval`: four beats fall into each lease. */
export const pollIntervalMs = 30_000

export type JobOptions = {
  readonly coordinator: CoordinatorPort
  readonly planner: RoundPlanner
  readonly runner: SplitRunner
  readonly committer: RoundCommitter
  readonly clock: Clock
  /** Decides the order of the splits of a round. */
  readonly chance: Chance
  /** Splits that are read at the same time, of all tables together. */
  readonly readers: number
  /** Between two beats; 30 s unless told. */
  readonly pollIntervalMs?: number
  readonly journal: Journal
  readonly events: (event: TieringEvent) => void
  /**
   * True if a round that ends at `ends` is the last of its inputs, so that a later start needs no
   * fence. `ends` has the buckets of the plan; the others were caught up when it was made.
   */
  readonly isFinal?: (table: SourceTable, ends: BucketEnds) => boolean
}

/** A round that was not over when the job ended. */
export type AbandonedRound = {
  readonly table: string
  /** `unknown`: its commit had begun and may still land. Its files are kept. */
  readonly effect: 'none' | 'unknown'
}

export type StopReport = { readonly abandoned: readonly AbandonedRound[] }

export interface RunningJob {
  /**
   * Takes no new round. Splits end with what they have read, rounds commit if that fits into
   * `timeoutMs` and are given up otherwise. Again and again gives the same promise.
   */
  stop(timeoutMs: number): Promise<StopReport>
  /** Resolves when the job has stopped, rejects when it cannot go on (INVARIANT_BROKEN). */
  readonly done: Promise<void>
  /** How things stand, for people. */
  view(): JobView
}
