import type { DataFile } from '../../catalog/ports.ts'
import type { ObjectStore, ObjectWriter } from '../../catalog/store/object-store.ts'
import type { ColumnBatch } from '../../core/columns/column.ts'
import type { Bucket } from '../../core/ids.ts'
import type { IdField } from '../../core/schema/types.ts'
import type { EncoderOptions, FileEncoder, ParquetEncoder } from '../parquet/encoder.ts'
import type { Evictable, WriterBudget } from './writer-budget.ts'

export type WriterOptions = {
  readonly store: ObjectStore
  readonly encoder: ParquetEncoder
  readonly encoderOptions: EncoderOptions
  readonly fields: readonly IdField[]
  readonly budget: WriterBudget
  /** A file is ended once about this many bytes of it are written. */
  readonly targetFileBytes: number
  readonly bucket: Bucket
  /** Location of the next file; never the same twice. */
  readonly nextLocation: () => string
}

type OpenFile = {
  readonly location: string
  readonly writer: ObjectWriter
  readonly encoder: FileEncoder
  rows: number
}

/** Where a row lies: in which of the writer's files, in the order they are made, and its ordinal there. */
export type RowPlace = { readonly file: number; readonly row: number }

/** Writes the rows of one bucket into one or more files of about the target size. */
export class RollingWriter implements Evictable {
  readonly #options: WriterOptions
  readonly #files: DataFile[] = []
  #open: OpenFile | undefined
  /** Encoded bytes for each byte in memory, as last seen; only decides when to look. */
  #ratio = 1
  /** Calls on an encoder must not overlap, and an eviction comes from another writer's call. */
  #last: Promise<void> = Promise.resolve()

  constructor(options: WriterOptions) {
    this.#options = options
    options.budget.join(this)
  }

  get bufferedBytes(): number {
    return this.#open?.encoder.bufferedBytes ?? 0
  }

  /** @returns where the first row of the batch lies; the others follow it in the same file */
  async write(batch: ColumnBatch): Promise<RowPlace> {
    let place: RowPlace = { file: this.#files.length, row: 0 }
    await this.#exclusively(async () => {
      this.#open ??= await this.#openFile()
      const { encoder } = this.#open
      place = { file: this.#files.length, row: this.#open.rows }
      await encoder.write(batch)
      this.#open.rows += batch.length
      const { targetFileBytes } = this.#options
      const { writtenBytes, bufferedBytes } = encoder
      if (writtenBytes + bufferedBytes * this.#ratio < targetFileBytes) return
      await encoder.flush()
      if (bufferedBytes > 0) this.#ratio = (encoder.writtenBytes - writtenBytes) / bufferedBytes
      if (encoder.writtenBytes >= targetFileBytes) await this.#closeFile()
    })
    await this.#options.budget.settle()
    return place
  }

  async evict(): Promise<void> {
    await this.#exclusively(async () => this.#open?.encoder.flush())
  }

  /** Ends the last file. @returns every file, durable and not yet visible to anybody. */
  async finish(): Promise<readonly DataFile[]> {
    await this.#exclusively(async () => this.#closeFile())
    this.#options.budget.leave(this)
    return this.#files
  }

  /** Gives everything up. @returns the locations of files that are already complete. */
  async abandon(): Promise<readonly string[]> {
    this.#options.budget.leave(this)
    await this.#last.catch(() => undefined)
    await this.#open?.writer.abandon()
    this.#open = undefined
    return this.#files.map((file) => file.location)
  }

  async #openFile(): Promise<OpenFile> {
    const { store, encoder, fields, encoderOptions, nextLocation } = this.#options
    const location = nextLocation()
    const writer = await store.open(location)
    return { location, writer, encoder: encoder.open(fields, writer, encoderOptions), rows: 0 }
  }

  async #closeFile(): Promise<void> {
    const open = this.#open
    if (open === undefined) return
    const summary = await open.encoder.close()
    this.#open = undefined
    const bytes = await open.writer.finish()
    this.#files.push({
      location: open.location,
      bucket: this.#options.bucket,
      rows: summary.rows,
      bytes,
      metrics: summary.metrics,
      splitOffsets: summary.splitOffsets,
    })
  }

  async #exclusively(work: () => Promise<void>): Promise<void> {
    const before = this.#last
    const mine = before.catch(() => undefined).then(work)
    this.#last = mine
    await mine
  }
}
