import type { Millis } from '../core/ids.ts'
import {
  assignNext,
  type CoordinatorState,
  type CoordinatorStep,
  tellTable,
} from './coordinator.ts'
import type { HeartbeatRequest, HeartbeatResponse, RoundToken, RowAnswer } from './protocol.ts'
import type { Rejection, TableEvent } from './table-state.ts'

/**
 * Handles one beat: failed, in flight, finished, request, in that order. Each row stands for itself;
 * one that is stale or names an unknown table changes nothing and is answered with the reason.
 */
export function handleHeartbeat(
  state: CoordinatorState,
  request: HeartbeatRequest,
  now: Millis,
): CoordinatorStep & { readonly response: HeartbeatResponse } {
  let step: CoordinatorStep = { state, transitions: [] }
  const tell = <Row extends RoundToken>(
    rows: readonly Row[],
    eventOf: (row: Row) => TableEvent,
  ): readonly RowAnswer[] =>
    rows.map((row) => {
      const next = tellHolder(step.state, row, eventOf(row), now)
      step = { state: next.state, transitions: [...step.transitions, ...next.transitions] }
      return answer(row, next.rejected)
    })

  const failed = tell(request.failed, (row) => ({
    kind: 'failed',
    epoch: row.epoch,
    effect: row.effect,
  }))
  const inFlight = tell(request.inFlight, (row) => ({ kind: 'heartbeat', epoch: row.epoch }))
  const finished = tell(request.finished, (row) => ({
    kind: 'finished',
    epoch: row.epoch,
    forced: row.forced,
    committed: row.committed,
  }))
  const rows = { incarnation: state.incarnation, failed, inFlight, finished }
  if (!request.requestTable) return { ...step, response: rows }
  const { assignment, ...handed } = assignNext(step.state, now)
  return {
    state: handed.state,
    transitions: [...step.transitions, ...handed.transitions],
    response: assignment === undefined ? rows : { ...rows, assignment },
  }
}

/** Epochs start over with each incarnation, so an epoch of another one says nothing. */
function tellHolder(
  state: CoordinatorState,
  token: RoundToken,
  event: TableEvent,
  now: Millis,
): CoordinatorStep {
  if (token.incarnation !== state.incarnation) {
    return { state, transitions: [], rejected: 'INCARNATION_STALE' }
  }
  return tellTable(state, token.table, event, now)
}

function answer(row: RoundToken, rejected: Rejection | undefined): RowAnswer {
  const { table, incarnation, epoch } = row
  return { table, incarnation, epoch, ...(rejected === undefined ? {} : { rejected }) }
}
