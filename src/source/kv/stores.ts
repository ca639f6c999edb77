import { check } from '../../core/never.ts'
import type { IdSource, Journal } from '../../core/ports.ts'
import type { KvEngine } from './engine.ts'
import { checkFamilyName, defaultFamily } from './family-name.ts'
import { FamilyNotes } from './family-notes.ts'
import { resolveOptions, type ResolvedOptions } from './family-options.ts'
import { findOrphans } from './orphans.ts'
import type { FamilyOptions, KvStore, KvStoreOpening, OptionsFactory } from './ports.ts'
import { ReadCache } from './read-cache.ts'
import { FamilyStore, type OpenFamily } from './store.ts'

export type KvStoresOptions = {
  readonly engine: KvEngine
  readonly journal: Journal
  readonly ids: IdSource
  /** For write buffers and read caches of all stores together, divided evenly among the open ones. */
  readonly memoryBytes: number
  /** The part of it that is for write buffers; half by default. */
  readonly writeBufferRatio?: number
  /** One read cache for all families of a store, one for each, or none; by default as the engine needs. */
  readonly cache?: 'shared' | 'per-family' | 'off'
  /** Options of all families of all stores. */
  readonly familyOptions?: Partial<FamilyOptions>
  readonly optionsFactory?: OptionsFactory
}

type Share = { readonly total: number; readonly writeBuffers: number; readonly cache: number }

/** The KV stores of one process. */
export class KvStores {
  readonly #options: KvStoresOptions
  readonly #open = new Map<string, FamilyStore>()
  readonly #opening = new Set<string>()
  readonly #said = new Set<string>()

  constructor(options: KvStoresOptions) {
    const { writeBufferRatio = 0.5 } = options
    check(writeBufferRatio > 0 && writeBufferRatio <= 1, 'write buffers have a part of the memory')
    this.#options = options
  }

  /** Families that are open, over all stores. */
  get openHandles(): number {
    return this.stores().reduce((sum, { openHandles }) => sum + openHandles, 0)
  }

  stores(): readonly KvStore[] {
    return [...this.#open.values()]
  }

  /**
   * Opens a store, or makes it.
   * @throws SluiceError NAME_INVALID, CONFIG_INVALID, or FAMILY_ORPHANED when it has families that are
   * not named; then nothing was made.
   */
  async open(opening: KvStoreOpening): Promise<KvStore> {
    const { folder } = opening
    check(!this.#open.has(folder) && !this.#opening.has(folder), `${folder} is open once`)
    this.#opening.add(folder)
    try {
      const store = await this.#openStore(opening)
      this.#open.set(folder, store)
      this.#divide()
      return store
    } finally {
      this.#opening.delete(folder)
    }
  }

  async close(): Promise<void> {
    for (const store of this.stores()) await store.close()
  }

  async #openStore(opening: KvStoreOpening): Promise<FamilyStore> {
    const { engine, journal, ids } = this.#options
    const { folder, progressFamily } = opening
    const families = await this.#families(opening)
    const share = this.#share(this.#open.size + this.#opening.size)
    const notes = new FamilyNotes(journal, folder, this.#said)
    noteFamilies(notes, families, { engine, share })
    const store = await engine.open({
      folder,
      ...(opening.from === undefined ? {} : { from: opening.from }),
      storeId: ids.bits128(),
      families: families.map(({ name, resolved }) => ({ name, options: resolved.options })),
    })
    return new FamilyStore({
      engine,
      store,
      folder,
      families,
      progressFamily,
      resolve: (name, asked) => this.#resolve(name, asked),
      notes,
      journal,
      cache: this.#cache(share),
      writeBufferBytesMax: share.writeBuffers,
      onClose: () => {
        this.#open.delete(folder)
        this.#divide()
      },
    })
  }

  /** `default`, then the families that are there, then those to be made. */
  async #families(opening: KvStoreOpening): Promise<readonly OpenFamily[]> {
    const { families, progressFamily } = opening
    const named = Object.keys(families)
    for (const name of named) checkFamilyName(name)
    check(
      progressFamily === undefined || named.includes(progressFamily),
      'the family that holds progress is one of the store',
    )
    const stored = (await this.#options.engine.stored(opening)) ?? []
    findOrphans(stored, opening)
    const names = new Set([defaultFamily, ...stored.map(({ name }) => name), ...named])
    return [...names].map((name) => {
      const asked = Object.hasOwn(families, name) ? (families[name] ?? {}) : {}
      return { name, asked, resolved: this.#resolve(name, asked) }
    })
  }

  #resolve(name: string, asked: Partial<FamilyOptions>): ResolvedOptions {
    const { engine, familyOptions = {}, optionsFactory } = this.#options
    return resolveOptions(engine, name, {
      store: familyOptions,
      family: asked,
      factory: optionsFactory,
    })
  }

  #cache({ cache: bytesMax }: Share): ReadCache | undefined {
    const scope = this.#options.cache ?? (this.#options.engine.readsAreCheap ? 'off' : 'shared')
    return scope === 'off' ? undefined : new ReadCache({ scope, bytesMax })
  }

  #divide(): void {
    const share = this.#share(this.#open.size)
    for (const store of this.#open.values()) store.resize(share)
  }

  #share(stores: number): Share {
    const { memoryBytes, writeBufferRatio = 0.5 } = this.#options
    const total = Math.floor(memoryBytes / Math.max(1, stores))
    const writeBuffers = Math.floor(total * writeBufferRatio)
    return { total, writeBuffers, cache: total - writeBuffers }
  }
}

function noteFamilies(
  notes: FamilyNotes,
  families: readonly OpenFamily[],
  { engine, share }: { readonly engine: KvEngine; readonly share: Share },
): void {
  const states = families.filter(({ name }) => name !== defaultFamily)
  for (const { name, resolved } of families) notes.notApplied(name, engine.name, resolved)
  const resolved = states.map((state) => state.resolved)
  notes.ceiling(resolved, share.total)
  // Where bytes are counted one by one, a buffer takes no more than what is put into it.
  if (engine.flushAt < 1) notes.smallLimit(resolved, share.writeBuffers)
  notes.counted(states.map(({ name }) => name))
}
