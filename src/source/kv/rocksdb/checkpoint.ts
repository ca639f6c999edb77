import { createHash } from 'node:crypto'
import { copyFile, link, mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { errnoOf } from '../../../core/errno.ts'
import { SluiceError } from '../../../core/errors.ts'
import { check } from '../../../core/never.ts'
import type { CheckpointFile, KvCheckpoint } from '../ports.ts'
import { logName, logNumbers } from './check-wal.ts'
import { syncFile, syncFolder, writeDurably } from './durable-file.ts'
import { type Manifest, readManifest } from './manifest.ts'
import { encodeNote, fileId, noteName, readNote, type StoreNote } from './store-note.ts'

/** What the folder of a checkpoint has been given, and what gives it its name once it is on disk. */
export type TakenCheckpoint = { finish(): Promise<KvCheckpoint> }

/**
 * Takes a store whose database is suspended. Files of a number and `.sst` are never changed once
 * they are there, so that a link is a copy. To the manifest and the logs RocksDB appends: a link to
 * them would change with the store, and the checkpoint would then not open.
 */
export async function takeCheckpoint(
  store: string,
  note: StoreNote,
  folder: string,
): Promise<TakenCheckpoint> {
  const manifest = await readManifest(store)
  check(manifest !== undefined, 'an open store has a manifest')
  const tables = tablesOf(manifest)
  const aside = await FolderAside.begin(folder)
  try {
    const names = await namesToCopy(store, manifest)
    await Promise.all(tables.map(({ name }) => linkOrCopy(store, aside.path, name)))
    await Promise.all(names.map((name) => copyFile(join(store, name), join(aside.path, name))))
    return { finish: () => finishCheckpoint(aside, note, { folder, tables, names }) }
  } catch (error) {
    throw await aside.abandoned(error)
  }
}

async function finishCheckpoint(
  aside: FolderAside,
  note: StoreNote,
  taken: {
    readonly folder: string
    readonly tables: readonly Table[]
    readonly names: readonly string[]
  },
): Promise<KvCheckpoint> {
  try {
    const files: CheckpointFile[] = taken.tables.map(({ name, number, bytes, family }) => {
      return { name, bytes, id: fileId(note, number), families: [family] }
    })
    for (const name of taken.names) {
      await syncFile(join(aside.path, name))
      files.push(await described(aside.path, name))
    }
    const sizes = files.map(({ name, bytes }) => ({ name, bytes }))
    await writeDurably(join(aside.path, noteName), encodeNote({ ...note, files: sizes }))
    files.push(await described(aside.path, noteName))
    await aside.publish()
    return { folder: taken.folder, files }
  } catch (error) {
    throw await aside.abandoned(error)
  }
}

/**
 * Makes a store of a checkpoint, which is left as it is: opening one writes into it.
 * @throws SluiceError DATA_CORRUPT naming a file that is missing or cut
 */
export async function restoreCheckpoint(
  from: string,
  folder: string,
  storeId: string,
): Promise<void> {
  const note = await readNote(from)
  const manifest = await readManifest(from)
  if (note?.files === undefined || manifest === undefined) {
    throw new SluiceError('DATA_CORRUPT', `${from} is no checkpoint of a KV store in RocksDB`, {
      details: { folder: from },
    })
  }
  const { files, ...own } = note
  for (const { name, bytes } of files) await checkSize(from, name, bytes)
  // The new store counts on: its own files begin where the checkpoint ends.
  const origins = [...own.origins, { storeId: own.storeId, below: manifest.nextFile }]
  const aside = await FolderAside.begin(folder)
  try {
    for (const { name } of files) {
      if (isTable(name)) await linkOrCopy(from, aside.path, name)
      else await copyDurably(from, aside.path, name)
    }
    const restored = encodeNote({ ...own, storeId, origins })
    await writeDurably(join(aside.path, noteName), restored)
    await aside.publish()
  } catch (error) {
    throw await aside.abandoned(error)
  }
}

/** A folder that is filled aside and gets its name when it is whole and on disk. */
class FolderAside {
  readonly path: string
  readonly #folder: string

  private constructor(folder: string) {
    this.#folder = folder
    this.path = join(dirname(folder), `.${basename(folder)}.unfinished`)
  }

  static async begin(folder: string): Promise<FolderAside> {
    const aside = new FolderAside(folder)
    await rm(aside.path, { recursive: true, force: true })
    await mkdir(aside.path, { recursive: true })
    return aside
  }

  async publish(): Promise<void> {
    await syncFolder(this.path)
    await rename(this.path, this.#folder)
    await syncFolder(dirname(this.#folder))
  }

  /** Takes away what is there, and answers the error to throw. */
  async abandoned(error: unknown): Promise<unknown> {
    await rm(this.path, { recursive: true, force: true })
    const code = errnoOf(error)
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST' && code !== 'ENOTDIR') return error
    return new SluiceError('TABLE_EXISTS', `${this.#folder} is there already`, {
      details: { folder: this.#folder },
      cause: error,
    })
  }
}

type Table = {
  readonly name: string
  readonly number: number
  readonly bytes: number
  readonly family: string
}

function tablesOf({ families }: Manifest): readonly Table[] {
  return families.flatMap(({ name: family, files }) =>
    [...files.values()].map(({ number, bytes }) => {
      return { name: `${String(number).padStart(6, '0')}.sst`, number, bytes, family }
    }),
  )
}

function isTable(name: string): boolean {
  return name.endsWith('.sst')
}

/** The newest options are for people; the logs are those that hold changes of no file. */
async function namesToCopy(store: string, manifest: Manifest): Promise<readonly string[]> {
  const options = (await readdir(store)).filter((name) => /^OPTIONS-\d+$/.test(name)).sort()
  const logs = (await logNumbers(store)).filter((log) => log >= manifest.oldestLog)
  return ['CURRENT', manifest.name, ...options.slice(-1), ...logs.map(logName)]
}

async function copyDurably(from: string, to: string, name: string): Promise<void> {
  await copyFile(join(from, name), join(to, name))
  await syncFile(join(to, name))
}

async function described(folder: string, name: string): Promise<CheckpointFile> {
  const bytes = await readFile(join(folder, name))
  const id = createHash('sha256').update(bytes).digest('hex')
  return { name, bytes: bytes.length, id, families: [] }
}

/** Links do not reach from one file system to another. */
async function linkOrCopy(from: string, to: string, name: string): Promise<void> {
  try {
    await link(join(from, name), join(to, name))
  } catch (error) {
    const code = errnoOf(error)
    if (code !== 'EXDEV' && code !== 'EPERM' && code !== 'EMLINK' && code !== 'ENOTSUP') throw error
    await copyDurably(from, to, name)
  }
}

async function checkSize(folder: string, name: string, bytes: number): Promise<void> {
  const found = await stat(join(folder, name)).catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT') return undefined
    throw error
  })
  if (found?.size === bytes) return
  const what =
    found === undefined ? 'is missing' : `has ${String(found.size)} of ${String(bytes)} bytes`
  throw new SluiceError('DATA_CORRUPT', `KV checkpoint ${folder}: ${name} ${what}`, {
    details: { folder, file: name },
    fix: 'begin with another checkpoint, or with none: the log has what it held',
  })
}
