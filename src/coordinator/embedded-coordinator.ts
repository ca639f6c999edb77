import { Ending } from '../core/ending.ts'
import { isSluiceError } from '../core/errors.ts'
import type { Incarnation, TableId } from '../core/ids.ts'
import { type Clock, type Order, order } from '../core/ports.ts'
import {
  addTable,
  changeFreshness,
  type CoordinatorStep,
  emptyCoordinator,
  fireDue,
  type NewTableEntry,
  nextDueAt,
  nextSweepAt,
  removeTable,
  sweep,
  tableStatuses,
  tellTable,
} from './coordinator.ts'
import { handleHeartbeat } from './heartbeat.ts'
import type { CoordinatorPort } from './ports.ts'
import type { TableTransition } from './protocol.ts'
import type { Rejection } from './table-state.ts'

export type TableRegistration = NewTableEntry & {
  /** How long ago the lake's newest commit was made; absent for a table that waits as a new one. */
  readonly sinceFinishMs?: number
}

/** A coordinator in this process. Its calls act at once; what they return is why they did not. */
export interface EmbeddedCoordinator extends CoordinatorPort {
  register(table: TableRegistration): Rejection | undefined
  unregister(table: TableId): Rejection | undefined
  /** Asks for a round now, or as soon as the one that runs has finished. */
  trigger(table: TableId): Rejection | undefined
  switchTiering(table: TableId, to: 'on' | 'off'): Rejection | undefined
  changeFreshness(table: TableId, freshnessMs: number): Rejection | undefined
  /** Ends the timers. Beats are answered still. */
  close(): void
}

/**
 * The shell around the pure coordinator: it holds the state, tells the watchers, and sleeps until
 * the state says that a timer is due.
 */
export function createEmbeddedCoordinator(options: {
  readonly clock: Clock
  readonly incarnation: Incarnation
}): EmbeddedCoordinator {
  const { clock } = options
  let state = emptyCoordinator(options.incarnation)
  let closed = false
  const listeners = new Set<(transition: TableTransition) => void>()
  const freshnessTimer = createTimer(clock, order.freshness, () => {
    apply(fireDue(state, clock.monotonic()))
  })
  const sweepTimer = createTimer(clock, order.sweep, () => {
    apply(sweep(state, clock.monotonic()))
  })

  function apply(step: CoordinatorStep): Rejection | undefined {
    state = step.state
    freshnessTimer.set(closed ? undefined : nextDueAt(state))
    sweepTimer.set(closed ? undefined : nextSweepAt(state))
    for (const transition of step.transitions) {
      for (const listener of listeners) listener(transition)
    }
    return step.rejected
  }

  return {
    // eslint-disable-next-line @typescript-eslint/require-await -- the port is asynchronous
    heartbeat: async (request) => {
      const { response, ...step } = handleHeartbeat(state, request, clock.monotonic())
      apply(step)
      return response
    },
    watch: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    tables: () => tableStatuses(state),
    register: (table) => {
      const rejected = apply(addTable(state, table))
      if (rejected !== undefined) return rejected
      const { sinceFinishMs } = table
      const event =
        sinceFinishMs === undefined
          ? ({ kind: 'created' } as const)
          : ({ kind: 'restarted', sinceFinishMs } as const)
      return apply(tellTable(state, table.table, event, clock.monotonic()))
    },
    unregister: (table) => apply(removeTable(state, table)),
    trigger: (table) => apply(tellTable(state, table, { kind: 'triggered' }, clock.monotonic())),
    switchTiering: (table, to) => {
      const kind = to === 'on' ? 'switchedOn' : 'switchedOff'
      return apply(tellTable(state, table, { kind }, clock.monotonic()))
    },
    changeFreshness: (table, freshnessMs) =>
      apply(changeFreshness(state, table, freshnessMs, clock.monotonic())),
    close: () => {
      closed = true
      freshnessTimer.set(undefined)
      sweepTimer.set(undefined)
    },
  }
}

/**
 * One sleep at a time, until the moment set last or an earlier one: a moment that moves on, as that
 * of a lease does with each beat, costs no new sleep. May ring early: the steps look at the clock.
 */
function createTimer(
  clock: Clock,
  at: Order,
  ring: () => void,
): { set(dueAt: number | undefined): void } {
  let wakesAt = Infinity
  let sleeping: Ending | undefined
  return {
    set: (dueAt = Infinity) => {
      if (dueAt !== Infinity && dueAt >= wakesAt) return
      sleeping?.abort()
      wakesAt = dueAt
      if (dueAt === Infinity) return
      const signal = new Ending()
      sleeping = signal
      clock.sleep(Math.max(0, dueAt - clock.monotonic()), { order: at, signal }).then(
        () => {
          if (signal.aborted) return
          wakesAt = Infinity
          ring()
        },
        (error: unknown) => {
          if (!isSluiceError(error, 'STOPPED')) throw error
        },
      )
    },
  }
}
