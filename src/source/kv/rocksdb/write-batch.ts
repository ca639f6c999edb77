import { check } from '../../../core/never.ts'
import type { Session } from './binding.ts'

/** Operations in their order: the family of each, its key, and its value or none for a delete. */
export type Operations = {
  readonly families: readonly Session[]
  readonly keys: readonly Uint8Array[]
  readonly values: readonly (Uint8Array | undefined)[]
}

/** Applies operations on several families together: one record of the write-ahead log. */
export async function writeTogether({ families, keys, values }: Operations): Promise<void> {
  const [first] = families
  if (first === undefined) return
  const batch = first.write({ capacity: keys.length, autoDestroy: true })
  for (const [at, key] of keys.entries()) {
    const family = families[at]
    check(family !== undefined, 'every operation has its family')
    batch._db = family
    const value = values[at]
    if (value === undefined) batch.tryDelete(key)
    else batch.tryPut(key, value)
  }
  // The batch gives back what it took from the session it was made of.
  batch._db = first
  await batch.flush()
}
