import type { JournalEntry } from '../../../src/core/ports.ts'
import type { KvEngine } from '../../../src/source/kv/engine.ts'
import { memoryEngine } from '../../../src/source/kv/memory/memory-engine.ts'
import type { KvFamily, KvStore } from '../../../src/source/kv/ports.ts'
import { KvStores, type KvStoresOptions } from '../../../src/source/kv/stores.ts'
import { kvFilesInMemory } from '../../support/kv-files.ts'

export const kib = 1_024
export const mib = 1_024 * kib

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

export type Opened = { readonly stores: KvStores; readonly notes: JournalEntry[] }

/** Stores in memory, with files in memory, that tell what they note. */
export function storesInMemory(
  options: Partial<KvStoresOptions> = {},
  engine: KvEngine = memoryEngine({ files: kvFilesInMemory() }),
): Opened {
  const notes: JournalEntry[] = []
  let ids = 0
  const stores = new KvStores({
    engine,
    journal: { note: (entry) => notes.push(entry) },
    ids: {
      bits128: () => {
        ids += 1
        return ids.toString(16).padStart(32, '0')
      },
    },
    memoryBytes: 440 * mib,
    ...options,
  })
  return { stores, notes }
}

export function familyOf(store: KvStore, name: string): KvFamily {
  const found = store.families().find((family) => family.name === name)
  if (found === undefined) throw new Error(`there is no family ${name}`)
  return found
}

/** The events of forced flushes: which family, and how large its buffer was. */
export function forcedFlushes(notes: readonly JournalEntry[]): readonly (readonly unknown[])[] {
  return notes
    .filter(({ event }) => event === 'kv.flush.forced')
    .map(({ fields }) => [fields?.['family'], fields?.['bytes']])
}
