import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { KvBatch } from '../../../src/source/kv/batch.ts'
import type {
  FamilyOptions,
  KvFamily,
  KvReads,
  KvStore,
  KvStoreSnapshot,
} from '../../../src/source/kv/ports.ts'
import {
  type EngineUnderTest,
  inWorld,
  mib,
  type World,
} from '../../integration/kv/engine-under-test.ts'

/** Keys in hex, so that text compares as bytes do. */
type Model = Map<string, string>
type Models = Map<string, Model>

type Change = { readonly family: number; readonly key: string; readonly value: string | undefined }
type Step =
  | { readonly kind: 'one'; readonly change: Change }
  | { readonly kind: 'batch'; readonly changes: readonly Change[] }
  | { readonly kind: 'flush' | 'make' | 'drop'; readonly family: number }
  | { readonly kind: 'snapshot' | 'release' | 'checkpoint' | 'restore' }
  | { readonly kind: 'read'; readonly family: number; readonly keys: readonly string[] }
  | {
      readonly kind: 'scan'
      readonly family: number
      readonly from: string | undefined
      readonly to: string | undefined
      readonly prefix: string | undefined
      readonly entriesMax: number
    }

const names = ['rows', 'positions', 'meta'] as const
const family = fc.nat({ max: names.length - 1 })
const key = fc.oneof(
  fc.nat({ max: 60 }).map((at) => `aabbccddeeff00112233${at.toString(16).padStart(2, '0')}`),
  fc.constantFrom('', '00', '0000', '61', '6100', '61ff', '62', 'ff', 'ffff'),
)
const value = fc.option(
  fc
    .tuple(fc.nat({ max: 255 }), fc.constantFrom(0, 1, 40, 300))
    .map(([byte, length]) => byte.toString(16).padStart(2, '0').repeat(length)),
  { nil: undefined, freq: 3 },
)
const change = fc.record({ family, key, value })
const bound = fc.option(key, { nil: undefined })

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('one'), change }) },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('batch'),
      changes: fc.array(change, { maxLength: 30 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('flush'), family }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('make', 'drop'), family }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom('snapshot', 'snapshot', 'release', 'checkpoint', 'restore'),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('read'),
      family,
      keys: fc.array(key, { maxLength: 9 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('scan'),
      family,
      from: bound,
      to: bound,
      prefix: fc.option(fc.constantFrom('', '61', 'ff', 'aabb'), { nil: undefined }),
      entriesMax: fc.integer({ min: 1, max: 40 }),
    }),
  },
)

/** Random histories of a store, compared with plain maps after every step that reads. */
export async function holdsAgainstModel(
  under: EngineUnderTest,
  { runs, options }: { readonly runs: number; readonly options: Partial<FamilyOptions> },
): Promise<void> {
  const cache = fc.constantFrom('off' as const, 'shared' as const, 'per-family' as const)
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 80, size: 'max' }),
      cache,
      async (steps, scope) => {
        const settings = { cache: scope, memoryBytes: 2 * mib, familyOptions: options }
        await inWorld(under, settings, async (world) => {
          const play = new Play(world)
          await play.open()
          for (const each of steps) await play.step(each)
          await play.compareAll()
        })
      },
    ),
    { numRuns: runs },
  )
}

class Play {
  readonly #world: World
  #store: KvStore | undefined
  #models: Models = new Map()
  #snapshots: { readonly view: KvStoreSnapshot; readonly models: Models }[] = []
  #saved: { readonly folder: string; readonly models: Models } | undefined
  #folders = 0

  constructor(world: World) {
    this.#world = world
  }

  async open(): Promise<void> {
    const from = this.#saved?.folder
    this.#models = from === undefined ? emptyModels() : copyOf(this.#saved?.models ?? emptyModels())
    this.#store = await this.#world.stores.open({
      folder: this.#folder(),
      ...(from === undefined ? {} : { from }),
      families: Object.fromEntries([...this.#models.keys()].map((name) => [name, {}])),
    })
  }

  async step(each: Step): Promise<void> {
    const store = this.#open()
    switch (each.kind) {
      case 'one': {
        const target = await this.#family(each.change.family)
        if (target !== undefined) await this.#apply(target, each.change)
        return
      }
      case 'batch':
        return this.#batch(each.changes)
      case 'flush': {
        const target = await this.#family(each.family)
        return store.flush(target === undefined ? undefined : [target])
      }
      case 'make':
        return this.#make(each.family)
      case 'drop':
        return this.#drop(each.family)
      case 'snapshot': {
        const view = await store.snapshot()
        this.#snapshots.push({ view, models: copyOf(this.#models) })
        return
      }
      case 'release':
        return this.#release(1)
      case 'checkpoint': {
        const folder = this.#folder()
        const models = copyOf(this.#models)
        await store.checkpoint(folder)
        this.#saved = { folder, models }
        return
      }
      case 'restore':
        return this.#restore()
      case 'read':
        return this.#read(each.family, each.keys)
      case 'scan':
        return this.#scan(each)
    }
  }

  async compareAll(): Promise<void> {
    await compare(this.#open(), this.#open(), this.#models)
    await this.#release(Infinity)
  }

  async #apply(target: KvFamily, { key: at, value: put }: Change): Promise<void> {
    const store = this.#open()
    if (put === undefined) await store.delete(target, fromHex(at))
    else await store.put(target, fromHex(at), fromHex(put))
    changeModel(this.#modelOf(target), at, put)
  }

  async #batch(changes: readonly Change[]): Promise<void> {
    const store = this.#open()
    const batch: KvBatch = store.batch()
    const applied: (() => void)[] = []
    for (const { family: at, key: of, value: put } of changes) {
      const target = await this.#family(at)
      if (target === undefined) continue
      if (put === undefined) batch.delete(target, fromHex(of))
      else batch.put(target, fromHex(of), fromHex(put))
      applied.push(() => {
        changeModel(this.#modelOf(target), of, put)
      })
    }
    await store.write(batch)
    for (const apply of applied) apply()
  }

  async #make(at: number): Promise<void> {
    const name = names[at] ?? ''
    // An engine may refuse a new family while snapshots are open.
    if (!this.#models.has(name)) await this.#release(Infinity)
    await this.#open().columnFamily(name)
    if (!this.#models.has(name)) this.#models.set(name, new Map())
  }

  async #drop(at: number): Promise<void> {
    const target = await this.#family(at)
    if (target === undefined) return
    await this.#release(Infinity)
    await this.#open().dropFamily(target)
    this.#models.delete(target.name)
  }

  async #release(count: number): Promise<void> {
    for (const { view, models } of this.#snapshots.splice(0, count)) {
      await compare(this.#open(), view, models)
      await view.release()
    }
  }

  async #restore(): Promise<void> {
    await this.compareAll()
    if (this.#saved === undefined) return
    await this.#open().close()
    await this.open()
  }

  async #read(at: number, keys: readonly string[]): Promise<void> {
    const target = await this.#family(at)
    if (target === undefined) return
    const found = await this.#open().getMany(target, keys.map(fromHex))
    const model = this.#modelOf(target)
    assert.deepEqual(
      found.map((each) => (each === undefined ? undefined : toHex(each))),
      keys.map((each) => model.get(each)),
    )
    for (const each of keys) {
      const one = await this.#open().get(target, fromHex(each))
      assert.equal(one === undefined ? undefined : toHex(one), model.get(each))
    }
  }

  async #scan(wanted: Step & { readonly kind: 'scan' }): Promise<void> {
    const target = await this.#family(wanted.family)
    if (target === undefined) return
    const { from, to, prefix, entriesMax } = wanted
    const expected = sorted(this.#modelOf(target)).filter(
      ([at]) =>
        (from === undefined || at >= from) &&
        (to === undefined || at < to) &&
        (prefix === undefined || at.startsWith(prefix)),
    )
    const cursor = this.#open().scan(target, {
      ...(from === undefined ? {} : { from: fromHex(from) }),
      ...(to === undefined ? {} : { to: fromHex(to) }),
      ...(prefix === undefined ? {} : { prefix: fromHex(prefix) }),
    })
    const found: [string, string][] = []
    for (;;) {
      const entries = await cursor.next(entriesMax)
      if (entries === undefined) break
      assert.ok(entries.keys.length <= entriesMax && entries.keys.length > 0)
      entries.keys.forEach((each, at) => {
        found.push([toHex(each), toHex(entries.values[at] ?? new Uint8Array(0))])
      })
    }
    await cursor.close()
    assert.deepEqual(found, expected)
  }

  #family(at: number): Promise<KvFamily | undefined> {
    const name = names[at] ?? ''
    return this.#models.has(name)
      ? this.#open().columnFamily(name)
      : Promise.resolve<undefined>(undefined)
  }

  #modelOf({ name }: KvFamily): Model {
    const model = this.#models.get(name)
    assert.ok(model !== undefined, name)
    return model
  }

  #open(): KvStore {
    assert.ok(this.#store !== undefined)
    return this.#store
  }

  #folder(): string {
    this.#folders += 1
    return this.#world.folder(`f${this.#folders}`)
  }
}

/** Compares all families of a view with the models, keys that are not there included. */
async function compare(store: KvStore, view: KvReads, models: Models): Promise<void> {
  for (const [name, model] of models) {
    const target = await store.columnFamily(name)
    const cursor = view.scan(target)
    const found: [string, string][] = []
    for (let entries = await cursor.next(); entries !== undefined; entries = await cursor.next()) {
      for (const [at, each] of entries.keys.entries()) {
        found.push([toHex(each), toHex(entries.values[at] ?? new Uint8Array(0))])
      }
    }
    await cursor.close()
    assert.deepEqual(found, sorted(model))
    const some = [...model.keys(), 'aabbccddeeff0011223344', 'ee']
    const many = await view.getMany(target, some.map(fromHex))
    assert.deepEqual(
      many.map((each) => (each === undefined ? undefined : toHex(each))),
      some.map((each) => model.get(each)),
    )
  }
}

function emptyModels(): Models {
  return new Map(names.map((name) => [name, new Map<string, string>()]))
}

function copyOf(models: Models): Models {
  return new Map([...models].map(([name, model]) => [name, new Map(model)]))
}

function changeModel(model: Model, at: string, put: string | undefined): void {
  if (put === undefined) model.delete(at)
  else model.set(at, put)
}

function sorted(model: Model): readonly (readonly [string, string])[] {
  return [...model].sort(([first], [second]) => (first < second ? -1 : first > second ? 1 : 0))
}

function fromHex(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text, 'hex'))
}

function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}
