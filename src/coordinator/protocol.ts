import type { Effect } from '../core/errors.ts'
import type { Epoch, Incarnation, TableId } from '../core/ids.ts'
import type { Rejection, StateName } from './table-state.ts'

/** Names one attempt at a table. Every message about a table carries it. */
export type RoundToken = {
  readonly table: TableId
  readonly incarnation: Incarnation
  readonly epoch: Epoch
}

export type FinishedReport = RoundToken & {
  /** The round was cut at its ceiling: the rest is wanted at once. */
  readonly forced: boolean
  /** False when no bucket had moved and nothing was written. */
  readonly committed: boolean
}

/** `effect` is `unknown` if some commit of the round may be in the lake or still land there. */
export type FailedReport = RoundToken & { readonly effect: Effect }

/** One beat. Its parts are handled in the order failed, in flight, finished, request. */
export type HeartbeatRequest = {
  readonly failed: readonly FailedReport[]
  readonly inFlight: readonly RoundToken[]
  readonly finished: readonly FinishedReport[]
  readonly requestTable: boolean
}

/** The answer to one row. A holder that is rejected has lost the table and drops the round. */
export type RowAnswer = RoundToken & { readonly rejected?: Rejection }

/** A table handed to whoever asked. `takeOver`: write a fence before progress is read. */
export type TableAssignment = RoundToken & { readonly takeOver: boolean }

export type HeartbeatResponse = {
  readonly incarnation: Incarnation
  /** One answer for each row of the request, in the same order. */
  readonly failed: readonly RowAnswer[]
  readonly inFlight: readonly RowAnswer[]
  readonly finished: readonly RowAnswer[]
  readonly assignment?: TableAssignment
}

/** A move of a table, told to those who watch. `from` is absent when the table was not known. */
export type TableTransition = {
  readonly table: TableId
  readonly name: string
  readonly from: StateName | undefined
  readonly to: StateName
  readonly incarnation: Incarnation
  readonly epoch: Epoch
}

/** One table as it stands, for people. */
export type TableStatus = {
  readonly table: TableId
  readonly name: string
  readonly freshnessMs: number
  readonly state: StateName
  readonly incarnation: Incarnation
  readonly epoch: Epoch
  /** From 0; only of a pending table. */
  readonly queuePosition?: number
  /** On the monotonic clock of the coordinator; only when a timer runs. */
  readonly dueAt?: number
  readonly failuresTotal: number
}
