import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isSluiceError } from '../../../src/core/errors.ts'
import type { EngineStore, KvEngine } from '../../../src/source/kv/engine.ts'
import { memoryEngine } from '../../../src/source/kv/memory/memory-engine.ts'
import { kvFilesInMemory } from '../../support/kv-files.ts'
import { bytes, familyOf, storesInMemory } from './support.ts'

/** An engine that tells what is flushed, in what order. */
function flushTold(flushed: number[]): KvEngine {
  const memory = memoryEngine({ files: kvFilesInMemory() })
  return {
    ...memory,
    open: async (opening): Promise<EngineStore> => {
      const store = await memory.open(opening)
      const flush = store.flush.bind(store)
      store.flush = (family) => {
        flushed.push(family)
        return flush(family)
      }
      return store
    },
  }
}

describe('a KV store', () => {
  test('C-04 flushes the family that says how far the others are last, also after late ones', async () => {
    const flushed: number[] = []
    const { stores } = storesInMemory({}, flushTold(flushed))
    const store = await stores.open({
      folder: 'a',
      families: { meta: {}, rows: {} },
      progressFamily: 'meta',
    })
    const late = await store.columnFamily('late')
    await store.flush()
    assert.deepEqual(flushed, [0, familyOf(store, 'rows').id, late.id, familyOf(store, 'meta').id])
    flushed.length = 0
    await store.flush([familyOf(store, 'meta'), late])
    assert.deepEqual(flushed, [late.id, familyOf(store, 'meta').id])
  })

  test('keeps writes in order behind one that is not done', async () => {
    const applied: string[] = []
    const memory = memoryEngine({ files: kvFilesInMemory() })
    const slow: KvEngine = {
      ...memory,
      open: async (opening): Promise<EngineStore> => {
        const store = await memory.open(opening)
        store.put = async (_, key) => {
          await new Promise((resolve) => setImmediate(resolve))
          applied.push(Buffer.from(key).toString())
          if (applied.length === 2) throw new Error('disk')
        }
        return store
      },
    }
    const { stores } = storesInMemory({}, slow)
    const store = await stores.open({ folder: 'a', families: { rows: {} } })
    const rows = familyOf(store, 'rows')
    const results = await Promise.allSettled(
      ['1', '2', '3', '4'].map(async (key) => store.put(rows, bytes(key), bytes('v'))),
    )
    assert.deepEqual(applied, ['1', '2', '3', '4'])
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
    )
  })

  test('is open once for a folder, and is of no use once it is closed', async () => {
    const { stores } = storesInMemory()
    const broken = (error: unknown): boolean => isSluiceError(error, 'INVARIANT_BROKEN')
    const store = await stores.open({ folder: 'a', families: { rows: {} } })
    await assert.rejects(stores.open({ folder: 'a', families: { rows: {} } }), broken)
    const rows = familyOf(store, 'rows')
    await store.close()
    await store.close()
    assert.equal(store.openHandles, 0)
    assert.throws(() => store.put(rows, bytes('k'), bytes('v')), broken)
    assert.throws(() => store.snapshot(), broken)
    await assert.rejects(store.columnFamily('late'), broken)
    await stores.open({ folder: 'a', families: { rows: {} } })
  })

  test('C-33 does not take a family that is dropped and made again for a new one', async () => {
    const { stores, notes } = storesInMemory()
    const store = await stores.open({ folder: 'a', families: { rows: {} } })
    for (let at = 0; at < 150; at += 1) {
      await store.dropFamily(familyOf(store, 'rows'))
      await store.columnFamily('rows')
    }
    assert.deepEqual(notes, [])
  })

  test('waits for its checkpoints when it is closed', async () => {
    const files = new Map<string, Buffer>()
    const { stores } = storesInMemory({}, memoryEngine({ files: kvFilesInMemory(files) }))
    const store = await stores.open({ folder: 'a', families: {} })
    const saved = store.checkpoint('saved')
    await store.close()
    assert.equal((await saved).files.length, 1)
    assert.ok(files.has('saved/checkpoint.kv'))
  })
})
