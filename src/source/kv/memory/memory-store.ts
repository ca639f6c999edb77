import { join } from 'node:path'
import { SluiceError } from '../../../core/errors.ts'
import { check } from '../../../core/never.ts'
import { formatBytes } from '../../../core/text.ts'
import type { KvBatch } from '../batch.ts'
import type { EngineSnapshot, EngineStore, FamilyBuffers, FamilyFiles } from '../engine.ts'
import type { KvFiles } from '../files.ts'
import type { FamilyOptions, KvCheckpoint, KvCursor, KvRange } from '../ports.ts'
import { checkpointParts, type FamilyContent } from './checkpoint-file.ts'
import { memoryCursor } from './cursor.ts'
import { findIn, MemoryFamily, type Tables } from './family.ts'
import { hashKey, type KeyTable } from './key-table.ts'

export type MemoryStoreOptions = {
  readonly storeId: string
  readonly files: KvFiles
  readonly storedBytesMax: number
  readonly seed: number
}

/** The families of a snapshot, by number. */
type SnapshotTables = ReadonlyMap<number, Tables>

export const checkpointName = 'checkpoint.kv'

/**
 * Every call but `checkpoint` is done when it returns, so nothing ever comes between the operations of
 * a batch, and what is taken in one step is one moment for all families.
 */
export class MemoryStore implements EngineStore {
  readonly #options: MemoryStoreOptions
  readonly #families = new Map<number, MemoryFamily>()
  readonly #snapshots = new WeakMap<EngineSnapshot, SnapshotTables>()
  /** Tables that snapshots and cursors keep alive. */
  readonly #pins = new Map<object, readonly Tables[]>()
  #held = 0
  /** Undefined after a change, until it is asked for. */
  #stored: number | undefined
  #nextFamily = 0
  #checkpoints = 0
  /** Set when a batch stopped half way: what it left must not be read. */
  #broken: unknown

  constructor(options: MemoryStoreOptions) {
    this.#options = options
  }

  create(name: string, options: FamilyOptions): number {
    const number = this.#nextFamily
    this.#nextFamily += 1
    const onRuns = (): void => {
      this.#stored = undefined
    }
    const { seed } = this.#options
    this.#families.set(number, new MemoryFamily(name, { options, seed, onRuns }))
    return number
  }

  /** Gives a family that is empty what it had in a checkpoint. */
  load(family: number, content: KeyTable): void {
    this.#family(family).load(content)
  }

  get(family: number, key: Uint8Array, at?: EngineSnapshot): Uint8Array | undefined {
    if (at === undefined) return this.#family(family).get(key)
    return findIn(this.#tablesAt(family, at), key, hashKey(key, this.#options.seed))
  }

  getMany(
    family: number,
    keys: readonly Uint8Array[],
    at?: EngineSnapshot,
  ): readonly (Uint8Array | undefined)[] {
    if (at === undefined) {
      const found = this.#family(family)
      return keys.map((key) => found.get(key))
    }
    const tables = this.#tablesAt(family, at)
    return keys.map((key) => findIn(tables, key, hashKey(key, this.#options.seed)))
  }

  scan(family: number, range: Pick<KvRange, 'from' | 'to'>, at?: EngineSnapshot): KvCursor {
    const tables = at === undefined ? this.#sealedTables(family) : this.#tablesAt(family, at)
    const pin = {}
    this.#pin(pin, [tables])
    return memoryCursor(tables, range, () => {
      this.#unpin(pin)
    })
  }

  snapshot(): EngineSnapshot {
    const tables = new Map<number, Tables>()
    for (const family of this.#families.keys()) tables.set(family, this.#sealedTables(family))
    const snapshot: EngineSnapshot = {
      release: () => {
        this.#snapshots.delete(snapshot)
        this.#unpin(snapshot)
      },
    }
    this.#snapshots.set(snapshot, tables)
    this.#pin(snapshot, [...tables.values()])
    return snapshot
  }

  put(family: number, key: Uint8Array, value: Uint8Array | undefined): void {
    if (value !== undefined) this.#admit(key.length + value.length)
    const target = this.#family(family)
    try {
      this.#put(target, key, value)
    } catch (error) {
      throw this.#break(error)
    }
  }

  write({ families, keys, values, bytes }: KvBatch): void {
    const targets = families.map((family) => this.#family(family))
    if (values.some((value) => value !== undefined)) this.#admit(bytes)
    try {
      for (let at = 0; at < keys.length; at += 1) {
        const key = keys[at]
        const target = targets[at]
        if (key !== undefined && target !== undefined) this.#put(target, key, values[at])
      }
    } catch (error) {
      throw this.#break(error)
    }
  }

  flush(family: number): void {
    const target = this.#family(family)
    try {
      this.#change(target, (each) => {
        each.flush()
      })
    } catch (error) {
      throw this.#break(error)
    }
  }

  drop(family: number): void {
    this.#held -= this.#family(family).bufferBytes
    this.#families.delete(family)
    this.#stored = undefined
  }

  checkpoint(folder: string): { readonly files: Promise<KvCheckpoint> } {
    const snapshot = this.snapshot()
    const families = [...this.#families].map(([number, { name }]) => ({
      name,
      tables: this.#tablesAt(number, snapshot),
    }))
    this.#checkpoints += 1
    const id = `${this.#options.storeId}/${this.#checkpoints}`
    const files = this.#writeCheckpoint(folder, { id, families }).finally(() => snapshot.release())
    return { files }
  }

  heldBytes(): number {
    return this.#held
  }

  buffers(): readonly FamilyBuffers[] {
    return [...this.#families].map(([family, { bufferBytes }]) => ({
      family,
      held: bufferBytes,
      flushable: bufferBytes,
    }))
  }

  files(): readonly FamilyFiles[] {
    return [...this.#families].map(([family, { runs }]) => ({
      family,
      storedBytes: sumBytes(runs),
      files: runs.length,
    }))
  }

  descriptors(): number {
    return 0
  }

  close(): Promise<void> {
    this.#families.clear()
    this.#pins.clear()
    this.#held = 0
    return Promise.resolve()
  }

  async #writeCheckpoint(
    folder: string,
    { id, families }: { readonly id: string; readonly families: readonly FamilyContent[] },
  ): Promise<KvCheckpoint> {
    const path = join(folder, checkpointName)
    const bytes = await this.#options.files.write(path, checkpointParts(families))
    const names = families.map(({ name }) => name)
    return { folder, files: [{ name: checkpointName, bytes, id, families: names }] }
  }

  #put(target: MemoryFamily, key: Uint8Array, value: Uint8Array | undefined): void {
    const before = target.bufferBytes
    target.put(key, value)
    this.#held += target.bufferBytes - before
  }

  #change(target: MemoryFamily, action: (target: MemoryFamily) => void): void {
    const before = target.bufferBytes
    action(target)
    this.#held += target.bufferBytes - before
  }

  /** Never lets the store be used again: a change ended half way. */
  #break(error: unknown): unknown {
    this.#broken = error
    return error
  }

  #family(number: number): MemoryFamily {
    if (this.#broken !== undefined) throw broken(this.#broken)
    const family = this.#families.get(number)
    check(family !== undefined, `family ${number} is open`)
    return family
  }

  #sealedTables(number: number): Tables {
    let tables: Tables = []
    this.#change(this.#family(number), (family) => {
      tables = family.tables()
    })
    return tables
  }

  #tablesAt(family: number, at: EngineSnapshot): Tables {
    const tables = this.#snapshots.get(at)
    check(tables !== undefined, 'a snapshot is read before it is released')
    return tables.get(family) ?? []
  }

  #pin(pin: object, tables: readonly Tables[]): void {
    this.#pins.set(pin, tables)
    this.#stored = undefined
  }

  #unpin(pin: object): void {
    this.#pins.delete(pin)
    this.#stored = undefined
  }

  /** Runs, and what only snapshots and cursors still need. */
  #storedBytes(): number {
    if (this.#stored === undefined) {
      const tables = new Set<KeyTable>()
      for (const pinned of this.#pins.values()) for (const each of pinned) add(tables, each)
      for (const { sealed } of this.#families.values())
        for (const each of sealed) tables.delete(each)
      for (const { runs } of this.#families.values()) add(tables, runs)
      this.#stored = sumBytes(tables)
    }
    return this.#stored
  }

  #roomAfter(bytes: number): number {
    return this.#options.storedBytesMax - this.#held - this.#storedBytes() - bytes
  }

  #admit(bytes: number): void {
    if (this.#roomAfter(bytes) >= 0) return
    const { storedBytesMax } = this.#options
    for (const family of this.#families.values()) {
      this.#change(family, (each) => {
        each.compact()
      })
    }
    // Where compacting frees next to nothing, the next write would compact everything again.
    if (this.#roomAfter(bytes) >= storedBytesMax * roomShare) return
    const held = this.#held + this.#storedBytes()
    throw new SluiceError(
      'LIMIT_EXCEEDED',
      `the KV store in memory holds ${formatBytes(held)} of ${formatBytes(storedBytesMax)}; ` +
        `${formatBytes(bytes)} more do not fit`,
      { fix: 'use the rocksdb engine, or more buckets', details: { held, bytes, storedBytesMax } },
    )
  }
}

const roomShare = 1 / 16

function add(tables: Set<KeyTable>, more: Tables): void {
  for (const table of more) tables.add(table)
}

function sumBytes(tables: Iterable<KeyTable>): number {
  let sum = 0
  for (const table of tables) sum += table.memoryBytes
  return sum
}

function broken(cause: unknown): SluiceError {
  return new SluiceError(
    'STORE_UNAVAILABLE',
    'the KV store failed while it changed and is not used any more',
    { cause, effect: 'none', fix: 'open it anew: the log has what it held' },
  )
}
