import { fileCatalog } from '../src/catalog/iceberg/file-catalog.ts'
import type { LakeTable, TableDefinition } from '../src/catalog/ports.ts'
import type { ObjectStore } from '../src/catalog/store/object-store.ts'
import { createEmbeddedCoordinator } from '../src/coordinator/embedded-coordinator.ts'
import { Ending } from '../src/core/ending.ts'
import { isSluiceError, SluiceError } from '../src/core/errors.ts'
import { incarnation, type TableId } from '../src/core/ids.ts'
import type { Clock, IdSource, Journal } from '../src/core/ports.ts'
import { type HeldTable, holdTable, ledgerOf } from '../src/sink/committer/held-table.ts'
import { lakeCommitter } from '../src/sink/committer/lake-committer.ts'
import { endsOf } from '../src/sink/committer/ledger.ts'
import { readVersion as soundRead } from '../src/sink/committer/progress.ts'
import type { TieringEvent } from '../src/sink/job/events.ts'
import { startJob } from '../src/sink/job/job.ts'
import type { RunningJob } from '../src/sink/job/options.ts'
import type { ParquetEncoder } from '../src/sink/parquet/encoder.ts'
import type { CommitResult, RoundPlan, SplitResult } from '../src/sink/ports.ts'
import { splitRunner } from '../src/sink/reader/split-runner.ts'
import { WriterBudget } from '../src/sink/writer/writer-budget.ts'
import { EmbeddedSource } from '../src/source/embedded/embedded-source.ts'
import type { InputProgress, LogSource, SourceTable } from '../src/source/ports.ts'
import { CoordinatorLink } from './coordinator-link.ts'
import { recordsOf, type SimInput } from './inputs.ts'
import type { PlanOptions } from './plan.ts'
import type { Random } from './random.ts'
import type { Seams } from './seams.ts'
import type { Pid, World } from './world.ts'

export const warehouse = 'file:///lake'

/** What a process tells whoever watches it. Nothing of it steers the process. */
export type ProcessWatcher = {
  /** What a committer says became of a round. */
  concluded(plan: RoundPlan, results: readonly SplitResult[], outcome: CommitResult): void
  mark(name: string): void
}

export type ProcessOptions = {
  readonly world: World
  readonly pid: Pid
  readonly store: ObjectStore
  readonly options: PlanOptions
  readonly tables: readonly SimTable[]
  readonly seams: Seams
  readonly encoder: ParquetEncoder
  readonly watcher: ProcessWatcher
  /** Nothing is added to an input after this. */
  readonly closesAt: number
}

export type SimTable = { readonly name: string; readonly inputs: readonly SimInput[] }

type OpenTable = {
  readonly table: SourceTable
  readonly lake: LakeTable
  readonly inputs: readonly SimInput[]
  readonly resumed: ReadonlyMap<string, InputProgress>
  held: HeldTable
  failures: number
}

/** Rounds of one table that may fail in a row by causes that pass; as `sluice tier` has it. */
const failuresMax = 3
const pollInputsMs = 2_000

/**
 * One process of Sluice from its start to its end, put together as `sluice tier --follow` is: inputs
 * into logs, logs in rounds into the lake, until the inputs are closed and everything is in.
 */
export class SimProcess {
  readonly #options: ProcessOptions
  readonly #clock: Clock
  readonly #random: Random
  readonly #ids: IdSource
  readonly #source: EmbeddedSource
  readonly #link: CoordinatorLink
  readonly #tables = new Map<TableId, OpenTable>()
  readonly #stop = new Ending()
  readonly #journal: Journal
  #incarnation = 1
  #job: RunningJob | undefined
  #failure: SluiceError | undefined
  #closedTables = new Set<TableId>()
  #wake: () => void = () => undefined

  constructor(options: ProcessOptions) {
    this.#options = options
    const { world, pid } = options
    this.#clock = world.clockOf(pid)
    this.#random = world.random.fork()
    const idRandom = world.random.fork()
    this.#ids = { bits128: () => idRandom.bits128() }
    this.#source = new EmbeddedSource({
      clock: this.#clock,
      logMemoryBytes: options.options.logMemoryBytes,
      readBytesMax: options.options.readBytesMax,
    })
    this.#link = new CoordinatorLink(this.#newCoordinator(), {
      world,
      pid,
      random: this.#random.fork(),
      isRemote: options.options.remoteCoordinator,
    })
    this.#journal = {
      note: (entry) => {
        options.watcher.mark(entry.event)
        if (world.isRecording) {
          const fields = entry.fields === undefined ? '' : ` ${shownFields(entry.fields)}`
          world.say(`process ${pid}  ${entry.event}${fields}`)
        }
      },
    }
  }

  /** @returns what ended it early, or undefined when everything is in the lake */
  async run(): Promise<SluiceError | undefined> {
    try {
      for (const table of this.#options.tables) await this.#open(table)
      this.#start()
      await Promise.all([...this.#tables.values()].map((table) => this.#readInputs(table)))
      await this.#drain()
      return this.#failure
    } catch (error) {
      if (!isSluiceError(error)) throw error
      if (error.code === 'INVARIANT_BROKEN') throw error
      return this.#failure ?? error
    } finally {
      await this.#job?.stop(5_000)
      this.#source.close()
      this.#link.current.close()
    }
  }

  cutCoordinator(duration: number): void {
    this.#link.cut(duration)
  }

  heal(): void {
    this.#link.heal()
  }

  /** Another coordinator takes over: it knows the tables and not what became of their rounds. */
  async restartCoordinator(): Promise<void> {
    try {
      const held: [OpenTable, HeldTable][] = []
      for (const open of this.#tables.values()) held.push([open, await this.#heldAnew(open)])
      this.#incarnation += 1
      for (const [open, next] of held) open.held = next
      const next = this.#newCoordinator()
      for (const { table } of this.#tables.values()) {
        next.register({
          table: table.id,
          name: table.name,
          freshnessMs: table.freshnessMs,
          inDoubt: true,
          sinceFinishMs: 0,
        })
      }
      this.#link.replace(next)
      this.#options.watcher.mark('coordinator.restarted')
    } catch (error) {
      if (!isSluiceError(error)) throw error
    }
  }

  #newCoordinator(): ReturnType<typeof createEmbeddedCoordinator> {
    return createEmbeddedCoordinator({
      clock: this.#clock,
      incarnation: incarnation(this.#incarnation),
    })
  }

  async #heldAnew(open: OpenTable): Promise<HeldTable> {
    const version = await soundRead(open.lake, open.table.sourceId)
    const { drawn, resumedFrom, landed } = open.held
    const next = holdTable(open.table.id, open.lake, open.table.sourceId, version)
    return { ...next, drawn, resumedFrom, landed, fenceFirst: this.#options.options.fences }
  }

  async #open({ name, inputs }: SimTable): Promise<void> {
    const { options, seams, watcher } = this.#options
    const store = seams.store?.(this.#options.store) ?? this.#options.store
    const catalog = fileCatalog({
      store,
      warehouse,
      clock: this.#clock,
      ids: this.#ids,
      manifestCompression: 'null',
    })
    const created = await catalog.create(definitionOf(name, options))
    const lake = seams.lake?.(created.table, store) ?? created.table
    const sourceId = `embedded:${name}`
    const version = await (seams.readVersion ?? soundRead)(lake, sourceId)
    if (version.progress.kind === 'lost') throw version.progress.error
    const ledger = ledgerOf(version)
    const sound =
      ledger === undefined
        ? { ends: new Map(), inputs: new Map<string, InputProgress>() }
        : { ends: endsOf(ledger), inputs: ledger.inputs }
    const resume = seams.resume?.(sound) ?? sound
    if ([...resume.inputs.values()].some(({ extra }) => extra.size > 0)) {
      watcher.mark('resume.beyond_position')
    }
    const { schema, bucketCount, bucketKey } = definitionOf(name, options)
    const table = this.#source.createTable(
      {
        name,
        schema,
        bucketCount,
        freshnessMs: options.freshnessMs,
        ...(bucketKey === undefined ? {} : { bucketKey }),
      },
      resume,
    )
    const sure = holdTable(table.id, lake, sourceId, version)
    const held = seams.held?.(sure, version) ?? sure
    if (!options.fences) held.fenceFirst = false
    this.#tables.set(table.id, {
      table,
      lake,
      held,
      inputs,
      resumed: resume.inputs,
      failures: 0,
    })
    const newest = version.progress.kind === 'found' ? version.progress.snapshot : undefined
    const since =
      newest === undefined ? undefined : Math.max(0, this.#clock.now() - newest.committedAt)
    this.#link.current.register({
      table: table.id,
      name,
      freshnessMs: options.freshnessMs,
      ...(since === undefined ? {} : { sinceFinishMs: since }),
    })
  }

  #start(): void {
    const { seams, options, encoder, watcher } = this.#options
    const source = seams.source?.(this.#source) ?? this.#source
    const ids = seams.commitIds?.(this.#ids, () => [...this.#tables.values()][0]?.held) ?? this.#ids
    const sound = lakeCommitter({
      clock: this.#clock,
      chance: this.#random.fork(),
      ids,
      journal: this.#journal,
      source,
      held: (id) => this.#tables.get(id)?.held,
      ...(seams.judge === undefined ? {} : { judge: seams.judge }),
      ...(seams.readVersion === undefined ? {} : { readVersion: seams.readVersion }),
    })
    const committer = seams.committer?.(sound, { source }) ?? sound
    const store = seams.store?.(this.#options.store) ?? this.#options.store
    const runner = splitRunner({
      source: pausedReads(source, options.readPauseMs ?? 0, this.#clock),
      store,
      ids: seams.fileIds?.(this.#ids) ?? this.#ids,
      journal: this.#journal,
      budget: new WriterBudget(2 ** 20),
      encoderFor: () => encoder,
      optionsFor: () => ({
        targetFileBytes: options.targetFileBytes,
        rowGroupBytes: 300,
        pageBytes: 2 ** 16,
        compression: 'none',
        compressionLevel: 1,
        metadata: new Map(),
      }),
    })
    this.#job = startJob({
      coordinator: this.#link,
      planner: {
        plan: (assignment) =>
          committer.plan(options.fences ? assignment : { ...assignment, takeOver: false }),
      },
      committer: {
        commit: async (plan, results, final) => {
          const outcome = await committer.commit(plan, results, final)
          watcher.concluded(plan, results, outcome)
          return outcome
        },
      },
      runner,
      clock: this.#clock,
      chance: this.#random.fork(),
      journal: this.#journal,
      readers: options.readers,
      events: (event) => {
        this.#hear(event)
      },
      isFinal: (table, ends) =>
        this.#closedTables.has(table.id) && this.#source.endsAt(table.id, ends),
    })
    this.#job.done.catch((error: unknown) => {
      this.#fail(
        isSluiceError(error)
          ? error
          : new SluiceError('INVARIANT_BROKEN', String(error), { cause: error }),
      )
    })
    this.#source.onGrown((id) => {
      if (this.#source.isHalfFull(id)) this.#link.current.trigger(id)
    })
  }

  async #readInputs(open: OpenTable): Promise<void> {
    await Promise.all(open.inputs.map((input) => this.#readInput(open, input)))
    this.#closedTables.add(open.table.id)
  }

  async #readInput({ table, resumed }: OpenTable, input: SimInput): Promise<void> {
    const known = resumed.get(input.id)
    const signal = this.#stop
    let at = known === undefined ? 0 : Number(known.position)
    for (;;) {
      const { world } = this.#options
      const length = input.lengthAt(world.now)
      while (at < length) {
        const to = Math.min(length, at + this.#random.between(1, 25))
        // A piece without a position stays open; a replay then starts before it.
        const isMarked = to === input.records || this.#random.isLucky(0.7)
        const result = await this.#source.append(table.id, recordsOf(input, at, to), {
          input: {
            id: input.id,
            name: input.id,
            ...(isMarked ? { position: String(to) } : {}),
            startOrdinal: BigInt(at),
            startPosition: '0',
          },
          signal,
        })
        if (result.alreadyThere > 0) this.#options.watcher.mark('replay.skipped')
        at = to
      }
      if (at >= input.records && world.now >= this.#options.closesAt) return
      await this.#clock.sleep(pollInputsMs + this.#random.below(500), { signal })
    }
  }

  /** Asks for rounds until the lake holds everything. */
  async #drain(): Promise<void> {
    for (;;) {
      if (this.#failure !== undefined) return
      const open = [...this.#tables.keys()].filter((id) => !this.#source.endsAt(id, new Map()))
      if (open.length === 0) return
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      for (const id of open) this.#link.current.trigger(id)
      await woken
    }
  }

  #hear(event: TieringEvent): void {
    if (event.event === 'state') {
      if (event.state === 'Tiered' || event.state === 'Scheduled') this.#wake()
      return
    }
    const open = [...this.#tables.values()].find(({ table }) => table.name === event.table)
    if (open === undefined) return
    if (event.event === 'committed') {
      open.failures = 0
      if (event.forceFinished) this.#options.watcher.mark('round.forced')
      this.#wake()
      return
    }
    const { world, pid, watcher } = this.#options
    watcher.mark(`rejected.${event.error.code}`)
    world.say(`process ${pid}  ${event.table} round ${event.epoch}  ${event.error.message}`)
    open.failures += 1
    if (!isPassing(event.error) || open.failures >= failuresMax) this.#fail(event.error)
  }

  #fail(error: SluiceError): void {
    this.#failure ??= error
    this.#stop.abort()
    this.#wake()
  }
}

function isPassing({ code }: SluiceError): boolean {
  return code === 'STORE_UNAVAILABLE' || code === 'COMMIT_CONTENDED' || code === 'LEASE_LOST'
}

function definitionOf(name: string, options: PlanOptions): TableDefinition {
  return {
    name: name.split('.'),
    schema: { fields: [{ name: 'n', type: { kind: 'bigint', nullable: false } }] },
    bucketCount: options.buckets,
    properties: new Map(),
    ...(options.byKey ? { bucketKey: 'n' } : {}),
  }
}

function shownFields(fields: NonNullable<Parameters<Journal['note']>[0]['fields']>): string {
  return Object.entries(fields)
    .map(([key, value]) => `${key}=${String(value)}`)
    .join(' ')
}

/** The same log, whose readers wait before each batch. */
function pausedReads(source: LogSource, pauseMs: number, clock: Clock): LogSource {
  if (pauseMs === 0) return source
  return {
    tables: () => source.tables(),
    table: (id) => source.table(id),
    ranges: (id) => source.ranges(id),
    pin: (id, bucket, start) => source.pin(id, bucket, start),
    inputs: (id, ends) => source.inputs(id, ends),
    committed: (id, ends) => {
      source.committed(id, ends)
    },
    async *read(id, bucket, start, stop) {
      for await (const batch of source.read(id, bucket, start, stop)) {
        await clock.sleep(pauseMs)
        yield batch
      }
    },
  }
}
