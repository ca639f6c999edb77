import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { takes } from '../../support/paced-runner.ts'
import { createWorld, type World } from '../../support/tiering-world.ts'

// One table that gets a record each second, freshness 300 s, rounds of 90 s, an idle job.
async function twentyRounds(): Promise<World> {
  const world = await createWorld({
    tables: [
      { name: 'a', buckets: 1, freshness: 300, pace: takes(() => 90), written: (at) => at + 1_000 },
    ],
    readers: 1,
  })
  await world.run(390 * 20)
  return world
}

/** Each version with the time up to which it holds all records. */
function cuts(world: World): { readonly committed: number; readonly cut: number }[] {
  return world.versions.map((version) => ({
    committed: version.at,
    cut: (version.ends[0] ?? 0) - 1_000,
  }))
}

test('T-44 T-45 the lag is R at least and F + 2R at most', async () => {
  const seen = cuts(await twentyRounds())
  deepEqual(seen.slice(0, 3), [
    { committed: 90, cut: 0 },
    { committed: 480, cut: 390 },
    { committed: 870, cut: 780 },
  ])
  for (let i = 1; i < 20; i += 1) {
    const [before, now] = [seen[i - 1], seen[i]]
    ok(before && now)
    // Records at or after a cut wait for the next one; the oldest of them has the longest lag.
    for (let appended = before.cut; appended < now.cut; appended += 1) {
      const lag = now.committed - appended
      ok(lag > 90 && lag <= 480, `${lag} s`)
    }
  }
})

test('T-46 the lag of the lake is a sawtooth that does not climb', async () => {
  const seen = cuts(await twentyRounds())
  for (let i = 1; i < 20; i += 1) {
    const [before, now] = [seen[i - 1], seen[i]]
    ok(before && now)
    equal(now.committed - before.cut, 480, 'just before the commit')
    equal(now.committed - now.cut, 90, 'just after it')
  }
})
