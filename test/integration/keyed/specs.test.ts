import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { ForeignEngine } from '../../support/foreign-engine.ts'
import {
  byId,
  committed,
  nameFields,
  refused,
  remove,
  upsert,
} from '../../support/keyed-changes.ts'
import { KeyedWorld } from '../../support/keyed-world.ts'

const buckets = 2
const byBucket = { name: 'id_bucket', transform: `bucket[${buckets}]`, source: 'id' }

async function table(
  t: TestContext,
  formatVersion: 2 | 3,
): Promise<{ readonly world: KeyedWorld; readonly others: ForeignEngine }> {
  const world = await KeyedWorld.create({
    fields: nameFields,
    primaryKey: ['id'],
    buckets,
    formatVersion,
  })
  t.after(() => world.close())
  await world.change([1, 2, 3, 4, 5].map((id) => upsert(id, 'old')))
  committed(await world.round())
  return { world, others: new ForeignEngine((await world.table.load()).location) }
}

for (const formatVersion of [2, 3] as const) {
  describe(`another tool changes the partition spec, format ${formatVersion}`, () => {
    test('deletes go under the spec of the file they point into', async (t) => {
      const { world, others } = await table(t, formatVersion)
      const specId = await others.evolveSpec([{ ...byBucket, name: 'shard' }])
      ok(specId > 0)
      await world.restart()
      await world.change([upsert(1, 'new'), upsert(2, 'new'), remove(3)])
      committed(await world.round())
      equal((await world.table.load()).specId, specId)
      await world.change([upsert(1, 'newer'), upsert(4, 'newer'), remove(5)])
      committed(await world.round())
      deepEqual(byId(await world.rows()), ['1 newer', '2 new', '4 newer'])
      const { data, deletes } = await world.table.liveFiles(await world.table.load())
      const files = new Map(data.map((file) => [file.location, file]))
      deepEqual(new Set(data.map((file) => file.specId)), new Set([0, specId]))
      for (const { dataFile = '', ...each } of deletes) {
        const file = files.get(dataFile)
        deepEqual([each.specId, each.partition], [file?.specId, file?.partition])
      }
      deepEqual(new Set(deletes.map((each) => each.specId)), new Set([0, specId]))
    })

    test('a spec that changes between plan and swap ends the round', async (t) => {
      const { world, others } = await table(t, formatVersion)
      await world.change([upsert(1, 'new')])
      const result = await world.round(async () => {
        await others.evolveSpec([{ ...byBucket, name: 'shard' }])
      })
      refused(result, 'COMMIT_STALE', /partition spec changed/)
      await world.change([upsert(2, 'new')])
      committed(await world.round())
      deepEqual(byId(await world.rows()), ['1 new', '2 new', '3 old', '4 old', '5 old'])
    })

    test('files under a spec that has the same buckets and more are followed', async (t) => {
      const { world, others } = await table(t, formatVersion)
      const specId = await others.evolveSpec([
        byBucket,
        { name: 'name', transform: 'identity', source: 'name' },
      ])
      await world.restart()
      await others.compact((file) => ({
        specId,
        partition: new Map([...file.partition, [1001, 'old']]),
      }))
      await world.change([upsert(1, 'new'), remove(2)])
      committed(await world.round())
      deepEqual(byId(await world.rows()), ['1 new', '3 old', '4 old', '5 old'])
    })

    for (const [what, fields, value] of [
      ['other buckets', [{ ...byBucket, transform: 'bucket[5]' }], 0],
      ['no buckets', [{ name: 'name', transform: 'identity', source: 'name' }], 'old'],
      [
        'buckets of another column',
        [{ name: 'name_bucket', transform: 'bucket[2]', source: 'name' }],
        0,
      ],
    ] as const) {
      test(`files under a spec with ${what} are refused: their keys cannot be found`, async (t) => {
        const { world, others } = await table(t, formatVersion)
        const specId = await others.evolveSpec(fields)
        await world.change([upsert(1, 'new')])
        const first = await world.round(() =>
          others.compact(() => ({
            specId,
            partition: new Map<number, number | string>([[1001, value]]),
          })),
        )
        equal(first.kind, 'rejected')
        const { head } = await world.table.load()
        await world.change([upsert(2, 'new')])
        refused(await world.round(), 'TABLE_MISMATCH', /has not the buckets of the table/)
        equal((await world.table.load()).head, head)
        equal((await world.rows()).length, 5)
      })
    }
  })
}
