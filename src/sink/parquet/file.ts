import type { FieldMetrics } from '../../catalog/ports.ts'
import { batchBytes, type ColumnBatch, layoutOf, sliceBatch } from '../../core/columns/column.ts'
import { check } from '../../core/never.ts'
import type { IdField } from '../../core/schema/types.ts'
import { icebergBounds } from './bounds.ts'
import type { ColumnChunk } from './column-chunk.ts'
import type { ByteSink, EncoderOptions, FileEncoder, FileSummary } from './encoder.ts'
import { type FileSchema, fileSchema, type Leaf } from './file-schema.ts'
import { type ChunkInFile, footerBytes, magic, type RowGroupInFile } from './footer.ts'
import type { Range } from './range.ts'
import { rangeFor } from './ranges.ts'

/** Rows of a row group, whatever their size. */
export const rowGroupRowsMax = 1 << 20

/** Makes the column chunks of a row group, one for each leaf in the order of the file. */
export type GroupEncoder = {
  /** `CompressionCodec` of parquet.thrift. */
  readonly codecId: number
  encode(batches: readonly ColumnBatch[]): AsyncIterable<ColumnChunk>
}

/** Totals of one leaf over the row groups written so far. */
type LeafTotals = {
  readonly leaf: Leaf
  readonly range: Range
  columnBytes: number
  entries: number
  nulls: number
}

/** A file whose footer and metrics are ours, whoever encodes the pages of its row groups. */
export class ParquetFile implements FileEncoder {
  readonly #fields: readonly IdField[]
  readonly #schema: FileSchema
  readonly #sink: ByteSink
  readonly #options: EncoderOptions
  readonly #encoder: GroupEncoder
  readonly #leaves: readonly LeafTotals[]
  readonly #groups: RowGroupInFile[] = []
  #held: ColumnBatch[] = []
  #heldRows = 0
  #heldBytes = 0
  #written = 0
  #rows = 0

  constructor(
    fields: readonly IdField[],
    sink: ByteSink,
    options: EncoderOptions,
    encoderOf: (schema: FileSchema) => GroupEncoder,
  ) {
    this.#fields = fields
    this.#schema = fileSchema(fields)
    this.#encoder = encoderOf(this.#schema)
    this.#sink = sink
    this.#options = options
    this.#leaves = this.#schema.leaves.map((leaf) => ({
      leaf,
      range: rangeFor(leaf),
      columnBytes: 0,
      entries: 0,
      nulls: 0,
    }))
  }

  get bufferedBytes(): number {
    return this.#heldBytes
  }

  get writtenBytes(): number {
    return this.#written
  }

  async write(batch: ColumnBatch): Promise<void> {
    this.#checkBatch(batch)
    if (batch.length === 0) return
    const bytes = batchBytes(batch)
    const isTooLarge = bytes > this.#options.rowGroupBytes || batch.length > rowGroupRowsMax
    if (isTooLarge && batch.length > 1) {
      const middle = batch.length >> 1
      await this.write(sliceBatch(batch, 0, middle))
      await this.write(sliceBatch(batch, middle, batch.length))
      return
    }
    const fits =
      this.#heldBytes + bytes <= this.#options.rowGroupBytes &&
      this.#heldRows + batch.length <= rowGroupRowsMax
    if (!fits) await this.flush()
    this.#held.push(batch)
    this.#heldRows += batch.length
    this.#heldBytes += bytes
    if (this.#heldBytes >= this.#options.rowGroupBytes) await this.flush()
  }

  async flush(): Promise<void> {
    if (this.#heldRows === 0) return
    const batches = this.#held
    const rows = this.#heldRows
    this.#held = []
    this.#heldRows = 0
    this.#heldBytes = 0
    await this.#begin()
    const offset = this.#written
    const chunks: ChunkInFile[] = []
    for await (const chunk of this.#encoder.encode(batches)) {
      chunks.push(await this.#writeChunk(chunks.length, chunk))
    }
    check(chunks.length === this.#leaves.length, 'a row group has a chunk for each leaf')
    this.#groups.push({ rows, offset, chunks })
    this.#rows += rows
  }

  async close(): Promise<FileSummary> {
    await this.flush()
    await this.#begin()
    await this.#put(
      footerBytes({
        schema: this.#schema,
        rows: this.#rows,
        groups: this.#groups,
        codecId: this.#encoder.codecId,
        metadata: this.#options.metadata,
      }),
    )
    return {
      rows: this.#rows,
      bytes: this.#written,
      metrics: this.#leaves.map(metricsOf),
      splitOffsets: this.#groups.map((group) => group.offset),
    }
  }

  async #writeChunk(leafAt: number, chunk: ColumnChunk): Promise<ChunkInFile> {
    const totals = this.#leaves[leafAt]
    check(totals !== undefined, 'a batch has the leaves of the file')
    const offset = this.#written
    await this.#put(chunk.bytes)
    totals.columnBytes += chunk.bytes.length
    totals.entries += chunk.entries
    totals.nulls += chunk.nulls
    totals.range.merge(chunk.range)
    const { uncompressedBytes, dictionaryBytes, encodings, entries, nulls } = chunk
    return {
      leaf: totals.leaf,
      offset,
      bytes: chunk.bytes.length,
      uncompressedBytes,
      dictionaryBytes,
      encodings,
      entries,
      nulls,
      extremes: chunk.range.extremes(),
    }
  }

  async #begin(): Promise<void> {
    if (this.#written === 0) await this.#put(magic)
  }

  async #put(bytes: Uint8Array): Promise<void> {
    this.#written += bytes.length
    await this.#sink.write(bytes)
  }

  #checkBatch(batch: ColumnBatch): void {
    check(batch.columns.length === this.#fields.length, 'a batch has the columns of the file')
    for (const [at, field] of this.#fields.entries()) {
      const column = batch.columns[at]
      check(
        column?.length === batch.length && column.layout === layoutOf(field.type),
        `the column ${field.name} has the length of its batch and the layout of its type`,
      )
    }
  }
}

function metricsOf(totals: LeafTotals): FieldMetrics {
  const { leaf, range } = totals
  const isFloat = leaf.physical === 'float' || leaf.physical === 'double'
  // Bounds of elements would say nothing about the rows they are in.
  const bounds = leaf.repetitionMax === 0 ? icebergBounds(leaf.type, range.extremes()) : {}
  return {
    fieldId: leaf.fieldId,
    columnBytes: totals.columnBytes,
    valueCount: totals.entries,
    nullCount: totals.nulls,
    ...(isFloat && { nanCount: range.nanCount }),
    ...bounds,
  }
}
