import { createRequire } from 'node:module'
import { systemIds } from '../../src/core/system.ts'
import { type JournalEntry, silentJournal } from '../../src/core/ports.ts'
import type { KvStore, KvStoreOpening } from '../../src/source/kv/ports.ts'
import {
  rocksDbEngine,
  type RocksDbEngineOptions,
} from '../../src/source/kv/rocksdb/rocksdb-engine.ts'
import { KvStores, type KvStoresOptions } from '../../src/source/kv/stores.ts'

/**
 * The `skip` option of a test that needs RocksDB: false, or the reason. Where all engines are
 * required, as in CI, its absence is an error: a gate must not pass by being absent.
 */
export function skipWithoutRocksDb(): false | string {
  try {
    createRequire(import.meta.url).resolve('rocksdb-native')
    return false
  } catch (error) {
    if (process.env['SLUICE_ENGINES'] === 'required') throw error
    return 'rocksdb-native is not installed (npm install rocksdb-native@3.18.1)'
  }
}

export type RocksStores = Partial<KvStoresOptions> & { readonly rocksDb?: RocksDbEngineOptions }

export function rocksStores({ rocksDb, ...options }: RocksStores = {}): KvStores {
  return new KvStores({
    engine: rocksDbEngine(rocksDb),
    journal: silentJournal,
    ids: systemIds,
    memoryBytes: 440 * 2 ** 20,
    ...options,
  })
}

/** Opens one store; `families` may be names alone. */
export function openRocks(
  folder: string,
  families: readonly string[] | KvStoreOpening['families'],
  more: Partial<KvStoreOpening> & { readonly stores?: KvStores } = {},
): Promise<KvStore> {
  const { stores = rocksStores(), ...opening } = more
  const named = isNames(families)
    ? Object.fromEntries(families.map((name) => [name, {}]))
    : families
  return stores.open({ folder, families: named, ...opening })
}

function isNames(
  families: readonly string[] | KvStoreOpening['families'],
): families is readonly string[] {
  return Array.isArray(families)
}

/** A journal that keeps the messages of its warnings. */
export function warningsOf(): {
  readonly messages: string[]
  readonly note: (entry: JournalEntry) => void
} {
  const messages: string[] = []
  return {
    messages,
    note: ({ level, message }) => {
      if (level === 'warn') messages.push(message)
    },
  }
}

export const bytes = (text: string): Uint8Array => Buffer.from(text)

export function textOf(value: Uint8Array | undefined): string | undefined {
  return value === undefined ? undefined : Buffer.from(value).toString()
}
