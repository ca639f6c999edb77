import { type Effect, SluiceError } from '../../../core/errors.ts'
import { check } from '../../../core/never.ts'
import type { KvBatch } from '../batch.ts'
import type { EngineSnapshot, EngineStore, FamilyBuffers, FamilyFiles } from '../engine.ts'
import type { FamilyOptions, KvCheckpoint, KvCursor, KvRange } from '../ports.ts'
import type { IteratorRange, Session } from './binding.ts'
import { type TakenCheckpoint, takeCheckpoint } from './checkpoint.ts'
import { boundsOf, emptyCursor, laterCursor, plain, RocksDbCursor } from './cursor.ts'
import { fileSizes, flushableOf, heldOf } from './family-figures.ts'
import type { OpenFolder } from './open-folder.ts'
import { isTooManyOpenFiles, rocksDbError } from './rocksdb-errors.ts'
import { StoreSnapshot } from './snapshot.ts'
import { writeTogether } from './write-batch.ts'

/** Descriptors beside those of families and files: lock, journal, log, manifest, folder. */
const fixedDescriptors = 5

/** Overhead of one operation in the log: its kind, its family and the lengths. */
const operationBytes = 8

export class RocksDbStore implements EngineStore {
  readonly #opened: OpenFolder
  /** By number; undefined once dropped. */
  readonly #names: (string | undefined)[]
  readonly #cursors = new Set<KvCursor>()
  readonly #snapshots = new Set<StoreSnapshot>()
  /** While the folder is closed and opened again. */
  #reopening: Promise<void> | undefined
  #failure: SluiceError | undefined
  readonly #walBytesMax: number
  #walBytes = 0

  constructor(
    opened: OpenFolder,
    { names, walBytesMax }: { readonly names: readonly string[]; readonly walBytesMax: number },
  ) {
    this.#opened = opened
    this.#names = [...names]
    this.#walBytesMax = walBytesMax
  }

  async get(family: number, key: Uint8Array, at?: EngineSnapshot): Promise<Uint8Array | undefined> {
    const [value] = await this.getMany(family, [key], at)
    return value
  }

  async getMany(
    family: number,
    keys: readonly Uint8Array[],
    at?: EngineSnapshot,
  ): Promise<readonly (Uint8Array | undefined)[]> {
    if (keys.length === 0) return []
    await this.#reopened()
    const batch = this.#session(family, at).read({ capacity: keys.length, autoDestroy: true })
    const reads = keys.map((key) => batch.get(key))
    batch.tryFlush()
    try {
      const values = await Promise.all(reads)
      return values.map((value) => (value === null ? undefined : plain(value)))
    } catch (error) {
      throw await this.#error(error)
    }
  }

  scan(family: number, range: Pick<KvRange, 'from' | 'to'>, at?: EngineSnapshot): KvCursor {
    const bounds = boundsOf(range)
    if (bounds === undefined) return emptyCursor
    if (this.#reopening === undefined) return this.#cursor(family, bounds, at)
    return laterCursor(this.#reopened().then(() => this.#cursor(family, bounds, at)))
  }

  async snapshot(): Promise<EngineSnapshot> {
    await this.#reopened()
    return this.#takeSnapshot()
  }

  async put(family: number, key: Uint8Array, value: Uint8Array | undefined): Promise<void> {
    const families = [this.#session(family)]
    const operations = { families, keys: [key], values: [value] }
    await this.#change(() => writeTogether(operations), 'unknown')
    await this.#countLog(key.length + (value?.length ?? 0) + operationBytes)
  }

  async write({ families, keys, values, bytes, operations }: KvBatch): Promise<void> {
    const together = { families: families.map((family) => this.#session(family)), keys, values }
    await this.#change(() => writeTogether(together), 'unknown')
    await this.#countLog(bytes + operations * operationBytes)
  }

  async flush(family: number): Promise<void> {
    await this.#change(() => this.#session(family).flush())
  }

  /**
   * The binding makes families only while it opens the database, so that it is closed and opened
   * again. Reads wait meanwhile; snapshots and cursors would not survive.
   */
  async create(name: string, options: FamilyOptions): Promise<number> {
    if (this.#snapshots.size + this.#cursors.size > 0) {
      throw new SluiceError(
        'CONFIG_INVALID',
        `family ${name} cannot be made while a snapshot or a scan of the store is open`,
        { fix: 'name it when the store is opened, or close them first' },
      )
    }
    await this.#change(async () => {
      const reopened = this.#opened.reopenWith({ name, options })
      this.#reopening = reopened.then(
        () => undefined,
        () => undefined,
      )
      try {
        await reopened
      } finally {
        this.#reopening = undefined
      }
    })
    return this.#names.push(name) - 1
  }

  /** Empties the family, gives its files back, and has every later open leave it aside. */
  async drop(family: number): Promise<void> {
    const name = this.#name(family)
    const session = this.#session(family)
    await this.#change(async () => {
      const last = await lastKey(session)
      if (last !== undefined) {
        await session.deleteRange(new Uint8Array(), Buffer.concat([last, new Uint8Array(1)]))
      }
      await session.flush()
      await this.#opened.retire(name)
      await session.compactRange()
    })
    this.#names[family] = undefined
  }

  async checkpoint(folder: string): Promise<{ readonly files: Promise<KvCheckpoint> }> {
    const { database, folder: own, note } = this.#opened
    // What is in no file is in the log, and all of the log since the oldest change is copied.
    await this.#change(() => this.#flushAll())
    await this.#change(() => database.suspend())
    let taken: TakenCheckpoint
    try {
      taken = await takeCheckpoint(own, note, folder)
    } catch (error) {
      // That the checkpoint has no room is nothing to the store.
      throw await this.#error(error)
    } finally {
      await this.#change(() => database.resume())
    }
    return { files: this.#finished(taken) }
  }

  async heldBytes(): Promise<number> {
    await this.#reopened()
    const held = await Promise.all(this.#open().map(({ session }) => heldOf(session)))
    return held.reduce((sum, bytes) => sum + bytes, 0)
  }

  async buffers(): Promise<readonly FamilyBuffers[]> {
    await this.#reopened()
    return Promise.all(
      this.#open().map(async ({ family, session }) => ({
        family,
        held: await heldOf(session),
        flushable: await flushableOf(session),
      })),
    )
  }

  async files(): Promise<readonly FamilyFiles[]> {
    await this.#reopened()
    return Promise.all(
      this.#open().map(async ({ family, session }) => {
        const sizes = await fileSizes(session)
        return {
          family,
          storedBytes: sizes.reduce((sum, bytes) => sum + bytes, 0),
          files: sizes.length,
        }
      }),
    )
  }

  async descriptors(): Promise<number> {
    await this.#reopened()
    const families = this.#opened.sessions.size
    return families + this.#opened.openFilesMost(await this.#fileCount()) + fixedDescriptors
  }

  async close(): Promise<void> {
    await Promise.all([...this.#cursors].map(async (cursor) => cursor.close()))
    await Promise.all([...this.#snapshots].map((snapshot) => snapshot.release()))
    await this.#opened.close()
  }

  /**
   * RocksDB takes no more changes after one failed, even when its reason is gone. What was
   * acknowledged is in the files and the log of the folder: whoever opens it again has it.
   */
  async #change<Result>(action: () => Promise<Result>, effect: Effect = 'none'): Promise<Result> {
    if (this.#failure !== undefined) throw this.#failure
    try {
      return await action()
    } catch (error) {
      const failure = await this.#error(error, effect)
      this.#failure = failure
      throw failure
    }
  }

  async #finished(taken: TakenCheckpoint): Promise<KvCheckpoint> {
    try {
      return await taken.finish()
    } catch (error) {
      throw await this.#error(error)
    }
  }

  async #countLog(bytes: number): Promise<void> {
    this.#walBytes += bytes
    if (this.#walBytes > this.#walBytesMax) await this.#change(() => this.#flushAll())
  }

  async #flushAll(): Promise<void> {
    for (const { session } of this.#open()) await session.flush()
    this.#walBytes = 0
  }

  /** Of all families, the retired ones too. */
  async #fileCount(): Promise<number> {
    const sessions = [...this.#opened.sessions.values()]
    const counts = await Promise.all(sessions.map(async (each) => (await fileSizes(each)).length))
    return counts.reduce((sum, count) => sum + count, 0)
  }

  async #reopened(): Promise<void> {
    while (this.#reopening !== undefined) await this.#reopening
  }

  #cursor(family: number, bounds: IteratorRange, at?: EngineSnapshot): KvCursor {
    // An iterator is opened some time later: without a snapshot it could see what is written now.
    const snapshot = at ?? this.#takeSnapshot()
    const cursor = new RocksDbCursor(this.#session(family, snapshot), bounds, (error) =>
      this.#error(error),
    )
    const tracked: KvCursor = {
      next: (entriesMax) => cursor.next(entriesMax),
      close: async () => {
        if (!this.#cursors.delete(tracked)) return
        await cursor.close()
        if (at === undefined) await snapshot.release()
      },
    }
    this.#cursors.add(tracked)
    return tracked
  }

  #takeSnapshot(): StoreSnapshot {
    const snapshot = new StoreSnapshot(this.#opened.database.snapshot(), () => {
      this.#snapshots.delete(snapshot)
    })
    this.#snapshots.add(snapshot)
    return snapshot
  }

  #session(family: number, at?: EngineSnapshot): Session {
    const name = this.#name(family)
    if (at !== undefined) {
      check(at instanceof StoreSnapshot, 'a snapshot is read in the store it is of')
      return at.session(name)
    }
    return this.#opened.session(name)
  }

  #name(family: number): string {
    const name = this.#names[family]
    check(name !== undefined, `family ${String(family)} is open`)
    return name
  }

  #open(): readonly { readonly family: number; readonly session: Session }[] {
    return this.#names.flatMap((name, family) =>
      name === undefined ? [] : [{ family, session: this.#opened.session(name) }],
    )
  }

  async #error(error: unknown, effect: Effect = 'none'): Promise<SluiceError> {
    const context = { folder: this.#opened.folder, effect }
    if (!isTooManyOpenFiles(error)) return rocksDbError(error, context)
    const use = this.#opened.descriptorUse(await this.#fileCount())
    return rocksDbError(error, { ...context, use })
  }
}

async function lastKey(session: Session): Promise<Uint8Array | undefined> {
  const cursor = new RocksDbCursor(session, { reverse: true, limit: 1 }, (error) =>
    Promise.resolve(error),
  )
  const last = await cursor.next(1)
  await cursor.close()
  return last?.keys[0]
}
