import { columnBuilder, finishBatch } from '../../core/columns/builder.ts'
import { type Column, type ColumnBatch, isNull } from '../../core/columns/column.ts'
import { encodeKeys } from '../../core/columns/key-codec.ts'
import { appendRow, encodeRows } from '../../core/columns/row-codec.ts'
import { SluiceError } from '../../core/errors.ts'
import { type Bucket, bucket, type Offset } from '../../core/ids.ts'
import { check } from '../../core/never.ts'
import type { ChangeBatch, ChangelogOptions } from '../changelog/change-batch.ts'
import {
  applyChanges,
  type Changelog,
  keyText,
  needsRow,
  type Write,
} from '../changelog/changelog.ts'
import type { KvFamily, KvStore } from '../kv/ports.ts'
import type { KvSnapshot, KvSnapshotLease, SourceTable } from '../ports.ts'

/** Families of a bucket's store that the source keeps. */
export const stateFamilies = ['rows', 'meta'] as const

/** What a primary-key table has beside its logs. */
export type KeyedOptions = {
  readonly changelog: ChangelogOptions
  /** The store of a bucket, for as long as the table is open. */
  readonly storeOf: (bucket: Bucket) => Promise<KvStore>
  /**
   * The rows the lake has of a bucket, asked for when the first change comes; absent for a table of
   * which the lake has nothing.
   */
  readonly rowsOf?: (bucket: Bucket) => AsyncIterable<ColumnBatch>
  /**
   * Names the state that the lake has. A store that was left in that state is used as it is, any other
   * is filled from the lake.
   */
  readonly mark?: string
}

const markKey = Buffer.from('mark')
/** Rows of a snapshot handed out at once. */
const snapshotRows = 4096
const writeOperationsMax = 50_000

type Opened = { readonly store: KvStore; readonly rows: KvFamily; readonly meta: KvFamily }

/** A KV snapshot that is kept: the newest of its bucket, and any that is leased. */
type Kept = {
  readonly snapshot: KvSnapshot
  readonly state: Awaited<ReturnType<KvStore['snapshot']>>
  leases: number
  isNewest: boolean
}

/** The rows of a primary-key table: for each bucket a store from key to row. */
export class KeyedState {
  readonly #table: SourceTable
  readonly #options: KeyedOptions
  readonly #keyColumns: readonly number[]
  readonly #opened = new Map<Bucket, Promise<Opened>>()
  readonly #kept = new Map<bigint, Kept>()
  #isMarked = true
  #snapshots = 0n

  constructor(table: SourceTable, options: KeyedOptions) {
    this.#table = table
    this.#options = options
    this.#keyColumns = (table.primaryKey ?? []).map((name) =>
      table.schema.fields.findIndex((field) => field.name === name),
    )
  }

  /** @throws SluiceError RECORD_REFUSED for a key that is null */
  keysOf(records: ColumnBatch): readonly Uint8Array[] {
    return encodeKeys(
      this.#keyColumns.map((at) => {
        const column = records.columns[at]
        check(column !== undefined, 'a batch has the columns of the key')
        this.#refuseNullKey(column, at)
        return column
      }),
      records.length,
    )
  }

  /**
   * What the changes of one bucket come to. Changes nothing.
   * @param pending Rows that are to be written before, by key.
   */
  async apply(
    of: Bucket,
    batch: ChangeBatch,
    pending: ReadonlyMap<string, Write>,
  ): Promise<Changelog> {
    const { store, rows } = await this.#open(of)
    const keys = this.keysOf(batch.records)
    const { changelog } = this.#options
    const wanted = keys.flatMap((_, at) => (needsRow(batch, changelog, at) ? [at] : []))
    const found = await store.getMany(
      rows,
      wanted.map((at) => keys[at] ?? new Uint8Array(0)),
    )
    const before = new Array<Uint8Array | undefined>(keys.length)
    wanted.forEach((at, nth) => {
      const key = keys[at]
      const write = key === undefined ? undefined : pending.get(keyText(key))
      before[at] = write === undefined ? found[nth] : write.row
    })
    return applyChanges(this.#table.schema.fields, batch, keys, before, changelog)
  }

  /** Makes the rows those that the changes have left. */
  async write(of: Bucket, writes: ReadonlyMap<string, Write>): Promise<void> {
    await this.#unmark()
    const { store, rows } = await this.#open(of)
    let batch = store.batch()
    for (const { key, row } of writes.values()) {
      if (row === undefined) batch.delete(rows, key)
      else batch.put(rows, key, row)
      if (batch.operations < writeOperationsMax) continue
      await store.write(batch)
      batch = store.batch()
    }
    await store.write(batch)
  }

  async get(of: Bucket, key: Uint8Array): Promise<ColumnBatch | undefined> {
    const { store, rows } = await this.#open(of)
    const row = await store.get(rows, key)
    return row === undefined ? undefined : this.#decode([row])
  }

  /** Keeps the state of a bucket as it is, and lets go of the one that was kept before. */
  async takeSnapshot(of: Bucket, offset: Offset): Promise<KvSnapshot> {
    const { store } = await this.#open(of)
    const state = await store.snapshot()
    for (const kept of this.#kept.values()) {
      if (kept.snapshot.bucket === of) await this.#letGo(kept, { isNewest: false })
    }
    this.#snapshots += 1n
    const snapshot = { id: this.#snapshots, bucket: of, offset }
    this.#kept.set(snapshot.id, { snapshot, state, leases: 0, isNewest: true })
    return snapshot
  }

  newestSnapshots(): ReadonlyMap<Bucket, KvSnapshot> {
    const newest = new Map<Bucket, KvSnapshot>()
    for (const { snapshot, isNewest } of this.#kept.values()) {
      if (isNewest) newest.set(snapshot.bucket, snapshot)
    }
    return newest
  }

  lease(snapshot: KvSnapshot): KvSnapshotLease {
    const kept = this.#kept.get(snapshot.id)
    if (kept === undefined) throw lostSnapshot(this.#table, snapshot)
    kept.leases += 1
    let isHeld = true
    return {
      snapshot,
      read: () => this.#read(snapshot),
      release: () => {
        if (!isHeld) return
        isHeld = false
        kept.leases -= 1
        void this.#letGo(kept, {})
      },
    }
  }

  /** Notes that every row of every bucket is as the lake has it in the state of that name. */
  async mark(name: string): Promise<void> {
    for (const each of this.#opened.values()) {
      const { store, meta } = await each
      await store.put(meta, markKey, Buffer.from(name))
      await store.flush()
    }
    this.#isMarked = true
  }

  async close(): Promise<void> {
    for (const { state } of this.#kept.values()) await state.release()
    this.#kept.clear()
    for (const each of this.#opened.values()) await (await each).store.close()
    this.#opened.clear()
  }

  #open(of: Bucket): Promise<Opened> {
    const known = this.#opened.get(of)
    if (known !== undefined) return known
    const opened = this.#openAndFill(of)
    this.#opened.set(of, opened)
    // A store that could not be filled is not used; the next change tries again.
    opened.catch(() => this.#opened.delete(of))
    return opened
  }

  async #openAndFill(of: Bucket): Promise<Opened> {
    const store = await this.#options.storeOf(of)
    const [rowsName, metaName] = stateFamilies
    const meta = await store.columnFamily(metaName)
    let rows = await store.columnFamily(rowsName)
    const found = await store.get(meta, markKey)
    const { mark, rowsOf } = this.#options
    if (found !== undefined && mark !== undefined && Buffer.from(found).toString() === mark) {
      return { store, rows, meta }
    }
    await store.delete(meta, markKey)
    await store.dropFamily(rows)
    rows = await store.columnFamily(rowsName)
    if (rowsOf === undefined) return { store, rows, meta }
    for await (const records of rowsOf(of)) {
      const batch = store.batch()
      const keys = this.keysOf(records)
      const values = encodeRows(records)
      keys.forEach((key, at) => batch.put(rows, key, values[at] ?? new Uint8Array(0)))
      await store.write(batch)
    }
    return { store, rows, meta }
  }

  async #unmark(): Promise<void> {
    if (!this.#isMarked) return
    this.#isMarked = false
    for (let each = 0; each < this.#table.bucketCount; each += 1) {
      const opened = this.#opened.get(bucket(each))
      if (opened === undefined) continue
      const { store, meta } = await opened
      await store.delete(meta, markKey)
    }
  }

  async *#read(snapshot: KvSnapshot): AsyncGenerator<ColumnBatch> {
    const kept = this.#kept.get(snapshot.id)
    if (kept === undefined) throw lostSnapshot(this.#table, snapshot)
    const { rows } = await this.#open(snapshot.bucket)
    const cursor = kept.state.scan(rows)
    try {
      for (;;) {
        const entries = await cursor.next(snapshotRows)
        if (entries === undefined) return
        yield this.#decode(entries.values)
      }
    } finally {
      await cursor.close()
    }
  }

  #decode(rows: readonly Uint8Array[]): ColumnBatch {
    const { fields } = this.#table.schema
    const builders = fields.map(({ type }) => columnBuilder(type))
    for (const row of rows) appendRow(builders, row, fields)
    return finishBatch(builders)
  }

  async #letGo(kept: Kept, change: { readonly isNewest?: false }): Promise<void> {
    if (change.isNewest === false) kept.isNewest = false
    if (kept.isNewest || kept.leases > 0 || !this.#kept.delete(kept.snapshot.id)) return
    await kept.state.release()
  }

  #refuseNullKey(column: Column, at: number): void {
    if (column.nullCount === 0) return
    let row = 0
    while (row < column.length && !isNull(column, row)) row += 1
    const name = this.#table.schema.fields[at]?.name ?? ''
    throw new SluiceError(
      'RECORD_REFUSED',
      `${this.#table.name}: record ${row} of the batch has no ${JSON.stringify(name)}, which is part of the primary key`,
      { details: { table: this.#table.name, row, column: name, reason: 'null-key' } },
    )
  }
}

function lostSnapshot(table: SourceTable, snapshot: KvSnapshot): SluiceError {
  return new SluiceError(
    'LEASE_LOST',
    `${table.name} bucket ${snapshot.bucket}: KV snapshot ${String(snapshot.id)} is not kept any more`,
    {
      details: { table: table.name, bucket: snapshot.bucket, snapshot: snapshot.id },
      fix: 'the next round begins the bucket anew, from a newer snapshot',
    },
  )
}
