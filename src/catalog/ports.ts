import type { Bucket, Millis, SnapshotId } from '../core/ids.ts'
import type { IdField, TableSchema } from '../core/schema/types.ts'

/** Parts of a table name, namespace first, already checked: `['demo', 'flights']`. */
export type TableName = readonly string[]

export type TableDefinition = {
  readonly name: TableName
  readonly schema: TableSchema
  /** From 1; fixed for the life of the table. */
  readonly bucketCount: number
  /** The one column whose hash is the bucket; absent when the bucket is taken by place. */
  readonly bucketKey?: string
  /** Columns of the primary key, in order; absent for a log table. */
  readonly primaryKey?: readonly string[]
  /** Of a table to be made; 2 if absent. */
  readonly formatVersion?: 2 | 3
  /** User-facing properties, such as `table.datalake.freshness`; the catalog maps them. */
  readonly properties: ReadonlyMap<string, string>
}

/** Counts and bounds of one leaf column of one file, as a manifest holds them. */
export type FieldMetrics = {
  readonly fieldId: number
  /** Compressed bytes in the file. */
  readonly columnBytes: number
  /** Values, nulls included; for leaves below a list or map the number of element slots. */
  readonly valueCount: number
  readonly nullCount: number
  /** FLOAT and DOUBLE only. */
  readonly nanCount?: number
  /** Iceberg single-value form (spec, appendix D), truncated outwards; absent when unknown. */
  readonly lower?: Uint8Array
  readonly upper?: Uint8Array
}

export type DataFile = {
  /** URL, byte for byte as the manifest names it. */
  readonly location: string
  readonly bucket: Bucket
  readonly rows: number
  readonly bytes: number
  readonly metrics: readonly FieldMetrics[]
  /** Where row groups start, ascending. */
  readonly splitOffsets: readonly number[]
}

/** A value of a partition tuple; bytes for binary, fixed, uuid and decimal. */
export type PartitionValue = null | boolean | number | bigint | string | Uint8Array

/** Where a file lies in the table's partitioning; a delete lies where the file it points into does. */
export type FilePartition = {
  readonly specId: number
  /** By partition field id. */
  readonly partition: ReadonlyMap<number, PartitionValue>
}

/** A data file that a snapshot holds, whoever wrote it. */
export type LiveFile = FilePartition & {
  /** Byte for byte as the manifest names it. */
  readonly location: string
  /** Undefined where its spec has no bucket. */
  readonly bucket: Bucket | undefined
  /** Data sequence number: deletes of the same or a higher one apply to it. */
  readonly sequence: bigint
  readonly rows: number
  readonly bytes: number
  /** The snapshot that added it. */
  readonly snapshot: SnapshotId
}

/** A delete file, or a deletion vector, that a snapshot holds. */
export type LiveDelete = FilePartition & {
  readonly content: 'position-deletes' | 'deletion-vector' | 'equality-deletes'
  readonly location: string
  readonly sequence: bigint
  /** Positions, or rows of an equality delete. */
  readonly rows: number
  readonly bytes: number
  /** The one data file it points into, where it says so. */
  readonly dataFile: string | undefined
  /** The blob of a vector within its Puffin file. */
  readonly blob: { readonly offset: number; readonly bytes: number } | undefined
  readonly snapshot: SnapshotId
}

/** Everything a snapshot consists of. */
export type LiveFiles = {
  readonly data: readonly LiveFile[]
  readonly deletes: readonly LiveDelete[]
}

/** A delete file of ours, written and not yet visible. */
export type DeleteFile = FilePartition & {
  readonly content: LiveDelete['content']
  readonly location: string
  readonly bytes: number
  readonly rows: number
  /** The one data file it points into; undefined for equality deletes. */
  readonly dataFile: string | undefined
  readonly blob: { readonly offset: number; readonly bytes: number } | undefined
  /** Ids of the columns of an equality delete; empty for positions. */
  readonly equalityIds: readonly number[]
  /** Of the columns of the delete file; empty for a vector. */
  readonly metrics: readonly FieldMetrics[]
}

export type SnapshotEntry = {
  readonly id: SnapshotId
  readonly parent: SnapshotId | undefined
  readonly sequence: bigint
  readonly committedAt: Millis
  /** `append`, `overwrite`, `delete`, `replace`. */
  readonly operation: string
  readonly summary: ReadonlyMap<string, string>
  readonly manifestList: string
}

/** One version of a table as loaded; a swap is bound to exactly this version. */
export type LoadedTable = {
  /** Two loads are equal if and only if their tokens are. */
  readonly token: string
  readonly uuid: string
  readonly location: string
  readonly formatVersion: number
  /** The snapshot the branch points at; undefined before the first one. */
  readonly head: SnapshotId | undefined
  /** Every listed snapshot, those outside the lineage of the head included. */
  readonly snapshots: ReadonlyMap<SnapshotId, SnapshotEntry>
  readonly properties: ReadonlyMap<string, string>
  /** The highest sequence number ever used in this table. */
  readonly lastSequence: bigint
  readonly schemaId: number
  /** The spec that new files are written under: the newest that cuts the table into its buckets. */
  readonly specId: number
  /** Partition field of the bucket in that spec. */
  readonly bucketFieldId: number
  /** Columns of the current schema with their ids, system columns last. */
  readonly fields: readonly IdField[]
  readonly bucketCount: number
  readonly bucketKey: string | undefined
  /** Names of the identifier fields; empty for a log table. */
  readonly primaryKey: readonly string[]
}

/** What one commit changes. Everything in it becomes visible at once or not at all. */
export type TableChange = {
  readonly snapshot?: {
    /** The same in all attempts of a round, so that a doubled request cannot land twice. */
    readonly id: SnapshotId
    readonly operation: 'append' | 'overwrite' | 'delete'
    /** Own keys of the summary; the catalog adds counts and totals. */
    readonly summary: ReadonlyMap<string, string>
    readonly files: readonly DataFile[]
    /** Positions deleted with it, in files of the base or in `files`. */
    readonly deletes?: readonly DeleteFile[]
    /** Delete files of the base that `deletes` stand for from now on. */
    readonly droppedDeletes?: readonly LiveDelete[]
    /** The ledger when it is too large for the summary: goes into the manifest list's header. */
    readonly headerLedger?: string
  }
  readonly setProperties: ReadonlyMap<string, string>
}

export type SwapOutcome =
  | { readonly kind: 'applied'; readonly table: LoadedTable }
  /** This request changed nothing and never will: another version took the place of its base. */
  | { readonly kind: 'rejected' }
  /** It may have happened, or may still happen. */
  | { readonly kind: 'unknown'; readonly cause: unknown }

export interface LakeTable {
  readonly name: TableName
  /** Reads the newest version; never a cached one. @throws SluiceError DATA_CORRUPT, TABLE_MISSING */
  load(): Promise<LoadedTable>
  /** The ledger in the header of a snapshot's manifest list. @throws SluiceError DATA_CORRUPT */
  headerLedger(snapshot: SnapshotEntry): Promise<string>
  /**
   * One more than the highest `__offset` in the live data files of each bucket, by the bounds of the
   * manifests. @returns undefined when a file does not say.
   */
  dataEnds(table: LoadedTable): Promise<ReadonlyMap<Bucket, bigint> | undefined>
  /** What the head of a loaded version consists of. @throws SluiceError DATA_CORRUPT */
  liveFiles(table: LoadedTable): Promise<LiveFiles>
  /** Stages what the change needs and replaces exactly `base`. */
  swap(base: LoadedTable, change: TableChange): Promise<SwapOutcome>
}

export interface LakeCatalog {
  /**
   * @param access `read`, the default, writes nothing at all; `write` also mends what a writer that
   * was killed left behind.
   * @returns undefined when there is no such table.
   */
  open(name: TableName, access?: 'read' | 'write'): Promise<LakeTable | undefined>
  /** Creates the table, or opens it when another process was faster. */
  create(
    definition: TableDefinition,
  ): Promise<{ readonly table: LakeTable; readonly created: boolean }>
  list(): Promise<readonly TableName[]>
}
