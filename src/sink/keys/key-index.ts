import type { LakeTable, LiveFile, LiveFiles, LoadedTable } from '../../catalog/ports.ts'
import { DeletedRows } from '../../catalog/iceberg/read-deletes.ts'
import { type ReadColumns, readDataFile } from '../../catalog/iceberg/read-data-file.ts'
import { normalizeLocation } from '../../catalog/iceberg/location.ts'
import type { ObjectStore } from '../../catalog/store/object-store.ts'
import { encodeKeys } from '../../core/columns/key-codec.ts'
import { SluiceError } from '../../core/errors.ts'
import type { Bucket, SnapshotId } from '../../core/ids.ts'
import { check } from '../../core/never.ts'
import type { IdField } from '../../core/schema/types.ts'
import type { KvStore } from '../../source/kv/ports.ts'
import { lineage, summaryKeys } from '../committer/lineage.ts'
import type { SplitResult } from '../ports.ts'
import { BucketIndex, filesOf, type KnownPlaces } from './bucket-index.ts'
import { keyText } from './touched.ts'

export type KeyIndexOptions = {
  readonly lake: LakeTable
  readonly store: ObjectStore
  /** How the source cuts the table into buckets. */
  readonly layout: Pick<LoadedTable, 'bucketCount' | 'bucketKey'>
  /** Reads data files; for tests that have no Parquet. */
  readonly readColumns?: ReadColumns
  /** The store of a bucket, for as long as the table is held. */
  readonly storeOf: (bucket: Bucket) => Promise<KvStore>
}

/** A version of the table as the index knows it now. */
export type IndexedVersion = {
  readonly files: LiveFiles
  readonly deleted: DeletedRows
}

/**
 * Where the lake has the row of each key. It speaks of one snapshot of the lineage, follows the
 * lineage to any later one, and is built anew from the lake where it cannot follow: when it is cold,
 * after a rollback, after a change that was cut. There is nothing else to recover: a commit of ours
 * whose reply was lost is followed like any other snapshot, by reading the files it added.
 */
export class KeyIndex {
  readonly #options: KeyIndexOptions
  readonly #readColumns: ReadColumns
  readonly #buckets = new Map<Bucket, BucketIndex>()
  #seen: { readonly head: SnapshotId; readonly version: IndexedVersion } | undefined

  constructor(options: KeyIndexOptions) {
    this.#options = options
    const { store } = options
    this.#readColumns =
      options.readColumns ?? ((location, fields) => readDataFile(store, location, fields))
  }

  /**
   * Brings the index of these buckets to the head of a version.
   * @throws SluiceError COMMIT_CONFLICT when others have added rows, TABLE_MISMATCH when the table has
   *   equality deletes or files that are not cut into its buckets, DATA_CORRUPT when a key has two rows
   */
  async catchUp(table: LoadedTable, buckets: Iterable<Bucket>): Promise<IndexedVersion> {
    const version = await this.#filesOf(table)
    for (const bucket of buckets) await this.#follow(table, version, await this.#open(bucket))
    return version
  }

  async lookup(bucket: Bucket, keys: readonly Uint8Array[]): Promise<KnownPlaces> {
    return (await this.#open(bucket)).lookup(keys)
  }

  async locationOf(bucket: Bucket, file: number): Promise<string | undefined> {
    return (await this.#open(bucket)).locationOf(file)
  }

  /**
   * Takes in what a round of ours did, which is `landed` now on top of what the index spoke of.
   * @param results One for each bucket of the round.
   */
  async applied(landed: LoadedTable, results: readonly SplitResult[]): Promise<void> {
    const head = landed.head === undefined ? undefined : landed.snapshots.get(landed.head)
    check(head !== undefined, 'a round that landed has a snapshot')
    for (const result of results) {
      const { touched } = result
      const index = await this.#open(result.bucket)
      // What does not follow is caught up with later, from the lake.
      if (touched === undefined || index.snapshotOf(landed.uuid) !== head.parent) continue
      const change = index.begin()
      const numbers = result.files.map(({ location }) => change.addFile(location))
      for (const [at, key] of touched.keys.entries()) {
        const file = touched.file[at] ?? -1
        if (file < 0) await change.delete(key)
        else await change.put(key, numbers[file] ?? 0, touched.row[at] ?? 0)
      }
      await change.commit({ table: landed.uuid, snapshot: head.id })
    }
  }

  /** Lets go of what is in memory: the stores say what is true, or that nothing is. */
  forget(): void {
    this.#buckets.clear()
    this.#seen = undefined
  }

  async #open(bucket: Bucket): Promise<BucketIndex> {
    const known = this.#buckets.get(bucket)
    if (known !== undefined) return known
    const opened = await BucketIndex.open(bucket, await this.#options.storeOf(bucket))
    this.#buckets.set(bucket, opened)
    return opened
  }

  async #filesOf(table: LoadedTable): Promise<IndexedVersion> {
    if (table.head !== undefined && this.#seen?.head === table.head) return this.#seen.version
    const files = await this.#options.lake.liveFiles(table)
    const equality = files.deletes.find((each) => each.content === 'equality-deletes')
    if (equality !== undefined) throw hasEqualityDeletes(this.#options.lake, equality.location)
    const { lake, layout } = this.#options
    const isSame = table.bucketCount === layout.bucketCount && table.bucketKey === layout.bucketKey
    if (!isSame) throw hasOtherBuckets(lake, { spec_id: table.specId })
    const elsewhere = files.data.find((file) => file.bucket === undefined)
    if (elsewhere !== undefined) {
      const { location, specId } = elsewhere
      throw hasOtherBuckets(lake, { spec_id: specId, file: location })
    }
    const { store } = this.#options
    const deleted = new DeletedRows(store, files, { readColumns: this.#readColumns })
    const version = { files, deleted }
    this.#seen = table.head === undefined ? undefined : { head: table.head, version }
    return version
  }

  async #follow(table: LoadedTable, version: IndexedVersion, index: BucketIndex): Promise<void> {
    const { head, uuid } = table
    if (head === undefined || index.snapshotOf(uuid) === head) return
    const at = index.snapshotOf(uuid)
    const since = at === undefined ? undefined : snapshotsSince(table, at)
    const live = filesOf(index.bucket, version.files.data)
    if (since === undefined) await index.clear()
    else refuseForeignRows(this.#options.lake, table, since, live)
    const isCold = since === undefined
    const change = index.begin()
    const there = new Set(live.map(({ location }) => location))
    for (const location of [...index.locations()]) {
      if (!there.has(location)) change.dropFile(location)
    }
    const keyFields = keyFieldsOf(table)
    for (const file of live) {
      if (index.has(file.location)) continue
      const number = change.addFile(file.location)
      for await (const { keys, rows } of this.#liveKeys(file, version, keyFields)) {
        if (isCold) await this.#refuseDoubled(index, keys, file)
        for (const [at, key] of keys.entries()) await change.put(key, number, rows[at] ?? 0)
        // A cold index must see these rows when it looks for doubles in the next ones.
        if (isCold) await change.settle()
      }
    }
    await change.commit({ table: uuid, snapshot: head })
  }

  async *#liveKeys(
    file: LiveFile,
    version: IndexedVersion,
    keyFields: readonly IdField[],
  ): AsyncGenerator<{ readonly keys: readonly Uint8Array[]; readonly rows: readonly number[] }> {
    const deleted = new Set(await version.deleted.positions(file))
    const location = normalizeLocation(file.location)
    let ordinal = 0
    for await (const batch of this.#readColumns(location, keyFields)) {
      const all = encodeKeys(batch.columns, batch.length)
      const rows: number[] = []
      for (let row = 0; row < batch.length; row += 1) {
        if (!deleted.has(ordinal + row)) rows.push(ordinal + row)
      }
      const first = ordinal
      ordinal += batch.length
      yield { keys: rows.map((row) => all[row - first] ?? new Uint8Array(0)), rows }
    }
  }

  async #refuseDoubled(
    index: BucketIndex,
    keys: readonly Uint8Array[],
    file: LiveFile,
  ): Promise<void> {
    const { file: known } = await index.lookup(keys)
    const at = known.findIndex((number) => number >= 0)
    if (at < 0 && new Set(keys.map(keyText)).size === keys.length) return
    const name = this.#options.lake.name.join('.')
    throw new SluiceError('DATA_CORRUPT', `${name}: a key has two rows in the table`, {
      details: {
        table: name,
        bucket: index.bucket,
        reason: 'duplicate key',
        files: [index.locationOf(known[at] ?? 0), file.location],
      },
      state: 'nothing was written',
      fix: 'run sluice verify, and remove the row that does not belong there',
    })
  }
}

/** Newest first; undefined when `at` is not in the lineage. */
function snapshotsSince(table: LoadedTable, at: SnapshotId): readonly SnapshotId[] | undefined {
  const since: SnapshotId[] = []
  for (const each of lineage(table)) {
    if (each.id === at) return since
    since.push(each.id)
  }
  return undefined
}

/**
 * Rows of others may have keys of ours, and nobody could say which row counts. Others may rewrite
 * files (`replace`) and delete rows.
 */
function refuseForeignRows(
  lake: LakeTable,
  table: LoadedTable,
  since: readonly SnapshotId[],
  live: readonly LiveFile[],
): void {
  for (const id of since) {
    const snapshot = table.snapshots.get(id)
    if (snapshot === undefined || snapshot.summary.has(summaryKeys.commitId)) continue
    if (snapshot.operation === 'replace') continue
    const added = snapshot.summary.get('added-data-files') ?? '0'
    if (added === '0' && !live.some((file) => file.snapshot === id)) continue
    const name = lake.name.join('.')
    throw new SluiceError(
      'COMMIT_CONFLICT',
      `${name}: another writer added rows (snapshot ${String(id)}), so keys may have two`,
      {
        details: { table: name, snapshot_id: id, operation: snapshot.operation },
        state: 'the round added nothing',
        fix: 'roll that snapshot back, or run again to take its rows in if no key is doubled',
      },
    )
  }
}

function keyFieldsOf(table: LoadedTable): readonly IdField[] {
  return table.primaryKey.map((name) => {
    const field = table.fields.find((each) => each.name === name)
    check(field !== undefined, 'the key has columns of the table')
    return field
  })
}

function hasEqualityDeletes(lake: LakeTable, location: string): SluiceError {
  const name = lake.name.join('.')
  return new SluiceError('TABLE_MISMATCH', `${name} has equality deletes`, {
    details: { table: name, file: location },
    fix: 'compact the table with the engine that wrote them, or tier with --delete-mode equality',
  })
}

/** Rows of a key could lie anywhere in such files, and none of them would be found. */
function hasOtherBuckets(
  lake: LakeTable,
  where: { readonly spec_id: number; readonly file?: string },
): SluiceError {
  const name = lake.name.join('.')
  return new SluiceError(
    'TABLE_MISMATCH',
    `${name}: another tool made a partition spec that has not the buckets of the table`,
    {
      details: { table: name, ...where },
      fix: 'make the spec with the bucket of the key the default one again, and rewrite files of the other',
    },
  )
}
