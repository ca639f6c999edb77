import type { KvRange } from '../ports.ts'
import { offsetOf } from './arena.ts'
import { KeyTable } from './key-table.ts'
import { compareKeysAt, compareWithKey, isDeleteAt } from './records.ts'

type Source = { readonly table: KeyTable; readonly order: Uint32Array; place: number }

/**
 * Goes through the keys of several tables in order. Of a key that several have, the first table's
 * entry counts: tables are given from the newest to the oldest.
 */
export class MergedTables {
  readonly #sources: Source[]
  readonly #to: Uint8Array | undefined
  #table: KeyTable | undefined
  #position = 0

  constructor(tables: readonly KeyTable[], range: Pick<KvRange, 'from' | 'to'> = {}) {
    const { from, to } = range
    this.#to = to
    this.#sources = tables.map((table) => ({
      table,
      order: table.order(),
      place: from === undefined ? 0 : table.seek(from),
    }))
  }

  /** The table that has the entry reached. */
  get table(): KeyTable {
    if (this.#table === undefined) throw new RangeError('no entry has been reached')
    return this.#table
  }

  get position(): number {
    return this.#position
  }

  /** What the entry reached lies in, and where. */
  get bytes(): Uint8Array {
    return this.table.bytesAt(this.#position)
  }

  get offset(): number {
    return offsetOf(this.#position)
  }

  get isDelete(): boolean {
    return isDeleteAt(this.bytes, this.offset)
  }

  /** Goes to the next key; false after the last. */
  next(): boolean {
    let least: Source | undefined
    let position = 0
    for (const source of this.#sources) {
      const candidate = source.order[source.place]
      if (candidate === undefined) continue
      const difference =
        least === undefined
          ? -1
          : compareKeysAt(
              source.table.bytesAt(candidate),
              offsetOf(candidate),
              least.table.bytesAt(position),
              offsetOf(position),
            )
      if (difference < 0) {
        least = source
        position = candidate
      } else if (difference === 0) {
        source.place += 1
      }
    }
    if (least === undefined) return false
    if (this.#isPast(least.table.bytesAt(position), offsetOf(position))) return false
    least.place += 1
    this.#table = least.table
    this.#position = position
    return true
  }

  #isPast(bytes: Uint8Array, offset: number): boolean {
    return this.#to !== undefined && compareWithKey(bytes, offset, this.#to) >= 0
  }
}

/**
 * One table with what several have together, the newest first. Keys need no order for that, so they
 * are not sorted before somebody reads them in order.
 */
export function mergeTables(
  tables: readonly KeyTable[],
  { seed, dropDeletes }: { readonly seed: number; readonly dropDeletes: boolean },
): KeyTable {
  const most = tables.reduce((sum, table) => sum + table.keys, 0)
  const merged = new KeyTable(seed, most)
  const gone = dropDeletes ? new KeyTable(seed) : undefined
  for (const table of tables) merged.takeOlder(table, gone)
  merged.trim()
  return merged
}
