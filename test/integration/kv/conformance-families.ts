import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isSluiceError } from '../../../src/core/errors.ts'
import {
  bytes,
  type EngineUnderTest,
  familyOf,
  inWorld,
  kib,
  mib,
  read,
  scan,
  textOf,
  write,
} from './engine-under-test.ts'

/** Families, their names and handles, and reading and writing in them. */
export function describeFamilies(under: EngineUnderTest): void {
  describe(`${under.name}: families`, () => {
    test('C-01 isolates families: one key in two of them', async () => {
      await inWorld(under, {}, async ({ stores, folder }) => {
        const store = await stores.open({ folder: folder('a'), families: { rows: {}, meta: {} } })
        const rows = familyOf(store, 'rows')
        const meta = familyOf(store, 'meta')
        await write(store, rows, { k: 'row', l: 'other' })
        await write(store, meta, { k: 'note' })
        assert.equal(await read(store, rows, 'k'), 'row')
        assert.equal(await read(store, meta, 'k'), 'note')
        await write(store, rows, { k: 'row 2' })
        assert.equal(await read(store, meta, 'k'), 'note')
        await store.delete(rows, bytes('k'))
        assert.equal(await read(store, rows, 'k'), undefined)
        assert.equal(await read(store, meta, 'k'), 'note')
        assert.deepEqual(await scan(store, rows), [['l', 'other']])
        assert.deepEqual(await scan(store, meta), [['k', 'note']])
        assert.equal(await read(store, store.default, 'k'), undefined)
      })
    })

    test('C-02 keeps write buffers and files apart', async () => {
      await inWorld(under, {}, async ({ stores, folder }) => {
        const store = await stores.open({ folder: folder('a'), families: { a: {}, b: {} } })
        const a = familyOf(store, 'a')
        const usage = async (name: string): Promise<{ buffer: number; files: number }> => {
          const found = (await store.usage()).families.find((family) => family.name === name)
          return { buffer: found?.writeBufferBytes ?? -1, files: found?.files ?? -1 }
        }
        await store.put(familyOf(store, 'b'), bytes('k'), bytes('v'))
        const before = { a: await usage('a'), b: await usage('b') }
        for (let at = 0; at < 3 * kib; at += 1) {
          await store.put(a, bytes(`key ${at}`), new Uint8Array(kib).fill(at))
        }
        assert.ok((await usage('a')).buffer >= before.a.buffer + 3 * mib)
        assert.equal((await usage('b')).buffer, before.b.buffer)
        await store.flush([a])
        assert.equal((await usage('a')).files, before.a.files + 1)
        assert.equal((await usage('b')).files, before.b.files)
        assert.equal((await store.get(a, bytes('key 7')))?.length, kib)
      })
    })

    test('C-06 gets or creates by name: the same name is the same handle', async () => {
      await inWorld(under, {}, async ({ stores, folder }) => {
        const store = await stores.open({ folder: folder('a'), families: {} })
        const counter = await store.columnFamily('counter')
        assert.equal(store.openHandles, 2)
        assert.equal(await store.columnFamily('counter'), counter)
        assert.equal(store.openHandles, 2)
        const [first, second] = await Promise.all([
          store.columnFamily('window'),
          store.columnFamily('window'),
        ])
        assert.equal(first, second)
        assert.equal(store.openHandles, 3)
        await write(store, counter, { k: 'v' })
        assert.equal(await read(store, counter, 'k'), 'v')
        assert.equal(await read(store, first, 'k'), undefined)
      })
    })

    test('C-06 refuses an open family under other options', async () => {
      await inWorld(under, {}, async ({ stores, folder }) => {
        const store = await stores.open({
          folder: folder('a'),
          families: { counter: { writeBufferSize: mib } },
        })
        await store.columnFamily('counter', { writeBufferSize: mib })
        await assert.rejects(store.columnFamily('counter', { writeBufferSize: 2 * mib }), (error) =>
          isSluiceError(error, 'CONFIG_INVALID'),
        )
      })
    })

    test('C-06 takes names of 1 to 255 bytes of UTF-8', async () => {
      await inWorld(under, {}, async ({ stores, folder }) => {
        const store = await stores.open({ folder: folder('a'), families: {} })
        const longest = `${'я'.repeat(127)}x`
        const family = await store.columnFamily(longest)
        assert.equal(family.name, longest)
        for (const name of ['', 'я'.repeat(128), '\ud800']) {
          await assert.rejects(store.columnFamily(name), (error) =>
            isSluiceError(error, 'NAME_INVALID'),
          )
        }
        await assert.rejects(stores.open({ folder: folder('b'), families: { '': {} } }), (error) =>
          isSluiceError(error, 'NAME_INVALID'),
        )
      })
    })

    test('C-07 always has default, which is no name of a state', async () => {
      await inWorld(under, {}, async ({ stores, folder }) => {
        const store = await stores.open({ folder: folder('a'), families: {} })
        assert.equal(store.openHandles, 1)
        assert.deepEqual(
          store.families().map(({ name }) => name),
          ['default'],
        )
        await write(store, store.default, { k: 'v' })
        assert.equal(await read(store, store.default, 'k'), 'v')
        await assert.rejects(store.columnFamily('default', {}), (error) =>
          isSluiceError(error, 'NAME_INVALID'),
        )
        await assert.rejects(
          stores.open({ folder: folder('b'), families: { default: {} } }),
          (error) => isSluiceError(error, 'NAME_INVALID'),
        )
      })
    })

    test('C-08 counts sixteen handles for three states and default in four stores', async () => {
      await inWorld(under, {}, async ({ stores, folder, elsewhere }) => {
        const other = elsewhere()
        const families = { counter: {}, windowContents: {}, stats: {} }
        for (let slot = 0; slot < 4; slot += 1) {
          await stores.open({ folder: folder(`slot ${slot}`), families })
          await other.open({ folder: folder(`other ${slot}`), families })
        }
        assert.equal(stores.openHandles, 16)
        assert.equal(stores.openHandles + other.openHandles, 32)
        await stores.close()
        assert.equal(stores.openHandles, 0)
      })
    })

    test('C-09 isolates stores: their families, budgets and caches', async () => {
      await inWorld(under, { cache: 'shared', memoryBytes: 4 * mib }, async (world) => {
        const { stores, folder } = world
        const families = { rows: {} }
        const first = await stores.open({ folder: folder('1'), families })
        const second = await stores.open({ folder: folder('2'), families })
        assert.equal(first.batchBytesMax, second.batchBytesMax)
        await write(first, familyOf(first, 'rows'), { k: 'first' })
        await write(second, familyOf(second, 'rows'), { k: 'second', l: 'only here' })
        assert.equal(await read(first, familyOf(first, 'rows'), 'k'), 'first')
        assert.equal(await read(first, familyOf(first, 'rows'), 'l'), undefined)
        assert.equal(await read(second, familyOf(second, 'rows'), 'k'), 'second')
        const before = (await second.usage()).cacheBytes
        assert.ok(before > 0)
        const value = new Uint8Array(16 * kib)
        for (let at = 0; at < 200; at += 1) {
          await first.put(familyOf(first, 'rows'), bytes(`key ${at}`), value)
          await first.get(familyOf(first, 'rows'), bytes(`key ${at}`))
        }
        assert.ok((await first.usage()).cacheBytes <= mib)
        assert.equal((await second.usage()).cacheBytes, before)
      })
    })

    test('goes through keys in the order of unsigned bytes, by range and prefix', async () => {
      await inWorld(under, {}, async ({ stores, folder }) => {
        const store = await stores.open({ folder: folder('a'), families: { rows: {} } })
        const rows = familyOf(store, 'rows')
        const keys = [
          [0],
          [0x61],
          [0x61, 0],
          [0x61, 0xff],
          [0x62],
          [0x7f],
          [0x80],
          [0xff],
          [0xff, 0xff],
        ]
        const put = async (key: readonly number[]): Promise<void> => {
          await store.put(rows, Uint8Array.from(key), bytes(key.join()))
        }
        for (const key of keys.filter((_, at) => at % 2 === 0).reverse()) await put(key)
        await store.flush()
        for (const key of keys.filter((_, at) => at % 2 === 1)) await put(key)
        const values = async (
          range: Readonly<Record<string, readonly number[]>>,
          entriesMax?: number,
        ): Promise<readonly string[]> => {
          const bounds = Object.entries(range).map(([name, key]) => [name, Uint8Array.from(key)])
          const found = await scan(store, rows, Object.fromEntries(bounds) as object, entriesMax)
          return found.map(([, value]) => value)
        }
        const all = keys.map((key) => key.join())
        assert.deepEqual(await values({}), all)
        assert.deepEqual(await values({}, 1), all)
        assert.deepEqual(await values({}, 4), all)
        assert.deepEqual(await values({ from: [0x61, 0], to: [0x7f] }), ['97,0', '97,255', '98'])
        assert.deepEqual(await values({ prefix: [0x61] }), ['97', '97,0', '97,255'])
        assert.deepEqual(await values({ prefix: [0xff] }), ['255', '255,255'])
        assert.deepEqual(await values({ prefix: [0x61], from: [0x61, 1], to: [0x62] }), ['97,255'])
        assert.deepEqual(await values({ from: [0x62], to: [0x61] }), [])
        assert.deepEqual(await values({ prefix: [] }), all)
      })
    })

    test('reads many keys at once, in the order asked, absent and repeated ones too', async () => {
      for (const cache of ['off', 'shared', 'per-family'] as const) {
        await inWorld(under, { cache }, async ({ stores, folder }) => {
          const store = await stores.open({ folder: folder('a'), families: { rows: {} } })
          const rows = familyOf(store, 'rows')
          await write(store, rows, { a: '1', b: '2' })
          const many = async (...keys: string[]): Promise<readonly (string | undefined)[]> =>
            (await store.getMany(rows, keys.map(bytes))).map(textOf)
          const asked = ['b', 'x', 'a', 'b', 'x']
          assert.deepEqual(await many(...asked), ['2', undefined, '1', '2', undefined])
          assert.deepEqual(await many(...asked), ['2', undefined, '1', '2', undefined])
          await store.write(
            store.batch().put(rows, bytes('x'), bytes('3')).delete(rows, bytes('a')),
          )
          assert.deepEqual(await many(...asked), ['2', '3', undefined, '2', '3'])
          assert.deepEqual(await many(), [])
        })
      }
    })

    test('keeps empty keys, empty values and large ones', async () => {
      await inWorld(under, {}, async ({ stores, folder }) => {
        const store = await stores.open({ folder: folder('a'), families: { rows: {} } })
        const rows = familyOf(store, 'rows')
        const large = new Uint8Array(3 * mib).map((_, at) => at * 31)
        await store.put(rows, new Uint8Array(0), bytes('empty key'))
        await store.put(rows, bytes('empty value'), new Uint8Array(0))
        await store.put(rows, bytes('large'), large)
        for (const flushed of [false, true]) {
          if (flushed) await store.flush()
          assert.equal(await read(store, rows, ''), 'empty key')
          assert.equal(await read(store, rows, 'empty value'), '')
          assert.deepEqual(await store.get(rows, bytes('large')), large)
          assert.equal((await scan(store, rows)).length, 3)
        }
      })
    })

    test('applies writes in the order they were given, waited for or not', async () => {
      await inWorld(under, {}, async ({ stores, folder }) => {
        const store = await stores.open({ folder: folder('a'), families: { rows: {} } })
        const rows = familyOf(store, 'rows')
        const writes = Array.from({ length: 200 }, async (_, at) =>
          at % 3 === 0
            ? store.put(rows, bytes('k'), bytes(`${at}`))
            : store.write(
                store
                  .batch()
                  .delete(rows, bytes('k'))
                  .put(rows, bytes('k'), bytes(`${at}`)),
              ),
        )
        await Promise.all(writes)
        assert.equal(await read(store, rows, 'k'), '199')
      })
    })

    test('does not take a family of another store, or one that was dropped', async () => {
      await inWorld(under, {}, async ({ stores, folder }) => {
        const store = await stores.open({ folder: folder('a'), families: { rows: {}, old: {} } })
        const other = await stores.open({ folder: folder('b'), families: { rows: {} } })
        const broken = (error: unknown): boolean => isSluiceError(error, 'INVARIANT_BROKEN')
        assert.throws(
          () => store.batch().put(familyOf(other, 'rows'), bytes('k'), bytes('v')),
          broken,
        )
        assert.throws(() => store.get(familyOf(other, 'rows'), bytes('k')), broken)
        const old = familyOf(store, 'old')
        await write(store, old, { k: 'v' })
        await store.dropFamily(old)
        assert.throws(() => store.get(old, bytes('k')), broken)
        const again = await store.columnFamily('old')
        assert.equal(await read(store, again, 'k'), undefined)
        assert.deepEqual(await scan(store, again), [])
      })
    })
  })
}
