import assert from 'node:assert/strict'
import { cp, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { isSluiceError } from '../../../src/core/errors.ts'
import type { KvStore } from '../../../src/source/kv/ports.ts'
import {
  bytes,
  type EngineUnderTest,
  familyOf,
  inWorld,
  kib,
  read,
  scan,
  write,
} from './engine-under-test.ts'

const states = { families: { rows: {}, positions: {}, meta: {} }, progressFamily: 'meta' }

/** Snapshots and checkpoints: one moment for all families. */
export function describeCheckpoints(under: EngineUnderTest): void {
  describe(`${under.name}: snapshots`, () => {
    test('C-28 sees one moment of all families, through flush, checkpoint and later writes', async () => {
      await inWorld(under, {}, async ({ stores, folder }) => {
        const store = await stores.open({ folder: folder('a'), ...states })
        const rows = familyOf(store, 'rows')
        const positions = familyOf(store, 'positions')
        await write(store, rows, { a: 'old', b: 'old', c: 'old' })
        await store.flush([rows])
        await write(store, positions, { a: 'old' })
        const snapshot = await store.snapshot()
        await write(store, rows, { a: 'new', d: 'new' })
        await store.delete(rows, bytes('b'))
        await write(store, positions, { a: 'new', b: 'new' })
        const check = async (): Promise<void> => {
          assert.equal(await read(snapshot, rows, 'a'), 'old')
          assert.equal(await read(snapshot, rows, 'd'), undefined)
          assert.deepEqual(await scan(snapshot, rows), [
            ['a', 'old'],
            ['b', 'old'],
            ['c', 'old'],
          ])
          assert.deepEqual(await scan(snapshot, positions), [['a', 'old']])
          const many = await snapshot.getMany(rows, [bytes('b'), bytes('x'), bytes('a')])
          assert.deepEqual(
            many.map((value) => value?.length),
            [3, undefined, 3],
          )
        }
        await check()
        await store.flush()
        await check()
        await store.checkpoint(folder('saved'))
        await write(store, rows, { a: 'newest' })
        await store.flush()
        await check()
        await snapshot.release()
        assert.equal(await read(store, rows, 'a'), 'newest')
        assert.deepEqual(
          (await scan(store, rows)).map(([key]) => key),
          ['a', 'c', 'd'],
        )
        await assert.rejects(
          async () => snapshot.get(rows, bytes('a')),
          (error) => isSluiceError(error, 'INVARIANT_BROKEN'),
        )
      })
    })

    test('C-28 is what an open cursor sees, however much is written while it is read', async () => {
      await inWorld(under, {}, async ({ stores, folder }) => {
        const store = await stores.open({ folder: folder('a'), ...states })
        const rows = familyOf(store, 'rows')
        for (let at = 100; at < 200; at += 1) await write(store, rows, { [`k${at}`]: 'old' })
        const cursor = store.scan(rows)
        let seen = 0
        try {
          for (;;) {
            const entries = await cursor.next(10)
            if (entries === undefined) break
            seen += entries.keys.length
            assert.ok(entries.values.every((value) => Buffer.from(value).toString() === 'old'))
            for (let at = 100; at < 200; at += 9) await write(store, rows, { [`k${at}`]: 'new' })
            await write(store, rows, { [`k${100 + seen}+`]: 'new' })
            await store.delete(rows, bytes('k199'))
          }
        } finally {
          await cursor.close()
        }
        assert.equal(seen, 100)
      })
    })

    test('a batch over families is seen whole or not at all', async () => {
      await inWorld(under, {}, async ({ stores, folder }) => {
        const store = await stores.open({ folder: folder('a'), ...states })
        const writing = writeTogether(store, { from: 0, to: 400 })
        for (let look = 0; look < 20; look += 1) {
          const snapshot = await store.snapshot()
          const rows = (await scan(snapshot, familyOf(store, 'rows'))).length
          const positions = (await scan(snapshot, familyOf(store, 'positions'))).length
          const applied = await read(snapshot, familyOf(store, 'meta'), 'applied')
          await snapshot.release()
          assert.equal(positions, rows)
          assert.equal(applied, rows === 0 ? undefined : `${rows - 1}`)
        }
        await writing
      })
    })
  })

  describe(`${under.name}: checkpoints`, () => {
    test('C-29 covers all families at one moment while they are written to', async () => {
      await inWorld(under, {}, async ({ stores, folder }) => {
        const store = await stores.open({ folder: folder('a'), ...states })
        await writeTogether(store, { from: 0, to: 100 })
        const stop = new AbortController()
        const writing = (async (): Promise<void> => {
          for (let at = 100; !stop.signal.aborted; at += 10) {
            await writeTogether(store, { from: at, to: at + 10 })
            await new Promise((resolve) => setImmediate(resolve))
          }
        })()
        for (let number = 0; number < 8; number += 1) {
          const { files } = await store.checkpoint(folder(`saved ${number}`))
          const named = new Set(files.flatMap(({ families }) => families))
          for (const name of ['rows', 'positions', 'meta']) assert.ok(named.has(name), name)
          for (const { name } of files) await readFile(join(folder(`saved ${number}`), name))
        }
        stop.abort()
        await writing
        for (let number = 0; number < 8; number += 1) {
          const from = folder(`saved ${number}`)
          const restored = await stores.open({ folder: folder(`b${number}`), from, ...states })
          const rows = (await scan(restored, familyOf(restored, 'rows'))).length
          const positions = (await scan(restored, familyOf(restored, 'positions'))).length
          assert.ok(rows >= 100)
          assert.equal(positions, rows)
          assert.equal(await read(restored, familyOf(restored, 'meta'), 'applied'), `${rows - 1}`)
          await restored.close()
        }
      })
    })

    test('C-30 opens elsewhere as that state, and never changes when the source does', async () => {
      await inWorld(under, {}, async ({ stores, folder }) => {
        const store = await stores.open({ folder: folder('a'), ...states })
        const rows = familyOf(store, 'rows')
        await writeTogether(store, { from: 0, to: 500 })
        await store.flush()
        await writeTogether(store, { from: 500, to: 600 })
        const { files } = await store.checkpoint(folder('saved'))
        for (let round = 0; round < 3; round += 1) {
          for (let at = 0; at < 600; at += 1) {
            await store.put(rows, bytes(keyOf(at)), bytes(`overwritten ${round}`))
          }
          await store.flush()
        }
        await store.close()
        await cp(folder('saved'), folder('moved'), { recursive: true })
        for (const [name, from] of [
          ['b', folder('saved')],
          ['c', folder('moved')],
        ] as const) {
          const restored = await stores.open({ folder: folder(name), from, ...states })
          const entries = await scan(restored, familyOf(restored, 'rows'))
          assert.equal(entries.length, 600)
          assert.ok(entries.every(([key, value]) => value === `value of ${key}`))
          await write(restored, familyOf(restored, 'rows'), { more: 'v' })
          await restored.flush()
          await restored.close()
        }
        const there = new Set(await readdir(folder('saved')))
        for (const { name, bytes: size } of files) {
          assert.ok(there.has(name), name)
          assert.equal((await readFile(join(folder('saved'), name))).length, size, name)
        }
      })
    })

    test('C-30 is refused into a folder that has one, which stays as it is', async () => {
      await inWorld(under, {}, async ({ stores, folder }) => {
        const store = await stores.open({ folder: folder('a'), ...states })
        await writeTogether(store, { from: 0, to: 5 })
        await store.checkpoint(folder('saved'))
        await writeTogether(store, { from: 5, to: 9 })
        await assert.rejects(store.checkpoint(folder('saved')))
        await writeTogether(store, { from: 9, to: 10 })
        const restored = await stores.open({
          folder: folder('b'),
          from: folder('saved'),
          ...states,
        })
        assert.equal((await scan(restored, familyOf(restored, 'rows'))).length, 5)
        assert.equal((await scan(store, familyOf(store, 'rows'))).length, 10)
      })
    })

    test('C-32 a checkpoint of which a file is cut or altered is not half believed', async () => {
      await inWorld(under, {}, async ({ stores, folder }) => {
        const store = await stores.open({ folder: folder('a'), ...states })
        await writeTogether(store, { from: 0, to: 300 })
        const { files } = await store.checkpoint(folder('saved'))
        await store.close()
        const largest = [...files].sort((a, b) => b.bytes - a.bytes)[0]
        assert.ok(largest !== undefined)
        const whole = await readFile(join(folder('saved'), largest.name))
        const flipped = Buffer.from(whole)
        flipped.writeUInt8((flipped.at(whole.length >> 2) ?? 0) ^ 1, whole.length >> 2)
        for (const [name, content] of [
          ['cut', whole.subarray(0, whole.length >> 1)],
          ['flipped', flipped],
        ] as const) {
          await cp(folder('saved'), folder(name), { recursive: true })
          await writeFile(join(folder(name), largest.name), content)
          const opened = stores.open({ folder: folder(`${name} b`), from: folder(name), ...states })
          await assert.rejects(
            opened.then(async (restored) => {
              // Where an engine looks at a block only when it is read, reading must fail.
              await scan(restored, familyOf(restored, 'rows'))
              await scan(restored, familyOf(restored, 'positions'))
            }),
            (error) => isSluiceError(error),
          )
        }
      })
    })
  })
}

function keyOf(at: number): string {
  return `key ${`${at}`.padStart(6, '0')}`
}

/** Puts each number into rows, positions and `applied` in one batch. */
async function writeTogether(
  store: KvStore,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<void> {
  const [rows, positions, meta] = ['rows', 'positions', 'meta'].map((name) => familyOf(store, name))
  assert.ok(rows !== undefined && positions !== undefined && meta !== undefined)
  for (let at = from; at < to; at += 1) {
    const key = keyOf(at)
    const batch = store
      .batch()
      .put(rows, bytes(key), bytes(`value of ${key}`))
      .put(positions, bytes(key), new Uint8Array(kib / 8))
      .put(meta, bytes('applied'), bytes(`${at}`))
    await store.write(batch)
  }
}
