import type { Journal } from '../../core/ports.ts'
import type { TableName } from '../../catalog/ports.ts'
import type { ChangeForm } from '../../source/ingest/input.ts'
import type { S3Options } from '../../catalog/store/s3-client.ts'

export type KvRequest = {
  readonly engine: 'memory' | 'rocksdb'
  /** For a folder of each table. */
  readonly stateFolder: string
  /** Of all stores together; absent: 440 MiB. */
  readonly memoryBytes?: number
}

/** What one `sluice tier` is asked to do, checked as far as that goes without reading anything. */
export type TierRequest = {
  /** Paths as the user wrote them, globs expanded; `-` is stdin. */
  readonly inputs: readonly string[]
  /** `file:///…` or `s3://…`, without a slash at the end. */
  readonly warehouse: string
  /** How the bucket is reached, for a warehouse on S3. */
  readonly s3?: S3Options
  readonly table: TableName
  /** Absent: 4 for a new table, whatever it is for an existing one. */
  readonly buckets?: number
  readonly bucketKey?: string
  /** Absent: a log table, or what an existing table has. */
  readonly primaryKey?: readonly string[]
  /** How records say what they change; absent where each is a row. */
  readonly changes?: ChangeForm
  /** Absent: 2, or what an existing table has. */
  readonly formatVersion?: 2 | 3
  /** Where primary-key tables keep their rows; in memory unless given. */
  readonly kv?: KvRequest
  readonly schemaFile?: string
  /** Column name to Fluss type, from the configuration. */
  readonly columns?: ReadonlyMap<string, string>
  /** As the user wrote them: `iceberg.…` and `table.datalake.…`, options included. */
  readonly properties: ReadonlyMap<string, string>
  readonly inputFormat?: 'ndjson' | 'csv' | 'parquet' | 'arrow'
  readonly inputId?: string
  readonly sampleRecords: number | 'all'
  readonly csv: {
    readonly delimiter?: string
    readonly hasHeader: boolean
    readonly nullText?: string
  }
  readonly onBadRecord: 'fail' | 'quarantine'
  readonly badRecordsMax: number
  readonly onUnknownField: 'fail' | 'quarantine'
  readonly follow: boolean
  /** Absent: what the table says, else 3 min. */
  readonly freshnessMs?: number
  readonly readers: number
  readonly memoryBytes: number
  readonly encoder?: 'columnar' | 'parquet-wasm' | 'parquetjs-lite'
  readonly shutdownTimeoutMs: number
}

/** What happens while a table is tiered, for progress and notes. */
export type TierEvent =
  | {
      readonly event: 'created'
      readonly table: string
      readonly buckets: number
      readonly columns: readonly { readonly name: string; readonly type: string }[]
    }
  | { readonly event: 'note'; readonly message: string }
  | {
      readonly event: 'resuming'
      readonly table: string
      readonly records: bigint
      readonly round: number
      /** The epoch, or incarnation, that is fenced from now on; absent when none was live. */
      readonly fenced?: number
    }
  | {
      readonly event: 'progress'
      readonly input: string
      readonly bytes: number
      /** Absent for stdin and for inputs that grow. */
      readonly bytesTotal?: number
      readonly records: bigint
      readonly committed: bigint
      readonly round: number
    }
  | ({ readonly event: 'committed'; readonly table: string } & RoundReport)

export type TierHooks = {
  /** Aborts when no new input may be read: the running round is then finished or given up. */
  readonly signal: AbortSignal
  readonly stdin: NodeJS.ReadableStream
  readonly onEvent: (event: TierEvent) => void
  /** Where notes for operators go; nowhere unless given. */
  readonly journal?: Journal
}

export type Outcome =
  | 'committed'
  | 'already_applied'
  | 'fenced'
  | 'stale'
  | 'conflict'
  | 'contended'
  | 'unknown'

export type RoundReport = {
  readonly round: number
  readonly incarnation: number
  readonly epoch: number
  readonly snapshotId: bigint | undefined
  readonly commitId: string
  readonly rows: bigint
  /** Rows of the lake that the round took away, those it replaced included. */
  readonly rowsDeleted: bigint
  readonly deleteFiles: number
  readonly forceFinished: boolean
  readonly attempts: number
  readonly outcome: Outcome
  readonly seconds: number
}

export type ChangeCounts = {
  readonly upserts: number
  readonly deletes: number
  /** Records that are no change. */
  readonly tombstones: number
}

export type InputReport = {
  readonly id: string
  readonly name: string
  readonly records: bigint
  readonly bytes: number
  readonly position: string
  readonly alreadyThere: bigint
  /** Values cut to microseconds, as their column allows. */
  readonly valuesCut: number
  /** Of a primary-key table: what the records came to. */
  readonly changes?: ChangeCounts
  readonly exactlyOnce: boolean
}

/** What a run reports when it ends; the JSON form is `sluice.receipt/1`. */
export type Receipt = {
  readonly ok: boolean
  readonly table: string
  readonly kind: 'log' | 'primary-key'
  readonly tableUuid: string | undefined
  readonly created: boolean
  readonly warehouse: string
  readonly snapshotId: bigint | undefined
  readonly rows: bigint
  readonly rowsBefore: bigint
  /** With `rowsBefore` and `rows`: how many rows there are now. */
  readonly rowsDeleted: bigint
  readonly quarantined: number
  /** The folder that has a file for each record set aside. */
  readonly quarantineFile: string | undefined
  readonly inputs: readonly InputReport[]
  readonly buckets: readonly {
    readonly bucket: number
    readonly start: bigint
    readonly end: bigint
  }[]
  readonly files: number
  readonly deleteFiles: number
  readonly bytes: number
  readonly inputBytes: number
  readonly rounds: readonly RoundReport[]
  readonly seconds: number
  readonly peakMemoryBytes: number
  readonly notes: readonly string[]
  /** Why it ended early although some rounds were committed. */
  readonly error: Error | undefined
}

/**
 * Tiers inputs into one table.
 * @returns a receipt, with `ok` false and `error` set when it stopped after it had begun
 * @throws SluiceError when nothing was written
 */
export type TierRun = (request: TierRequest, hooks: TierHooks) => Promise<Receipt>
