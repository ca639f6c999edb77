import { epoch, type Epoch, type Millis } from '../core/ids.ts'
import { unreachable } from '../core/never.ts'
import { delayAfterFailure, delayUntilDue, isSilentTooLong } from './freshness.ts'
import type {
  Move,
  NewTable,
  Rejection,
  ScheduledTable,
  TableEvent,
  TablePolicy,
  TableState,
  TableStep,
  TieringTable,
} from './table-state.ts'

/*
 * The life of one table. Pure: no clock, no timer, no I/O.
 *
 *   New ──created, on──► Scheduled ──due, triggered──► Pending ──assigned──► Tiering
 *    ▲                       ▲                          ▲   ▲                │     │
 *    │                       │                          │   └─ due ─ Failed ◄┘     │
 *    └── off, from any       │                          │     failed, expired      │
 *                            │                     forced                          │
 *                            └───────────────────────── Tiered ◄──────── finished ─┘
 *
 * `Tiered` never rests. `Failed` rests only from the second reported failure in a row on. The epoch
 * grows by one on the way into `Pending`, in `enqueue`, and nowhere else (docs/coordinator.md).
 */

/** A table nobody has asked to tier yet. `inDoubt` says that an earlier attempt may still commit. */
export function newTable(options: { readonly inDoubt?: boolean } = {}): NewTable {
  const inDoubt = options.inDoubt ?? false
  return { kind: 'New', epoch: epoch(0), inDoubt, failuresInARow: 0, failuresTotal: 0 }
}

/** Decides what an event does to a table. Whatever the table does not expect changes nothing. */
export function stepTable(
  state: TableState,
  event: TableEvent,
  now: Millis,
  policy: TablePolicy,
): TableStep {
  switch (event.kind) {
    case 'created':
    case 'switchedOn':
      return state.kind === 'New' ? schedule(state, now, 0, policy) : reject(state, 'STATE_WRONG')
    case 'restarted':
      if (state.kind !== 'New') return reject(state, 'STATE_WRONG')
      return schedule(state, now, event.sinceFinishMs, policy)
    case 'switchedOff':
      return state.kind === 'New' ? reject(state, 'STATE_WRONG') : switchOff(state)
    case 'freshnessChanged':
      if (state.kind !== 'Scheduled') return accept(state)
      return accept(arm(state, now, now - state.since, policy))
    case 'due':
      if (state.kind !== 'Scheduled' && state.kind !== 'Failed') return reject(state, 'STATE_WRONG')
      return now < state.dueAt ? reject(state, 'NOT_DUE') : enqueue(state, now)
    case 'triggered':
      return trigger(state, now)
    case 'assigned':
      if (state.kind !== 'Pending') return reject(state, 'STATE_WRONG')
      return move(state, {
        ...carried(state),
        kind: 'Tiering',
        startedAt: now,
        heardAt: now,
        wanted: false,
      })
    case 'expired':
      if (state.kind !== 'Tiering') return reject(state, 'STATE_WRONG')
      return isSilentTooLong(state.heardAt, now) ? expire(state, now) : reject(state, 'NOT_DUE')
    case 'heartbeat':
    case 'finished':
    case 'failed':
      if (state.epoch !== event.epoch) return reject(state, 'EPOCH_STALE')
      if (state.kind !== 'Tiering') return reject(state, 'STATE_WRONG')
      return report(state, event, now, policy)
    default:
      return unreachable(event)
  }
}

function report(
  state: TieringTable,
  event: Extract<TableEvent, { epoch: Epoch }>,
  now: Millis,
  policy: TablePolicy,
): TableStep {
  switch (event.kind) {
    case 'heartbeat':
      return accept({ ...state, heardAt: now })
    case 'finished':
      return finish(state, event, now, policy)
    case 'failed':
      return fail(state, event.effect === 'unknown', now, policy)
    default:
      return unreachable(event)
  }
}

/** Freshness counts from the end of a round, so a slow round delays the next one. */
function finish(
  state: TieringTable,
  event: { readonly forced: boolean; readonly committed: boolean },
  now: Millis,
  policy: TablePolicy,
): TableStep {
  const tiered = {
    ...carried(state),
    // Only a commit of ours in the lake keeps an older one out; an empty round proves nothing.
    inDoubt: state.inDoubt && !event.committed,
    failuresInARow: 0,
  }
  const done: Move = { from: 'Tiering', to: 'Tiered', epoch: state.epoch }
  if (event.forced) return after([done], enqueue({ ...tiered, kind: 'Tiered' }, now))
  const scheduled = schedule({ ...tiered, kind: 'Tiered' }, now, 0, policy)
  if (!state.wanted) return after([done], scheduled)
  return after([done, ...scheduled.moves], enqueue({ ...tiered, kind: 'Scheduled' }, now))
}

function fail(
  state: TieringTable,
  mayHaveLanded: boolean,
  now: Millis,
  policy: TablePolicy,
): TableStep {
  const failed = {
    ...carried(state),
    kind: 'Failed',
    inDoubt: state.inDoubt || mayHaveLanded,
    failuresInARow: state.failuresInARow + 1,
    failuresTotal: state.failuresTotal + 1,
  } as const
  const moves: readonly Move[] = [{ from: 'Tiering', to: 'Failed', epoch: state.epoch }]
  const delay = delayAfterFailure(policy.freshnessMs, failed.failuresInARow)
  if (delay === 0) return after(moves, enqueue(failed, now))
  return { state: { ...failed, armedAt: now, dueAt: now + delay }, moves }
}

function expire(state: TieringTable, now: Millis): TableStep {
  const failuresTotal = state.failuresTotal + 1
  const failed = { ...carried(state), kind: 'Failed', inDoubt: true, failuresTotal } as const
  return after([{ from: 'Tiering', to: 'Failed', epoch: state.epoch }], enqueue(failed, now))
}

function trigger(state: TableState, now: Millis): TableStep {
  switch (state.kind) {
    case 'New':
      return reject(state, 'STATE_WRONG')
    case 'Scheduled':
      return enqueue(state, now)
    case 'Tiering':
      return accept(state.wanted ? state : { ...state, wanted: true })
    case 'Pending':
    // A failing table keeps its delay: demand must not turn failure into a storm.
    case 'Failed':
      return accept(state)
    default:
      return unreachable(state)
  }
}

function switchOff(state: TableState): TableStep {
  return move(state, {
    ...carried(state),
    kind: 'New',
    inDoubt: state.inDoubt || state.kind === 'Tiering',
    failuresInARow: 0,
  })
}

type Carried = ReturnType<typeof carried>

function schedule(
  state: Carried & { readonly kind: Move['from'] },
  now: Millis,
  sinceFinishMs: number,
  policy: TablePolicy,
): TableStep {
  return move(state, arm(state, now, sinceFinishMs, policy))
}

function arm(
  state: Carried,
  now: Millis,
  sinceFinishMs: number,
  policy: TablePolicy,
): ScheduledTable {
  const overdue = sinceFinishMs > policy.freshnessMs ? sinceFinishMs - policy.freshnessMs : 0
  return {
    ...carried(state),
    kind: 'Scheduled',
    since: now - Math.max(0, sinceFinishMs),
    armedAt: now,
    dueAt: now + delayUntilDue(policy.freshnessMs, sinceFinishMs) - overdue,
  }
}

function enqueue(state: Carried & { readonly kind: Move['from'] }, now: Millis): TableStep {
  return move(state, {
    ...carried(state),
    kind: 'Pending',
    epoch: epoch(state.epoch + 1),
    enteredAt: now,
  })
}

function carried(
  state: Pick<TableState, 'epoch' | 'inDoubt' | 'failuresInARow' | 'failuresTotal'>,
) {
  const { epoch, inDoubt, failuresInARow, failuresTotal } = state
  return { epoch, inDoubt, failuresInARow, failuresTotal }
}

function move(from: { readonly kind: Move['from'] }, to: TableState): TableStep {
  return { state: to, moves: [{ from: from.kind, to: to.kind, epoch: to.epoch }] }
}

function after(moves: readonly Move[], step: TableStep): TableStep {
  return { state: step.state, moves: [...moves, ...step.moves] }
}

function accept(state: TableState): TableStep {
  return { state, moves: [] }
}

function reject(state: TableState, rejected: Rejection): TableStep {
  return { state, rejected, moves: [] }
}
