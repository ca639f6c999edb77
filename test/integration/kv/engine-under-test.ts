import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { JournalEntry } from '../../../src/core/ports.ts'
import type { KvEngine } from '../../../src/source/kv/engine.ts'
import type { KvFamily, KvRange, KvReads, KvStore } from '../../../src/source/kv/ports.ts'
import { KvStores, type KvStoresOptions } from '../../../src/source/kv/stores.ts'

/** An engine and what the suite must know of it. The suite is the same for all. */
export type EngineUnderTest = {
  readonly name: 'memory' | 'rocksdb'
  readonly engine: KvEngine
}

export const kib = 1_024
export const mib = 1_024 * kib

export type World = {
  readonly stores: KvStores
  /** What the stores said. */
  readonly notes: JournalEntry[]
  /** A path of its own for each name. */
  readonly folder: (name: string) => string
  /** Stores of another process, which see the same folders. */
  readonly elsewhere: (options?: Partial<KvStoresOptions>) => KvStores
}

/** Runs a test in a folder of its own, and closes what it opened. */
export async function inWorld(
  under: EngineUnderTest,
  options: Partial<KvStoresOptions>,
  use: (world: World) => Promise<void>,
): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'sluice-kv-'))
  const notes: JournalEntry[] = []
  const all: KvStores[] = []
  let ids = 0
  const elsewhere = (more: Partial<KvStoresOptions> = {}): KvStores => {
    const stores = new KvStores({
      engine: under.engine,
      journal: { note: (entry) => notes.push(entry) },
      ids: {
        bits128: () => {
          ids += 1
          return ids.toString(16).padStart(32, '0')
        },
      },
      memoryBytes: 64 * mib,
      ...options,
      ...more,
    })
    all.push(stores)
    return stores
  }
  try {
    await use({ stores: elsewhere(), notes, folder: (name) => join(root, name), elsewhere })
  } finally {
    for (const stores of all) await stores.close()
    await rm(root, { recursive: true, force: true })
  }
}

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

export function textOf(value: Uint8Array | undefined): string | undefined {
  return value === undefined ? undefined : new TextDecoder().decode(value)
}

export async function read(
  reads: KvReads,
  family: KvFamily,
  key: string,
): Promise<string | undefined> {
  return textOf(await reads.get(family, bytes(key)))
}

export async function write(
  store: KvStore,
  family: KvFamily,
  entries: Readonly<Record<string, string>>,
): Promise<void> {
  for (const [key, value] of Object.entries(entries)) {
    await store.put(family, bytes(key), bytes(value))
  }
}

/** All entries of a range, by reading it to its end. */
export async function scan(
  reads: KvReads,
  family: KvFamily,
  range: KvRange = {},
  entriesMax?: number,
): Promise<readonly (readonly [string, string])[]> {
  const found: [string, string][] = []
  const cursor = reads.scan(family, range)
  try {
    for (;;) {
      const entries = await cursor.next(entriesMax)
      if (entries === undefined) return found
      entries.keys.forEach((key, at) => {
        found.push([textOf(key) ?? '', textOf(entries.values[at]) ?? ''])
      })
    }
  } finally {
    await cursor.close()
  }
}

/** The warnings of one kind. */
export function warnings(notes: readonly JournalEntry[], event: string): readonly JournalEntry[] {
  return notes.filter((note) => note.event === event && note.level === 'warn')
}

/** Family by name, which must be there. */
export function familyOf(store: KvStore, name: string): KvFamily {
  const found = store.families().find((family) => family.name === name)
  if (found === undefined) throw new Error(`there is no family ${name}`)
  return found
}
