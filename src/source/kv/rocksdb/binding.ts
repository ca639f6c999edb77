import { SluiceError } from '../../../core/errors.ts'

/** What is used of `rocksdb-native`, which has no types of its own. */
export type Binding = {
  readonly Database: new (folder: string, options: DatabaseOptions) => Database
  readonly ColumnFamily: new (name: string, options: ColumnFamilyOptions) => ColumnFamily
  readonly BloomFilterPolicy: new (bitsPerKey: number) => FilterPolicy
  readonly RibbonFilterPolicy: new (bitsPerKey: number) => FilterPolicy
}

export type FilterPolicy = { readonly type: number }
export type ColumnFamily = { readonly name: string }

export type ColumnFamilyOptions = {
  readonly writeBufferSize: number
  readonly maxWriteBufferNumber: number
  readonly tableBlockSize: number
  readonly filterPolicy: FilterPolicy | null
  /** Each family would have a cache of its own of 32 MiB that no option changes. */
  readonly blockCache: false
  /** Without a cache the binding opens no family that is to keep these in it. */
  readonly tableCacheIndexAndFilterBlocks: false
}

export type DatabaseOptions = {
  readonly columnFamily: ColumnFamily
  readonly columnFamilies: readonly ColumnFamily[]
  readonly createIfMissing: boolean
  readonly maxOpenFiles: number
}

export interface Database extends Session {
  ready(): Promise<void>
  /** Gives up the lock of the folder until `resume`; calls that come meanwhile wait. */
  suspend(): Promise<void>
  resume(): Promise<void>
  currentWalFile(): Promise<{ readonly number: number }>
  columnFamily(name: string): Session
  /** One moment for all families, taken at the call. */
  snapshot(): SnapshotSession
  close(options?: { readonly force?: boolean }): Promise<void>
}

/** One family of a database, or of a snapshot of it. */
export interface Session {
  read(options: { readonly capacity: number; readonly autoDestroy: true }): ReadBatch
  write(options: { readonly capacity: number; readonly autoDestroy: true }): WriteBatch
  iterator(range: IteratorRange, options: { readonly capacity: number }): Rows
  flush(): Promise<void>
  deleteRange(from: Uint8Array, to: Uint8Array): Promise<void>
  compactRange(): Promise<void>
  getProperty(name: string): Promise<string | undefined>
  close(): Promise<void>
}

export interface SnapshotSession extends Session {
  columnFamily(name: string): Session
}

export type IteratorRange = {
  readonly gte?: Uint8Array
  readonly lt?: Uint8Array
  readonly reverse?: boolean
  readonly limit?: number
}

/** A stream of rows in pieces of its capacity. */
export interface Rows {
  read(): { readonly key: Uint8Array; readonly value: Uint8Array } | null
  on(event: 'readable' | 'end' | 'close', listener: () => void): this
  on(event: 'error', listener: (error: Error) => void): this
  destroy(): void
}

export interface ReadBatch {
  get(key: Uint8Array): Promise<Uint8Array | null>
  tryFlush(): void
}

export interface WriteBatch {
  /**
   * The family that operations go to. A private field: the call below takes a family for each
   * operation, and only the public interface gives a batch one family. Hence the exact version in
   * package.json and the self-test at the first open.
   */
  _db: Session
  tryPut(key: Uint8Array, value: Uint8Array): void
  tryDelete(key: Uint8Array): void
  flush(): Promise<void>
}

const install = 'npm install rocksdb-native@3.18.1'

/**
 * Loads RocksDB if it is installed.
 * @throws SluiceError DEPENDENCY_MISSING
 */
export async function loadBinding(): Promise<Binding> {
  // In a variable, so that no compiler looks for a package that may be absent.
  const name: string = 'rocksdb-native'
  let loaded: unknown
  try {
    loaded = await import(name)
  } catch (cause) {
    throw unavailable(cause)
  }
  return decode(loaded)
}

function decode(loaded: unknown): Binding {
  const Database = memberOf(loaded, 'default')
  const parts: Record<string, unknown> = { Database }
  for (const name of classes) parts[name] = memberOf(Database, name)
  if (hasClasses(parts)) return parts
  throw unfit('it has not the classes that are expected')
}

const classes = ['ColumnFamily', 'BloomFilterPolicy', 'RibbonFilterPolicy']

function hasClasses(parts: Record<string, unknown>): parts is Binding {
  return ['Database', ...classes].every((name) => typeof parts[name] === 'function')
}

function memberOf(value: unknown, name: string): unknown {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return undefined
  const member: unknown = Reflect.get(value, name)
  return member
}

/** A binding that is there and does not do what the engine builds on. */
export function unfit(what: string, cause?: unknown): SluiceError {
  return new SluiceError(
    'DEPENDENCY_MISSING',
    `KV stores in RocksDB need rocksdb-native 3.18.1, and this one is another: ${what}`,
    { fix: install, ...(cause === undefined ? {} : { cause }) },
  )
}

function unavailable(cause: unknown): SluiceError {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  if (code === 'ERR_MODULE_NOT_FOUND') {
    return new SluiceError(
      'DEPENDENCY_MISSING',
      'KV stores in RocksDB need rocksdb-native, which is not installed',
      { fix: install, cause },
    )
  }
  const reason = innermost(cause)
  const needsLibatomic = reason.includes('libatomic')
  return new SluiceError(
    'DEPENDENCY_MISSING',
    `KV stores in RocksDB need rocksdb-native, which does not load here: ${reason}`,
    {
      // Debian's images for Node have it, the slim ones do not.
      fix: needsLibatomic ? 'apt-get install libatomic1, or on RPM systems libatomic' : install,
      cause,
    },
  )
}

function innermost(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause === undefined ? error.message : innermost(error.cause)
}
