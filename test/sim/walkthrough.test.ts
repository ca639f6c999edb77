import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { Split } from '../../src/sink/ports.ts'
import { moves, takes } from '../support/paced-runner.ts'
import {
  commitLines,
  commitTimes,
  createWorld,
  type World,
  type WorldTable,
} from '../support/tiering-world.ts'

// The walkthrough that the demo plays: one job, 16 readers. T=0 is when all three tables, created at the
// same time, have waited their first freshness.
const clicks: WorldTable = {
  name: 'clicks',
  buckets: 16,
  freshness: 60,
  pace: takes(() => 30),
  start: 'created',
}
const orders: WorldTable = {
  name: 'orders',
  buckets: 8,
  freshness: 120,
  pace: takes(() => 90),
  start: 'created',
}
const customers: WorldTable = {
  name: 'customers',
  buckets: 12,
  freshness: 300,
  pace: takes((split: Split) => (split.isFirst ? 100 : 20)),
  start: 'created',
}

function walkthrough(tables: readonly WorldTable[] = [clicks, orders, customers]): Promise<World> {
  return createWorld({ tables, readers: 16, origin: 300 })
}

test('T-65 T-66 T-68 plays W-1 event for event', async () => {
  const world = await walkthrough()
  deepEqual(
    world.coordinator.tables().map((table) => [table.name, table.queuePosition]),
    [
      ['clicks', 0],
      ['orders', 1],
      ['customers', 2],
    ],
  )
  await world.run(330)
  deepEqual(world.lines, [
    '0 clicks Tiering 1',
    '0 clicks start 16',
    '30 clicks end 16',
    '30 clicks commit 1',
    '30 clicks Tiered 1',
    '30 clicks Scheduled 1',
    '30 orders Tiering 1',
    '30 orders start 8',
    '30 customers Tiering 1',
    '30 customers start 8',
    '90 clicks Pending 2',
    '120 orders end 8',
    '120 orders commit 1',
    '120 orders Tiered 1',
    '120 orders Scheduled 1',
    '120 customers start 4',
    '120 clicks Tiering 2',
    '120 clicks start 4',
    '130 customers end 8',
    '130 clicks start 8',
    '150 clicks end 4',
    '150 clicks start 4',
    '160 clicks end 8',
    '180 clicks end 4',
    '180 clicks commit 2',
    '180 clicks Tiered 2',
    '180 clicks Scheduled 2',
    '220 customers end 4',
    '220 customers commit 1',
    '220 customers Tiered 1',
    '220 customers Scheduled 1',
    '240 orders Pending 2',
    '240 clicks Pending 3',
    '240 orders Tiering 2',
    '240 orders start 8',
    '240 clicks Tiering 3',
    '240 clicks start 8',
    '270 clicks end 8',
    '270 clicks start 8',
    '300 clicks end 8',
    '300 clicks commit 3',
    '300 clicks Tiered 3',
    '300 clicks Scheduled 3',
    '330 orders end 8',
    '330 orders commit 2',
    '330 orders Tiered 2',
    '330 orders Scheduled 2',
  ])
  deepEqual(commitLines(world), [
    '30 clicks',
    '120 orders',
    '180 clicks',
    '220 customers',
    '300 clicks',
    '330 orders',
  ])
})

test('T-48 the queue adds to the lag: clicks peaks at 180 s although F + 2R is 120', async () => {
  const world = await walkthrough()
  await world.run(200)
  // A record appended just after the cut at T=0 shows with the second commit.
  const [, second] = commitTimes(world, 'clicks')
  equal(second, 180)
})

test('T-68 customers comes again at 520 on the waiting readers and commits at 560', async () => {
  const world = await walkthrough()
  await world.run(600)
  const lines = world.lines.filter(
    (line) => line.includes('customers') && Number(line.split(' ')[0]) > 220,
  )
  deepEqual(lines, [
    '520 customers Pending 2',
    '520 customers Tiering 2',
    '520 customers start 8',
    '540 customers end 8',
    '540 customers start 4',
    '560 customers end 4',
    '560 customers commit 2',
    '560 customers Tiered 2',
    '560 customers Scheduled 2',
  ])
})

test('T-67 plays W-2: a volume-true second round is forced at 180', async () => {
  const volume: WorldTable = {
    ...clicks,
    pace: moves(200, 200),
    written: (at) => 100 * (at + 60),
  }
  const world = await walkthrough([volume, orders, customers])
  await world.run(180)
  const from120 = world.lines.filter((line) => Number(line.split(' ')[0]) >= 120)
  deepEqual(from120, [
    '120 orders end 8',
    '120 orders commit 1',
    '120 orders Tiered 1',
    '120 orders Scheduled 1',
    '120 customers start 4',
    '120 clicks Tiering 2',
    '120 clicks start 4',
    '130 customers end 8',
    '130 clicks start 8',
    '180 clicks end 12',
    '180 clicks commit 2',
    '180 clicks Tiered 2',
    '180 clicks Pending 3',
    '180 clicks Tiering 3',
    '180 clicks start 12',
  ])
  const clicksVersions = world.versions.filter((version) => version.table === 'clicks')
  deepEqual(
    clicksVersions.map((version) => version.ends),
    [
      Array(16).fill(6_000),
      [
        ...Array<number>(4).fill(18_000),
        ...Array<number>(8).fill(16_000),
        ...Array<number>(4).fill(6_000),
      ],
    ],
  )
  deepEqual(
    clicksVersions[1]?.ranges.map(([b, start, end]) => `${b}:[${start},${end})`),
    [0, 1, 2, 3]
      .map((b) => `${b}:[6000,18000)`)
      .concat([4, 5, 6, 7, 8, 9, 10, 11].map((b) => `${b}:[6000,16000)`)),
  )
})
