import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import {
  addTable,
  changeFreshness,
  type CoordinatorState,
  emptyCoordinator,
  fireDue,
  nextDueAt,
  tellTable,
} from '../../../src/coordinator/coordinator.ts'
import { delayUntilDue } from '../../../src/coordinator/freshness.ts'
import type { TableEvent } from '../../../src/coordinator/table-state.ts'
import { incarnation, millis, tableId } from '../../../src/core/ids.ts'
import { takes } from '../../support/paced-runner.ts'
import { commitTimes, createWorld } from '../../support/tiering-world.ts'

const a = tableId(1n)

function coordinator(...tables: readonly (readonly [bigint, number])[]): CoordinatorState {
  return tables.reduce(
    (state, [id, freshness]) =>
      addTable(state, { table: tableId(id), name: `t${id}`, freshnessMs: freshness * 1000 }).state,
    emptyCoordinator(incarnation(1)),
  )
}

function tell(state: CoordinatorState, event: TableEvent, at: number, id = a): CoordinatorState {
  return tellTable(state, id, event, millis(at * 1000)).state
}

test('T-28 the next round is due one freshness after the finish of the last one', () => {
  let state = tell(coordinator([1n, 300]), { kind: 'created' }, 0)
  state = tell(state, { kind: 'triggered' }, 0)
  state = tell(state, { kind: 'assigned' }, 0)
  const epoch = state.tables.get(a)?.state.epoch
  if (epoch === undefined) throw new Error('the table is known')
  state = tell(state, { kind: 'finished', epoch, forced: false, committed: true }, 90)
  equal(nextDueAt(state), 390_000)
})

test('T-29 from start to start it takes a round and a freshness', async () => {
  const world = await createWorld({
    tables: [{ name: 'a', buckets: 1, freshness: 300, pace: takes(() => 90) }],
    readers: 1,
  })
  await world.run(390 * 10)
  const starts = world.lines.filter((line) => line.includes('Tiering'))
  deepEqual(
    starts.slice(0, 10).map((line) => Number(line.split(' ')[0])),
    Array.from({ length: 10 }, (_, i) => i * 390),
  )
})

test('T-30 the delay is never under nothing or over the freshness', () => {
  const at = (now: number): number => delayUntilDue(300, now - 0)
  deepEqual([0, 240, 300, 1_200, -60].map(at), [300, 60, 0, 0, 300])
})

test('T-31 fires overdue tables at once after a restart, the most overdue first', () => {
  let state = coordinator([1n, 300], [2n, 300], [3n, 300], [4n, 300])
  const finishes = [-600, -299, -100, -900]
  finishes.forEach((finish, i) => {
    const event = { kind: 'restarted', sinceFinishMs: -finish * 1000 } as const
    state = tell(state, event, 1_000, tableId(BigInt(i + 1)))
  })
  const pendingAfter = (seconds: number): readonly bigint[] => {
    state = fireDue(state, millis((1_000 + seconds) * 1000)).state
    return state.queue
  }
  deepEqual(pendingAfter(0), [4n, 1n])
  equal(nextDueAt(state), 1_001_000)
  deepEqual(pendingAfter(0.999), [4n, 1n])
  deepEqual(pendingAfter(1), [4n, 1n, 2n])
  equal(nextDueAt(state), 1_200_000)
  deepEqual(pendingAfter(200), [4n, 1n, 2n, 3n])
  equal(nextDueAt(state), undefined)
})

test('T-32 a new table waits one freshness; switched off and on again counts as new', () => {
  let state = tell(coordinator([1n, 60]), { kind: 'created' }, 1_000)
  equal(nextDueAt(state), 1_060_000)
  equal(fireDue(state, millis(1_059_999)).transitions.length, 0)
  state = fireDue(state, millis(1_060_000)).state
  deepEqual(state.queue, [a])
  state = tell(state, { kind: 'switchedOff' }, 1_061)
  deepEqual(state.queue, [], 'no entry of the queue stays behind')
  state = tell(state, { kind: 'switchedOn' }, 1_100)
  equal(nextDueAt(state), 1_160_000)
  state = fireDue(state, millis(1_160_000)).state
  equal(state.tables.get(a)?.state.epoch, 2, 'epochs go on')
})

test('a change of freshness counts at once for a scheduled table, else from its next scheduling', () => {
  const scheduled = tell(coordinator([1n, 300]), { kind: 'created' }, 0)
  equal(nextDueAt(changeFreshness(scheduled, a, 60_000, millis(30_000)).state), 60_000)
  // At 90 s it is overdue since 60 s, and due at once.
  equal(nextDueAt(changeFreshness(scheduled, a, 60_000, millis(90_000)).state), 60_000)
  let state = tell(tell(scheduled, { kind: 'triggered' }, 0), { kind: 'assigned' }, 0)
  state = changeFreshness(state, a, 60_000, millis(30_000)).state
  const epoch = state.tables.get(a)?.state.epoch
  if (epoch === undefined) throw new Error('the table is known')
  state = tell(state, { kind: 'finished', epoch, forced: false, committed: true }, 40)
  equal(nextDueAt(state), 100_000)
})

test('T-61 tables created together queue by their due times', async () => {
  const table = (name: string, freshness: number) =>
    ({ name, freshness, buckets: 1, pace: takes(() => 1), start: 'created' }) as const
  const world = await createWorld({
    tables: [table('customers', 300), table('clicks', 60), table('orders', 120)],
    readers: 1,
    origin: 300,
  })
  deepEqual(
    world.coordinator
      .tables()
      .toSorted((x, y) => (x.queuePosition ?? -1) - (y.queuePosition ?? -1))
      .map((status) => status.name),
    ['clicks', 'orders', 'customers'],
  )
})

test('T-33 commits when the last result is in, under any poll interval', async () => {
  for (const pollIntervalMs of [1_000, 7_000, 30_000, 600_000]) {
    const pace = takes((split) => (split.bucket === 0 ? 7 : 61))
    const world = await createWorld({
      tables: [{ name: 'a', buckets: 2, freshness: 300, pace }],
      readers: 2,
      job: { pollIntervalMs },
    })
    await world.run(100)
    deepEqual(commitTimes(world), [61])
  }
})
