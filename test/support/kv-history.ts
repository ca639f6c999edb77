import type { KvFamily, KvStore } from '../../src/source/kv/ports.ts'
import { bytes } from './rocksdb.ts'

/** A change of the log that a store is built from; the offset is its place in it. */
export type Change = { readonly key: string; readonly value: string | undefined }
export type History = (offset: number) => Change

/** Every key is put once, so that the number of rows says how far a family is. */
export const distinctKeys: History = (offset) => ({
  key: `key-${String(offset).padStart(8, '0')}`,
  value: `value ${offset}`,
})

/** Puts and deletes of few keys, again and again. */
export const fewKeys: History = (offset) => ({
  key: `key-${(offset * 7_919) % 257}`,
  value: offset % 5 === 4 ? undefined : `value ${offset}`,
})

export const histories = { distinctKeys, fewKeys }
export const families = ['rows', 'positions', 'meta']

/** The rows that the changes below an offset leave. */
export function modelAt(history: History, end: number): Map<string, string> {
  const rows = new Map<string, string>()
  for (let offset = 0; offset < end; offset += 1) {
    const { key, value } = history(offset)
    if (value === undefined) rows.delete(key)
    else rows.set(key, value)
  }
  return rows
}

function named(store: KvStore, name: string): KvFamily {
  const family = store.families().find((each) => each.name === name)
  if (family === undefined) throw new Error(`there is no family ${name}`)
  return family
}

/** One change in three families at once, of which the last says how far they are. */
export async function apply(store: KvStore, history: History, offset: number): Promise<void> {
  const { key, value } = history(offset)
  const batch = store.batch()
  for (const family of [named(store, 'rows'), named(store, 'positions')]) {
    if (value === undefined) batch.delete(family, bytes(key))
    else batch.put(family, bytes(key), bytes(value))
  }
  batch.put(named(store, 'meta'), bytes('applied'), bytes(String(offset)))
  await store.write(batch)
}

/** The offset of the last change that is in the store. */
export async function appliedIn(store: KvStore): Promise<number | undefined> {
  const found = await store.get(named(store, 'meta'), bytes('applied'))
  return found === undefined ? undefined : Number(Buffer.from(found).toString())
}

export async function rowsIn(store: KvStore, name: string): Promise<Map<string, string>> {
  const rows = new Map<string, string>()
  const cursor = store.scan(named(store, name))
  for (;;) {
    const entries = await cursor.next()
    if (entries === undefined) break
    for (const [at, key] of entries.keys.entries()) {
      rows.set(Buffer.from(key).toString(), Buffer.from(entries.values[at] ?? []).toString())
    }
  }
  await cursor.close()
  return rows
}

/** What a store holds, with the changes it has not seen yet applied to it. */
export async function replay(store: KvStore, history: History, end: number): Promise<void> {
  for (let offset = ((await appliedIn(store)) ?? -1) + 1; offset < end; offset += 1) {
    await apply(store, history, offset)
  }
}
