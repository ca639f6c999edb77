import { equal, ok } from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  addTable,
  type CoordinatorState,
  emptyCoordinator,
  fireDue,
  sweep,
  tellTable,
} from '../../src/coordinator/coordinator.ts'
import { handleHeartbeat } from '../../src/coordinator/heartbeat.ts'
import type { HeartbeatRequest, TableAssignment } from '../../src/coordinator/protocol.ts'
import { incarnation, millis, tableId } from '../../src/core/ids.ts'
import { nightly } from './scope.ts'

/*
 * Every interleaving of one coordinator and the jobs that ask it for tables, over the production state
 * machine: beats and reports that come late, twice or never, answers that are lost, jobs that die,
 * silence, and a coordinator that forgets everything.
 */

type Row = { readonly table: number; readonly life: number; readonly epoch: number }
type Report = 'beat' | 'committed' | 'forced' | 'empty' | 'failed' | 'in doubt'
type Message = Row & { readonly report: Report }

type State = {
  readonly coordinator: CoordinatorState
  readonly now: number
  /** What each job works on, one table at a time. */
  readonly jobs: readonly (Row | undefined)[]
  readonly wire: readonly Message[]
  /** Attempts that may still commit, whatever anybody knows of them. */
  readonly open: readonly Row[]
  readonly assigned: readonly Row[]
  readonly restarts: number
}

type Scope = {
  readonly tables: number
  readonly jobs: number
  readonly ticks: number
  readonly epochs: number
  readonly restarts: number
}

const tickMs = 61_000
const nothing: HeartbeatRequest = { failed: [], inFlight: [], finished: [], requestTable: false }

function explore(scope: Scope): number {
  const first: State = {
    coordinator: coordinatorOf(1, scope, 0, false),
    now: 0,
    jobs: Array.from({ length: scope.jobs }, () => undefined),
    wire: [],
    open: [],
    assigned: [],
    restarts: 0,
  }
  const cameFrom = new Map<string, string | undefined>([[keyOf(first), undefined]])
  let layer = [first]
  while (layer.length > 0) {
    const next: State[] = []
    for (const state of layer) {
      for (const after of steps(state, scope)) {
        const key = keyOf(after)
        if (cameFrom.has(key) || after.assigned.some(({ epoch }) => epoch > scope.epochs)) continue
        cameFrom.set(key, undefined)
        next.push(after)
      }
    }
    layer = next
  }
  return cameFrom.size
}

/** Times count from now: what is equally long ago is the same. */
function keyOf({ coordinator, now, ...rest }: State): string {
  const tables = [...coordinator.tables.values()].map(({ table, state }) => {
    const entries: readonly (readonly [string, unknown])[] = Object.entries(state)
    return [table, entries.map(([name, value]) => [name, sinceNow(name, value, now)])] as const
  })
  const { incarnation: life, queue } = coordinator
  return JSON.stringify([tables, life, queue, now, rest], (_, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  )
}

/** Nothing depends on how often a table has failed in all. */
function sinceNow(name: string, value: unknown, now: number): unknown {
  if (name === 'failuresTotal') return 0
  return timeNames.has(name) && typeof value === 'number' ? value - now : value
}

const timeNames = new Set(['since', 'armedAt', 'dueAt', 'enteredAt', 'startedAt', 'heardAt'])

function coordinatorOf(
  life: number,
  scope: Scope,
  now: number,
  inDoubt: boolean,
): CoordinatorState {
  let state = emptyCoordinator(incarnation(life))
  for (let id = 1; id <= scope.tables; id += 1) {
    const table = tableId(BigInt(id))
    state = addTable(state, { table, name: `t${id}`, freshnessMs: 60_000, inDoubt }).state
    state = tellTable(state, table, { kind: 'restarted', sinceFinishMs: 60_000 }, millis(now)).state
  }
  return state
}

function* steps(state: State, scope: Scope): Iterable<State> {
  const { coordinator, now } = state
  for (const [job, row] of state.jobs.entries()) {
    if (row === undefined) yield* asks(state, job)
    else {
      yield { ...state, jobs: without(state.jobs, job) }
      if (state.wire.length >= 2) continue
      yield { ...state, wire: [...state.wire, { ...row, report: 'beat' }] }
      for (const report of ['committed', 'forced', 'empty', 'failed', 'in doubt'] as const) {
        yield ends(state, job, row, report)
      }
    }
  }
  for (const [at, message] of state.wire.entries()) {
    const rest = state.wire.filter((_, other) => other !== at)
    yield { ...state, wire: rest }
    const told = delivered(coordinator, message, now)
    yield { ...state, coordinator: told, wire: rest }
    yield { ...state, coordinator: told }
  }
  const swept = sweep(coordinator, millis(now)).state
  yield { ...state, coordinator: checked(coordinator, fireDue(swept, millis(now)).state) }
  if (now < scope.ticks * tickMs) yield { ...state, now: now + tickMs }
  if (state.restarts < scope.restarts) {
    const anew = coordinatorOf(coordinator.incarnation + 1, scope, now, true)
    yield { ...state, coordinator: anew, restarts: state.restarts + 1 }
  }
}

/** The answer may be lost: then nobody works on what was handed out. */
function* asks(state: State, job: number): Iterable<State> {
  const { coordinator, now } = state
  const request = { ...nothing, requestTable: true }
  const step = handleHeartbeat(coordinator, request, millis(now))
  checked(coordinator, step.state)
  const { assignment } = step.response
  if (assignment === undefined) return
  const row = rowOf(assignment)
  for (const before of state.assigned) {
    if (before.table !== row.table) continue
    const isLater = before.life < row.life || (before.life === row.life && before.epoch < row.epoch)
    ok(isLater, `I-11: ${show(row)} is assigned after ${show(before)}`)
  }
  const others = state.open.filter(({ table }) => table === row.table)
  ok(
    assignment.takeOver || others.length === 0,
    `${show(row)} takes nothing over, and ${others.map(show).join()} may still commit`,
  )
  const assigned = [...state.assigned.filter(({ table }) => table !== row.table), row]
  const handed = { ...state, coordinator: step.state, assigned }
  yield handed
  const jobs = state.jobs.map((held, at) => (at === job ? row : held))
  yield { ...handed, jobs, open: [...state.open, row] }
}

function ends(state: State, job: number, row: Row, report: Report): State {
  const isIn = report === 'committed' || report === 'forced'
  const open = state.open.filter((each) => {
    if (each.table !== row.table) return true
    // What was committed later keeps out all that was planned before it.
    if (isIn) return each.life > row.life || (each.life === row.life && each.epoch > row.epoch)
    return report === 'in doubt' || show(each) !== show(row)
  })
  const wire = [...state.wire, { ...row, report }]
  return { ...state, jobs: without(state.jobs, job), open, wire }
}

function delivered(state: CoordinatorState, message: Message, now: number): CoordinatorState {
  const { report } = message
  const row = {
    table: tableId(BigInt(message.table)),
    incarnation: incarnation(message.life),
    epoch: message.epoch as TableAssignment['epoch'],
  }
  const finished = { ...row, forced: report === 'forced', committed: report !== 'empty' }
  const isEnd = report === 'committed' || report === 'forced' || report === 'empty'
  const isFailed = report === 'failed' || report === 'in doubt'
  const effect = report === 'in doubt' ? 'unknown' : 'none'
  const request: HeartbeatRequest = {
    inFlight: report === 'beat' ? [row] : [],
    finished: isEnd ? [finished] : [],
    failed: isFailed ? [{ ...row, effect }] : [],
    requestTable: false,
  }
  const held = state.tables.get(row.table)?.state
  const isHolder =
    state.incarnation === row.incarnation && held?.kind === 'Tiering' && held.epoch === row.epoch
  const step = handleHeartbeat(state, request, millis(now))
  const { inFlight, finished: done, failed } = step.response
  const isRejected = [...inFlight, ...done, ...failed].some(
    ({ rejected }) => rejected !== undefined,
  )
  equal(isRejected, !isHolder, `${report} of ${show(message)}`)
  if (isRejected) equal(step.state, state, 'I-08: a stale call changes nothing')
  return checked(state, step.state)
}

/** I-07: an epoch grows by one with each entry to the queue; and the queue holds what is pending. */
function checked(before: CoordinatorState, after: CoordinatorState): CoordinatorState {
  for (const { table, state } of after.tables.values()) {
    const was = before.tables.get(table)?.state
    if (was === undefined || before.incarnation !== after.incarnation) continue
    const grown = state.epoch - was.epoch
    const entered = state.kind === 'Pending' && (was.kind !== 'Pending' || grown > 0)
    equal(grown, entered ? 1 : 0, `${was.kind} ${was.epoch} to ${state.kind} ${state.epoch}`)
  }
  const pending = [...after.tables.values()].filter(({ state }) => state.kind === 'Pending')
  equal(after.queue.length, pending.length)
  ok(pending.every(({ table }) => after.queue.includes(table)))
  return after
}

function rowOf({ table, incarnation: life, epoch }: TableAssignment): Row {
  return { table: Number(table), life, epoch }
}

function without<T>(all: readonly (T | undefined)[], at: number): readonly (T | undefined)[] {
  return all.map((each, other) => (other === at ? undefined : each))
}

function show({ table, life, epoch }: Row): string {
  return `${table} ${life}.${epoch}`
}

describe('a coordinator gives each attempt its own token, and says when to take over', () => {
  test('one table, two jobs', () => {
    const states = explore({ tables: 1, jobs: 2, ticks: 3, epochs: 2, restarts: 0 })
    ok(states > 1_000, String(states))
  })
  test('one table, one job, a coordinator that forgets', () => {
    explore({ tables: 1, jobs: 1, ticks: 2, epochs: 2, restarts: 1 })
  })
  test('two tables, one job', () => {
    explore({ tables: 2, jobs: 1, ticks: 2, epochs: 1, restarts: 0 })
  })
  test('one table, two jobs, a coordinator that forgets', nightly, () => {
    explore({ tables: 1, jobs: 2, ticks: 3, epochs: 2, restarts: 1 })
  })
})
