import { equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { seededChance } from '../../../src/core/system.ts'
import { moves } from '../../support/paced-runner.ts'
import { createWorld } from '../../support/tiering-world.ts'

test('T-40 I-06 ranges tile each bucket over forced rounds: nothing twice, nothing left out', async () => {
  let forcedRounds = 0
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        buckets: fc.integer({ min: 1, max: 6 }),
        readers: fc.integer({ min: 1, max: 4 }),
        freshness: fc.integer({ min: 5, max: 60 }),
        rate: fc.integer({ min: 1, max: 20 }).map((tens) => tens * 10),
        appends: fc.array(
          fc.record({
            at: fc.integer({ min: 0, max: 400 }),
            bucket: fc.integer({ min: 0, max: 5 }),
            records: fc.integer({ min: 1, max: 2_000 }),
          }),
          { maxLength: 12 },
        ),
        seed: fc.integer(),
      }),
      async ({ buckets, readers, freshness, rate, appends, seed }) => {
        const written = (at: number, bucket: number): number =>
          appends
            .filter((append) => append.bucket === bucket && append.at <= at)
            .reduce((sum, append) => sum + append.records, 0)
        const world = await createWorld({
          tables: [{ name: 'a', buckets, freshness, pace: moves(rate, 50), written }],
          readers,
          chance: seededChance(seed),
        })
        // Enough for one reader to read everything, with rounds that begin late.
        const all = appends.reduce((sum, append) => sum + append.records, 0)
        await world.run(500 + (2 * all) / rate + 4 * freshness)
        const reached = new Map<number, number>()
        for (const version of world.versions) {
          ok(version.ranges.length > 0, 'no version is empty')
          for (const [bucket, start, end] of version.ranges) {
            equal(start, reached.get(bucket) ?? 0)
            ok(end > start && end <= written(version.at, bucket))
            reached.set(bucket, end)
          }
        }
        for (let bucket = 0; bucket < buckets; bucket += 1) {
          equal(reached.get(bucket) ?? 0, written(Infinity, bucket))
        }
        forcedRounds += world.events.filter(
          (event) => event.event === 'committed' && event.forceFinished,
        ).length
      },
    ),
    { numRuns: 40 },
  )
  ok(forcedRounds > 20, `${forcedRounds} rounds were forced`)
})
