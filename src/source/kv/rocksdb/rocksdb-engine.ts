import type { EngineStore, KvEngine, StoredFamily } from '../engine.ts'
import { type Binding, loadBinding } from './binding.ts'
import { restoreCheckpoint } from './checkpoint.ts'
import { mayHaveChanges } from './check-wal.ts'
import { readManifest } from './manifest.ts'
import { OpenFolder } from './open-folder.ts'
import { rocksDbError } from './rocksdb-errors.ts'
import { RocksDbStore } from './rocksdb-store.ts'
import { selfTest } from './self-test.ts'
import { readNote } from './store-note.ts'

export type RocksDbEngineOptions = {
  /** Bounds the files that one store keeps open; by default it does not. */
  readonly maxOpenFiles?: number
  /**
   * Bytes of changes after which all families are flushed. The log of all is kept for the family that
   * was flushed longest ago, and a small one is never flushed for its size.
   */
  readonly walBytesMax?: number
}

const walBytesDefault = 256 * 2 ** 20

let tested: Promise<Binding> | undefined

/** Keeps families in the files of a RocksDB store. Needs the optional package `rocksdb-native`. */
export function rocksDbEngine(options: RocksDbEngineOptions = {}): KvEngine {
  const { maxOpenFiles = -1, walBytesMax = walBytesDefault } = options
  return {
    name: 'rocksdb',
    supported: new Set(['writeBufferSize', 'maxWriteBufferNumber', 'blockSize', 'filter']),
    defaults: {
      writeBufferSize: 64 * 2 ** 20,
      maxWriteBufferNumber: 2,
      level0FileNumCompactionTrigger: 4,
      blockSize: 8_192,
      filter: 'bloom',
    },
    readsAreCheap: false,
    flushAt: 7 / 8,
    batchShare: 1 / 8,

    async stored({ folder, from = folder }): Promise<readonly StoredFamily[] | undefined> {
      try {
        return await storedFamilies(from)
      } catch (error) {
        throw rocksDbError(error, { folder: from })
      }
    },

    async open({ folder, from, storeId, families }): Promise<EngineStore> {
      tested ??= loadTested()
      const binding = await tested
      if (from !== undefined) await restoreCheckpoint(from, folder, storeId)
      const opened = await OpenFolder.open(binding, { folder, storeId, families, maxOpenFiles })
      return new RocksDbStore(opened, { names: families.map(({ name }) => name), walBytesMax })
    },
  }
}

async function storedFamilies(folder: string): Promise<readonly StoredFamily[] | undefined> {
  const manifest = await readManifest(folder)
  if (manifest === undefined) return undefined
  const retired = (await readNote(folder))?.retired ?? []
  const isWhole = !(await mayHaveChanges(folder, manifest))
  return manifest.families
    .filter(({ name }) => !retired.includes(name))
    .map(({ name, files }) => {
      const bytes = [...files.values()].reduce((sum, file) => sum + file.bytes, 0)
      return { name, bytes: isWhole || bytes > 0 ? bytes : undefined }
    })
}

/** A failure may have a passing cause, such as a full disk: the next open tries again. */
async function loadTested(): Promise<Binding> {
  try {
    const binding = await loadBinding()
    await selfTest(binding)
    return binding
  } catch (error) {
    tested = undefined
    throw error
  }
}
