/**
 * What users of a KV store see. A store holds the state of one bucket of a primary-key table, one
 * column family for each kind of state. The memory engine answers at once, RocksDB with a promise:
 * hot paths ask for many keys, or write many operations, and wait only where there is a promise.
 */
import type { KvBatch } from './batch.ts'

export type Awaitable<Value> = Value | Promise<Value>

export type KvEngineName = 'memory' | 'rocksdb'

/**
 * Options of one family. `docs/kv.md` says which engine applies which; one it cannot apply stands as
 * `not supported` in the effective options.
 */
export type FamilyOptions = {
  /** Bytes at which a write buffer is sealed. */
  readonly writeBufferSize: number
  /** Write buffers held at most, the one that is written to included. */
  readonly maxWriteBufferNumber: number
  /** Files, or sorted runs in memory, at which they are merged. */
  readonly level0FileNumCompactionTrigger: number
  /** Bytes of one block of a file. */
  readonly blockSize: number
  /** What lets a read skip files that cannot have its key. */
  readonly filter: 'bloom' | 'ribbon' | 'none'
}

export type EffectiveOptions = {
  readonly [Name in keyof FamilyOptions]: FamilyOptions[Name] | 'not supported'
}

/**
 * Called for every family that is opened, with its name and the options it would have; answers
 * what is to be different.
 */
export type OptionsFactory = (family: string, current: FamilyOptions) => Partial<FamilyOptions>

/** Half open, in the order of unsigned bytes; `prefix` and bounds may be combined. */
export type KvRange = {
  readonly from?: Uint8Array
  readonly to?: Uint8Array
  readonly prefix?: Uint8Array
}

/** A key of the second array is that of the value at the same place of the first. */
export type KvEntries = {
  readonly keys: readonly Uint8Array[]
  readonly values: readonly Uint8Array[]
}

/** Reads a range in order, as it was when the scan began. Must be closed, also at its end. */
export interface KvCursor {
  /** At least one and at most `entriesMax` entries, by default 1,024; undefined at the end. */
  next(entriesMax?: number): Awaitable<KvEntries | undefined>
  close(): Awaitable<void>
}

/**
 * Reads one column family. What is returned belongs to the store and must not be changed; it stays
 * as it is whatever happens to the store.
 */
export interface KvReads {
  get(family: KvFamily, key: Uint8Array): Awaitable<Uint8Array | undefined>
  /** The value of each key, in the order of the keys. */
  getMany(
    family: KvFamily,
    keys: readonly Uint8Array[],
  ): Awaitable<readonly (Uint8Array | undefined)[]>
  scan(family: KvFamily, range?: KvRange): KvCursor
}

/** One key space in a store. The same name gives the same object as long as the store is open. */
export interface KvFamily {
  /** Names the family in batches; counts from 0, which is `default`. */
  readonly id: number
  readonly name: string
  readonly effectiveOptions: EffectiveOptions
}

/** All families as they were at one moment, until it is released. */
export interface KvStoreSnapshot extends KvReads {
  release(): Awaitable<void>
}

export interface KvStore extends KvReads {
  readonly engine: KvEngineName
  /** Always there; the name is nobody's state. */
  readonly default: KvFamily
  /** All families, `default` first, then in the order they were made. */
  families(): readonly KvFamily[]
  /**
   * Gets the family of this name, or makes it.
   * @throws SluiceError NAME_INVALID; CONFIG_INVALID when it is open with other options.
   */
  columnFamily(name: string, options?: Partial<FamilyOptions>): Promise<KvFamily>
  /** Takes a family and what it holds away; its object is of no more use. */
  dropFamily(family: KvFamily): Promise<void>

  /** Keys and values given are the store's from then on and must not be changed. */
  put(family: KvFamily, key: Uint8Array, value: Uint8Array): Awaitable<void>
  delete(family: KvFamily, key: Uint8Array): Awaitable<void>
  batch(): KvBatch
  /**
   * Applies all operations of a batch or none, in their order; batches in the order of the calls.
   * It may wait until a cursor is closed that keeps write buffers alive, so nobody may wait for a
   * write before closing a cursor of the same store.
   * @throws SluiceError LIMIT_EXCEEDED when it is larger than `batchBytesMax`, or the store is full.
   */
  write(batch: KvBatch): Awaitable<void>
  /** What a batch may hold at most, in bytes of keys and values; follows the memory budget. */
  readonly batchBytesMax: number

  /** Sees all that was written and awaited before. */
  snapshot(): Awaitable<KvStoreSnapshot>
  /** Empties the write buffers of these families, or of all, the one that holds progress last. */
  flush(families?: readonly KvFamily[]): Promise<void>
  /** Writes all families, as they are at one moment, into a folder that is not there yet. */
  checkpoint(folder: string): Promise<KvCheckpoint>

  /** Families that are open, `default` included. 0 once the store is closed. */
  readonly openHandles: number
  usage(): Promise<KvUsage>
  close(): Promise<void>
}

export type CheckpointFile = {
  /** Within the folder of the checkpoint. */
  readonly name: string
  readonly bytes: number
  /** Two files of the same id are the same bytes, in whatever checkpoint. */
  readonly id: string
  /** The families whose entries it holds; none where it belongs to the store. */
  readonly families: readonly string[]
}

export type KvCheckpoint = {
  readonly folder: string
  readonly files: readonly CheckpointFile[]
}

export type FamilyUsage = {
  readonly name: string
  /** Write buffers, active and sealed, and those that a cursor keeps alive. */
  readonly writeBufferBytes: number
  /** Files, or sorted runs in memory. */
  readonly storedBytes: number
  readonly files: number
}

export type KvUsage = {
  readonly families: readonly FamilyUsage[]
  readonly openHandles: number
  readonly writeBufferBytes: number
  readonly storedBytes: number
  readonly cacheBytes: number
  /** File descriptors; 0 in memory. */
  readonly descriptors: number
}

export type KvStoreOpening = {
  /** The store's own folder; nobody else's. */
  readonly folder: string
  /** A checkpoint to begin with, which is only read; the folder must not hold a store then. */
  readonly from?: string
  /** The families the store is to have beside `default`. Those that are not there are made. */
  readonly families: Readonly<Record<string, Partial<FamilyOptions>>>
  /** The family that says how far the others are; flushed after them. */
  readonly progressFamily?: string
  /**
   * What becomes of families that are there and not named: by default the store is not opened, with
   * `keep` they stay as they are, unused.
   */
  readonly orphans?: 'refuse' | 'keep'
}
