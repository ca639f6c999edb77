import { deepEqual, equal, ok, rejects } from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { rocksDbEngine } from '../../../src/source/kv/rocksdb/rocksdb-engine.ts'
import { ForeignEngine } from '../../support/foreign-engine.ts'
import { ForeignWriter } from '../../support/foreign-writer.ts'
import {
  byId,
  committed,
  nameFields as fields,
  refused,
  remove,
  upsert,
} from '../../support/keyed-changes.ts'
import { KeyedWorld } from '../../support/keyed-world.ts'
import { skipWithoutRocksDb } from '../../support/rocksdb.ts'

type Options = { readonly formatVersion: 2 | 3; readonly onDisk?: boolean }

/** Keys 1 to 4 in two files, of which 2 was changed. */
async function table(
  t: TestContext,
  { formatVersion, onDisk = false }: Options,
): Promise<KeyedWorld> {
  const world = await KeyedWorld.create({
    fields,
    primaryKey: ['id'],
    buckets: 2,
    formatVersion,
    ...(onDisk ? { engine: () => rocksDbEngine() } : {}),
  })
  t.after(() => world.close())
  await world.change([upsert(1, 'a'), upsert(2, 'b'), upsert(3, 'c')])
  committed(await world.round())
  await world.change([upsert(2, 'B'), upsert(4, 'd')])
  committed(await world.round())
  return world
}

for (const formatVersion of [2, 3] as const) {
  describe(`rounds whose end is not plain, format ${formatVersion}`, () => {
    test('a round that landed without a reply is found, and the next one replaces its rows', async (t) => {
      const world = await table(t, { formatVersion })
      await world.change([upsert(1, 'A'), remove(3), upsert(5, 'e')])
      world.faults.lostReply = 'landed'
      equal((await world.round()).kind, 'unknown')
      world.heal()
      deepEqual(byId(await world.rows()), ['1 A', '2 B', '4 d', '5 e'])
      await world.change([upsert(1, 'AA'), upsert(3, 'again'), remove(5)])
      committed(await world.round())
      deepEqual(byId(await world.rows()), ['1 AA', '2 B', '3 again', '4 d'])
    })

    test('a round that never arrived is made again, from the lake that there is', async (t) => {
      const world = await table(t, { formatVersion })
      await world.change([upsert(1, 'A'), remove(3), upsert(5, 'e')])
      world.faults.lostReply = 'never arrived'
      equal((await world.round()).kind, 'unknown')
      world.heal()
      deepEqual(byId(await world.rows()), ['1 a', '2 B', '3 c', '4 d'])
      await world.change([upsert(1, 'AA')])
      committed(await world.round())
      deepEqual(byId(await world.rows()), ['1 AA', '2 B', '4 d', '5 e'])
    })

    test('an index that missed a round catches up from the files of that round', async (t) => {
      const world = await table(t, { formatVersion })
      await world.change([upsert(1, 'A'), remove(3), upsert(5, 'e')])
      world.faults.indexMissed = true
      committed(await world.round())
      await world.change([upsert(1, 'AA'), upsert(3, 'again'), upsert(5, 'E')])
      committed(await world.round())
      deepEqual(byId(await world.rows()), ['1 AA', '2 B', '3 again', '4 d', '5 E'])
    })

    test('a rollback between rounds ends the process, and the next rebuilds what it knows', async (t) => {
      const world = await table(t, { formatVersion })
      const others = new ForeignWriter((await world.table.load()).location)
      const [, first] = await others.lineage()
      await others.rollback(first ?? 0n)
      await world.change([upsert(2, 'BB')])
      await rejects(world.round(), { code: 'COMMIT_STALE' })
      await world.restart()
      deepEqual(byId(await world.rows()), ['1 a', '2 b', '3 c'])
      await world.change([upsert(2, 'other'), remove(1), upsert(4, 'new')])
      committed(await world.round())
      deepEqual(byId(await world.rows()), ['2 other', '3 c', '4 new'])
    })

    test('a rollback between plan and swap refuses the round, and nothing is written', async (t) => {
      const world = await table(t, { formatVersion })
      const others = new ForeignWriter((await world.table.load()).location)
      const [, first] = await others.lineage()
      await world.change([upsert(2, 'BB')])
      const result = await world.round(() => others.rollback(first ?? 0n))
      refused(result, 'COMMIT_STALE', /demo.customers: bucket [01] ends at/)
      deepEqual(byId(await world.rows()), ['1 a', '2 b', '3 c'])
      equal((await world.table.load()).head, first)
    })

    test('a key with two rows is corruption that names both files', async (t) => {
      const world = await table(t, { formatVersion })
      const others = new ForeignEngine((await world.table.load()).location)
      await others.appendRows(({ id }) => id === 4n)
      await world.restart()
      const { data } = await world.table.liveFiles(await world.table.load())
      await world.change([1, 2, 3, 4, 5, 6].map((id) => upsert(id, 'x')))
      const result = await world.round()
      refused(result, 'DATA_CORRUPT', /a key has two rows in the table/)
      ok(result.kind === 'rejected')
      const { reason, files } = result.error.details
      equal(reason, 'duplicate key')
      const named = files as readonly string[]
      equal(new Set(named).size, 2)
      ok(named.every((each) => data.some(({ location }) => location === each)))
    })
  })
}

const needsRocksDb = { skip: skipWithoutRocksDb() }

describe('stores on disk', needsRocksDb, () => {
  for (const formatVersion of [2, 3] as const) {
    test(`a process that ends between swap and index goes on right, format ${formatVersion}`, async (t) => {
      const world = await table(t, { formatVersion, onDisk: true })
      await world.change([upsert(1, 'A'), remove(3), upsert(5, 'e')])
      world.faults.indexMissed = true
      committed(await world.round())
      await world.restart()
      await world.change([upsert(1, 'AA'), upsert(3, 'again'), upsert(5, 'E')])
      committed(await world.round())
      deepEqual(byId(await world.rows()), ['1 AA', '2 B', '3 again', '4 d', '5 E'])
      await world.restart()
      await world.change([remove(1), upsert(4, 'D')])
      committed(await world.round())
      deepEqual(byId(await world.rows()), ['2 B', '3 again', '4 D', '5 E'])
    })

    test(`an index on disk does not outlive a rollback, format ${formatVersion}`, async (t) => {
      const world = await table(t, { formatVersion, onDisk: true })
      const others = new ForeignWriter((await world.table.load()).location)
      const [, first] = await others.lineage()
      await others.rollback(first ?? 0n)
      await world.restart()
      await world.change([upsert(2, 'other'), upsert(4, 'new'), remove(3)])
      committed(await world.round())
      deepEqual(byId(await world.rows()), ['1 a', '2 other', '4 new'])
    })
  }
})
