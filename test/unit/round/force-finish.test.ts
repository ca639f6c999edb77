import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { order } from '../../../src/core/ports.ts'
import type { SplitRunner } from '../../../src/sink/ports.ts'
import { moves, takes } from '../../support/paced-runner.ts'
import { commitTimes, createWorld } from '../../support/tiering-world.ts'

test('T-36 T-37 T-38 T-39 plays FF-1 event for event', async () => {
  const world = await createWorld({
    tables: [
      { name: 'a', buckets: 4, freshness: 60, pace: moves(100, 100), written: () => 10_000 },
    ],
    readers: 2,
  })
  await world.run(250)
  deepEqual(world.lines, [
    '0 a Tiering 1',
    '0 a start 2',
    '60 a end 2',
    '60 a commit 1',
    '60 a Tiered 1',
    '60 a Pending 2',
    '60 a Tiering 2',
    '60 a start 2',
    '100 a end 2',
    '100 a start 2',
    '120 a end 2',
    '120 a commit 2',
    '120 a Tiered 2',
    '120 a Pending 3',
    '120 a Tiering 3',
    '120 a start 2',
    '180 a end 2',
    '180 a commit 3',
    '180 a Tiered 3',
    '180 a Pending 4',
    '180 a Tiering 4',
    '180 a start 2',
    '200 a end 2',
    '200 a commit 4',
    '200 a Tiered 4',
    '200 a Scheduled 4',
  ])
  deepEqual(
    world.versions.map((version) => version.ends),
    [
      [6_000, 6_000, undefined, undefined],
      [10_000, 10_000, 2_000, 2_000],
      [10_000, 10_000, 8_000, 8_000],
      [10_000, 10_000, 10_000, 10_000],
    ],
  )
  const committed = world.events.filter((event) => event.event === 'committed')
  deepEqual(
    committed.map((event) => [event.epoch, event.forceFinished]),
    [
      [1, true],
      [2, true],
      [3, true],
      [4, false],
    ],
  )
  const [status] = world.coordinator.tables()
  deepEqual([status?.failuresTotal, status?.dueAt], [0, 260_000])
})

test('T-36 a round is not cut at 59.999 and is at 60.000, counted from its assignment', async () => {
  const seen: (readonly [number, boolean])[] = []
  const world = await createWorld({
    tables: [{ name: 'a', buckets: 1, freshness: 60, pace: takes(() => 1) }],
    readers: 1,
    wrap: (_ports, { clock }) => ({
      runner: {
        ...quiet,
        run: async (_plan, { bucket, start }, stop) => {
          for (const at of [59_999, 60_000]) {
            await clock.sleep(at - clock.monotonic(), { order: order.request })
            seen.push([clock.monotonic(), stop.stopped])
          }
          return { bucket, start, end: start, files: [], rows: 0 }
        },
      },
    }),
  })
  await world.run(60)
  deepEqual(seen.slice(0, 2), [
    [59_999, false],
    [60_000, true],
  ])
})

const quiet: Pick<SplitRunner, 'discard'> = { discard: () => Promise.resolve() }

test('T-41 a round whose last result is in at its deadline is not forced', async () => {
  const world = await createWorld({
    tables: [{ name: 'a', buckets: 2, freshness: 60, pace: takes(() => 60) }],
    readers: 2,
  })
  await world.run(60)
  deepEqual(world.lines.slice(-3), ['60 a commit 1', '60 a Tiered 1', '60 a Scheduled 1'])
  equal(world.coordinator.tables()[0]?.dueAt, 120_000)
})

test('T-41 a source that delivers nothing gives no version and ten forced rounds in 600 s', async () => {
  const world = await createWorld({
    tables: [{ name: 'a', buckets: 2, freshness: 60, pace: takes(() => 1) }],
    readers: 2,
    wrap: (_ports, { clock }) => ({
      runner: {
        ...quiet,
        run: async (_plan, { bucket, start }, stop) => {
          while (!stop.stopped) await clock.sleep(1_000, { order: order.request })
          return { bucket, start, end: start, files: [], rows: 0 }
        },
      },
    }),
  })
  await world.run(600)
  deepEqual(world.versions, [])
  equal(world.lines.filter((line) => line.includes('Tiered')).length, 10)
  equal(world.coordinator.tables()[0]?.epoch, 11)
})

test('T-58 a slow healthy log round is cut at its freshness and never fenced', async () => {
  const world = await createWorld({
    tables: [{ name: 'a', buckets: 1, freshness: 60, pace: moves(1, 1) }],
    readers: 1,
  })
  await world.run(3_600)
  equal(world.lines.filter((line) => line.includes('Failed')).length, 0)
  deepEqual(commitTimes(world).slice(0, 3), [60, 120, 180])
})

test('a plan that alone outlasts the freshness still gets its round', async () => {
  const world = await createWorld({
    tables: [{ name: 'a', buckets: 1, freshness: 60, pace: takes(() => 10) }],
    readers: 1,
    wrap: ({ planner }, { clock }) => ({
      planner: {
        plan: async (assignment) => {
          await clock.sleep(200_000)
          return planner.plan(assignment)
        },
      },
    }),
  })
  await world.run(215)
  deepEqual(commitTimes(world), [210])
  equal(world.lines.filter((line) => line.includes('Failed')).length, 0, 'its lease was kept')
})
