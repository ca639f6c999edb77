import { SluiceError } from '../../core/errors.ts'
import type { KvEntries, KvFamily, KvStore, KvStoreSnapshot } from './ports.ts'

export type Migration = {
  readonly from: string
  readonly to: string
  readonly entriesMax?: number
  readonly signal?: AbortSignal
}

export type Migrated = {
  /** Entries put into the new family. */
  readonly copied: number
  /** Keys the new family had already, which keep the value they have there. */
  readonly kept: number
}

/**
 * Carries what a renamed family holds over to its new name, then drops the old one. After an
 * interruption, however hard, the same call goes on: until everything is over nothing is taken away.
 * The store must have been opened with both families, or with `orphans: 'keep'`.
 *
 * @throws SluiceError STOPPED when the signal aborts.
 */
export async function migrateFamily(store: KvStore, migration: Migration): Promise<Migrated> {
  const old = store.families().find(({ name }) => name === migration.from)
  const renamed = await store.columnFamily(migration.to)
  if (old === undefined) return { copied: 0, kept: 0 }
  const migrated = await copy(store, { ...migration, old, renamed })
  // The copy must be safe before the only other one goes.
  await store.flush([renamed])
  await store.dropFamily(old)
  return migrated
}

type Copying = Migration & { readonly old: KvFamily; readonly renamed: KvFamily }

async function copy(store: KvStore, copying: Copying): Promise<Migrated> {
  const { old, renamed, signal } = copying
  let copied = 0
  let kept = 0
  const snapshot = await store.snapshot()
  try {
    let from: Uint8Array | undefined
    for (;;) {
      if (signal?.aborted === true) throw stopped(old, renamed)
      const entries = await readFrom(snapshot, from, copying)
      if (entries === undefined) return { copied, kept }
      const count = await putAbsent(store, renamed, entries)
      copied += count
      kept += entries.keys.length - count
      from = afterKey(entries.keys.at(-1))
    }
  } finally {
    await snapshot.release()
  }
}

/** A cursor is open only while it is read: writes may wait for cursors. */
async function readFrom(
  snapshot: KvStoreSnapshot,
  from: Uint8Array | undefined,
  { old, entriesMax }: Copying,
): Promise<KvEntries | undefined> {
  const cursor = snapshot.scan(old, from === undefined ? {} : { from })
  try {
    return await cursor.next(entriesMax)
  } finally {
    await cursor.close()
  }
}

async function putAbsent(store: KvStore, family: KvFamily, entries: KvEntries): Promise<number> {
  const there = await store.getMany(family, entries.keys)
  const batch = store.batch()
  let count = 0
  for (const [at, key] of entries.keys.entries()) {
    const value = entries.values[at]
    if (value === undefined || there[at] !== undefined) continue
    const bytes = batch.bytes + key.length + value.length
    if (batch.operations > 0 && bytes > store.batchBytesMax) {
      await store.write(batch)
      batch.clear()
    }
    batch.put(family, key, value)
    count += 1
  }
  await store.write(batch)
  return count
}

/** The first key that may come after one. */
function afterKey(key: Uint8Array | undefined): Uint8Array {
  return Uint8Array.of(...(key ?? []), 0)
}

function stopped(old: KvFamily, renamed: KvFamily): SluiceError {
  return new SluiceError(
    'STOPPED',
    `column family ${old.name} was not carried over to ${renamed.name} as a whole`,
    { state: `${old.name} has all it had; the same call goes on` },
  )
}
