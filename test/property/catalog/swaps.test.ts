import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { IcebergTable } from '../../../src/catalog/iceberg/iceberg-table.ts'
import { scanTable } from '../../../src/catalog/iceberg/scan.ts'
import type { LoadedTable } from '../../../src/catalog/ports.ts'
import { numberedRegister } from '../../../src/catalog/register/numbered.ts'
import type { ObjectStore } from '../../../src/catalog/store/object-store.ts'
import { millis } from '../../../src/core/ids.ts'
import {
  append,
  bigId,
  dataFile,
  definition,
  folder,
  type Lake,
  lakeInMemory,
} from '../../unit/catalog/support.ts'

/** What becomes of the request that creates a version. */
type Fate = 'arrives' | 'reply-lost' | 'vanishes'

type Step = {
  readonly writer: 0 | 1 | 2
  readonly act: 'load' | 'append' | 'fence'
  readonly files: readonly number[]
  readonly fate: Fate
  /** Clocks of writers differ, and jump. */
  readonly now: number
}

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.record({
    writer: fc.constantFrom(0, 1, 2),
    act: fc.constantFrom('load', 'append', 'append', 'fence'),
    files: fc.array(fc.integer({ min: 1, max: 1000 }), { maxLength: 3 }),
    fate: fc.constantFrom<Fate>('arrives', 'arrives', 'arrives', 'reply-lost', 'vanishes'),
    now: fc.integer({ min: 0, max: 4_000_000_000_000 }),
  }),
  { maxLength: 40 },
)

test('T-13 whatever three writers do and lose, the table holds exactly the changes that were applied, and only grows', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (plan) => {
      const world = await World.start()
      for (const step of plan) await world.play(step)
      await world.verify()
      await world.verifyGrowth()
    }),
    { numRuns: 60 },
  )
})

class World {
  readonly #lake: Lake
  readonly #tables: readonly IcebergTable[]
  readonly #bases = new Map<number, LoadedTable>()
  #fate: Fate = 'arrives'
  /** Rows of every snapshot that was applied, in order. */
  readonly #applied: (readonly [bigint, number])[] = []
  #versions = 1
  #drawn = 0

  private constructor(lake: Lake) {
    this.#lake = lake
    const store = this.#faulty(lake.store)
    this.#tables = [0, 1, 2].map(
      () =>
        new IcebergTable({
          name: ['demo', 'clicks'],
          folder,
          store,
          register: numberedRegister(store, folder),
          clock: { now: () => millis(lake.now) },
          ids: lake.ids,
        }),
    )
  }

  static async start(): Promise<World> {
    const lake = lakeInMemory()
    await lake.catalog.create(definition())
    return new World(lake)
  }

  async play(step: Step): Promise<void> {
    const table = this.#tables[step.writer]
    assert.ok(table !== undefined)
    this.#lake.now = step.now
    const base = this.#bases.get(step.writer)
    if (step.act === 'load' || base === undefined) {
      this.#bases.set(step.writer, await table.load())
      return
    }
    this.#drawn += 1
    const id = bigId + BigInt(this.#drawn)
    const files = step.files.map((rows, at) =>
      dataFile(at, rows, { location: `${folder}/data/${String(id)}-${String(at)}.parquet` }),
    )
    // A fence of production names its own commit, so that no two of them are the same bytes.
    const change =
      step.act === 'fence' ? { setProperties: new Map([['fence', String(id)]]) } : append(id, files)
    const isNewest = base.token === (await table.load()).token
    this.#fate = step.fate
    const outcome = await table.swap(base, change)
    this.#fate = 'arrives'
    if (outcome.kind === 'rejected') {
      assert.ok(!isNewest, 'only another version rejects')
      return
    }
    if (outcome.kind === 'unknown') {
      assert.equal(step.fate, 'vanishes')
      return
    }
    assert.ok(isNewest, 'a base that was replaced is never replaced again')
    this.#versions += 1
    if (step.act === 'append') this.#applied.push([id, sum(step.files)])
    this.#bases.set(step.writer, outcome.table)
  }

  async verify(): Promise<void> {
    const scan = await scanTable(this.#lake.store, folder)
    assert.equal(scan.metadata, `${folder}/metadata/v${String(this.#versions)}.metadata.json`)
    assert.equal(scan.snapshot?.id, this.#applied.at(-1)?.[0])
    const rows = sum(this.#applied.map(([, count]) => count))
    assert.equal(sum(scan.files.map((file) => file.rows)), rows)
    if (scan.snapshot !== undefined) {
      assert.equal(scan.snapshot.summary.get('total-records'), String(rows))
    }
    const loaded = await this.#tables[0]?.load()
    const entries = [...(loaded?.snapshots.values() ?? [])]
    assert.deepEqual(
      entries.map((entry) => [entry.id, entry.parent, entry.sequence]),
      this.#applied.map(([id], at) => [id, this.#applied[at - 1]?.[0], BigInt(at + 1)]),
    )
    const times = entries.map((entry) => entry.committedAt)
    assert.deepEqual(
      times,
      [...times].sort((a, b) => a - b),
    )
  }

  /** Files of a snapshot are among those of the next one, and rows never become fewer. */
  async verifyGrowth(): Promise<void> {
    let files: readonly string[] = []
    let rows = 0
    for (const [snapshot, added] of this.#applied) {
      const scan = await scanTable(this.#lake.store, folder, { snapshot })
      const now = new Set(scan.files.map((file) => file.resolved))
      assert.deepEqual(
        files.filter((file) => !now.has(file)),
        [],
      )
      const count = sum(scan.files.map((file) => file.rows))
      assert.equal(count - rows, added)
      files = [...now]
      rows = count
    }
  }

  #faulty(store: ObjectStore): ObjectStore {
    return {
      ...store,
      createIfAbsent: async (location, body, options) => {
        if (this.#fate === 'vanishes') return { kind: 'unknown', cause: 'no reply' }
        const outcome = await store.createIfAbsent(location, body, options)
        return this.#fate === 'reply-lost' ? { kind: 'unknown', cause: 'no reply' } : outcome
      },
    }
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
