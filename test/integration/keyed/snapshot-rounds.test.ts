import { deepEqual, equal, ok, rejects } from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import type { SplitResult } from '../../../src/sink/ports.ts'
import { byId, committed, nameFields, remove, upsert } from '../../support/keyed-changes.ts'
import { KeyedWorld } from '../../support/keyed-world.ts'

async function table(t: TestContext, formatVersion: 2 | 3 = 2, buckets = 1): Promise<KeyedWorld> {
  const world = await KeyedWorld.create({
    fields: nameFields,
    primaryKey: ['id'],
    buckets,
    formatVersion,
  })
  t.after(() => world.close())
  return world
}

type Read = { results: readonly SplitResult[] }

/** One round. @returns what was read */
async function round(world: KeyedWorld, stopped = false): Promise<readonly SplitResult[]> {
  const read: Read = { results: [] }
  const result = await world.round(
    (results) => {
      read.results = results
      return Promise.resolve()
    },
    { stopped },
  )
  committed(result)
  return read.results
}

function range({ bucket, start, end, isSnapshot }: SplitResult): unknown {
  return { bucket, start, end, ...(isSnapshot === undefined ? {} : { isSnapshot }) }
}

for (const formatVersion of [2, 3] as const) {
  describe(`snapshot rounds, format ${formatVersion}`, () => {
    test('T-19 T-20 the state at the snapshot comes first, then the changelog from its offset', async (t) => {
      const world = await table(t, formatVersion)
      // Offsets 0 to 5: +I, +I, +I, -U, +U, -D.
      await world.change([upsert(1, 'a'), upsert(2, 'b'), upsert(3, 'c')])
      await world.change([upsert(1, 'A'), remove(2)])
      await world.source.takeKvSnapshots(world.sourceTable.id)
      await world.change([upsert(3, 'late'), upsert(4, 'late')])
      const [first] = await round(world)
      ok(first !== undefined)
      deepEqual(range(first), { bucket: 0, start: 6n, end: 6n, isSnapshot: true })
      deepEqual(byId(await world.rows()), ['1 A', '3 c'])
      const [second] = await round(world)
      ok(second !== undefined)
      deepEqual(range(second), { bucket: 0, start: 6n, end: 9n })
      deepEqual(byId(await world.rows()), ['1 A', '3 late', '4 late'])
    })

    test('a first try that never arrived leaves nothing for the second', async (t) => {
      const world = await table(t, formatVersion)
      await world.change([upsert(1, 'a'), upsert(2, 'b')])
      await world.source.takeKvSnapshots(world.sourceTable.id)
      world.faults.lostReply = 'never arrived'
      let first: readonly SplitResult[] = []
      const result = await world.round((results) => {
        first = results
        return Promise.resolve()
      })
      equal(result.kind, 'unknown')
      world.heal()
      await world.change([upsert(1, 'A'), remove(2)])
      await world.source.takeKvSnapshots(world.sourceTable.id)
      const [second] = await round(world)
      ok(second !== undefined)
      deepEqual(range(second), { bucket: 0, start: 5n, end: 5n, isSnapshot: true })
      deepEqual(byId(await world.rows()), ['1 A'])
      const { data } = await world.table.liveFiles(await world.table.load())
      const used = data.map(({ location }) => location)
      deepEqual(
        used,
        second.files.map(({ location }) => location),
      )
      ok(first.every(({ files }) => files.every(({ location }) => !used.includes(location))))
    })

    test('a first try that landed after all is gone on from, whatever newer snapshot there is', async (t) => {
      const world = await table(t, formatVersion)
      await world.change([upsert(1, 'a'), upsert(2, 'b')])
      await world.source.takeKvSnapshots(world.sourceTable.id)
      world.faults.lostReply = 'landed'
      equal((await world.round()).kind, 'unknown')
      world.heal()
      await world.change([upsert(1, 'A'), remove(2)])
      await world.source.takeKvSnapshots(world.sourceTable.id)
      const [second] = await round(world)
      ok(second !== undefined)
      deepEqual(range(second), { bucket: 0, start: 2n, end: 5n })
      deepEqual(byId(await world.rows()), ['1 A'])
    })
  })
}

test('T-42 a snapshot is read to its end when its round is told to stop', async (t) => {
  const world = await table(t)
  // More rows than a snapshot hands out at once.
  const ids = Array.from({ length: 9_000 }, (_, at) => at)
  await world.change(ids.map((id) => upsert(id, 'a')))
  await world.source.takeKvSnapshots(world.sourceTable.id)
  const [only] = await round(world, true)
  ok(only !== undefined)
  deepEqual(range(only), { bucket: 0, start: 9_000n, end: 9_000n, isSnapshot: true })
  equal((await world.rows()).length, 9_000)
})

test('T-24 buckets of one round are snapshots and ranges of the log, each as it stands', async (t) => {
  const world = await table(t, 2, 2)
  await world.change([upsert(1, 'a')])
  const [known] = await round(world)
  ok(known !== undefined)
  const others = [2, 3, 4, 5, 6, 7, 8, 9].map((id) => upsert(id, 'b'))
  await world.change(others)
  await world.source.takeKvSnapshots(world.sourceTable.id)
  await world.change([upsert(1, 'A')])
  const both = await round(world)
  deepEqual(
    both.map(({ bucket, isSnapshot = false }) => [bucket, isSnapshot]),
    [0, 1].map((bucket) => [bucket, bucket !== known.bucket]),
  )
  deepEqual(byId(await world.rows()), ['1 A', ...[2, 3, 4, 5, 6, 7, 8, 9].map((id) => `${id} b`)])
})

test('a lost lease ends the round, and the bucket starts over from a newer snapshot', async (t) => {
  const world = await table(t)
  await world.change([upsert(1, 'a'), upsert(2, 'b')])
  const take = () => world.source.takeKvSnapshots(world.sourceTable.id)
  await take()
  await world.change([remove(1)])
  await rejects(world.round(undefined, { planned: take }), { code: 'LEASE_LOST' })
  equal((await world.table.load()).head, undefined, 'nothing of it is in the lake')
  const [only] = await round(world)
  ok(only !== undefined)
  deepEqual(range(only), { bucket: 0, start: 3n, end: 3n, isSnapshot: true })
  deepEqual(byId(await world.rows()), ['2 b'])
})

test('an empty state is a snapshot, too, and its end is not absent', async (t) => {
  const world = await table(t)
  await world.change([upsert(1, 'a'), remove(1)])
  await world.source.takeKvSnapshots(world.sourceTable.id)
  await round(world)
  deepEqual(await world.rows(), [])
  await world.change([upsert(1, 'again')])
  const [second] = await round(world)
  ok(second !== undefined)
  deepEqual(range(second), { bucket: 0, start: 2n, end: 3n })
  deepEqual(byId(await world.rows()), ['1 again'])
})
