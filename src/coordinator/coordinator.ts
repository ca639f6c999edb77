import type { Incarnation, Millis, TableId } from '../core/ids.ts'
import { sweepThatExpires } from './freshness.ts'
import type { TableAssignment, TableStatus, TableTransition } from './protocol.ts'
import { newTable, stepTable } from './table-machine.ts'
import type { Rejection, TableEvent, TableState } from './table-state.ts'

/** One table as its coordinator holds it. */
export type TableEntry = {
  readonly table: TableId
  readonly name: string
  readonly freshnessMs: number
  readonly state: TableState
}

/** All tables and the one queue of those that wait for a job. A table is in it at most once. */
export type CoordinatorState = {
  readonly incarnation: Incarnation
  readonly tables: ReadonlyMap<TableId, TableEntry>
  readonly queue: readonly TableId[]
}

export type CoordinatorStep = {
  readonly state: CoordinatorState
  readonly transitions: readonly TableTransition[]
  readonly rejected?: Rejection
}

export type NewTableEntry = Pick<TableEntry, 'table' | 'name' | 'freshnessMs'> & {
  /** An attempt of an earlier life may still commit: the first holder has to take over. */
  readonly inDoubt?: boolean
}

/** A coordinator without tables. The incarnation must be higher than that of each earlier life. */
export function emptyCoordinator(incarnation: Incarnation): CoordinatorState {
  return { incarnation, tables: new Map(), queue: [] }
}

/** Makes a table known, at rest in `New`. One that is known already stays as it is. */
export function addTable(state: CoordinatorState, table: NewTableEntry): CoordinatorStep {
  if (state.tables.has(table.table)) return { state, transitions: [], rejected: 'STATE_WRONG' }
  const entry: TableEntry = {
    table: table.table,
    name: table.name,
    freshnessMs: table.freshnessMs,
    state: newTable(table.inDoubt === undefined ? {} : { inDoubt: table.inDoubt }),
  }
  const tables = new Map(state.tables).set(entry.table, entry)
  const move = { from: undefined, to: 'New', epoch: entry.state.epoch } as const
  return { state: { ...state, tables }, transitions: [transition(state, entry, move)] }
}

/**
 * Forgets a table that was dropped; its holder learns of it with its next beat. Epochs would start
 * over if the id came back: a table that is to be tiered later is switched off instead.
 */
export function removeTable(state: CoordinatorState, table: TableId): CoordinatorStep {
  if (!state.tables.has(table)) return unknown(state)
  const tables = new Map(state.tables)
  tables.delete(table)
  const queue = state.queue.filter((queued) => queued !== table)
  return { state: { ...state, tables, queue }, transitions: [] }
}

/** Sets the freshness. A table that is scheduled is due anew, any other from its next scheduling. */
export function changeFreshness(
  state: CoordinatorState,
  table: TableId,
  freshnessMs: number,
  now: Millis,
): CoordinatorStep {
  const entry = state.tables.get(table)
  if (entry === undefined) return unknown(state)
  const tables = new Map(state.tables).set(table, { ...entry, freshnessMs })
  return tellTable({ ...state, tables }, table, { kind: 'freshnessChanged' }, now)
}

/** Lets one event happen to one table, and keeps the queue in step with it. */
export function tellTable(
  state: CoordinatorState,
  table: TableId,
  event: TableEvent,
  now: Millis,
): CoordinatorStep {
  const entry = state.tables.get(table)
  if (entry === undefined) return unknown(state)
  const step = stepTable(entry.state, event, now, entry)
  if (step.rejected !== undefined) return { state, transitions: [], rejected: step.rejected }
  if (step.state === entry.state) return { state, transitions: [] }
  const next: TableEntry = { ...entry, state: step.state }
  return {
    state: {
      ...state,
      tables: new Map(state.tables).set(table, next),
      queue: requeue(state.queue, table, entry.state, step.state),
    },
    transitions: step.moves.map((move) => transition(state, next, move)),
  }
}

/** Puts every table whose time has come into the queue: by due time, by arming, by table id. */
export function fireDue(state: CoordinatorState, now: Millis): CoordinatorStep {
  const due = timers(state)
    .filter((timer) => timer.dueAt <= now)
    .sort((a, b) => a.dueAt - b.dueAt || a.armedAt - b.armedAt || compareIds(a.table, b.table))
  return tellEach(
    state,
    due.map((timer) => timer.table),
    { kind: 'due' },
    now,
  )
}

/** Takes the tables of silent holders away from them, by table id, and queues them at the tail. */
export function sweep(state: CoordinatorState, now: Millis): CoordinatorStep {
  const held = [...state.tables.values()].filter((entry) => entry.state.kind === 'Tiering')
  const ids = held.map((entry) => entry.table).sort(compareIds)
  return tellEach(state, ids, { kind: 'expired' }, now)
}

/** Hands the head of the queue to whoever asks. */
export function assignNext(
  state: CoordinatorState,
  now: Millis,
): CoordinatorStep & { readonly assignment?: TableAssignment } {
  const head = state.queue[0]
  const entry = head === undefined ? undefined : state.tables.get(head)
  if (entry === undefined) return { state, transitions: [] }
  const { table, state: pending } = entry
  const step = tellTable(state, table, { kind: 'assigned' }, now)
  const { incarnation } = state
  return {
    ...step,
    assignment: { table, incarnation, epoch: pending.epoch, takeOver: pending.inDoubt },
  }
}

/** When `fireDue` has something to do, on the clock of the steps; undefined if no timer runs. */
export function nextDueAt(state: CoordinatorState): number | undefined {
  return earliest(timers(state).map((timer) => timer.dueAt))
}

/** When `sweep` may have something to do; undefined while nobody holds a table. */
export function nextSweepAt(state: CoordinatorState): number | undefined {
  const held = [...state.tables.values()].flatMap((entry) =>
    entry.state.kind === 'Tiering' ? [sweepThatExpires(entry.state.heardAt)] : [],
  )
  return earliest(held)
}

/** All tables by id, for people. */
export function tableStatuses(state: CoordinatorState): readonly TableStatus[] {
  const places = new Map(state.queue.map((table, place) => [table, place]))
  return [...state.tables.values()]
    .sort((a, b) => compareIds(a.table, b.table))
    .map((entry) => {
      const place = places.get(entry.table)
      return {
        table: entry.table,
        name: entry.name,
        freshnessMs: entry.freshnessMs,
        state: entry.state.kind,
        incarnation: state.incarnation,
        epoch: entry.state.epoch,
        ...(place === undefined ? {} : { queuePosition: place }),
        ...('dueAt' in entry.state ? { dueAt: entry.state.dueAt } : {}),
        failuresTotal: entry.state.failuresTotal,
      }
    })
}

type Timer = { readonly table: TableId; readonly dueAt: number; readonly armedAt: Millis }

function timers(state: CoordinatorState): Timer[] {
  return [...state.tables.values()].flatMap(({ table, state: resting }) => {
    if (resting.kind !== 'Scheduled' && resting.kind !== 'Failed') return []
    return [{ table, dueAt: resting.dueAt, armedAt: resting.armedAt }]
  })
}

function tellEach(
  state: CoordinatorState,
  tables: readonly TableId[],
  event: TableEvent,
  now: Millis,
): CoordinatorStep {
  let step: CoordinatorStep = { state, transitions: [] }
  for (const table of tables) {
    const next = tellTable(step.state, table, event, now)
    step = { state: next.state, transitions: [...step.transitions, ...next.transitions] }
  }
  return step
}

function requeue(
  queue: readonly TableId[],
  table: TableId,
  before: TableState,
  after: TableState,
): readonly TableId[] {
  if ((before.kind === 'Pending') === (after.kind === 'Pending')) return queue
  return after.kind === 'Pending' ? [...queue, table] : queue.filter((queued) => queued !== table)
}

function transition(
  state: CoordinatorState,
  entry: TableEntry,
  move: Pick<TableTransition, 'from' | 'to' | 'epoch'>,
): TableTransition {
  return { table: entry.table, name: entry.name, incarnation: state.incarnation, ...move }
}

function unknown(state: CoordinatorState): CoordinatorStep {
  return { state, transitions: [], rejected: 'TABLE_UNKNOWN' }
}

function earliest(times: readonly number[]): number | undefined {
  return times.length === 0 ? undefined : times.reduce((a, b) => Math.min(a, b))
}

function compareIds(a: TableId, b: TableId): number {
  return a < b ? -1 : a > b ? 1 : 0
}
