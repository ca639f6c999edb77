import type { Effect } from '../core/errors.ts'
import type { Epoch, Millis } from '../core/ids.ts'

/** Every state a table can be seen to enter. `Tiered` is always left in the step that enters it. */
export type StateName = 'New' | 'Scheduled' | 'Pending' | 'Tiering' | 'Tiered' | 'Failed'

type Carried = {
  readonly epoch: Epoch
  /**
   * How the attempt before ended is not known: its commit may still land. The next holder must
   * take over, that is fence first, until a commit of a later attempt is in the lake.
   */
  readonly inDoubt: boolean
  /** Failures that were reported since the last accepted finish. They lengthen the next delay. */
  readonly failuresInARow: number
  /** Reported and expired attempts together, for the metrics. */
  readonly failuresTotal: number
}

/** A state in which a table rests between two events. All times are of the monotonic clock. */
export type TableState =
  | NewTable
  | ScheduledTable
  | (Carried & { readonly kind: 'Pending'; readonly enteredAt: Millis })
  | TieringTable
  | (Carried & { readonly kind: 'Failed'; readonly armedAt: Millis; readonly dueAt: number })

/** Known, and not to be tiered (yet): not switched on, or switched off again. */
export type NewTable = Carried & { readonly kind: 'New' }

export type ScheduledTable = Carried & {
  readonly kind: 'Scheduled'
  /** When the last round finished, or the table came. Before the start of the clock if negative. */
  readonly since: number
  readonly armedAt: Millis
  /** Before `armedAt` when overdue, by how much decides who goes first. */
  readonly dueAt: number
}

export type TieringTable = Carried & {
  readonly kind: 'Tiering'
  readonly startedAt: Millis
  readonly heardAt: Millis
  /** A round was asked for after this one had begun: the next one is due as soon as it finishes. */
  readonly wanted: boolean
}

/** What can happen to a table. Reports of a holder carry the epoch they were assigned under. */
export type TableEvent =
  | { readonly kind: 'created' }
  | { readonly kind: 'switchedOn' }
  | { readonly kind: 'switchedOff' }
  /** Found again by a new coordinator. The age of its last commit is negative if a clock jumped. */
  | { readonly kind: 'restarted'; readonly sinceFinishMs: number }
  | { readonly kind: 'freshnessChanged' }
  | { readonly kind: 'due' }
  | { readonly kind: 'triggered' }
  | { readonly kind: 'assigned' }
  | { readonly kind: 'heartbeat'; readonly epoch: Epoch }
  | {
      readonly kind: 'finished'
      readonly epoch: Epoch
      readonly forced: boolean
      readonly committed: boolean
    }
  | { readonly kind: 'failed'; readonly epoch: Epoch; readonly effect: Effect }
  | { readonly kind: 'expired' }

/** Why an event changed nothing. The first three tell a holder that the table is not its own. */
export type Rejection =
  | 'TABLE_UNKNOWN'
  | 'INCARNATION_STALE'
  | 'EPOCH_STALE'
  | 'STATE_WRONG'
  | 'NOT_DUE'

export type Move = { readonly from: StateName; readonly to: StateName; readonly epoch: Epoch }

/** `freshnessMs` is the wished pause between rounds, and the ceiling of one round. */
export type TablePolicy = { readonly freshnessMs: number }

/** A rejected step holds the very state it was given. */
export type TableStep = {
  readonly state: TableState
  readonly rejected?: Rejection
  readonly moves: readonly Move[]
}
