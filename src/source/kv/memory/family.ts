import type { FamilyOptions } from '../ports.ts'
import { hashKey, KeyTable } from './key-table.ts'
import { mergeTables } from './merged-tables.ts'

/** From the newest to the oldest. Tables that others than the family may hold never change. */
export type Tables = readonly KeyTable[]

/**
 * One family in memory: a table that is written to, sealed ones that still count as write buffers,
 * and runs, which are what files are to an engine on disk.
 */
export class MemoryFamily {
  readonly name: string
  readonly options: FamilyOptions
  #active: KeyTable | undefined
  #sealed: Tables = []
  #runs: Tables = []
  #all: Tables = []
  #sealedPayload = 0
  readonly #seed: number
  readonly #onRuns: () => void

  /** @param onRuns Called after the runs changed. */
  constructor(
    name: string,
    { options, seed, onRuns }: { options: FamilyOptions; seed: number; onRuns: () => void },
  ) {
    this.name = name
    this.options = options
    this.#seed = seed
    this.#onRuns = onRuns
  }

  /** Bytes of keys and values that are not in a run. */
  get bufferBytes(): number {
    return this.#sealedPayload + (this.#active?.payload ?? 0)
  }

  get runs(): Tables {
    return this.#runs
  }

  get sealed(): Tables {
    return this.#sealed
  }

  get(key: Uint8Array): Uint8Array | undefined {
    return findIn(this.#all, key, hashKey(key, this.#seed))
  }

  put(key: Uint8Array, value: Uint8Array | undefined): void {
    const bytes = key.length + (value === undefined ? 0 : value.length)
    let active = this.#active
    if (active !== undefined && active.payload + bytes > this.options.writeBufferSize) {
      this.seal()
      active = undefined
    }
    if (active === undefined) {
      active = new KeyTable(this.#seed)
      this.#active = active
      this.#changed()
    }
    active.put(key, hashKey(key, this.#seed), value)
  }

  /** What the family holds now, in tables that no longer change. */
  tables(): Tables {
    this.seal()
    return this.#all
  }

  /** Ends the table that is written to, and flushes when that makes too many. */
  seal(): void {
    const active = this.#active
    if (active === undefined) return
    active.trim()
    this.#active = undefined
    this.#sealed = [active, ...this.#sealed]
    this.#sealedPayload += active.payload
    if (this.#sealed.length >= this.options.maxWriteBufferNumber) this.flush()
    this.#changed()
  }

  /** Makes runs of all that is not in a run. */
  flush(): void {
    if (this.#active !== undefined) {
      const active = this.#active
      active.trim()
      this.#active = undefined
      this.#sealed = [active, ...this.#sealed]
    }
    if (this.#sealed.length === 0) return
    this.#runs = [...this.#sealed.map((table) => this.#withoutGarbage(table)), ...this.#runs]
    this.#sealed = []
    this.#sealedPayload = 0
    this.#mergeRuns()
    this.#changed()
    this.#onRuns()
  }

  /** Makes one run of everything, without deletes and what they deleted. */
  compact(): void {
    this.flush()
    if (this.#runs.length < 2) return
    this.#replaceRuns(0, this.#runs.length)
    this.#changed()
    this.#onRuns()
  }

  /** Takes a table over as the oldest of all. */
  load(run: KeyTable): void {
    run.trim()
    if (run.keys > 0) this.#runs = [...this.#runs, run]
    this.#changed()
    this.#onRuns()
  }

  #withoutGarbage(table: KeyTable): KeyTable {
    if (table.overwritten <= table.payload * garbageShare) return table
    return mergeTables([table], { seed: this.#seed, dropDeletes: false })
  }

  /** Merges the newest runs of about one size, so that work and the number of runs stay small. */
  #mergeRuns(): void {
    while (this.#runs.length >= Math.max(2, this.options.level0FileNumCompactionTrigger)) {
      const [from, to] = this.#choose()
      if (to - from < 2) return
      this.#replaceRuns(from, to)
    }
  }

  #choose(): readonly [from: number, to: number] {
    const sizes = this.#runs.map((run) => run.memoryBytes)
    for (let from = 0; from < sizes.length - 1; from += 1) {
      const to = alike(sizes, from)
      if (to - from >= 2) return [from, to]
    }
    const isSmall = (sizes[0] ?? 0) + (sizes[1] ?? 0) <= runBytesMax
    return isSmall ? [0, 2] : [0, 0]
  }

  #replaceRuns(from: number, to: number): void {
    const dropDeletes = to === this.#runs.length
    const merged = mergeTables(this.#runs.slice(from, to), { seed: this.#seed, dropDeletes })
    const middle = merged.keys > 0 ? [merged] : []
    this.#runs = [...this.#runs.slice(0, from), ...middle, ...this.#runs.slice(to)]
  }

  #changed(): void {
    const active = this.#active === undefined ? [] : [this.#active]
    this.#all = [...active, ...this.#sealed, ...this.#runs]
  }
}

/** The value of the newest entry of a key; undefined where there is none, or a delete. */
export function findIn(tables: Tables, key: Uint8Array, hash: number): Uint8Array | undefined {
  for (const table of tables) {
    const position = table.find(key, hash)
    if (position >= 0) return table.value(position)
  }
  return undefined
}

/** A run is merged with those before it unless it is more than twice as large as they are together. */
function alike(sizes: readonly number[], from: number): number {
  let sum = sizes[from] ?? 0
  let to = from + 1
  for (; to < sizes.length; to += 1) {
    const size = sizes[to] ?? 0
    if (size > 2 * sum || sum + size > runBytesMax) break
    sum += size
  }
  return to
}

/** A table is copied without what was overwritten when that is more than this part of it. */
const garbageShare = 0.5
/** Positions in a table are 32 bits; half of it leaves room, and merges stay short. */
const runBytesMax = 2 ** 31
