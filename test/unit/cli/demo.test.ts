import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import { test } from 'node:test'
import { speedOf } from '../../../src/cli/demo.ts'
import { PacedClock } from '../../../src/cli/demo-clock.ts'
import { Digests } from '../../../src/cli/demo-hash.ts'
import { demoRecords } from '../../../src/cli/demo-records.ts'
import { demoTables, rowsUntil } from '../../../src/cli/demo-tables.ts'
import { order } from '../../../src/core/ports.ts'
import { seededChance } from '../../../src/core/system.ts'

test('the clock wakes sleepers in the order of time, and of `order` at one time', async () => {
  const clock = new PacedClock({ realNow: () => performance.now(), wallBase: 0, speed: Infinity })
  const woken: string[] = []
  const sleep = async (name: string, ms: number, at: 1 | 2 | 3 | 4 | 5): Promise<void> => {
    await clock.sleep(ms, { order: at })
    woken.push(`${name}@${String(clock.monotonic())}`)
  }
  const release = clock.hold()
  const all = Promise.all([
    sleep('late', 50, order.result),
    sleep('deadline', 20, order.deadline),
    sleep('result', 20, order.result),
    sleep('early', 10, order.request),
  ])
  release()
  await all
  assert.deepEqual(woken, ['early@10', 'result@20', 'deadline@20', 'late@50'])
})

test('the clock stands still while it is held', async () => {
  const clock = new PacedClock({ realNow: () => performance.now(), wallBase: 0, speed: Infinity })
  let isAwake = false
  const release = clock.hold()
  const sleeping = clock.sleep(5).then(() => {
    isAwake = true
  })
  for (let turn = 0; turn < 20; turn += 1) await setImmediate()
  assert.equal(isAwake, false)
  assert.equal(clock.monotonic(), 0)
  release()
  await sleeping
  assert.equal(clock.monotonic(), 5)
})

test('a clock that was held catches up with three seconds, and leaves what is beyond behind', async () => {
  let real = 0
  const clock = new PacedClock({ realNow: () => real, wallBase: 0, speed: 20 })
  const heldFor = async (milliseconds: number): Promise<number> => {
    const release = clock.hold()
    real += milliseconds
    release()
    await setImmediate()
    return clock.monotonic()
  }
  assert.equal(await heldFor(2500), 50_000)
  assert.equal(await heldFor(3000), 110_000)
  assert.equal(await heldFor(60_000), 170_000)
  real += 100
  assert.equal(clock.monotonic(), 172_000)
})

test('the demo plays faster where its start took long, and as it is told', () => {
  const usual = { speed: undefined, durationMs: 300_000 }
  assert.deepEqual(
    [0, 1100, 1600, 3000, 4500, 60_000].map((sinceStart) => speedOf(usual, sinceStart)),
    [20, 20, 23, 33, 60, 60],
  )
  assert.equal(speedOf({ ...usual, speed: 3 }, 8000), 3)
  assert.equal(speedOf({ ...usual, durationMs: 60_000 }, 8000), 20)
  assert.equal(speedOf({ ...usual, durationMs: 3_600_000 }, 8000), 20)
})

test('the same seed makes the same records, and a changed value changes the digest', () => {
  const [clicks] = demoTables
  assert.ok(clicks !== undefined)
  const place = { first: 0, count: 100, at: 1_700_000_000_000_000n, step: 333n }
  const digest = (seed: number, bend = false): unknown => {
    const batch = demoRecords(clicks, seededChance(seed), place)
    const latency = batch.columns.at(-1)
    if (bend && latency?.layout === 'int32') latency.values[50] = (latency.values[50] ?? 0) + 1
    const digests = new Digests()
    digests.add(batch, { bucketAt: (row) => row % 2, offsetAt: (row) => row >> 1 })
    return [...digests.buckets()]
  }
  assert.deepEqual(digest(7), digest(7))
  assert.notDeepEqual(digest(7), digest(8))
  assert.notDeepEqual(digest(7), digest(7, true))
})

test('production begins one freshness before the job, so that T=0 is as in the walkthrough', () => {
  assert.deepEqual(
    demoTables.map((table) => [rowsUntil(table, -301), rowsUntil(table, 0), rowsUntil(table, 300)]),
    [
      [0, 90_000, 540_000],
      [0, 48_000, 168_000],
      [0, 25_000, 50_000],
    ],
  )
})
