import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import { test } from 'node:test'
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
