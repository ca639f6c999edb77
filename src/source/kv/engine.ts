/**
 * What an engine does for a store. Names, orphans, the order of writes, the read cache and the limit
 * of the write buffers are dealt with above it, once for all engines (`store.ts`).
 */
import type { KvBatch } from './batch.ts'
import type {
  Awaitable,
  FamilyOptions,
  KvCheckpoint,
  KvCursor,
  KvEngineName,
  KvRange,
  KvStoreOpening,
} from './ports.ts'

export interface KvEngine {
  readonly name: KvEngineName
  /** The options it applies. Others are reported as not supported. */
  readonly supported: ReadonlySet<keyof FamilyOptions>
  readonly defaults: FamilyOptions
  /** Whether reads cost enough that a cache above the engine pays. */
  readonly readsAreCheap: boolean
  /**
   * The part of the write-buffer limit at which a flush is forced, and the part one batch may have.
   * Below 1 where the bytes of the buffers are known only after a batch is applied.
   */
  readonly flushAt: number
  readonly batchShare: number
  /** The families of a store that is there, without changing it; undefined where none is. */
  stored(place: StorePlace): Promise<readonly StoredFamily[] | undefined>
  /**
   * Opens the families named, of which `default` is the first. Those that are not there are made;
   * all that are there, retired ones aside, are among them, or the engine refuses.
   */
  open(opening: EngineOpening): Promise<EngineStore>
}

/** Of a checkpoint to begin with the engine makes a copy in the folder; it never opens it in place. */
export type StorePlace = Pick<KvStoreOpening, 'folder' | 'from'>

export type StoredFamily = {
  readonly name: string
  /** What it holds, where that is known without opening it. */
  readonly bytes: number | undefined
}

export type EngineOpening = StorePlace & {
  /** Names this store and its files among all, for a store that has no id yet. */
  readonly storeId: string
  readonly families: readonly { readonly name: string; readonly options: FamilyOptions }[]
}

/** Opaque to all but the engine that made it. */
export interface EngineSnapshot {
  release(): Awaitable<void>
}

export type FamilyBuffers = {
  readonly family: number
  /** Bytes in memory, those included that are flushed and kept alive by a cursor or snapshot. */
  readonly held: number
  /** Bytes that a flush would write. */
  readonly flushable: number
}

export type FamilyFiles = {
  readonly family: number
  readonly storedBytes: number
  readonly files: number
}

/**
 * An open store. Families are numbers: those of `EngineOpening.families` from 0 in their order, then
 * those made later; a number is never used again. Calls that change something never overlap: the
 * next one begins when the promise of the one before is settled. Reads may come at any time.
 */
export interface EngineStore {
  get(family: number, key: Uint8Array, at?: EngineSnapshot): Awaitable<Uint8Array | undefined>
  getMany(
    family: number,
    keys: readonly Uint8Array[],
    at?: EngineSnapshot,
  ): Awaitable<readonly (Uint8Array | undefined)[]>
  /** `from` is included and `to` is not; the cursor sees what is there at the call. */
  scan(family: number, range: Pick<KvRange, 'from' | 'to'>, at?: EngineSnapshot): KvCursor
  snapshot(): Awaitable<EngineSnapshot>

  /** One put, or a delete where there is no value. */
  put(family: number, key: Uint8Array, value: Uint8Array | undefined): Awaitable<void>
  write(batch: KvBatch): Awaitable<void>
  flush(family: number): Awaitable<void>
  /** Makes a family that is not there, and answers its number. */
  create(name: string, options: FamilyOptions): Awaitable<number>
  drop(family: number): Awaitable<void>
  /**
   * Answers as soon as the moment of the checkpoint is fixed and the store may change again; its files
   * may be written after that.
   */
  checkpoint(folder: string): Awaitable<{ readonly files: Promise<KvCheckpoint> }>

  /** The sum of `held` over all families; may be late by what one batch adds. */
  heldBytes(): Awaitable<number>
  buffers(): Awaitable<readonly FamilyBuffers[]>
  files(): Awaitable<readonly FamilyFiles[]>
  descriptors(): Awaitable<number>
  close(): Promise<void>
}
