import { SluiceError } from '../../core/errors.ts'
import { check } from '../../core/never.ts'
import type { Journal } from '../../core/ports.ts'
import { quoteValue } from '../../core/text.ts'
import { after } from './awaitable.ts'
import { KvBatch } from './batch.ts'
import { CachedReads } from './cached-reads.ts'
import type { EngineSnapshot, EngineStore, KvEngine } from './engine.ts'
import { checkFamilyName, defaultFamily } from './family-name.ts'
import type { FamilyNotes } from './family-notes.ts'
import { checkOptions, optionNames, type ResolvedOptions } from './family-options.ts'
import type {
  Awaitable,
  EffectiveOptions,
  FamilyOptions,
  KvCheckpoint,
  KvCursor,
  KvEngineName,
  KvFamily,
  KvRange,
  KvStore,
  KvStoreSnapshot,
  KvUsage,
} from './ports.ts'
import { boundsOf } from './range.ts'
import type { ReadCache } from './read-cache.ts'
import { WriteBuffers } from './write-buffers.ts'

export type OpenFamily = {
  readonly name: string
  /** The options it was opened with by name; another opening of it must agree. */
  readonly asked: Partial<FamilyOptions>
  readonly resolved: ResolvedOptions
}

export type FamilyStoreOptions = {
  readonly engine: KvEngine
  readonly store: EngineStore
  readonly folder: string
  readonly families: readonly OpenFamily[]
  readonly progressFamily: string | undefined
  readonly resolve: (name: string, asked: Partial<FamilyOptions>) => ResolvedOptions
  readonly notes: FamilyNotes
  readonly journal: Journal
  readonly cache: ReadCache | undefined
  readonly writeBufferBytesMax: number
  readonly onClose: () => void
}

type Family = KvFamily & { readonly asked: Partial<FamilyOptions> }

/** A store over whatever engine: what all engines have in common is here. */
export class FamilyStore implements KvStore {
  readonly engine: KvEngineName
  readonly default: KvFamily
  readonly #options: FamilyStoreOptions
  readonly #store: EngineStore
  readonly #reads: CachedReads
  readonly #buffers: WriteBuffers
  readonly #byName = new Map<string, Family>()
  readonly #byId = new Map<number, Family>()
  readonly #making = new Map<string, Promise<KvFamily>>()
  readonly #underway = new Set<Promise<unknown>>()
  /** The last change that is not done yet. Changes are done one after another. */
  #last: Promise<unknown> | undefined
  #isOpen = true

  constructor(options: FamilyStoreOptions) {
    const { engine, store, cache, families } = options
    this.#options = options
    this.engine = engine.name
    this.#store = store
    this.#reads = new CachedReads(store, cache)
    this.#buffers = new WriteBuffers({
      engine,
      store,
      bytesMax: options.writeBufferBytesMax,
      onForcedFlush: ({ family, flushable }) => {
        options.journal.note({
          level: 'debug',
          event: 'kv.flush.forced',
          message: `KV store ${options.folder}: flushed the largest write buffer`,
          fields: { family: this.#byId.get(family)?.name, bytes: flushable },
        })
      },
    })
    for (const [id, family] of families.entries()) this.#add(id, family)
    const first = this.#byName.get(defaultFamily)
    check(first?.id === 0, 'the first family of a store is default')
    this.default = first
  }

  families(): readonly KvFamily[] {
    return [...this.#byId.values()]
  }

  async columnFamily(name: string, options: Partial<FamilyOptions> = {}): Promise<KvFamily> {
    this.#checkOpen()
    checkFamilyName(name)
    const there = this.#byName.get(name)
    if (there !== undefined) return checkAgrees(there, options)
    const making = this.#making.get(name)
    if (making !== undefined) return making
    const made = this.#make(name, options).finally(() => this.#making.delete(name))
    this.#making.set(name, made)
    return made
  }

  async dropFamily(family: KvFamily): Promise<void> {
    this.#check(family)
    check(family !== this.default, 'the default family is never dropped')
    this.#byName.delete(family.name)
    this.#byId.delete(family.id)
    this.#reads.removeFamily(family.id)
    await this.#change(() => this.#store.drop(family.id))
  }

  get(family: KvFamily, key: Uint8Array): Awaitable<Uint8Array | undefined> {
    this.#check(family)
    return this.#reads.get(family.id, key)
  }

  getMany(
    family: KvFamily,
    keys: readonly Uint8Array[],
  ): Awaitable<readonly (Uint8Array | undefined)[]> {
    this.#check(family)
    return this.#reads.getMany(family.id, keys)
  }

  scan(family: KvFamily, range: KvRange = {}): KvCursor {
    return this.#scan(family, range, undefined)
  }

  put(family: KvFamily, key: Uint8Array, value: Uint8Array): Awaitable<void> {
    return this.#putOne(family, key, value)
  }

  delete(family: KvFamily, key: Uint8Array): Awaitable<void> {
    return this.#putOne(family, key, undefined)
  }

  batch(): KvBatch {
    return new KvBatch((family) => this.#byId.get(family.id) === family)
  }

  write(batch: KvBatch): Awaitable<void> {
    this.#checkOpen()
    if (batch.operations === 0) return
    return this.#change(() =>
      after(this.#buffers.admit(batch.bytes), () =>
        this.#reads.changing(batch.families, batch.keys, () => this.#store.write(batch)),
      ),
    )
  }

  get batchBytesMax(): number {
    return this.#buffers.batchBytesMax
  }

  snapshot(): Awaitable<KvStoreSnapshot> {
    this.#checkOpen()
    return after(this.#store.snapshot(), (snapshot) => this.#view(snapshot))
  }

  async flush(families: readonly KvFamily[] = this.families()): Promise<void> {
    for (const family of families) this.#check(family)
    const { progressFamily } = this.#options
    const ids = [
      ...families.filter(({ name }) => name !== progressFamily),
      ...families.filter(({ name }) => name === progressFamily),
    ].map(({ id }) => id)
    for (const id of ids) {
      await this.#change(() => {
        if (this.#byId.has(id)) return this.#store.flush(id)
      })
    }
  }

  async checkpoint(folder: string): Promise<KvCheckpoint> {
    this.#checkOpen()
    const { files } = await this.#change(() => this.#store.checkpoint(folder))
    return this.#track(files)
  }

  get openHandles(): number {
    return this.#byId.size
  }

  async usage(): Promise<KvUsage> {
    this.#checkOpen()
    const buffers = new Map((await this.#store.buffers()).map((each) => [each.family, each]))
    const files = new Map((await this.#store.files()).map((each) => [each.family, each]))
    const families = [...this.#byId.values()].map(({ id, name }) => ({
      name,
      writeBufferBytes: buffers.get(id)?.held ?? 0,
      storedBytes: files.get(id)?.storedBytes ?? 0,
      files: files.get(id)?.files ?? 0,
    }))
    return {
      families,
      openHandles: this.openHandles,
      writeBufferBytes: families.reduce((sum, each) => sum + each.writeBufferBytes, 0),
      storedBytes: families.reduce((sum, each) => sum + each.storedBytes, 0),
      cacheBytes: this.#options.cache?.bytes ?? 0,
      descriptors: await this.#store.descriptors(),
    }
  }

  /** Gives the store another part of the memory of all stores. */
  resize(bytes: { readonly writeBuffers: number; readonly cache: number }): void {
    this.#buffers.resize(bytes.writeBuffers)
    this.#options.cache?.resize(bytes.cache)
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return
    this.#isOpen = false
    try {
      await Promise.allSettled([this.#last, ...this.#underway])
      await this.#store.close()
    } finally {
      this.#byName.clear()
      this.#byId.clear()
      this.#options.onClose()
    }
  }

  async #make(name: string, asked: Partial<FamilyOptions>): Promise<KvFamily> {
    const resolved = this.#options.resolve(name, asked)
    const id = await this.#change(() => this.#store.create(name, resolved.options))
    const family = this.#add(id, { name, asked, resolved })
    const { notes } = this.#options
    notes.notApplied(name, this.engine, resolved)
    notes.madeLate(name)
    notes.counted([...this.#byName.keys()].filter((each) => each !== defaultFamily))
    return family
  }

  #add(id: number, { name, asked, resolved }: OpenFamily): Family {
    const effectiveOptions: EffectiveOptions = resolved.effective
    const family: Family = Object.freeze({ id, name, asked, effectiveOptions })
    this.#byName.set(name, family)
    this.#byId.set(id, family)
    this.#reads.addFamily(id)
    return family
  }

  #putOne(family: KvFamily, key: Uint8Array, value: Uint8Array | undefined): Awaitable<void> {
    this.#check(family)
    const bytes = key.length + (value === undefined ? 0 : value.length)
    // The same as below for what is done at once, without what only waiting needs.
    if (this.#last === undefined && !this.#reads.isCached && this.#buffers.hasRoom(bytes)) {
      const done = this.#store.put(family.id, key, value)
      return done instanceof Promise ? this.#queue(done) : done
    }
    return this.#change(() =>
      after(this.#buffers.admit(bytes), () =>
        this.#reads.changing([family.id], [key], () => this.#store.put(family.id, key, value)),
      ),
    )
  }

  #view(snapshot: EngineSnapshot): KvStoreSnapshot {
    let isReleased = false
    const checkRead = (family: KvFamily): void => {
      check(!isReleased, 'a snapshot is read before it is released')
      this.#check(family)
    }
    return {
      get: (family, key) => {
        checkRead(family)
        return this.#store.get(family.id, key, snapshot)
      },
      getMany: (family, keys) => {
        checkRead(family)
        return this.#store.getMany(family.id, keys, snapshot)
      },
      scan: (family, range = {}) => {
        checkRead(family)
        return this.#scan(family, range, snapshot)
      },
      release: () => {
        if (isReleased) return
        isReleased = true
        return snapshot.release()
      },
    }
  }

  #scan(family: KvFamily, range: KvRange, at: EngineSnapshot | undefined): KvCursor {
    this.#check(family)
    const cursor = this.#store.scan(family.id, boundsOf(range), at)
    const closed = this.#buffers.cursorOpened()
    let isOpen = true
    return {
      next: (entriesMax) => cursor.next(entriesMax),
      close: () => {
        if (!isOpen) return
        isOpen = false
        return after(cursor.close(), closed)
      },
    }
  }

  /** Runs a change after those before it, at once where none is under way. */
  #change<Result>(action: () => Awaitable<Result>): Awaitable<Result> {
    if (this.#last !== undefined) return this.#queue(this.#last.then(action, action))
    const result = action()
    return result instanceof Promise ? this.#queue(result) : result
  }

  #queue<Result>(result: Promise<Result>): Promise<Result> {
    const last = result.then(
      () => undefined,
      () => undefined,
    )
    this.#last = last
    void last.then(() => {
      if (this.#last === last) this.#last = undefined
    })
    return result
  }

  async #track<Result>(work: Promise<Result>): Promise<Result> {
    this.#underway.add(work)
    try {
      return await work
    } finally {
      this.#underway.delete(work)
    }
  }

  #check(family: KvFamily): void {
    check(
      this.#isOpen && this.#byId.get(family.id) === family,
      `column family ${family.name} is open in this store`,
    )
  }

  #checkOpen(): void {
    check(this.#isOpen, 'the KV store is open')
  }
}

function checkAgrees(family: Family, options: Partial<FamilyOptions>): KvFamily {
  const given = checkOptions(family.name, options)
  for (const name of optionNames) {
    const value = given[name]
    const asked = family.asked[name]
    if (value === undefined || value === asked) continue
    throw new SluiceError(
      'CONFIG_INVALID',
      `column family ${quoteValue(family.name)} is open with other options: ${name} was ` +
        (asked === undefined ? 'not given' : asked.toString()),
      { fix: 'give its options where the store is opened', details: { family: family.name } },
    )
  }
  return family
}
