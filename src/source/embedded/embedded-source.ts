import { batchBytes, type ColumnBatch } from '../../core/columns/column.ts'
import { SluiceError } from '../../core/errors.ts'
import { type Bucket, bucket, type Offset, type TableId, tableId } from '../../core/ids.ts'
import { check } from '../../core/never.ts'
import type { Clock, WaitSignal } from '../../core/ports.ts'
import type {
  BucketEnds,
  BucketRange,
  InputsProgress,
  KvSnapshot,
  KvSnapshots,
  LogBatch,
  LogSource,
  SourceTable,
} from '../ports.ts'
import {
  type AppendInput,
  type AppendResult,
  EmbeddedTable,
  type TableResume,
} from './embedded-table.ts'
import { type KeyedOptions, KeyedState } from './keyed-state.ts'
import { KeyedTable } from './keyed-table.ts'
import {
  checkDefinition,
  type EmbeddedTableDefinition,
  requireBuckets,
  requireSame,
} from './check-table.ts'
import { LogBudget } from './log-budget.ts'
import { type ChangeBatch, changeOp } from '../changelog/change-batch.ts'

/** Kinds of changes as Fluss writes them. */
export type ChangeKind = '+A' | '+I' | '-U' | '+U' | '-D'

export type AppendOptions = {
  readonly input?: AppendInput
  /** What to do when the log has no room; `wait` unless given. */
  readonly whenFull?: 'wait' | 'reject'
  readonly signal?: WaitSignal
  /** A log table takes `+A` only. */
  readonly change?: ChangeKind
}

export type EmbeddedSourceOptions = {
  readonly clock: Clock
  /** Memory for the logs of all tables together. */
  readonly logMemoryBytes: number
  /** Size of what `read` yields at a time; 8 MiB unless given. */
  readonly readBytesMax?: number
}

const readBytesDefault = 8 * 2 ** 20

/**
 * Log tables in memory. A record that was appended is gone with the process until it is in the lake;
 * what makes that safe is an input that can be read again, whose position goes into the lake with the
 * rows. Batches are kept as they are given and must not be changed afterwards.
 */
export class EmbeddedSource implements LogSource {
  readonly #clock: Clock
  readonly #budget: LogBudget
  readonly #readBytesMax: number
  readonly #tables = new Map<TableId, EmbeddedTable>()
  readonly #keyed = new Map<TableId, KeyedTable>()
  readonly #listeners = new Set<(id: TableId) => void>()
  #closed = false

  constructor(options: EmbeddedSourceOptions) {
    check(options.logMemoryBytes > 0, 'a log has memory')
    this.#clock = options.clock
    this.#readBytesMax = options.readBytesMax ?? readBytesDefault
    this.#budget = new LogBudget(options.logMemoryBytes, () => {
      for (const [id, table] of this.#tables) if (table.hasBacklog) this.#tell(id)
    })
  }

  /** Bytes the logs take, of `logMemoryBytes`. */
  get heldBytes(): number {
    return this.#budget.held
  }

  /** Appends that wait for room. */
  get waiting(): number {
    return this.#budget.waiting
  }

  /**
   * Makes a table, or opens the one of this name when its definition is the same.
   *
   * @param resume What the lake holds of it: offsets and inputs go on from there.
   * @param keyed What a primary-key table keeps its rows in.
   * @throws SluiceError TABLE_MISMATCH when it is not the same or does not fit the lake,
   * CONFIG_INVALID for a number out of range, SCHEMA_UNSUPPORTED for an impossible bucket key.
   */
  createTable(
    definition: EmbeddedTableDefinition,
    resume?: TableResume,
    keyed?: KeyedOptions,
  ): SourceTable {
    this.#refuseClosed()
    const format = definition.lakeFormat ?? 'iceberg'
    checkDefinition(definition, format)
    const table: SourceTable = {
      id: tableId(BigInt(this.#tables.size + 1)),
      name: definition.name,
      kind: definition.primaryKey === undefined ? 'log' : 'primary-key',
      ...(definition.primaryKey === undefined ? {} : { primaryKey: definition.primaryKey }),
      sourceId: `embedded:${definition.name}`,
      schema: definition.schema,
      bucketCount: definition.bucketCount,
      bucketKey: definition.bucketKey,
      freshnessMs: definition.freshnessMs,
    }
    for (const { definition: existing } of this.#tables.values()) {
      if (existing.name !== table.name) continue
      requireSame(existing, table)
      return existing
    }
    const from = resume ?? { ends: new Map(), inputs: new Map() }
    requireBuckets(table, from)
    this.#tables.set(table.id, new EmbeddedTable(table, format, from))
    if (table.primaryKey !== undefined) {
      check(keyed !== undefined, 'a primary-key table has a state')
      this.#keyed.set(table.id, new KeyedTable(table, new KeyedState(table, keyed)))
    }
    return table
  }

  /**
   * Appends batches with the columns of the table, all or nothing, in the order of the calls. The
   * position of an input is the one after the last batch.
   *
   * @throws SluiceError RECORD_REFUSED when a record does not fit; LOG_FULL with `whenFull: 'reject'`;
   * INPUT_CHANGED when the input does not go on where it was; STOPPED when the signal aborts or the
   * source is closed first. Then no record was taken.
   */
  async append(
    id: TableId,
    batches: ColumnBatch | readonly ColumnBatch[],
    options: AppendOptions = {},
  ): Promise<AppendResult> {
    const { input, signal, whenFull = 'wait', change = '+A' } = options
    this.#refuseClosed()
    const table = this.#require(id)
    const { primaryKey } = table.definition
    check(primaryKey === undefined, 'a primary-key table takes changes, not records')
    if (change !== '+A') throw refusedChange(table.definition.name, change)
    const prepared =
      'columns' in batches ? [table.prepare(batches)] : batches.map((each) => table.prepare(each))
    const result = await this.#budget.admit({
      bytes: prepared.reduce((sum, each) => sum + each.bytes, 0),
      whenFull,
      signal,
      group: input === undefined ? undefined : `${String(id)}/${input.id}`,
      take: () =>
        table.take(prepared, input, {
          now: this.#clock.now(),
          hold: (bytes) => {
            this.#budget.hold(bytes)
          },
        }),
    })
    if (result.appended > 0) this.#tell(id)
    return result
  }

  /**
   * Applies changes to a primary-key table, in the order of the calls, all of a call or none. What they
   * come to goes into the changelog.
   *
   * @throws SluiceError as `append` does; RECORD_REFUSED names the `row` in its batch.
   */
  async change(
    id: TableId,
    batches: readonly ChangeBatch[],
    options: Omit<AppendOptions, 'change'> = {},
  ): Promise<AppendResult> {
    const { input, signal, whenFull = 'wait' } = options
    this.#refuseClosed()
    const table = this.#require(id)
    const keyed = this.#requireKeyed(id)
    const prepared = batches.map((batch) => ({ batch, buckets: table.prepareChanges(batch) }))
    const result = await keyed.inOrder(async () => {
      // What an update adds to the log, its row before and after, is not known yet.
      const bytes = 2 * batches.reduce((sum, { records }) => sum + batchBytes(records), 0)
      await this.#budget.admit({
        bytes,
        whenFull,
        signal,
        group: input === undefined ? undefined : `${String(id)}/${input.id}`,
        take: () => {
          this.#budget.hold(bytes)
        },
      })
      try {
        this.#refuseClosed()
        const work = await keyed.apply(prepared, (bucket, count, already) =>
          table.skips(input, bucket, count, already),
        )
        return table.takeChanges(work.parts, work.given, input, {
          now: this.#clock.now(),
          hold: (held) => {
            this.#budget.hold(held)
          },
        })
      } finally {
        this.#budget.release(bytes)
      }
    })
    if (result.ranges.length > 0) this.#tell(id)
    return result
  }

  /** The row of a key as it is now. @param key One record with the columns of the table. */
  async get(id: TableId, key: ColumnBatch): Promise<ColumnBatch | undefined> {
    const table = this.#require(id)
    const keyed = this.#requireKeyed(id)
    const ops = new Uint8Array(key.length).fill(changeOp.delete)
    const [of] = table.prepareChanges({ records: key, ops })
    return keyed.inOrder(() => keyed.state.get(table.log(bucket(of ?? 0)).bucket, keyed.keyOf(key)))
  }

  /** Takes a KV snapshot of each bucket: its rows, and the offset up to which they are. */
  async takeKvSnapshots(id: TableId): Promise<readonly KvSnapshot[]> {
    const table = this.#require(id)
    const keyed = this.#requireKeyed(id)
    return keyed.inOrder(async () => {
      const taken: KvSnapshot[] = []
      for (const log of table.logs) {
        taken.push(await keyed.state.takeSnapshot(log.bucket, log.end))
      }
      return taken
    })
  }

  readonly kv: KvSnapshots = {
    newest: (id) => Promise.resolve(this.#keyed.get(id)?.state.newestSnapshots() ?? new Map()),
    lease: (id, snapshot) => this.#requireKeyed(id).state.lease(snapshot),
  }

  /**
   * Notes that all rows of a table are as the lake has them, in the state of that name; a store on disk
   * is then used as it is when it is opened again.
   */
  async settled(id: TableId, name: string): Promise<void> {
    const keyed = this.#keyed.get(id)
    if (keyed === undefined || this.#require(id).hasBacklog) return
    await keyed.inOrder(() => keyed.state.mark(name))
  }

  /** True when it is time to tier the table rather than to wait for freshness: memory runs short. */
  isHalfFull(id: TableId): boolean {
    const isShort = this.#budget.waiting > 0 || 2 * this.#budget.held >= this.#budget.bytesMax
    return isShort && this.#require(id).hasBacklog
  }

  /**
   * Calls `listener`, which must not throw, when a table has grown or an append waits for it to be
   * tiered. Returns what ends the calls.
   */
  onGrown(listener: (id: TableId) => void): () => void {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  /** True if nothing was appended beyond `ends`; a bucket without one there counts as committed. */
  endsAt(id: TableId, ends: BucketEnds): boolean {
    return this.#require(id).logs.every(
      ({ bucket, end, committed }) => end <= (ends.get(bucket) ?? committed),
    )
  }

  /** How far the lake is known to be; only buckets that hold something there. */
  committedEnds(id: TableId): BucketEnds {
    const ends = new Map<Bucket, Offset>()
    for (const { bucket, committed } of this.#require(id).logs) {
      if (committed > 0n) ends.set(bucket, committed)
    }
    return ends
  }

  tables(): readonly SourceTable[] {
    return [...this.#tables.values()].map(({ definition }) => definition)
  }

  table(id: TableId): SourceTable | undefined {
    return this.#tables.get(id)?.definition
  }

  ranges(id: TableId): Promise<readonly BucketRange[]> {
    return Promise.resolve(this.#require(id).logs.map(({ range }) => range))
  }

  async *read(
    id: TableId,
    bucket: Bucket,
    start: Offset,
    stop: Offset,
  ): AsyncGenerator<LogBatch, void, undefined> {
    // Nothing to wait for in memory, but the port promises a source that may.
    await Promise.resolve()
    yield* this.#require(id).log(bucket).read(start, stop, this.#readBytesMax)
  }

  pin(id: TableId, bucket: Bucket, start: Offset): { release(): void } {
    const table = this.#require(id)
    const pin = table.log(bucket).pin(start)
    return {
      release: () => {
        pin.release()
        this.#trim(table)
      },
    }
  }

  inputs(id: TableId, ends: BucketEnds): InputsProgress {
    return this.#require(id).inputs(ends)
  }

  committed(id: TableId, ends: BucketEnds): void {
    const table = this.#require(id)
    table.commit(ends)
    this.#trim(table)
  }

  /** Closes the stores of primary-key tables, after `close`. */
  async closeStores(): Promise<void> {
    for (const keyed of this.#keyed.values()) await keyed.inOrder(() => keyed.state.close())
  }

  /** Ends waiting appends with STOPPED and refuses new ones; what is there can still be read. */
  close(): void {
    this.#closed = true
    this.#budget.close()
  }

  #trim(table: EmbeddedTable): void {
    const freed = table.trim()
    if (freed > 0) this.#budget.release(freed)
  }

  #tell(id: TableId): void {
    for (const listener of this.#listeners) listener(id)
  }

  #requireKeyed(id: TableId): KeyedTable {
    const found = this.#keyed.get(id)
    check(found !== undefined, 'changes are for primary-key tables')
    return found
  }

  #require(id: TableId): EmbeddedTable {
    const found = this.#tables.get(id)
    if (found !== undefined) return found
    throw new SluiceError('TABLE_MISSING', `the embedded source has no table ${String(id)}`)
  }

  #refuseClosed(): void {
    if (this.#closed) throw new SluiceError('STOPPED', 'the embedded source is closed')
  }
}

function refusedChange(name: string, change: ChangeKind): SluiceError {
  return new SluiceError(
    'RECORD_REFUSED',
    `${name} is a log table, which only grows; a change ${change} needs a primary key`,
    { details: { table: name, change } },
  )
}
