import { changeType } from '../../core/change-type.ts'
import { batchBytes, type ColumnBatch } from '../../core/columns/column.ts'
import { encodeKeys } from '../../core/columns/key-codec.ts'
import { takeBatch } from '../../core/columns/take.ts'
import type { Bucket } from '../../core/ids.ts'
import { check } from '../../core/never.ts'
import type { LogBatch } from '../../source/ports.ts'
import type { TouchedKeys } from '../ports.ts'
import { keyText, TouchedBuilder } from '../keys/touched.ts'
import type { RowPlace } from '../writer/rolling-writer.ts'
import { withSystemColumns } from '../writer/system-columns.ts'

/** Changes held at once, to be collapsed by key before anything is written. */
const heldBytesMax = 16 * 2 ** 20
const heldChangesMax = 262_144

type Newest = { readonly batch: number; readonly row: number; readonly isRow: boolean }

/**
 * Collapses the changelog of one bucket: each key's last change decides, and what does not survive is
 * never written. A key that comes again after its row was written has the earlier row replaced.
 *
 * The row before an update is not looked at: a key that is touched loses the row the lake has of it,
 * so nothing depends on having seen it, or on where a round is cut between the two.
 */
export class KeyedRows {
  readonly #bucket: Bucket
  readonly #keyColumns: readonly number[]
  readonly #write: (batch: ColumnBatch) => Promise<RowPlace>
  readonly #touched = new TouchedBuilder()
  #held: LogBatch[] = []
  #heldBytes = 0
  #heldChanges = 0

  constructor(options: {
    readonly bucket: Bucket
    /** Places of the key's columns among the columns of the log. */
    readonly keyColumns: readonly number[]
    readonly write: (batch: ColumnBatch) => Promise<RowPlace>
  }) {
    this.#bucket = options.bucket
    this.#keyColumns = options.keyColumns
    this.#write = options.write
  }

  async add(batch: LogBatch): Promise<void> {
    this.#held.push(batch)
    this.#heldBytes += batchBytes(batch.records)
    this.#heldChanges += batch.records.length
    if (this.#heldBytes >= heldBytesMax || this.#heldChanges >= heldChangesMax) await this.#settle()
  }

  /** Rows of a KV snapshot, in which no key comes twice. */
  async addRows(records: ColumnBatch, written: ColumnBatch): Promise<void> {
    const keys = this.#keysOf(records)
    const { file, row } = await this.#write(written)
    keys.forEach((key, at) => {
      this.#touched.put(key, keyText(key), { file, row: row + at })
    })
  }

  async finish(): Promise<TouchedKeys> {
    await this.#settle()
    return this.#touched.finish()
  }

  #keysOf(records: ColumnBatch): readonly Uint8Array[] {
    const columns = this.#keyColumns.map((at) => {
      const column = records.columns[at]
      check(column !== undefined, 'a batch has the columns of the key')
      return column
    })
    return encodeKeys(columns, records.length)
  }

  async #settle(): Promise<void> {
    const batches = this.#held
    const keys = batches.map(({ records }) => this.#keysOf(records))
    const newest = newestChanges(batches, keys)
    const surviving = batches.map((): { row: number; text: string }[] => [])
    for (const [text, { batch, row, isRow }] of newest) {
      const key = keys[batch]?.[row]
      check(key !== undefined, 'a change has a key')
      if (isRow) surviving[batch]?.push({ row, text })
      else this.#touched.delete(key, text)
    }
    for (const [at, batch] of batches.entries()) {
      const rows = (surviving[at] ?? []).sort((a, b) => a.row - b.row)
      if (rows.length === 0) continue
      const indices = Int32Array.from(rows, ({ row }) => row)
      const place = await this.#write(
        takeBatch(withSystemColumns(batch, this.#bucket), indices, indices.length),
      )
      rows.forEach(({ row, text }, nth) => {
        const key = keys[at]?.[row]
        check(key !== undefined, 'a change has a key')
        this.#touched.put(key, text, { file: place.file, row: place.row + nth })
      })
    }
    this.#held = []
    this.#heldBytes = 0
    this.#heldChanges = 0
  }
}

function newestChanges(
  batches: readonly LogBatch[],
  keys: readonly (readonly Uint8Array[])[],
): ReadonlyMap<string, Newest> {
  const newest = new Map<string, Newest>()
  batches.forEach(({ records, changes }, batch) => {
    check(changes?.length === records.length, 'a changelog says what each record does')
    for (let row = 0; row < records.length; row += 1) {
      const change = changes[row]
      if (change === changeType.updateBefore) continue
      const key = keys[batch]?.[row]
      check(key !== undefined, 'a change has a key')
      newest.set(keyText(key), { batch, row, isRow: change !== changeType.delete })
    }
  })
  return newest
}
