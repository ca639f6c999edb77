import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isSluiceError } from '../../../src/core/errors.ts'
import { migrateFamily } from '../../../src/source/kv/migrate-family.ts'
import type { KvFamily, KvStore } from '../../../src/source/kv/ports.ts'
import {
  bytes,
  type EngineUnderTest,
  familyOf,
  inWorld,
  read,
  scan,
  write,
} from './engine-under-test.ts'

const keys = 20_000

/** What becomes of a family whose name is not named any more. */
export function describeRename(under: EngineUnderTest): void {
  describe(`${under.name}: renamed families`, () => {
    test('C-10 names the orphan, its size and the way out, and makes nothing', async () => {
      await inWorld(under, {}, async ({ stores, folder }) => {
        const store = await stores.open({ folder: folder('a'), families: { counter: {} } })
        const value = 'x'.repeat(1_000)
        await write(store, familyOf(store, 'counter'), { k: value, l: value })
        await store.flush()
        await store.checkpoint(folder('saved'))
        await store.close()
        const renamed = { from: folder('saved'), families: { 'event-counter': {} } }
        await assert.rejects(stores.open({ folder: folder('b'), ...renamed }), (error) => {
          assert.ok(isSluiceError(error, 'FAMILY_ORPHANED'))
          assert.match(error.message, /"counter" \(\d/)
          assert.match(error.message, /event-counter/)
          assert.match(error.fix ?? '', /migrateFamily.*orphans: 'keep'/)
          assert.equal(error.effect, 'none')
          return true
        })
        assert.equal(stores.openHandles, 0)
        const again = await stores.open({
          folder: folder('b'),
          from: folder('saved'),
          families: { counter: {} },
        })
        assert.deepEqual(
          again.families().map(({ name }) => name),
          ['default', 'counter'],
        )
        assert.equal(await read(again, familyOf(again, 'counter'), 'k'), value)
      })
    })

    test('C-10 with keep: the new family is empty, the old one stays, also in checkpoints', async () => {
      await inWorld(under, {}, async ({ stores, folder }) => {
        const store = await stores.open({ folder: folder('a'), families: { counter: {} } })
        await write(store, familyOf(store, 'counter'), { k: 'old' })
        await store.checkpoint(folder('saved'))
        const kept = await stores.open({
          folder: folder('b'),
          from: folder('saved'),
          families: { 'event-counter': {} },
          orphans: 'keep',
        })
        assert.deepEqual(await scan(kept, familyOf(kept, 'event-counter')), [])
        assert.equal(kept.openHandles, 3)
        const { files } = await kept.checkpoint(folder('saved again'))
        assert.ok(files.some(({ families }) => families.includes('counter')))
        const third = await stores.open({
          folder: folder('c'),
          from: folder('saved again'),
          families: { counter: {}, 'event-counter': {} },
        })
        assert.equal(await read(third, familyOf(third, 'counter'), 'k'), 'old')
      })
    })

    test('C-11 migrates 20,000 keys, stopped at any batch and run again', async () => {
      for (const stopAt of [0, 1, 7, 19, undefined]) {
        await inWorld(under, {}, async ({ stores, folder }) => {
          const store = await stores.open({ folder: folder('a'), families: { counter: {} } })
          await fill(store, familyOf(store, 'counter'))
          const migration = { from: 'counter', to: 'event-counter', entriesMax: 1_000 }
          if (stopAt !== undefined) {
            const stop = new AbortController()
            await assert.rejects(
              migrateFamily(stoppedAfter(store, stopAt, stop), {
                ...migration,
                signal: stop.signal,
              }),
              (error) => isSluiceError(error, 'STOPPED'),
            )
            assert.equal((await scan(store, familyOf(store, 'counter'))).length, keys)
          }
          const { copied, kept } = await migrateFamily(store, migration)
          assert.equal(copied, keys - (stopAt ?? 0) * 1_000)
          assert.equal(kept, (stopAt ?? 0) * 1_000)
          const renamed = familyOf(store, 'event-counter')
          const entries = await scan(store, renamed)
          assert.equal(entries.length, keys)
          assert.ok(entries.every(([key, value]) => value === `value of ${key}`))
          assert.deepEqual(
            store.families().map(({ name }) => name),
            ['default', 'event-counter'],
          )
          const { files } = await store.checkpoint(folder('saved'))
          assert.ok(!files.some(({ families }) => families.includes('counter')))
          assert.deepEqual(await migrateFamily(store, migration), { copied: 0, kept: 0 })
          const again = await stores.open({
            folder: folder('b'),
            from: folder('saved'),
            families: { 'event-counter': {} },
          })
          assert.equal((await scan(again, familyOf(again, 'event-counter'))).length, keys)
        })
      }
    })

    test('C-11 leaves keys alone that the new family has already', async () => {
      await inWorld(under, {}, async ({ stores, folder }) => {
        const store = await stores.open({
          folder: folder('a'),
          families: { counter: {}, 'event-counter': {} },
        })
        await write(store, familyOf(store, 'counter'), { a: 'old', b: 'old' })
        await write(store, familyOf(store, 'event-counter'), { b: 'new', c: 'new' })
        const done = await migrateFamily(store, { from: 'counter', to: 'event-counter' })
        assert.deepEqual(done, { copied: 1, kept: 1 })
        assert.deepEqual(await scan(store, familyOf(store, 'event-counter')), [
          ['a', 'old'],
          ['b', 'new'],
          ['c', 'new'],
        ])
      })
    })
  })
}

async function fill(store: KvStore, family: KvFamily): Promise<void> {
  const batch = store.batch()
  for (let at = 0; at < keys; at += 1) {
    const key = `key ${`${at}`.padStart(5, '0')}`
    batch.put(family, bytes(key), bytes(`value of ${key}`))
  }
  await store.write(batch)
}

/** A store that stops what uses it after so many batches. */
function stoppedAfter(store: KvStore, batches: number, stop: AbortController): KvStore {
  let written = 0
  if (batches === 0) stop.abort()
  return new Proxy(store, {
    get(target, name) {
      if (name === 'write') {
        return async (batch: Parameters<KvStore['write']>[0]): Promise<void> => {
          await target.write(batch)
          written += 1
          if (written === batches) stop.abort()
        }
      }
      const found: unknown = Reflect.get(target, name, target)
      return typeof found === 'function' ? (found.bind(target) as unknown) : found
    },
  })
}
