import { isDeepStrictEqual } from 'node:util'
import type { ColumnBatch } from '../../core/columns/column.ts'
import { SluiceError } from '../../core/errors.ts'
import { type Bucket, type Offset, type TableId, tableId } from '../../core/ids.ts'
import { check } from '../../core/never.ts'
import type { Clock } from '../../core/ports.ts'
import type { TableSchema } from '../../core/schema/types.ts'
import { type BucketFormat, requireKeyType } from '../bucketing/key-encoding.ts'
import type {
  BucketEnds,
  BucketRange,
  InputsProgress,
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
import { LogBudget } from './log-budget.ts'

/** Each bucket is a log, a split and a file per round. */
export const bucketsMax = 4096

export type EmbeddedTableDefinition = {
  /** As users write it: `demo.flights`. */
  readonly name: string
  readonly schema: TableSchema
  /** 1 to 4096; fixed from then on. */
  readonly bucketCount: number
  /** Column whose hash decides the bucket; without it, place does. */
  readonly bucketKey?: string
  readonly freshnessMs: number
  /** Whose hash; that of Iceberg unless given. */
  readonly lakeFormat?: BucketFormat
}

/** Kinds of changes as Fluss writes them. */
export type ChangeKind = '+A' | '+I' | '-U' | '+U' | '-D'

export type AppendOptions = {
  readonly input?: AppendInput
  /** What to do when the log has no room; `wait` unless given. */
  readonly whenFull?: 'wait' | 'reject'
  readonly signal?: AbortSignal
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
   * Makes a log table, or opens the one of this name when its definition is the same.
   *
   * @param resume What the lake holds of it: offsets and inputs go on from there.
   * @throws SluiceError TABLE_MISMATCH when it is not the same or does not fit the lake,
   * CONFIG_INVALID for a number out of range, SCHEMA_UNSUPPORTED for an impossible bucket key.
   */
  createTable(definition: EmbeddedTableDefinition, resume?: TableResume): SourceTable {
    this.#refuseClosed()
    const format = definition.lakeFormat ?? 'iceberg'
    checkDefinition(definition, format)
    const table: SourceTable = {
      id: tableId(BigInt(this.#tables.size + 1)),
      name: definition.name,
      kind: 'log',
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

  #require(id: TableId): EmbeddedTable {
    const found = this.#tables.get(id)
    if (found !== undefined) return found
    throw new SluiceError('TABLE_MISSING', `the embedded source has no table ${String(id)}`)
  }

  #refuseClosed(): void {
    if (this.#closed) throw new SluiceError('STOPPED', 'the embedded source is closed')
  }
}

function checkDefinition(definition: EmbeddedTableDefinition, format: BucketFormat): void {
  const { name, schema, bucketCount, bucketKey, freshnessMs } = definition
  if (!Number.isInteger(bucketCount) || bucketCount < 1 || bucketCount > bucketsMax) {
    throw new SluiceError(
      'CONFIG_INVALID',
      `${name}: ${bucketCount} buckets; a table has 1 to ${bucketsMax} (each is a log, a split and ` +
        'a file per round)',
      { details: { table: name, buckets: bucketCount, max: bucketsMax } },
    )
  }
  if (!Number.isSafeInteger(freshnessMs) || freshnessMs < 1) {
    throw new SluiceError('CONFIG_INVALID', `${name}: freshness ${freshnessMs} ms is no duration`)
  }
  if (bucketKey === undefined) return
  const field = schema.fields.find((each) => each.name === bucketKey)
  if (field === undefined) {
    throw new SluiceError(
      'SCHEMA_UNSUPPORTED',
      `${name}: the bucket key ${JSON.stringify(bucketKey)} is not one of its columns`,
      { details: { table: name, columns: schema.fields.map((each) => each.name) } },
    )
  }
  requireKeyType(bucketKey, field.type, format)
}

function requireSame(existing: SourceTable, asked: SourceTable): void {
  const { name } = existing
  const refuse = (message: string, was: unknown, is: unknown): SluiceError =>
    new SluiceError('TABLE_MISMATCH', message, {
      details: { table: name, existing: was, asked: is },
    })
  if (existing.bucketCount !== asked.bucketCount) {
    const [was, is] = [existing.bucketCount, asked.bucketCount]
    throw refuse(`${name} exists with ${was} buckets; ${is} would move its records`, was, is)
  }
  for (const key of ['bucketKey', 'freshnessMs', 'schema'] as const) {
    const [was, is] = [existing[key], asked[key]]
    if (!isDeepStrictEqual(was, is)) throw refuse(`${name} exists with another ${key}`, was, is)
  }
}

function requireBuckets(table: SourceTable, { ends, inputs }: TableResume): void {
  const buckets = [
    ...ends.keys(),
    ...[...inputs.values()].flatMap(({ extra }) => [...extra.keys()]),
  ]
  const largest = buckets.reduce((max, each) => Math.max(max, each), -1)
  if (largest < table.bucketCount) return
  throw new SluiceError(
    'TABLE_MISMATCH',
    `${table.name} has bucket ${largest} in the lake; ${table.bucketCount} buckets would move its records`,
    { details: { table: table.name, bucket: largest, asked: table.bucketCount } },
  )
}

function refusedChange(name: string, change: ChangeKind): SluiceError {
  return new SluiceError(
    'RECORD_REFUSED',
    `${name} is a log table, which only grows; a change ${change} needs a primary key`,
    { details: { table: name, change } },
  )
}
