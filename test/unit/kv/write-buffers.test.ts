import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isSluiceError } from '../../../src/core/errors.ts'
import type { FamilyBuffers } from '../../../src/source/kv/engine.ts'
import { FamilyNotes } from '../../../src/source/kv/family-notes.ts'
import { resolveOptions, writeBufferCeiling } from '../../../src/source/kv/family-options.ts'
import { memoryEngine } from '../../../src/source/kv/memory/memory-engine.ts'
import { WriteBuffers } from '../../../src/source/kv/write-buffers.ts'
import { bytes, familyOf, forcedFlushes, kib, mib, storesInMemory } from './support.ts'

const five = ['a', 'b', 'c', 'd', 'e']

describe('the ceiling of write buffers', () => {
  test('C-18 is families × size × number: five of 2 × 64 MiB come to 640 MiB', () => {
    const family = { writeBufferSize: 64 * mib, maxWriteBufferNumber: 2 }
    assert.equal(writeBufferCeiling(five.map(() => family)), 671_088_640)
    assert.ok(671_088_640 > 440 * mib)
    assert.equal(writeBufferCeiling([]), 0)
  })

  test('C-18 is not spoken of while nobody chose the sizes', async () => {
    const { stores, notes } = storesInMemory({ memoryBytes: mib })
    await stores.open({ folder: 'a', families: { rows: {}, meta: {} } })
    assert.deepEqual(notes, [])
  })
})

describe('the memory of a store', () => {
  test('C-19 is halved: of 440 MiB 220 are for write buffers and 220 for the cache', async () => {
    const { stores } = storesInMemory({ cache: 'shared' })
    const store = await stores.open({ folder: 'a', families: { rows: {} } })
    assert.equal(store.batchBytesMax, 230_686_720)
    const other = storesInMemory({ writeBufferRatio: 0.25 })
    const quarter = await other.stores.open({ folder: 'a', families: {} })
    assert.equal(quarter.batchBytesMax, 110 * mib)
  })

  test('C-19 is divided evenly among the stores that are open', async () => {
    const { stores } = storesInMemory()
    const all = await Promise.all(
      [1, 2, 3, 4].map((at) => stores.open({ folder: `${at}`, families: {} })),
    )
    assert.deepEqual(
      all.map(({ batchBytesMax }) => batchBytesMax),
      [55 * mib, 55 * mib, 55 * mib, 55 * mib],
    )
    await all[0]?.close()
    await all[1]?.close()
    assert.equal(all[2]?.batchBytesMax, 110 * mib)
  })
})

describe('write buffers over all families', () => {
  test('C-20 keeps five families under 220 KiB: the first flush at put 221, the second at 265', async () => {
    const { stores, notes } = storesInMemory({ memoryBytes: 440 * kib })
    const options = { writeBufferSize: 64 * kib, maxWriteBufferNumber: 2 }
    const store = await stores.open({
      folder: 'a',
      families: Object.fromEntries(five.map((name) => [name, options])),
    })
    const flushedAt: number[] = []
    for (let put = 1; put <= 300; put += 1) {
      const family = familyOf(store, five[(put - 1) % 5] ?? '')
      const before = forcedFlushes(notes).length
      const key = bytes(`${put}`.padStart(24, '0'))
      await store.put(family, key, new Uint8Array(kib - key.length))
      if (forcedFlushes(notes).length > before) flushedAt.push(put)
      assert.ok((await store.usage()).writeBufferBytes <= 220 * kib)
    }
    assert.deepEqual(flushedAt.slice(0, 2), [221, 265])
    assert.deepEqual(forcedFlushes(notes).slice(0, 2), [
      ['a', 44 * kib],
      ['b', 53 * kib],
    ])
  })

  test('C-20 makes room for a whole batch before it is applied', async () => {
    const { stores, notes } = storesInMemory({ memoryBytes: 440 * kib })
    const store = await stores.open({ folder: 'a', families: { a: {}, b: {} } })
    const [a, b] = [familyOf(store, 'a'), familyOf(store, 'b')]
    await store.put(a, bytes('k'), new Uint8Array(120 * kib))
    await store.put(b, bytes('k'), new Uint8Array(60 * kib))
    const batch = store.batch().put(a, bytes('l'), new Uint8Array(70 * kib))
    await store.write(batch.put(b, bytes('l'), new Uint8Array(70 * kib)))
    assert.deepEqual(forcedFlushes(notes), [['a', 120 * kib + 1]])
    assert.equal((await store.usage()).writeBufferBytes, 200 * kib + 3)
  })

  test('C-22 C-21 goes by what a flush would free, waits for a cursor, and gives up on nothing', async () => {
    const flushed: number[] = []
    const buffers: FamilyBuffers[] = [
      { family: 0, held: 60, flushable: 2 },
      { family: 1, held: 30, flushable: 30 },
    ]
    let heldBytes = 90
    const store = {
      heldBytes: () => Promise.resolve(heldBytes),
      buffers: () => Promise.resolve([...buffers]),
      flush: (family: number) => {
        flushed.push(family)
        const { flushable } = buffers[family] ?? { flushable: 0 }
        buffers[family] = { family, held: 58, flushable: 0 }
        if (family === 1) heldBytes -= flushable
        return Promise.resolve()
      },
    }
    const manager = new WriteBuffers({
      engine: { flushAt: 7 / 8, batchShare: 1 / 8 },
      store,
      bytesMax: 80,
      onForcedFlush: () => undefined,
    })
    // 58 bytes of family 0 are kept alive by a cursor: the larger buffer is not the larger victim.
    const closed = manager.cursorOpened()
    await manager.admit(5)
    assert.deepEqual(flushed, [1])
    heldBytes = 68
    buffers[1] = { family: 1, held: 8, flushable: 8 }
    buffers[0] = { family: 0, held: 60, flushable: 0 }
    let isAdmitted = false
    heldBytes = 88
    buffers[0] = { family: 0, held: 80, flushable: 0 }
    const waiting = Promise.resolve(manager.admit(5)).then(() => {
      isAdmitted = true
    })
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(flushed, [1, 1])
    assert.ok(!isAdmitted)
    heldBytes = 8
    closed()
    await waiting
    // Where no cursor keeps anything, and nothing is left to flush, a write goes on.
    heldBytes = 100
    buffers.splice(0, 2, { family: 0, held: 100, flushable: 0 })
    await manager.admit(5)
  })

  test('C-20 refuses a batch larger than an eighth where bytes are known only afterwards', () => {
    const manager = new WriteBuffers({
      engine: { flushAt: 7 / 8, batchShare: 1 / 8 },
      store: { heldBytes: () => 0, buffers: () => [], flush: () => undefined },
      bytesMax: 220 * mib,
      onForcedFlush: () => undefined,
    })
    assert.equal(manager.batchBytesMax, 27.5 * mib)
    assert.equal(manager.admit(27.5 * mib), undefined)
    assert.throws(
      () => manager.admit(27.5 * mib + 1),
      (error) => isSluiceError(error, 'LIMIT_EXCEEDED'),
    )
  })

  test('C-23 warns of a limit that is too small for one buffer', () => {
    for (const [limit, buffer, warned] of [
      [220 * mib, 64 * mib, 0],
      [9 * mib, 64 * mib, 1],
      [(64 / 7) * mib, 64 * mib, 0],
      [1 * mib, 8 * mib, 1],
    ] as const) {
      const said: string[] = []
      const journal = { note: ({ message }: { message: string }) => said.push(message) }
      const notes = new FamilyNotes(journal, 'a', new Set())
      const layers = { store: {}, family: { writeBufferSize: buffer }, factory: undefined }
      notes.smallLimit([resolveOptions(memoryEngine(), 'rows', layers)], limit)
      assert.equal(said.length, warned, `${limit} ${buffer}`)
    }
  })
})
