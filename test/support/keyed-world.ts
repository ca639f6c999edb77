import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { LakeTable } from '../../src/catalog/ports.ts'
import { DeletedRows } from '../../src/catalog/iceberg/read-deletes.ts'
import { liveRowsIn } from '../../src/catalog/iceberg/live-rows.ts'
import { readDataFile } from '../../src/catalog/iceberg/read-data-file.ts'
import { batchToRows, type Row, rowsToBatch } from '../../src/core/columns/rows.ts'
import { epoch, incarnation } from '../../src/core/ids.ts'
import { SluiceError } from '../../src/core/errors.ts'
import type { Field } from '../../src/core/schema/types.ts'
import { seededChance, systemClock, systemIds } from '../../src/core/system.ts'
import { encoderChoice, encoderOptions } from '../../src/library/encoding.ts'
import { keyedTable } from '../../src/library/keyed-tables.ts'
import { type OpenedLake, openWarehouse } from '../../src/library/open-lake.ts'
import { holdTable, ledgerOf, type Upserts } from '../../src/sink/committer/held-table.ts'
import { endsOf } from '../../src/sink/committer/ledger.ts'
import { lakeCommitter } from '../../src/sink/committer/lake-committer.ts'
import { readVersion } from '../../src/sink/committer/progress.ts'
import type { CommitResult, SplitResult } from '../../src/sink/ports.ts'
import { splitRunner } from '../../src/sink/reader/split-runner.ts'
import { WriterBudget } from '../../src/sink/writer/writer-budget.ts'
import { changeOp, type KeptColumns } from '../../src/source/changelog/change-batch.ts'
import { EmbeddedSource } from '../../src/source/embedded/embedded-source.ts'
import type { AppendInput } from '../../src/source/embedded/embedded-table.ts'
import type { KvEngine } from '../../src/source/kv/engine.ts'
import { memoryEngine } from '../../src/source/kv/memory/memory-engine.ts'
import { KvStores } from '../../src/source/kv/stores.ts'
import type { SourceTable } from '../../src/source/ports.ts'

export type KeyedWorldOptions = {
  readonly fields: readonly Field[]
  readonly primaryKey: readonly string[]
  readonly buckets: number
  readonly formatVersion?: 2 | 3
  readonly properties?: ReadonlyMap<string, string>
  readonly engine?: () => KvEngine
}

/** What goes wrong with the next commit; each happens once. */
export type WorldFaults = {
  /** The reply of the swap is lost, and so is every look at the table until `heal`. */
  lostReply?: 'landed' | 'never arrived'
  /** The process ends between the swap and the index. */
  indexMissed?: boolean
}

export type WorldChange = readonly ['upsert' | 'delete' | 'before', Row]

const journal = { note: (): void => undefined }
const name = ['demo', 'customers'] as const

/** A primary-key table from source to lake, whose rounds the test makes one by one. */
export class KeyedWorld {
  readonly folder: string
  readonly lake: OpenedLake
  readonly faults: WorldFaults = {}
  readonly #options: KeyedWorldOptions
  #isCut = false
  #isOpen = false
  table!: LakeTable
  source!: EmbeddedSource
  sourceTable!: SourceTable
  #stores!: KvStores
  #parts!: ReturnType<typeof lakeCommitter>
  #runner!: ReturnType<typeof splitRunner>
  #epoch = 0

  private constructor(folder: string, lake: OpenedLake, options: KeyedWorldOptions) {
    this.folder = folder
    this.lake = lake
    this.#options = options
  }

  static async create(options: KeyedWorldOptions): Promise<KeyedWorld> {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-keyed-'))
    const warehouse = pathToFileURL(join(folder, 'lake')).href
    const ports = { clock: systemClock, chance: seededChance(1), ids: systemIds, journal }
    const lake = await openWarehouse(warehouse, ports)
    const { fields, buckets, primaryKey, formatVersion = 2, properties = new Map() } = options
    await lake.catalog.create({
      name: [...name],
      schema: { fields },
      bucketCount: buckets,
      bucketKey: primaryKey[0]!,
      primaryKey,
      formatVersion,
      properties,
    })
    const world = new KeyedWorld(folder, lake, options)
    await world.restart()
    return world
  }

  /** A process that ends, however, and one that begins: nothing is left but the lake and the disk. */
  async restart(): Promise<void> {
    const { fields, primaryKey, buckets, engine = memoryEngine } = this.#options
    if (this.#isOpen) await this.source.closeStores()
    this.#isOpen = true
    const opened = await this.lake.catalog.open([...name], 'write')
    if (opened === undefined) throw new Error('the table is there')
    this.table = this.#faulty(opened)
    const version = await readVersion(opened, 'embedded:demo.customers')
    const resumed = ledgerOf(version)
    this.#stores = new KvStores({
      engine: engine(),
      memoryBytes: 64 * 2 ** 20,
      journal,
      ids: systemIds,
    })
    const { keyed, upserts } = keyedTable(
      { lake: this.table, version: version.table, fields, mark: resumed?.commit },
      {
        stores: this.#stores,
        stateFolder: join(this.folder, 'state'),
        lake: this.lake,
        ids: systemIds,
        journal,
      },
    )
    this.source = new EmbeddedSource({ clock: systemClock, logMemoryBytes: 2 ** 28 })
    this.sourceTable = this.source.createTable(
      {
        name: name.join('.'),
        schema: { fields },
        bucketCount: buckets,
        bucketKey: primaryKey[0]!,
        primaryKey,
        freshnessMs: 60_000,
      },
      resumed === undefined ? undefined : { ends: endsOf(resumed), inputs: resumed.inputs },
      keyed,
    )
    const held = holdTable(
      this.sourceTable.id,
      this.table,
      this.sourceTable.sourceId,
      version,
      this.#forgetful(upserts),
    )
    this.#parts = lakeCommitter({
      clock: systemClock,
      chance: seededChance(1),
      ids: systemIds,
      journal,
      source: this.source,
      store: this.lake.store,
      held: () => held,
    })
    this.#runner = splitRunner({
      source: this.source,
      store: this.lake.store,
      ids: systemIds,
      journal,
      budget: new WriterBudget(2 ** 26),
      encoderFor: encoderChoice('columnar'),
      optionsFor: encoderOptions,
    })
  }

  async change(
    changes: readonly WorldChange[],
    more: { readonly kept?: KeptColumns; readonly input?: AppendInput } = {},
  ): Promise<void> {
    const ops = { upsert: changeOp.upsert, delete: changeOp.delete, before: changeOp.before }
    await this.source.change(
      this.sourceTable.id,
      [
        {
          records: rowsToBatch(
            this.#options.fields,
            changes.map(([, row]) => row),
          ),
          ops: Uint8Array.from(changes, ([op]) => ops[op]),
          ...(more.kept === undefined ? {} : { kept: more.kept }),
        },
      ],
      more.input === undefined ? {} : { input: more.input },
    )
  }

  /**
   * Plans, reads and commits one round; `between` happens after it was read.
   * @param reading What happens after it was planned, and whether its readers are told to stop.
   */
  async round(
    between?: (results: readonly SplitResult[]) => Promise<void>,
    reading: { readonly planned?: () => Promise<unknown>; readonly stopped?: boolean } = {},
  ): Promise<CommitResult> {
    this.#epoch += 1
    const plan = await this.#parts.plan({
      table: this.sourceTable.id,
      incarnation: incarnation(1),
      epoch: epoch(this.#epoch),
      takeOver: false,
    })
    await reading.planned?.()
    const results: SplitResult[] = []
    for (const split of plan.splits) {
      results.push(await this.#runner.run(plan, split, { stopped: reading.stopped ?? false }))
    }
    await between?.(results)
    if (results.length === 0) return { kind: 'nothing' }
    return this.#parts.commit(plan, results, false)
  }

  /** The rows of the lake, deletes applied, without the system's columns. */
  async rows(): Promise<readonly Row[]> {
    const loaded = await this.table.load()
    const files = await this.table.liveFiles(loaded)
    const deleted = new DeletedRows(this.lake.store, files)
    const fields = loaded.fields.filter(({ name: each }) => !each.startsWith('__'))
    const rows: Row[] = []
    for (const file of files.data) {
      const read = liveRowsIn(file, fields, deleted, (location, wanted) =>
        readDataFile(this.lake.store, location, wanted),
      )
      for await (const batch of read) rows.push(...batchToRows(fields, batch))
    }
    return rows
  }

  /** The table can be reached again. */
  heal(): void {
    this.#isCut = false
  }

  #faulty(lake: LakeTable): LakeTable {
    return {
      name: lake.name,
      headerLedger: (snapshot) => lake.headerLedger(snapshot),
      dataEnds: (loaded) => lake.dataEnds(loaded),
      liveFiles: (loaded) => lake.liveFiles(loaded),
      load: () => {
        if (this.#isCut) throw new SluiceError('STORE_DENIED', 'the table cannot be reached')
        return lake.load()
      },
      swap: async (base, change) => {
        const { lostReply } = this.faults
        if (lostReply === undefined) return lake.swap(base, change)
        delete this.faults.lostReply
        if (lostReply === 'landed') await lake.swap(base, change)
        this.#isCut = true
        return { kind: 'unknown', cause: new Error('no answer') }
      },
    }
  }

  #forgetful(upserts: Upserts): Upserts {
    return {
      ...upserts,
      applied: async (landed, results) => {
        const { indexMissed = false } = this.faults
        delete this.faults.indexMissed
        if (!indexMissed) await upserts.applied(landed, results)
      },
    }
  }

  async close(): Promise<void> {
    this.source.close()
    await this.source.closeStores()
    await rm(this.folder, { recursive: true, force: true })
  }
}
