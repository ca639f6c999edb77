import { equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { roundSeconds, secondsOfBucket } from '../../../src/coordinator/what-if.ts'
import { seededChance } from '../../../src/core/system.ts'
import { moves, takes } from '../../support/paced-runner.ts'
import { commitTimes, createWorld } from '../../support/tiering-world.ts'

const durations = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 12 })

test('T-03 never gives a reader two splits, nor starts more splits than there are readers', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(durations, { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 1, max: 8 }),
      fc.integer(),
      async (tables, readers, seed) => {
        let running = 0
        let most = 0
        const world = await createWorld({
          tables: tables.map((seconds, i) => ({
            name: `t${i}`,
            buckets: seconds.length,
            freshness: 3_600,
            pace: takes((split) => seconds[split.bucket] ?? 1),
          })),
          readers,
          chance: seededChance(seed),
          wrap: ({ runner }) => ({
            runner: {
              discard: (results) => runner.discard(results),
              run: async (plan, split, stop) => {
                running += 1
                most = Math.max(most, running)
                const result = await runner.run(plan, split, stop)
                running -= 1
                return result
              },
            },
          }),
        })
        // The board itself refuses a second split for a reader, which would end the job.
        await world.run(3_000)
        ok(most <= readers)
        equal(world.job.view().phase, 'running')
        equal(world.versions.length, tables.length, 'every table has had its round')
      },
    ),
    { numRuns: 50 },
  )
})

test('T-07 a round lasts at most sum/m + max·(1 − 1/m), and never less than either bound', async () => {
  await fc.assert(
    fc.asyncProperty(
      durations,
      fc.integer({ min: 1, max: 8 }),
      fc.integer(),
      async (seconds, readers, seed) => {
        const world = await createWorld({
          tables: [
            {
              name: 'a',
              buckets: seconds.length,
              freshness: 3_600,
              pace: takes((split) => seconds[split.bucket] ?? 1),
            },
          ],
          readers,
          chance: seededChance(seed),
        })
        await world.run(1_000)
        const length = commitTimes(world)[0] ?? Infinity
        const sum = seconds.reduce((a, b) => a + b)
        const longest = Math.max(...seconds)
        ok(length <= sum / readers + longest * (1 - 1 / readers) + 1e-9)
        ok(length >= Math.max(sum / readers, longest) - 1e-9)
      },
    ),
    { numRuns: 100 },
  )
})

test('T-72 more buckets shorten, more data lengthens, readers beyond the buckets change nothing', () => {
  const some = fc.record({
    bytes: fc.integer({ min: 1, max: 1e12 }),
    buckets: fc.integer({ min: 1, max: 64 }),
    readers: fc.integer({ min: 1, max: 64 }),
    bytesPerSecondPerReader: fc.integer({ min: 1, max: 1e9 }),
  })
  fc.assert(
    fc.property(some, fc.integer({ min: 1, max: 64 }), (load, more) => {
      const seconds = roundSeconds(load)
      ok(roundSeconds({ ...load, buckets: load.buckets + more }) <= seconds)
      ok(roundSeconds({ ...load, bytes: load.bytes + more }) > seconds)
      const readers = load.buckets + more
      equal(roundSeconds({ ...load, readers }), roundSeconds({ ...load, readers: load.buckets }))
    }),
  )
})

test('T-72 the simulated round is never shorter than the formula, nor than its largest bucket', async () => {
  const perBucket = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(perBucket, fc.integer({ min: 1, max: 8 }), async (hundreds, readers) => {
      const records = hundreds.map((count) => count * 100)
      const world = await createWorld({
        tables: [
          {
            name: 'a',
            buckets: records.length,
            freshness: 3_600,
            pace: moves(100, 100),
            written: (_at, bucket) => records[bucket] ?? 0,
          },
        ],
        readers,
      })
      await world.run(1_000)
      const length = commitTimes(world)[0] ?? 0
      // With a record as the unit, in place of a byte.
      const bytes = records.reduce((a, b) => a + b)
      const load = { bytes, buckets: records.length, readers, bytesPerSecondPerReader: 100 }
      ok(length >= roundSeconds(load) - 1e-9)
      ok(length >= secondsOfBucket(Math.max(...records), 100))
    }),
    { numRuns: 50 },
  )
})
