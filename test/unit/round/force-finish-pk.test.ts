import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { order } from '../../../src/core/ports.ts'
import { moves } from '../../support/paced-runner.ts'
import { createWorld, type World, type WorldTable } from '../../support/tiering-world.ts'

/** Primary-key tables are read at 100 records a second, and are due every 60 seconds. */
const common = { name: 'a', freshness: 60, pace: moves(100, 100) } as const
const snapshot = { offset: 20_000, rows: 15_000 }

function committedEvents(world: World): readonly (readonly [epoch: number, forced: boolean])[] {
  return world.events.flatMap((event) =>
    event.event === 'committed' ? [[event.epoch, event.forceFinished] as const] : [],
  )
}

/** When the stop signal of the first round's splits was up, as each split saw it. */
function watchedStops(): {
  readonly seen: Set<number>
  readonly wrap: NonNullable<Parameters<typeof createWorld>[0]['wrap']>
} {
  const seen = new Set<number>()
  return {
    seen,
    wrap: ({ runner }, { clock }) => ({
      runner: {
        ...runner,
        run: async (plan, split, stop) => {
          const isStopped = (): boolean => stop.stopped
          if (plan.assignment.epoch === 1) {
            void (async () => {
              await clock.sleep(59_999, { order: order.request })
              equal(isStopped(), false)
              await clock.sleep(1, { order: order.request })
              if (isStopped()) seen.add(split.bucket)
            })()
          }
          return runner.run(plan, split, stop)
        },
      },
    }),
  }
}

test('T-42 plays FF-2 event for event: snapshot splits ignore force-finish', async () => {
  const { seen, wrap } = watchedStops()
  const world = await createWorld({
    tables: [{ ...common, buckets: 2, written: () => 20_000, snapshot: () => snapshot }],
    readers: 2,
    wrap,
  })
  await world.run(209)
  deepEqual([...seen], [0, 1], 'the signal is sent at 60')
  deepEqual(world.lines, [
    '0 a Tiering 1',
    '0 a start 2',
    '150 a end 2',
    '150 a commit 1',
    '150 a Tiered 1',
    '150 a Scheduled 1',
  ])
  deepEqual(
    world.versions.map(({ at, ends }) => [at, ends]),
    [[150, [20_000, 20_000]]],
  )
  deepEqual(committedEvents(world), [[1, false]])
  const [status] = world.coordinator.tables()
  deepEqual([status?.failuresTotal, status?.dueAt], [0, 210_000])
})

test('T-43 plays FF-3 event for event: only the log splits of a mixed round are cut', async () => {
  const { seen, wrap } = watchedStops()
  const table: WorldTable = {
    ...common,
    buckets: 3,
    written: (_at, bucket) => (bucket === 0 ? 20_000 : 10_000),
    snapshot: (bucket) => (bucket === 0 ? snapshot : undefined),
  }
  const world = await createWorld({ tables: [table], readers: 3, wrap })
  await world.run(150)
  deepEqual([...seen], [0, 1, 2], 'the signal is sent to all at 60')
  deepEqual(world.lines, [
    '0 a Tiering 1',
    '0 a start 3',
    '60 a end 2',
    '150 a end 1',
    '150 a commit 1',
    '150 a Tiered 1',
    '150 a Pending 2',
    '150 a Tiering 2',
    '150 a start 2',
  ])
  deepEqual(
    world.versions.map(({ at, ends }) => [at, ends]),
    [[150, [20_000, 6_000, 6_000]]],
  )
  deepEqual(committedEvents(world), [[1, true]])
  equal(world.coordinator.tables()[0]?.failuresTotal, 0)
  await world.run(190)
  deepEqual(world.versions[1]?.ends, [20_000, 10_000, 10_000], 'the tails come in the next round')
})

test('T-23 without a KV snapshot the first round is of log splits, which are cut', async () => {
  const world = await createWorld({
    tables: [{ ...common, buckets: 2, written: () => 10_000, snapshot: () => undefined }],
    readers: 2,
  })
  await world.run(60)
  deepEqual(
    world.versions.map(({ at, ranges, ends }) => [at, ranges, ends]),
    [
      [
        60,
        [
          [0, 0, 6_000],
          [1, 0, 6_000],
        ],
        [6_000, 6_000],
      ],
    ],
  )
  deepEqual(committedEvents(world), [[1, true]])
})

const partial: readonly {
  readonly what: string
  readonly of: Partial<WorldTable>
  readonly cut: readonly (number | undefined)[]
  readonly whole: readonly (number | undefined)[]
}[] = [
  { what: 'log', of: {}, cut: [6_000], whole: [10_000] },
  {
    what: 'KV snapshot',
    of: { snapshot: () => ({ offset: 10_000, rows: 10_000 }) },
    cut: [undefined],
    whole: [10_000],
  },
  {
    what: 'changelog of a primary-key table',
    of: { snapshot: () => undefined },
    cut: [6_000],
    whole: [10_000],
  },
]

for (const { what, of, cut, whole } of partial) {
  test(`T-26 what a partial round of a ${what} moves`, async () => {
    const world = await createWorld({
      tables: [{ ...common, buckets: 1, written: () => 10_000, ...of }],
      readers: 1,
    })
    // At 60 the round is told to end: a log split has a prefix to commit, a snapshot has nothing yet.
    await world.run(60)
    deepEqual(world.versions.at(-1)?.ends ?? [undefined], cut)
    await world.run(110)
    deepEqual(world.versions.at(-1)?.ends, whole)
  })
}

test('T-21 the first round is of another size than the rest', async () => {
  const bytesPerRow = 1_000
  const perReader = 30_000_000 / bytesPerRow
  let changes = 0
  const rows = (bucket: number): number => (bucket < 8 ? 16_667 : 16_666)
  const world = await createWorld({
    tables: [
      {
        ...common,
        buckets: 12,
        pace: moves(perReader, 3_000),
        written: () => 20_000 + changes,
        snapshot: (bucket) => ({ offset: 20_000, rows: rows(bucket) }),
      },
    ],
    readers: 12,
  })
  equal(
    Array.from({ length: 12 }, (_, bucket) => rows(bucket)).reduce((a, b) => a + b),
    200_000,
  )
  await world.run(1)
  const [first] = world.versions
  changes = 25
  await world.run(62)
  const [, second] = world.versions
  deepEqual(
    first?.ends,
    Array.from({ length: 12 }, () => 20_000),
  )
  deepEqual(
    second?.ends,
    Array.from({ length: 12 }, () => 20_025),
  )
  const read = second.ranges.reduce((sum, [, start, end]) => sum + end - start, 0)
  equal(read, 300)
  const firstTook = first.at
  const secondTook = second.at - (firstTook + common.freshness)
  equal(firstTook.toFixed(3), '0.556')
  equal(read < 200_000 / 100, true, 'less than 1 % of the bytes')
  equal(secondTook < firstTook / 20, true, `less than 5 % of the time: ${secondTook}`)
})
