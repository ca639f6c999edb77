import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import type { Row } from '../../../src/core/columns/rows.ts'
import { ForeignEngine } from '../../support/foreign-engine.ts'
import {
  byId,
  committed,
  nameFields as fields,
  refused,
  remove,
  upsert,
} from '../../support/keyed-changes.ts'
import { KeyedWorld } from '../../support/keyed-world.ts'

const idIs =
  (...ids: readonly number[]) =>
  (row: Row): boolean =>
    ids.includes(Number(row['id']))

type Table = { readonly world: KeyedWorld; readonly others: ForeignEngine }

/** Two files in one bucket, one of them with a deleted row: keys 1 to 5, of which 2 was changed. */
async function table(t: TestContext, formatVersion: 2 | 3, buckets = 1): Promise<Table> {
  const world = await KeyedWorld.create({ fields, primaryKey: ['id'], buckets, formatVersion })
  t.after(() => world.close())
  const { location } = await world.table.load()
  await world.change([upsert(1, 'a'), upsert(2, 'b'), upsert(3, 'c')])
  committed(await world.round())
  await world.change([upsert(2, 'B'), upsert(4, 'd'), upsert(5, 'e')])
  committed(await world.round())
  deepEqual(byId(await world.rows()), ['1 a', '2 B', '3 c', '4 d', '5 e'])
  return { world, others: new ForeignEngine(location) }
}

async function headOf({ world }: Table): Promise<bigint | undefined> {
  return (await world.table.load()).head
}

for (const formatVersion of [2, 3] as const) {
  describe(`others between plan and swap, format ${formatVersion}`, () => {
    test('a compaction: deletes are derived again, into the files it made', async (t) => {
      const both = await table(t, formatVersion, 2)
      const { world, others } = both
      await world.change([upsert(1, 'A'), remove(3), upsert(6, 'f')])
      committed(await world.round(() => others.compact()))
      deepEqual(byId(await world.rows()), ['1 A', '2 B', '4 d', '5 e', '6 f'])
      await noDanglingDelete(world)
      // The index followed: the next round finds every row where it is now.
      await world.change([upsert(2, 'BB'), remove(4), upsert(5, 'E'), upsert(3, 'again')])
      committed(await world.round())
      deepEqual(byId(await world.rows()), ['1 A', '2 BB', '3 again', '5 E', '6 f'])
      await noDanglingDelete(world)
    })

    test('a compaction that the index is told of by nobody is followed in the next round', async (t) => {
      const { world, others } = await table(t, formatVersion)
      await others.compact()
      await others.compact()
      await world.change([upsert(1, 'A'), upsert(2, 'BB'), remove(5)])
      committed(await world.round())
      deepEqual(byId(await world.rows()), ['1 A', '2 BB', '3 c', '4 d'])
      await noDanglingDelete(world)
    })

    test('rows of others are a conflict, and nothing is written', async (t) => {
      const both = await table(t, formatVersion)
      const { world, others } = both
      await world.change([upsert(1, 'A')])
      let foreign: bigint | undefined
      const result = await world.round(async () => {
        await others.appendRows(idIs(4))
        foreign = await headOf(both)
      })
      refused(result, 'COMMIT_CONFLICT', /another writer added rows/)
      equal(await headOf(both), foreign)
    })

    test('rows of others are a conflict for an index that is cold, too', async (t) => {
      const both = await table(t, formatVersion)
      const { world, others } = both
      await world.restart()
      await world.change([upsert(1, 'A')])
      const result = await world.round(async () => {
        await others.deleteRows(idIs(4))
        await others.appendRows(idIs(3))
        await others.deleteRows(idIs(3))
        await others.appendRows(idIs(5))
      })
      refused(result, 'COMMIT_CONFLICT', /another writer added rows/)
    })

    test('rows that others deleted stay deleted, and a delete of both is harmless', async (t) => {
      const { world, others } = await table(t, formatVersion)
      await world.change([upsert(1, 'A'), remove(4), upsert(5, 'E')])
      // Key 1 is deleted by both, key 3 by the others alone, in a file that has deletes of ours.
      committed(await world.round(() => others.deleteRows(idIs(1, 3, 4))))
      deepEqual(byId(await world.rows()), ['1 A', '2 B', '5 E'])
      await world.change([upsert(3, 'back'), upsert(4, 'back')])
      committed(await world.round())
      deepEqual(byId(await world.rows()), ['1 A', '2 B', '3 back', '4 back', '5 E'])
      if (formatVersion === 3) await oneVectorPerFile(world)
    })

    test('a whole file that others deleted is not deleted from again', async (t) => {
      const { world, others } = await table(t, formatVersion)
      await world.change([upsert(1, 'A'), upsert(2, 'BB')])
      const [oldest] = (await world.table.liveFiles(await world.table.load())).data.toSorted(
        (a, b) => Number(a.sequence - b.sequence),
      )
      committed(
        await world.round(() =>
          others.removeFiles(({ location }) => location === oldest?.location),
        ),
      )
      // Keys 1 and 3 were in that file.
      deepEqual(byId(await world.rows()), ['1 A', '2 BB', '4 d', '5 e'])
      await noDanglingDelete(world)
    })

    test('equality deletes in the head are refused', async (t) => {
      const { world, others } = await table(t, formatVersion)
      await others.deleteEqual({ id: 4n }, 'id')
      await world.change([upsert(1, 'A')])
      refused(await world.round(), 'TABLE_MISMATCH', /has equality deletes/)
      await world.change([upsert(1, 'AA')])
      refused(await world.round(), 'TABLE_MISMATCH', /has equality deletes/)
    })
  })
}

test('position deletes of others that name no file are kept and counted', async (t) => {
  const { world, others } = await table(t, 2)
  await others.deleteRows(idIs(1, 4), true)
  await world.change([upsert(1, 'A'), upsert(5, 'E')])
  committed(await world.round(() => others.deleteRows(idIs(2, 3), true)))
  deepEqual(byId(await world.rows()), ['1 A', '5 E'])
  await world.restart()
  await world.change([upsert(3, 'back')])
  committed(await world.round())
  deepEqual(byId(await world.rows()), ['1 A', '3 back', '5 E'])
})

test('a data file has at most 8 delete files, then one that stands for all', async (t) => {
  const world = await KeyedWorld.create({ fields, primaryKey: ['id'], buckets: 1 })
  t.after(() => world.close())
  const ids = Array.from({ length: 12 }, (_, at) => at + 1)
  await world.change(ids.map((id) => upsert(id, 'a')))
  committed(await world.round())
  const counts: number[] = []
  for (const id of ids) {
    await world.change([upsert(id, 'b')])
    committed(await world.round())
    const live = await world.table.liveFiles(await world.table.load())
    const [first] = live.data.toSorted((a, b) => Number(a.sequence - b.sequence))
    const own = live.deletes.filter(({ dataFile }) => dataFile === first?.location)
    counts.push(own.length)
    equal(
      own.reduce((sum, { rows }) => sum + rows, 0),
      id,
      'each position is in one live file',
    )
  }
  deepEqual(counts, [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4])
  deepEqual(byId(await world.rows()), byId(ids.map((id) => ({ id: BigInt(id), name: 'b' }))))
})

async function noDanglingDelete(world: KeyedWorld): Promise<void> {
  const { data, deletes } = await world.table.liveFiles(await world.table.load())
  const live = new Set(data.map(({ location }) => location))
  deepEqual(
    deletes.filter(({ dataFile }) => dataFile === undefined || !live.has(dataFile)),
    [],
  )
}

async function oneVectorPerFile(world: KeyedWorld): Promise<void> {
  const { deletes } = await world.table.liveFiles(await world.table.load())
  equal(new Set(deletes.map(({ dataFile }) => dataFile)).size, deletes.length)
  ok(deletes.every(({ content }) => content === 'deletion-vector'))
}
