import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf } from '../../../core/errno.ts'
import { SluiceError } from '../../../core/errors.ts'
import { logRecords } from './log-records.ts'

export type ManifestFile = {
  readonly number: number
  readonly level: number
  readonly bytes: number
}

export type ManifestFamily = {
  readonly id: number
  readonly name: string
  /** Changes in write-ahead logs of lower numbers are in the files below. */
  readonly log: number
  readonly files: ReadonlyMap<number, ManifestFile>
}

/**
 * What a RocksDB store is made of, as its newest manifest says: it alone tells which numbered file
 * belongs to which family. Read without opening the store, because the binding can neither list
 * families nor answer what an open would find.
 */
export type Manifest = {
  readonly name: string
  readonly families: readonly ManifestFamily[]
  /** Write-ahead logs from this number on hold changes that are in no file. */
  readonly oldestLog: number
  readonly nextFile: number
  /** The number of the last change that is in a file. */
  readonly lastInFiles: bigint
}

/** Answers undefined where no store is. */
export async function readManifest(folder: string): Promise<Manifest | undefined> {
  let before: string | undefined
  for (;;) {
    const name = await currentManifest(folder)
    if (name === undefined) return undefined
    const bytes = await readIfThere(join(folder, name))
    if (bytes !== undefined) return parseManifest(bytes, folder, name)
    // Whoever opens the store at this moment names another one and then removes this one.
    if (name === before) throw corrupt(folder, name, 'is missing, and only it maps files')
    before = name
  }
}

async function currentManifest(folder: string): Promise<string | undefined> {
  const current = await readIfThere(join(folder, 'CURRENT'))
  if (current === undefined) return undefined
  const name = current.toString('utf8').trimEnd()
  if (!/^MANIFEST-\d{6,}$/.test(name)) throw corrupt(folder, 'CURRENT', 'names no manifest')
  return name
}

type OpenFamily = { id: number; name: string; log: number; files: Map<number, ManifestFile> }

/** Numbers of the format of RocksDB's version edits. */
const tag = {
  comparator: 1,
  logNumber: 2,
  nextFile: 3,
  lastSequence: 4,
  compactCursor: 5,
  deletedFile: 6,
  previousLog: 9,
  oldestLog: 10,
  newFile: 103,
  family: 200,
  addFamily: 201,
  dropFamily: 202,
  highestFamily: 203,
  inGroup: 300,
  /** Set in all tags that a reader may skip, as their value begins with its length. */
  skippable: 1 << 13,
} as const

export function parseManifest(bytes: Buffer, folder: string, name: string): Manifest {
  const families = new Map<number, OpenFamily>()
  let oldestLog = 0
  let nextFile = 0
  let lastInFiles = 0n
  for (const record of logRecords(bytes)) {
    const edit = new EditReader(record, () => corrupt(folder, name, 'cannot be read'))
    const read = readEdit(edit)
    if (read.isDropped) {
      families.delete(read.family)
      continue
    }
    const family = families.get(read.family) ?? {
      id: read.family,
      name: 'default',
      log: 0,
      files: new Map<number, ManifestFile>(),
    }
    families.set(read.family, family)
    family.name = read.name ?? family.name
    family.log = read.log ?? family.log
    for (const number of read.removed) family.files.delete(number)
    for (const file of read.added) family.files.set(file.number, file)
    oldestLog = Math.max(oldestLog, read.oldestLog ?? 0)
    nextFile = Math.max(nextFile, read.nextFile ?? 0)
    if (read.lastInFiles > lastInFiles) lastInFiles = read.lastInFiles
  }
  if (families.size === 0) throw corrupt(folder, name, 'holds no families')
  return { name, families: [...families.values()], oldestLog, nextFile, lastInFiles }
}

type Edit = {
  family: number
  name: string | undefined
  isDropped: boolean
  log: number | undefined
  oldestLog: number | undefined
  nextFile: number | undefined
  lastInFiles: bigint
  readonly removed: number[]
  readonly added: ManifestFile[]
}

function readEdit(reader: EditReader): Edit {
  const edit: Edit = {
    family: 0,
    name: undefined,
    isDropped: false,
    log: undefined,
    oldestLog: undefined,
    nextFile: undefined,
    lastInFiles: 0n,
    removed: [],
    added: [],
  }
  while (reader.hasMore()) readField(reader, edit)
  return edit
}

function readField(reader: EditReader, edit: Edit): void {
  const field = reader.number()
  switch (field) {
    case tag.logNumber:
      edit.log = reader.number()
      return
    case tag.nextFile:
      edit.nextFile = reader.number()
      return
    case tag.oldestLog:
      edit.oldestLog = reader.number()
      return
    case tag.deletedFile:
      reader.number()
      edit.removed.push(reader.number())
      return
    case tag.newFile:
      edit.added.push(readNewFile(reader))
      return
    case tag.family:
      edit.family = reader.number()
      return
    case tag.addFamily:
      edit.name = reader.bytes().toString('utf8')
      return
    case tag.dropFamily:
      edit.isDropped = true
      return
    case tag.compactCursor:
      reader.number()
      reader.bytes()
      return
    case tag.lastSequence:
      edit.lastInFiles = BigInt(reader.number())
      return
    case tag.previousLog:
    case tag.highestFamily:
    case tag.inGroup:
      reader.number()
      return
    default:
      if (field !== tag.comparator && (field & tag.skippable) === 0) throw reader.refused()
      reader.bytes()
  }
}

/** Ends the fields of a file; every other one is a length and that many bytes. */
const endOfFile = 1

function readNewFile(reader: EditReader): ManifestFile {
  const level = reader.number()
  const number = reader.number()
  const bytes = reader.number()
  // The smallest and the largest key, then the smallest and the largest sequence number.
  reader.bytes()
  reader.bytes()
  reader.number()
  reader.number()
  while (reader.number() !== endOfFile) reader.bytes()
  return { number, level, bytes }
}

class EditReader {
  #position = 0
  readonly #record: Buffer
  readonly refused: () => SluiceError

  constructor(record: Buffer, refused: () => SluiceError) {
    this.#record = record
    this.refused = refused
  }

  hasMore(): boolean {
    return this.#position < this.#record.length
  }

  /** A variable-length integer; file and sequence numbers of real stores are exact as numbers. */
  number(): number {
    let value = 0
    for (let factor = 1; factor < 2 ** 63; factor *= 128) {
      const byte = this.#record[this.#position]
      if (byte === undefined) throw this.refused()
      this.#position += 1
      value += (byte & 127) * factor
      if (byte < 128) return value
    }
    throw this.refused()
  }

  bytes(): Buffer {
    const length = this.number()
    const end = this.#position + length
    if (end > this.#record.length) throw this.refused()
    const bytes = this.#record.subarray(this.#position, end)
    this.#position = end
    return bytes
  }
}

async function readIfThere(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined
    throw error
  }
}

function corrupt(folder: string, file: string, what: string): SluiceError {
  return new SluiceError('DATA_CORRUPT', `KV store ${folder}: ${file} ${what}`, {
    details: { folder, file },
    fix: 'restore the store from a checkpoint, or let it be built again from the log',
  })
}
