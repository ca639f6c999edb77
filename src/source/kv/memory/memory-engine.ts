import { join } from 'node:path'
import type { EngineStore, KvEngine, StoredFamily, StorePlace } from '../engine.ts'
import type { KvFiles } from '../files.ts'
import { nodeKvFiles } from '../node-files.ts'
import type { FamilyOptions } from '../ports.ts'
import { listCheckpoint, readCheckpoint } from './checkpoint-file.ts'
import { checkpointName, MemoryStore } from './memory-store.ts'

export type MemoryEngineOptions = {
  readonly files?: KvFiles
  /** What one store may take of the process, write buffers included. */
  readonly storedBytesMax?: number
  /** Places keys in tables. A secret one keeps others from choosing keys that get in each other's way. */
  readonly seed?: number
}

/** Keeps families in memory. What it holds is on disk only in checkpoints. */
export function memoryEngine(options: MemoryEngineOptions = {}): KvEngine {
  const { files = nodeKvFiles, storedBytesMax = storedBytesDefault, seed = 0 } = options
  return {
    name: 'memory',
    supported: new Set<keyof FamilyOptions>([
      'writeBufferSize',
      'maxWriteBufferNumber',
      'level0FileNumCompactionTrigger',
    ]),
    defaults: {
      writeBufferSize: 64 * 2 ** 20,
      maxWriteBufferNumber: 2,
      level0FileNumCompactionTrigger: 4,
      blockSize: 4_096,
      filter: 'none',
    },
    readsAreCheap: true,
    flushAt: 1,
    batchShare: 1,

    async stored({ from }: StorePlace): Promise<readonly StoredFamily[] | undefined> {
      if (from === undefined) return undefined
      const families = await listCheckpoint(files, join(from, checkpointName))
      return families.map(({ name, bytes }) => ({ name, bytes }))
    },

    async open({ storeId, from, families }): Promise<EngineStore> {
      const store = new MemoryStore({ storeId, files, storedBytesMax, seed })
      const content =
        from === undefined
          ? undefined
          : await readCheckpoint(files, join(from, checkpointName), seed)
      for (const { name, options: familyOptions } of families) {
        const family = store.create(name, familyOptions)
        const loaded = content?.get(name)
        if (loaded !== undefined) store.load(family, loaded)
      }
      return store
    },
  }
}

const storedBytesDefault = 4 * 2 ** 30
