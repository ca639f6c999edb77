import { after } from './awaitable.ts'
import type { EngineStore } from './engine.ts'
import type { Awaitable } from './ports.ts'
import type { Expected, ReadCache } from './read-cache.ts'

type Found = readonly (Uint8Array | undefined)[]

/** Reads of an engine through a cache, where there is one. */
export class CachedReads {
  readonly #store: EngineStore
  readonly #cache: ReadCache | undefined

  constructor(store: EngineStore, cache: ReadCache | undefined) {
    this.#store = store
    this.#cache = cache
  }

  get isCached(): boolean {
    return this.#cache !== undefined
  }

  addFamily(family: number): void {
    this.#cache?.addFamily(family)
  }

  removeFamily(family: number): void {
    this.#cache?.removeFamily(family)
  }

  get(family: number, key: Uint8Array): Awaitable<Uint8Array | undefined> {
    if (this.#cache === undefined) return this.#store.get(family, key)
    const cached = this.#cache.get(family, key)
    if (cached !== undefined) return cached.value
    return after(this.#read(this.#cache, family, [key]), ([value]) => value)
  }

  getMany(family: number, keys: readonly Uint8Array[]): Awaitable<Found> {
    const cache = this.#cache
    if (cache === undefined) return this.#store.getMany(family, keys)
    const values: (Uint8Array | undefined)[] = []
    const missing: number[] = []
    const wanted: Uint8Array[] = []
    for (const [at, key] of keys.entries()) {
      const cached = cache.get(family, key)
      values.push(cached?.value)
      if (cached !== undefined) continue
      missing.push(at)
      wanted.push(key)
    }
    if (missing.length === 0) return values
    return after(this.#read(cache, family, wanted), (found) => {
      for (const [index, at] of missing.entries()) values[at] = found[index]
      return values
    })
  }

  /** Runs a change of these keys; what the cache knows of them is gone when it ends, however it ends. */
  changing(
    families: readonly number[],
    keys: readonly Uint8Array[],
    change: () => Awaitable<void>,
  ): Awaitable<void> {
    const cache = this.#cache
    if (cache === undefined) return change()
    const forget = (): void => {
      for (const [at, key] of keys.entries()) cache.forget(families[at] ?? 0, key)
    }
    let changed: Awaitable<void>
    try {
      changed = change()
    } catch (error) {
      forget()
      throw error
    }
    if (changed instanceof Promise) return changed.finally(forget)
    forget()
  }

  #read(cache: ReadCache, family: number, keys: readonly Uint8Array[]): Awaitable<Found> {
    const expected = keys.map((key) => cache.expect(family, key))
    const keep = (found: Found): Found => {
      for (const [at, each] of expected.entries()) cache.fill(each, found[at])
      return found
    }
    const found = this.#store.getMany(family, keys)
    if (!(found instanceof Promise)) return keep(found)
    return found.then(keep, (error: unknown) => {
      abandon(cache, expected)
      throw error
    })
  }
}

function abandon(cache: ReadCache, expected: readonly Expected[]): void {
  for (const each of expected) cache.abandon(each)
}
