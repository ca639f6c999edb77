import { readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { check } from '../../../core/never.ts'
import type { FamilyOptions } from '../ports.ts'
import type { Binding, ColumnFamily, Database, Session } from './binding.ts'
import { rocksDbError } from './rocksdb-errors.ts'

export type NamedFamily = { readonly name: string; readonly options: FamilyOptions }

export type DatabaseOpening = {
  readonly folder: string
  /** All families there are, `default` first; those that are not there are made. */
  readonly families: readonly NamedFamily[]
  readonly createIfMissing: boolean
  /** Bounds how many of its files RocksDB keeps open; -1 for no bound. */
  readonly maxOpenFiles: number
  /** Files that are there, to explain why no more can be opened. */
  readonly files: number
}

/** An open database, with a session for each family by name. */
export type OpenDatabase = {
  readonly database: Database
  readonly sessions: ReadonlyMap<string, Session>
  /** The write-ahead log it began. */
  readonly log: number
}

const bitsPerKey = 10

/** @throws SluiceError what the folder or the limits of the process do not allow */
export async function openDatabase(
  binding: Binding,
  { folder, families, createIfMissing, maxOpenFiles, files }: DatabaseOpening,
): Promise<OpenDatabase> {
  const [first, ...others] = families.map(({ name, options }) => {
    return new binding.ColumnFamily(name, familyOptions(binding, options))
  })
  check(first?.name === 'default', 'the first family is default')
  await removeOldJournals(folder)
  const database = new binding.Database(folder, {
    columnFamily: first,
    columnFamilies: others,
    createIfMissing,
    maxOpenFiles,
  })
  try {
    await database.ready()
    return {
      database,
      sessions: sessionsOf(database, [first, ...others]),
      log: (await database.currentWalFile()).number,
    }
  } catch (error) {
    // The binding closes what it could not open; this waits until it has.
    await database.close().catch(() => undefined)
    const use = { families: families.map(({ name }) => name), files, maxOpenFiles }
    throw rocksDbError(error, { folder, use })
  }
}

function sessionsOf(
  database: Database,
  families: readonly ColumnFamily[],
): ReadonlyMap<string, Session> {
  return new Map(families.map(({ name }) => [name, database.columnFamily(name)]))
}

function familyOptions(
  { BloomFilterPolicy, RibbonFilterPolicy }: Binding,
  options: FamilyOptions,
): ConstructorParameters<Binding['ColumnFamily']>[1] {
  const { writeBufferSize, maxWriteBufferNumber, blockSize, filter } = options
  const policies = {
    bloom: () => new BloomFilterPolicy(bitsPerKey),
    ribbon: () => new RibbonFilterPolicy(bitsPerKey),
    none: () => null,
  }
  return {
    writeBufferSize,
    maxWriteBufferNumber,
    tableBlockSize: blockSize,
    filterPolicy: policies[filter](),
    blockCache: false,
    tableCacheIndexAndFilterBlocks: false,
  }
}

/** RocksDB begins a journal at each open and keeps a thousand old ones. */
async function removeOldJournals(folder: string): Promise<void> {
  const old = (await readdir(folder)).filter((name) => /^LOG\.old\.\d+$/.test(name))
  await Promise.all(old.map((name) => unlink(join(folder, name))))
}
