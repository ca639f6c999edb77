import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { bytes, type EngineUnderTest, inWorld, warnings } from './engine-under-test.ts'

function named(count: number): Readonly<Record<string, object>> {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`state-${at}`, {}]))
}

/** How many families are too many. */
export function describeLimits(under: EngineUnderTest): void {
  describe(`${under.name}: many families`, () => {
    test('C-33 warns at 1,000 families, once, with the newest names', async () => {
      await inWorld(under, {}, async ({ stores, folder, notes }) => {
        const store = await stores.open({ folder: folder('a'), families: named(999) })
        assert.equal(store.openHandles, 1_000)
        assert.deepEqual(warnings(notes, 'kv.families.many'), [])
        const last = await store.columnFamily('state-999')
        const said = warnings(notes, 'kv.families.many')
        assert.equal(said.length, 1)
        assert.match(said[0]?.message ?? '', /1,000 column families.*state-995.*state-999/)
        await store.columnFamily('one more')
        assert.equal(warnings(notes, 'kv.families.many').length, 1)
        await store.put(last, bytes('k'), bytes('v'))
        assert.equal(Buffer.from((await store.get(last, bytes('k'))) ?? []).toString(), 'v')
      })
    })

    test('C-33 names 100 families made after opening as states made for something that grows', async () => {
      await inWorld(under, {}, async ({ stores, folder, notes }) => {
        const store = await stores.open({ folder: folder('a'), families: { rows: {} } })
        for (let at = 0; at < 99; at += 1) await store.columnFamily(`user-${at}`)
        assert.deepEqual(warnings(notes, 'kv.families.dynamic'), [])
        for (let at = 99; at < 120; at += 1) await store.columnFamily(`user-${at}`)
        const said = warnings(notes, 'kv.families.dynamic')
        assert.equal(said.length, 1)
        assert.match(said[0]?.message ?? '', /100 column families.*user-…/)
      })
    })
  })
}
