import type { FieldMetrics } from '../../catalog/ports.ts'
import type { ColumnBatch } from '../../core/columns/column.ts'
import type { IdField } from '../../core/schema/types.ts'

/** Where a file's bytes go, in order. */
export interface ByteSink {
  write(bytes: Uint8Array): Promise<void>
}

export type EncoderOptions = {
  /** Row groups are closed at about this many bytes of column data in memory. */
  readonly rowGroupBytes: number
  readonly pageBytes: number
  readonly compression: 'zstd' | 'none'
  readonly compressionLevel: number
  /** Key-value metadata for the footer. */
  readonly metadata: ReadonlyMap<string, string>
}

export type FileSummary = {
  readonly rows: number
  readonly bytes: number
  readonly metrics: readonly FieldMetrics[]
  readonly splitOffsets: readonly number[]
}

/** One Parquet file being written. Calls never overlap. */
export interface FileEncoder {
  /** Memory held until the next row group is written. */
  readonly bufferedBytes: number
  /** Bytes given to the sink so far. */
  readonly writtenBytes: number
  /** Takes the batch; may write a row group. The batch must not change afterwards. */
  write(batch: ColumnBatch): Promise<void>
  /** Writes what is held as a row group, to free its memory. */
  flush(): Promise<void>
  /** Writes the footer. The sink stays open. */
  close(): Promise<FileSummary>
}

/** Turns column batches into Parquet with Iceberg field ids and the metrics of a manifest. */
export interface ParquetEncoder {
  readonly name: 'columnar' | 'parquet-wasm' | 'parquetjs-lite'
  /** True when tables written by it need `schema.name-mapping.default`, since it writes no ids. */
  readonly needsNameMapping: boolean
  /** Why it cannot write these columns, or undefined when it can. */
  refuses(fields: readonly IdField[]): string | undefined
  open(fields: readonly IdField[], sink: ByteSink, options: EncoderOptions): FileEncoder
}
