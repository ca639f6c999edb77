import type { LiveFile } from '../../catalog/ports.ts'
import { isSluiceError } from '../../core/errors.ts'
import { type Bucket, type SnapshotId, snapshotId } from '../../core/ids.ts'
import { isJsonObject, parseJson, stringifyJson } from '../../core/json64.ts'
import { check } from '../../core/never.ts'
import type { KvFamily, KvStore } from '../../source/kv/ports.ts'

/** Families of a bucket's store that the sink keeps: where the row of each key lies in the lake. */
export const indexFamilies = ['positions', 'files', 'index'] as const

/** Where the rows of keys lie; parallel to the keys asked for. -1: the lake has no row of the key. */
export type KnownPlaces = { readonly file: Int32Array; readonly row: Uint32Array }

/** Which table and snapshot an index speaks of. */
type Named = { readonly table: string; readonly snapshot: SnapshotId }

const nobody = -1
const progressKey = Buffer.from('at')
/** Operations of one write; a larger change is not atomic, so the index names no snapshot meanwhile. */
const operationsMax = 100_000

/**
 * The index of one bucket: key → file and row, for the live rows of exactly one snapshot. It is a
 * cache: whatever is in doubt about it, it is built anew from the lake.
 */
export class BucketIndex {
  readonly bucket: Bucket
  readonly #store: KvStore
  #positions: KvFamily
  #files: KvFamily
  readonly #progress: KvFamily
  readonly #numbers = new Map<string, number>()
  readonly #locations = new Map<number, string>()
  #next = 0
  #named: Named | undefined

  private constructor(
    bucket: Bucket,
    store: KvStore,
    families: readonly [KvFamily, KvFamily, KvFamily],
  ) {
    this.bucket = bucket
    this.#store = store
    ;[this.#positions, this.#files, this.#progress] = families
  }

  static async open(bucket: Bucket, store: KvStore): Promise<BucketIndex> {
    const [positions, files, progress] = indexFamilies
    const index = new BucketIndex(bucket, store, [
      await store.columnFamily(positions),
      await store.columnFamily(files),
      await store.columnFamily(progress),
    ])
    await index.#load()
    return index
  }

  /** The snapshot whose rows are in; undefined when the index has to be built anew. */
  snapshotOf(table: string): SnapshotId | undefined {
    return this.#named?.table === table ? this.#named.snapshot : undefined
  }

  has(location: string): boolean {
    return this.#numbers.has(location)
  }

  locationOf(file: number): string | undefined {
    return this.#locations.get(file)
  }

  /** Locations of the files that rows are known in. */
  locations(): Iterable<string> {
    return this.#numbers.keys()
  }

  async lookup(keys: readonly Uint8Array[]): Promise<KnownPlaces> {
    const values = await this.#store.getMany(this.#positions, keys)
    const file = new Int32Array(keys.length).fill(nobody)
    const row = new Uint32Array(keys.length)
    values.forEach((value, at) => {
      if (value === undefined) return
      const view = new DataView(value.buffer, value.byteOffset, value.length)
      const number = view.getUint32(0, true)
      // A file that is gone took its rows with it.
      if (!this.#locations.has(number)) return
      file[at] = number
      row[at] = view.getUint32(4, true)
    })
    return { file, row }
  }

  /** Forgets everything. */
  async clear(): Promise<void> {
    await this.#name(undefined)
    const [positions, files] = indexFamilies
    await this.#store.dropFamily(this.#positions)
    await this.#store.dropFamily(this.#files)
    this.#positions = await this.#store.columnFamily(positions)
    this.#files = await this.#store.columnFamily(files)
    this.#numbers.clear()
    this.#locations.clear()
    this.#next = 0
  }

  /** A change to the index: nothing of it counts before `commit`, and nothing is left of it without. */
  begin(): IndexChange {
    const store = this.#store
    const added = new Map<string, number>()
    const dropped = new Set<string>()
    let next = this.#next
    let batch = store.batch()
    const write = async (): Promise<void> => {
      await store.write(batch)
      batch = store.batch()
      for (const location of dropped) this.#dropFile(location)
      for (const [location, number] of added) this.#addFile(location, number)
      this.#next = next
    }
    const settle = async (): Promise<void> => {
      if (this.#named !== undefined) await this.#name(undefined)
      await write()
    }
    return {
      addFile: (location) => {
        const number = next
        next += 1
        added.set(location, number)
        batch.put(this.#files, numberKey(number), Buffer.from(location))
        return number
      },
      dropFile: (location) => {
        const number = this.#numbers.get(location)
        check(number !== undefined, 'a file that is dropped was known')
        dropped.add(location)
        batch.delete(this.#files, numberKey(number))
      },
      put: async (key, file, row) => {
        batch.put(this.#positions, key, placeValue(file, row))
        if (batch.operations >= operationsMax) await settle()
      },
      delete: async (key) => {
        batch.delete(this.#positions, key)
        if (batch.operations >= operationsMax) await settle()
      },
      settle,
      commit: async (named) => {
        batch.put(this.#progress, progressKey, progressValue(named, next))
        await write()
        this.#named = named
      },
    }
  }

  #addFile(location: string, number: number): void {
    this.#numbers.set(location, number)
    this.#locations.set(number, location)
  }

  #dropFile(location: string): void {
    const number = this.#numbers.get(location)
    this.#numbers.delete(location)
    if (number !== undefined) this.#locations.delete(number)
  }

  async #name(named: Named | undefined): Promise<void> {
    this.#named = named
    if (named === undefined) await this.#store.delete(this.#progress, progressKey)
  }

  async #load(): Promise<void> {
    const value = await this.#store.get(this.#progress, progressKey)
    const progress = value === undefined ? undefined : readProgress(value)
    if (progress === undefined) return
    const cursor = this.#store.scan(this.#files)
    try {
      for (;;) {
        const entries = await cursor.next()
        if (entries === undefined) break
        entries.keys.forEach((key, at) => {
          const location = Buffer.from(entries.values[at] ?? []).toString('utf8')
          const number = Buffer.from(key).readUInt32BE(0)
          this.#addFile(location, number)
        })
      }
    } finally {
      await cursor.close()
    }
    this.#next = progress.next
    this.#named = progress.named
  }
}

export interface IndexChange {
  /** @returns the number of the file */
  addFile(location: string): number
  dropFile(location: string): void
  put(key: Uint8Array, file: number, row: number): Promise<void>
  delete(key: Uint8Array): Promise<void>
  /** Makes what was put so far visible to lookups; the index names no snapshot until `commit`. */
  settle(): Promise<void>
  /** The index speaks of this snapshot from now on. */
  commit(named: Named): Promise<void>
}

/** What is live in one bucket. */
export function filesOf(bucket: Bucket, files: readonly LiveFile[]): readonly LiveFile[] {
  return files.filter((file) => file.bucket === bucket)
}

function numberKey(number: number): Uint8Array {
  const key = Buffer.allocUnsafe(4)
  key.writeUInt32BE(number)
  return key
}

function placeValue(file: number, row: number): Uint8Array {
  const value = Buffer.allocUnsafe(8)
  value.writeUInt32LE(file, 0)
  value.writeUInt32LE(row, 4)
  return value
}

function progressValue({ table, snapshot }: Named, next: number): Uint8Array {
  return Buffer.from(stringifyJson({ table, snapshot: String(snapshot), next }))
}

/** What cannot be read is no progress: the index is built anew. */
function readProgress(
  value: Uint8Array,
): { readonly named: Named; readonly next: number } | undefined {
  try {
    const json = parseJson(value, { name: 'index' })
    if (!isJsonObject(json)) return undefined
    const { table, snapshot, next } = json
    if (typeof table !== 'string' || typeof snapshot !== 'string' || typeof next !== 'number') {
      return undefined
    }
    if (!/^[1-9]\d{0,18}$/.test(snapshot)) return undefined
    return { named: { table, snapshot: snapshotId(BigInt(snapshot)) }, next }
  } catch (error) {
    if (isSluiceError(error, 'DATA_CORRUPT')) return undefined
    throw error
  }
}
