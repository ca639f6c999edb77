import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { seededChance } from '../../../src/core/system.ts'
import { takes } from '../../support/paced-runner.ts'
import {
  commitLines,
  commitTimes,
  createWorld,
  type WorldTable,
} from '../../support/tiering-world.ts'

function table(name: string, buckets: number, seconds: (bucket: number) => number): WorldTable {
  return { name, buckets, freshness: 3_600, pace: takes((split) => seconds(split.bucket)) }
}

test('T-10 waits for the slowest bucket, then commits all four', async () => {
  const a = table('a', 4, (i) => (i === 2 ? 60 : 10))
  const world = await createWorld({ tables: [a], readers: 4 })
  await world.run(59)
  equal(world.versions.length, 0)
  await world.run(60)
  deepEqual(
    world.versions.map((version) => [version.at, version.ends]),
    [[60, Array(4).fill(10_000)]],
  )
})

test('T-11 the slowest bucket sets the round while free readers take the next table', async () => {
  const world = await createWorld({
    tables: [table('a', 16, (i) => (i === 5 ? 30 : 10)), table('b', 15, () => 10)],
    readers: 16,
  })
  await world.run(60)
  deepEqual(world.lines.slice(0, 5), [
    '0 a Tiering 1',
    '0 a start 16',
    '10 a end 15',
    '10 b Tiering 1',
    '10 b start 15',
  ])
  deepEqual(commitLines(world), ['20 b', '30 a'])
})

test('T-11 T-08 the shuffle moves the straggler and does not shorten the round', async () => {
  const had = new Set<number>()
  const world = await createWorld({
    tables: [{ ...table('a', 16, (i) => (i === 0 ? 30 : 10)), freshness: 60 }],
    readers: 16,
    chance: seededChance(1),
  })
  for (let round = 0; round < 200; round += 1) {
    await world.run(round * 90 + 15)
    world.job.view().readers.forEach((reads, reader) => {
      if (reads !== undefined) had.add(reader)
    })
  }
  await world.run(200 * 90)
  deepEqual(
    commitTimes(world),
    Array.from({ length: 200 }, (_, i) => i * 90 + 30),
  )
  equal(had.size, 16)
})

test('T-63 commits run one at a time, in the order in which rounds became complete', async () => {
  const world = await createWorld({
    tables: [table('a', 1, () => 10), table('b', 1, () => 10)],
    readers: 2,
    commitSeconds: 5,
  })
  await world.run(30)
  deepEqual(
    world.lines.filter((line) => line.includes('commit')),
    ['10 a committing', '15 a commit 1', '15 b committing', '20 b commit 1'],
  )
})

test('T-64 how fresh a table is depends on its place in the queue', async () => {
  const world = await createWorld({
    tables: [
      { ...table('clicks', 1, () => 30), freshness: 60, start: 'created' },
      { ...table('orders', 1, () => 90), freshness: 120, start: 'created' },
      { ...table('customers', 1, () => 100), freshness: 300, start: 'created' },
    ],
    readers: 1,
    origin: 300,
  })
  await world.run(250)
  deepEqual(commitLines(world), ['30 clicks', '120 orders', '220 customers', '250 clicks'])
})

test('T-35 a commit that fails loses only what was in flight: the next round reads it again', async () => {
  let fails = 1
  const world = await createWorld({
    tables: [table('a', 2, () => 10)],
    readers: 2,
    wrap: ({ committer }) => ({
      committer: {
        commit: async (...args) => {
          fails -= 1
          if (fails >= 0) throw new Error('the committer is gone')
          return committer.commit(...args)
        },
      },
    }),
  })
  await world.run(40)
  deepEqual(
    world.versions.map((version) => [version.at, version.ranges]),
    [
      [
        20,
        [
          [0, 0, 10_000],
          [1, 0, 10_000],
        ],
      ],
    ],
  )
  equal(world.runner.discarded.length, 0, 'whether it landed is not known, so every file stays')
})
