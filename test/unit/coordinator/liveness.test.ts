import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import {
  addTable,
  assignNext,
  type CoordinatorState,
  emptyCoordinator,
  nextSweepAt,
  sweep,
  tellTable,
} from '../../../src/coordinator/coordinator.ts'
import {
  createEmbeddedCoordinator,
  type EmbeddedCoordinator,
} from '../../../src/coordinator/embedded-coordinator.ts'
import { isSilentTooLong } from '../../../src/coordinator/freshness.ts'
import type { HeartbeatRequest, RoundToken } from '../../../src/coordinator/protocol.ts'
import { epoch, incarnation, millis, tableId } from '../../../src/core/ids.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

const nothing: HeartbeatRequest = { failed: [], inFlight: [], finished: [], requestTable: false }

/** Tables held since `at` seconds under epoch 1. */
function held(at: number, ...freshness: readonly number[]): CoordinatorState {
  let state = emptyCoordinator(incarnation(1))
  freshness.forEach((seconds, i) => {
    const table = tableId(BigInt(i + 1))
    state = addTable(state, { table, name: `t${i + 1}`, freshnessMs: seconds * 1000 }).state
    state = tellTable(state, table, { kind: 'created' }, millis(0)).state
    state = tellTable(state, table, { kind: 'triggered' }, millis(0)).state
    state = assignNext(state, millis(at * 1000)).state
  })
  return state
}

function beat(state: CoordinatorState, id: bigint, at: number): CoordinatorState {
  const event = { kind: 'heartbeat', epoch: epoch(1) } as const
  return tellTable(state, tableId(id), event, millis(at * 1000)).state
}

/** Sweeps at every multiple of 15 s; when each table was fenced, in seconds. */
function fencedAt(
  state: CoordinatorState,
  until: number,
  meanwhile: (state: CoordinatorState, at: number) => CoordinatorState = (same) => same,
): Record<string, number> {
  const fenced: Record<string, number> = {}
  for (let at = 0; at <= until; at += 15) {
    const step = sweep(state, millis(at * 1000))
    for (const moved of step.transitions) if (moved.to === 'Failed') fenced[moved.name] = at
    state = meanwhile(step.state, at)
  }
  return fenced
}

test('T-51 the length of a round never fences it: 241 sweeps of a beating holder', () => {
  let sweeps = 0
  const fenced = fencedAt(held(0, 60), 3_600, (state, at) => {
    sweeps += 1
    return at % 30 === 0 ? beat(state, 1n, at) : state
  })
  equal(sweeps, 241)
  deepEqual(fenced, {})
})

test('T-52 silence has to exceed 120 s and is looked for every 15 s', () => {
  deepEqual(
    [119_900, 120_000, 120_100, 135_000].map((silence) => isSilentTooLong(0, silence)),
    [false, false, true, true],
  )
  for (const lastBeat of [0.1, 0, 14.9]) {
    deepEqual(fencedAt(held(lastBeat, 60), 300), { t1: 135 }, `last beat at ${lastBeat}`)
  }
  deepEqual(fencedAt(held(15, 60), 300), { t1: 150 })
})

test('I-28 the shell sleeps until the very sweep that every 15 s would have found', () => {
  for (const lastBeat of [0, 0.1, 14.9, 15, 29.999, 30]) {
    const state = held(lastBeat, 60)
    const sweepAt = nextSweepAt(state)
    deepEqual(fencedAt(state, 300), { t1: (sweepAt ?? 0) / 1000 })
  }
  equal(nextSweepAt(emptyCoordinator(incarnation(1))), undefined)
})

test('T-54 a beat refreshes only the tables it names', () => {
  const fenced = fencedAt(held(0, 60, 60), 600, (state, at) =>
    at % 30 === 0 ? beat(state, 1n, at) : state,
  )
  deepEqual(fenced, { t2: 135 })
})

test('T-55 three beats lost in a row do no harm', () => {
  const fenced = fencedAt(held(0, 60), 225, (state, at) =>
    at === 120 ? beat(state, 1n, at) : state,
  )
  deepEqual(fenced, {})
})

test('T-56 the window is the same for every table', () => {
  deepEqual(fencedAt(held(0, 10, 86_400), 300), { t1: 135, t2: 135 })
})

test('T-58 silence fences a round that is far from its ceiling', () => {
  const fenced = fencedAt(held(0, 600, 600), 300, (state, at) =>
    at === 10 ? beat(beat(state, 1n, at), 2n, at) : state,
  )
  deepEqual(fenced, { t1: 135, t2: 135 })
})

function embedded(): { clock: VirtualClock; coordinator: EmbeddedCoordinator; log: string[] } {
  const clock = new VirtualClock()
  const coordinator = createEmbeddedCoordinator({ clock, incarnation: incarnation(1) })
  const log: string[] = []
  coordinator.watch((moved) => log.push(`${clock.monotonic() / 1000} ${moved.to} ${moved.epoch}`))
  const table = tableId(1n)
  coordinator.register({ table, name: 'a', freshnessMs: 60_000 })
  coordinator.trigger(table)
  log.length = 0
  return { clock, coordinator, log }
}

test('T-53 a silent holder loses its table at 165 and is told so', async () => {
  const { clock, coordinator, log } = embedded()
  const own: RoundToken = { table: tableId(1n), incarnation: incarnation(1), epoch: epoch(1) }
  await coordinator.heartbeat({ ...nothing, requestTable: true })
  await clock.advanceTo(30_000)
  await coordinator.heartbeat({ ...nothing, inFlight: [own] })
  await clock.advanceTo(150_000)
  deepEqual(log, ['0 Tiering 1'])
  await clock.advanceTo(200_000)
  deepEqual(log, ['0 Tiering 1', '165 Failed 1', '165 Pending 2'])
  const late = await coordinator.heartbeat({ ...nothing, inFlight: [own], requestTable: true })
  equal(late.inFlight[0]?.rejected, 'EPOCH_STALE')
  deepEqual(late.assignment, { ...own, epoch: epoch(2), takeOver: true })
})

test('a coordinator without work sleeps on nothing', async () => {
  const { clock, coordinator } = embedded()
  equal(clock.sleepers, 0, 'pending: nobody has to be woken')
  await coordinator.heartbeat({ ...nothing, requestTable: true })
  equal(clock.sleepers, 1, 'held: the sweep')
  coordinator.close()
  await clock.advanceTo(1)
  equal(clock.sleepers, 0)
})
