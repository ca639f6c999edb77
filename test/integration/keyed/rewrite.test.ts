import { deepEqual, equal } from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ForeignEngine } from '../../support/foreign-engine.ts'
import { byId, committed, nameFields, remove, upsert } from '../../support/keyed-changes.ts'
import { KeyedWorld } from '../../support/keyed-world.ts'

for (const formatVersion of [2, 3] as const) {
  describe(`a rewrite staged by the test, format ${formatVersion}`, () => {
    test('after each rewrite deletes point at the rows where they are now', async (t) => {
      const world = await KeyedWorld.create({
        fields: nameFields,
        primaryKey: ['id'],
        buckets: 2,
        formatVersion,
      })
      t.after(() => world.close())
      const others = new ForeignEngine((await world.table.load()).location)
      const ids = Array.from({ length: 40 }, (_, at) => at + 1)
      const model = new Map<number, string>()
      const change = async (round: number): Promise<void> => {
        const touched = ids.filter((id) => (id * 7 + round) % 3 === 0)
        await world.change(
          touched.map((id) => ((id + round) % 5 === 0 ? remove(id) : upsert(id, String(round)))),
        )
        for (const id of touched) {
          if ((id + round) % 5 === 0) model.delete(id)
          else model.set(id, String(round))
        }
      }
      for (let round = 1; round <= 9; round += 1) {
        await change(round)
        // Every third rewrite comes between plan and swap, every third before, every third never.
        if (round % 3 === 1) await others.compact()
        committed(await world.round(round % 3 === 2 ? () => others.compact() : undefined))
        deepEqual(
          byId(await world.rows()),
          byId([...model].map(([id, name]) => ({ id: BigInt(id), name }))),
          `round ${round}`,
        )
        const { data, deletes } = await world.table.liveFiles(await world.table.load())
        const live = new Map(data.map((file) => [file.location, file]))
        for (const { dataFile = '', rows } of deletes) {
          equal(rows <= (live.get(dataFile)?.rows ?? 0), true, 'a delete has its file')
        }
      }
    })
  })
}
