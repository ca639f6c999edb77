import {
  createEmbeddedCoordinator,
  type EmbeddedCoordinator,
} from '../coordinator/embedded-coordinator.ts'
import type { SluiceError } from '../core/errors.ts'
import { isSluiceError } from '../core/errors.ts'
import { type Bucket, incarnation, type Offset, type TableId } from '../core/ids.ts'
import type { Chance, Clock, IdSource, Journal } from '../core/ports.ts'
import { lakeCommitter } from '../sink/committer/lake-committer.ts'
import { followedBy, type HeldTable, holdTable, ledgerOf } from '../sink/committer/held-table.ts'
import { endsOf, type Ledger } from '../sink/committer/ledger.ts'
import { type ReadVersion, readVersion } from '../sink/committer/progress.ts'
import type { TieringEvent } from '../sink/job/events.ts'
import { startJob } from '../sink/job/job.ts'
import type { RunningJob } from '../sink/job/options.ts'
import type { SplitRunner } from '../sink/ports.ts'
import { splitRunner } from '../sink/reader/split-runner.ts'
import { WriterBudget } from '../sink/writer/writer-budget.ts'
import type { LakeTable } from '../catalog/ports.ts'
import { EmbeddedSource } from '../source/embedded/embedded-source.ts'
import type { KvEngine } from '../source/kv/engine.ts'
import { memoryEngine } from '../source/kv/memory/memory-engine.ts'
import { KvStores } from '../source/kv/stores.ts'
import type { SourceTable } from '../source/ports.ts'
import { keyedTable, type KeyedTableParts } from './keyed-tables.ts'
import { encoderChoice, encoderOptions, type EncoderName } from './encoding.ts'
import type { OpenedLake } from './open-lake.ts'

export type SessionPorts = {
  readonly clock: Clock
  readonly chance: Chance
  readonly ids: IdSource
  readonly journal: Journal
}

export type SessionOptions = {
  readonly lake: OpenedLake
  /** For the logs of all tables. */
  readonly logBytes: number
  /** For the open row groups of all writers. */
  readonly writerBytes: number
  readonly readers: number
  readonly encoder?: EncoderName
  readonly pollIntervalMs?: number
  /** Puts something around the reading of splits; the demo slows it down to be watched. */
  readonly aroundRunner?: (runner: SplitRunner) => SplitRunner
  /** Where primary-key tables keep their rows; in memory unless given. */
  readonly kv?: KvSessionOptions
}

export type KvSessionOptions = {
  readonly engine: KvEngine
  /** Of all stores together. */
  readonly memoryBytes: number
  /** A folder of this process alone. */
  readonly stateFolder: string
}

/** Interface default of `kv.memory.size`. */
export const kvMemoryDefault = 440 * 2 ** 20

/** A lake table that this process fills from its own log. */
export type SessionTable = {
  readonly table: SourceTable
  readonly lake: LakeTable
  readonly held: HeldTable
  /** What the lake said when the table was opened; undefined when it was never tiered. */
  readonly resumed: Ledger | undefined
  readonly version: ReadVersion
}

/** One figure for a process: half for logs, three eighths for open writers, a rest for files on their way. */
export function dividedMemory(bytes: number): Pick<SessionOptions, 'logBytes' | 'writerBytes'> {
  return { logBytes: Math.floor(bytes / 2), writerBytes: Math.floor((bytes * 3) / 8) }
}

/**
 * The parts of an embedded tiering process, put together: source, coordinator, and one job over a
 * lake. The library and the CLI differ only in who appends and who asks for rounds.
 */
export class TieringSession {
  readonly source: EmbeddedSource
  readonly coordinator: EmbeddedCoordinator
  readonly #options: SessionOptions
  readonly #ports: SessionPorts
  readonly #tables = new Map<TableId, SessionTable>()
  readonly #listeners = new Set<(event: TieringEvent) => void>()
  #job: RunningJob | undefined
  #stores: KvStores | undefined
  #isEnding: (table: SourceTable) => boolean = () => false

  constructor(options: SessionOptions, ports: SessionPorts) {
    this.#options = options
    this.#ports = ports
    this.source = new EmbeddedSource({
      clock: ports.clock,
      logMemoryBytes: options.logBytes,
    })
    // Epochs start anew with each process; what outranks the one before is the incarnation that
    // each table is held under (see `holdTable`).
    this.coordinator = createEmbeddedCoordinator({
      clock: ports.clock,
      incarnation: incarnation(1),
    })
  }

  /**
   * Opens a lake table for writing: its log goes on from the lake's ends.
   * @throws SluiceError PROGRESS_LOST, TABLE_EXISTS, TABLE_REPLACED, TABLE_MISMATCH, DATA_CORRUPT
   */
  async openTable(options: {
    readonly name: string
    readonly lake: LakeTable
    readonly definition: Pick<
      SourceTable,
      'schema' | 'bucketCount' | 'bucketKey' | 'primaryKey' | 'freshnessMs'
    >
    readonly start: 'waits-one-freshness' | 'goes-on'
  }): Promise<SessionTable> {
    const { name, lake, definition } = options
    const version = await readVersion(lake, `embedded:${name}`)
    if (version.progress.kind === 'lost') throw version.progress.error
    const resumed = ledgerOf(version)
    const { bucketKey, primaryKey, ...rest } = definition
    const keyed = primaryKey === undefined ? undefined : this.#keyedTable(options, version)
    const table = this.source.createTable(
      {
        name,
        ...rest,
        ...(bucketKey === undefined ? {} : { bucketKey }),
        ...(primaryKey === undefined ? {} : { primaryKey }),
      },
      resumed === undefined ? undefined : { ends: endsOf(resumed), inputs: resumed.inputs },
      keyed?.keyed,
    )
    const known = this.#tables.get(table.id)
    if (known !== undefined) return known
    const held = holdTable(table.id, lake, table.sourceId, version, keyed?.upserts)
    const opened = { table, lake, held, resumed, version }
    this.#tables.set(table.id, opened)
    this.coordinator.register({
      table: table.id,
      name,
      freshnessMs: definition.freshnessMs,
      ...(options.start === 'waits-one-freshness' ? {} : this.#sinceFinish(version)),
    })
    return opened
  }

  /** Starts the job. `isEnding` says that a table will get no more records. */
  start(
    isEnding: (table: SourceTable) => boolean,
    more: { readonly readers?: number; readonly writerBytes?: number } = {},
  ): RunningJob {
    const { source } = this
    const { clock, chance, ids, journal } = this.#ports
    const { lake, encoder, pollIntervalMs } = this.#options
    const { readers = this.#options.readers, writerBytes = this.#options.writerBytes } = more
    this.#isEnding = isEnding
    const committer = lakeCommitter({
      clock,
      chance,
      ids,
      journal,
      source,
      store: lake.store,
      held: (id) => this.#tables.get(id)?.held,
    })
    const runner = splitRunner({
      source,
      store: lake.store,
      ids,
      journal,
      budget: new WriterBudget(writerBytes),
      encoderFor: encoderChoice(encoder),
      optionsFor: encoderOptions,
    })
    this.#job = startJob({
      coordinator: this.coordinator,
      planner: committer,
      committer,
      runner: this.#options.aroundRunner?.(runner) ?? runner,
      clock,
      chance,
      journal,
      readers,
      ...(pollIntervalMs === undefined ? {} : { pollIntervalMs }),
      events: (event) => {
        for (const listener of this.#listeners) listener(event)
      },
      isFinal: (table, ends) => this.#isEnding(table) && source.endsAt(table.id, ends),
    })
    return this.#job
  }

  listen(listener: (event: TieringEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Ends of the log now: what has been appended so far. */
  async logEnds(table: TableId): Promise<Map<Bucket, Offset>> {
    const ranges = await this.source.ranges(table)
    return new Map(ranges.map((range) => [range.bucket, range.end]))
  }

  /** Frees everything. Ends waiting appends. */
  close(): void {
    this.source.close()
    this.coordinator.close()
  }

  /**
   * Lets go of the rows of primary-key tables, after `close`. Stores on disk are good for another start
   * where the lake has all that was changed.
   */
  async closeStores(): Promise<void> {
    for (const [id, { held }] of this.#tables) {
      const newest = followedBy(held)
      if (newest !== undefined) await this.source.settled(id, newest)
    }
    await this.source.closeStores()
    await this.#stores?.close()
  }

  #keyedTable(
    {
      lake,
      definition,
    }: { readonly lake: LakeTable; readonly definition: Pick<SourceTable, 'schema'> },
    version: ReadVersion,
  ): KeyedTableParts {
    const { ids, journal } = this.#ports
    const kv = this.#options.kv ?? {
      engine: memoryEngine(),
      memoryBytes: kvMemoryDefault,
      stateFolder: 'memory',
    }
    this.#stores ??= new KvStores({ engine: kv.engine, memoryBytes: kv.memoryBytes, journal, ids })
    const mark = ledgerOf(version)?.commit
    return keyedTable(
      { lake, version: version.table, fields: definition.schema.fields, mark },
      {
        stores: this.#stores,
        stateFolder: kv.stateFolder,
        lake: this.#options.lake,
        ids,
        journal,
      },
    )
  }

  #sinceFinish(version: ReadVersion): { readonly sinceFinishMs?: number } {
    const newest = version.progress.kind === 'found' ? version.progress.snapshot : undefined
    if (newest === undefined) return {}
    const since = this.#ports.clock.now() - newest.committedAt
    return { sinceFinishMs: Math.max(0, since) }
  }
}

/** Whether a rejected round of a table may be tried again by itself. */
export function isPassing(error: SluiceError): boolean {
  return (
    isSluiceError(error, 'STORE_UNAVAILABLE') ||
    isSluiceError(error, 'COMMIT_CONTENDED') ||
    isSluiceError(error, 'LEASE_LOST')
  )
}
