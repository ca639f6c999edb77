import { mkdir, readdir } from 'node:fs/promises'
import { check } from '../../../core/never.ts'
import { SluiceError } from '../../../core/errors.ts'
import type { FamilyOptions } from '../ports.ts'
import type { Binding, Database, Session } from './binding.ts'
import { checkWal } from './check-wal.ts'
import { type NamedFamily, type OpenDatabase, openDatabase } from './database.ts'
import { type Manifest, readManifest } from './manifest.ts'
import { type DescriptorUse, rocksDbError } from './rocksdb-errors.ts'
import { lockName, lockStore, type StoreLock } from './store-lock.ts'
import { noteName, readNote, type StoreNote, writeNote } from './store-note.ts'

export type FolderOpening = {
  readonly folder: string
  readonly storeId: string
  readonly families: readonly NamedFamily[]
  readonly maxOpenFiles: number
}

/** Families that were dropped must be opened as well; they need no memory to speak of. */
const retiredOptions: FamilyOptions = {
  writeBufferSize: 64 * 1024,
  maxWriteBufferNumber: 2,
  level0FileNumCompactionTrigger: 4,
  blockSize: 4_096,
  filter: 'none',
}

/** RocksDB's own table of files counts ten of its bound for other files. */
const filesOfBound = 10

/** A folder that this process holds, with the database in it and our note about it. */
export class OpenFolder {
  readonly folder: string
  readonly #binding: Binding
  readonly #maxOpenFiles: number
  readonly #lock: StoreLock
  #families: readonly NamedFamily[]
  #note: StoreNote
  #open: OpenDatabase

  constructor(
    { folder, maxOpenFiles }: FolderOpening,
    parts: {
      readonly binding: Binding
      readonly lock: StoreLock
      readonly families: readonly NamedFamily[]
      readonly note: StoreNote
      readonly open: OpenDatabase
    },
  ) {
    this.folder = folder
    this.#maxOpenFiles = maxOpenFiles
    this.#binding = parts.binding
    this.#lock = parts.lock
    this.#families = parts.families
    this.#note = parts.note
    this.#open = parts.open
  }

  /** @throws SluiceError FAMILY_ORPHANED, DATA_CORRUPT, STORE_UNAVAILABLE when it is open already */
  static async open(binding: Binding, opening: FolderOpening): Promise<OpenFolder> {
    const { folder, families, maxOpenFiles } = opening
    try {
      await mkdir(folder, { recursive: true })
      const lock = await lockStore(folder)
      try {
        return await openLocked(binding, opening, lock)
      } catch (error) {
        await lock.release()
        throw error
      }
    } catch (error) {
      const use = { families: families.map(({ name }) => name), files: 0, maxOpenFiles }
      throw rocksDbError(error, { folder, use })
    }
  }

  get database(): Database {
    return this.#open.database
  }

  get note(): StoreNote {
    return this.#note
  }

  /** Of all families, the retired ones too. */
  get sessions(): ReadonlyMap<string, Session> {
    return this.#open.sessions
  }

  session(name: string): Session {
    const session = this.#open.sessions.get(name)
    check(session !== undefined, `family ${name} is open`)
    return session
  }

  descriptorUse(files: number): DescriptorUse {
    const families = this.#families.map(({ name }) => name)
    return { families, files, maxOpenFiles: this.#maxOpenFiles }
  }

  /** How many of so many files are open. */
  openFilesMost(files: number): number {
    if (this.#maxOpenFiles < 0) return files
    return Math.min(files, Math.max(0, this.#maxOpenFiles - filesOfBound))
  }

  async retire(name: string): Promise<void> {
    const others = this.#note.retired.filter((each) => each !== name)
    await this.#write({ ...this.#note, retired: [...others, name] })
  }

  /** Closes the database and opens it with one family more. */
  async reopenWith(family: NamedFamily): Promise<void> {
    for (const session of this.#open.sessions.values()) await session.flush()
    const manifest = await readManifest(this.folder)
    await this.#open.database.close({ force: true })
    const families = [...this.#families.filter(({ name }) => name !== family.name), family]
    try {
      this.#open = await openDatabase(this.#binding, {
        folder: this.folder,
        families,
        createIfMissing: false,
        maxOpenFiles: this.#maxOpenFiles,
        files: fileCount(manifest),
      })
    } catch (error) {
      // It may be there although the rest could not be opened, and is nobody's yet.
      await this.retire(family.name)
      throw error
    }
    this.#families = families
    const wal = { manifest: await manifestName(this.folder), log: this.#open.log }
    const retired = this.#note.retired.filter((name) => name !== family.name)
    await this.#write({ ...this.#note, wal, retired })
  }

  async close(): Promise<void> {
    await this.#open.database.close({ force: true })
    await this.#lock.release()
  }

  async #write(note: StoreNote): Promise<void> {
    await writeNote(this.folder, note)
    this.#note = note
  }
}

async function openLocked(
  binding: Binding,
  opening: FolderOpening,
  lock: StoreLock,
): Promise<OpenFolder> {
  const { folder, storeId, families, maxOpenFiles } = opening
  const manifest = await readManifest(folder)
  const before = await readNote(folder)
  if (manifest === undefined) await refuseRemains(folder, before)
  else await checkWal(folder, manifest, before?.wal)
  const stored = manifest?.families.map(({ name }) => name) ?? []
  const retired = (before?.retired ?? []).filter(
    (name) => stored.includes(name) && !families.some((family) => family.name === name),
  )
  refuseOrphans(folder, stored, [...families.map(({ name }) => name), ...retired])
  const all = [...families, ...retired.map((name) => ({ name, options: retiredOptions }))]
  const open = await openDatabase(binding, {
    folder,
    families: all,
    createIfMissing: manifest === undefined,
    maxOpenFiles,
    files: fileCount(manifest),
  })
  try {
    const wal = { manifest: await manifestName(folder), log: open.log }
    const origins = before?.origins ?? []
    const note = { storeId: before?.storeId ?? storeId, origins, retired, wal }
    await writeNote(folder, note)
    return new OpenFolder(opening, { binding, lock, families: all, note, open })
  } catch (error) {
    await open.database.close({ force: true })
    throw error
  }
}

function fileCount(manifest: Manifest | undefined): number {
  return (manifest?.families ?? []).reduce((sum, { files }) => sum + files.size, 0)
}

async function manifestName(folder: string): Promise<string> {
  const manifest = await readManifest(folder)
  check(manifest !== undefined, 'an open store has a manifest')
  return manifest.name
}

/** The binding would refuse such a store as well, after it began to open it. */
function refuseOrphans(folder: string, stored: readonly string[], names: readonly string[]): void {
  const orphans = stored.filter((name) => !names.includes(name))
  if (orphans.length === 0) return
  throw new SluiceError(
    'FAMILY_ORPHANED',
    `KV store ${folder}: families not named: ${orphans.join(', ')}`,
    { details: { folder, families: orphans } },
  )
}

/** Without CURRENT RocksDB would begin a new store over what is there of an old one. */
async function refuseRemains(folder: string, note: StoreNote | undefined): Promise<void> {
  const names = (await readdir(folder)).filter((name) => !name.startsWith(lockName))
  if (note !== undefined || names.some((name) => /^\d+\.sst$/.test(name))) {
    throw new SluiceError('DATA_CORRUPT', `KV store ${folder}: CURRENT is missing`, {
      details: { folder, file: 'CURRENT' },
      fix: 'delete the store and let it be built again from its last checkpoint and the log',
    })
  }
  const foreign = names.find((name) => !isOwnName(name))
  if (foreign === undefined) return
  throw new SluiceError('LOCATION_REFUSED', `${folder} is no KV store: it holds ${foreign}`, {
    details: { folder, file: foreign },
  })
}

/** What a first open leaves that was not finished. */
function isOwnName(name: string): boolean {
  return (
    name.startsWith(noteName) ||
    /^(IDENTITY|LOCK|LOG|SESSION_ID|MANIFEST-\d+|OPTIONS-\d+|\d+\.(log|dbtmp))/.test(name)
  )
}
