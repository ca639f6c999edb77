import { constants } from 'node:fs'
import { type FileHandle, link, mkdir, open, readdir, rename, stat, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { errnoOf } from '../../core/errno.ts'
import { SluiceError } from '../../core/errors.ts'
import { millis } from '../../core/ids.ts'
import type { IdSource } from '../../core/ports.ts'
import { storeError } from './local-errors.ts'
import type { CreateOutcome, ObjectEntry, ObjectStore, ObjectWriter } from './object-store.ts'

/** Small writes of an encoder are gathered up to this many bytes. */
const gatherBytes = 1 << 20
const scheme = 'file:///'

/**
 * Objects as files below folders of this machine, by `file:///` locations.
 *
 * A file gets its final name by `link` and only when it is whole and on disk: unlike `rename`, a
 * link fails where the name is taken, and a reader never sees half a file under a final name.
 */
export function localStore(ids: IdSource): ObjectStore {
  const temporaryFor = (path: string): string =>
    join(dirname(path), `.sluice-${ids.bits128().slice(0, 16)}.tmp`)

  return {
    async createIfAbsent(location, body, options = {}): Promise<CreateOutcome> {
      const path = pathOf(location)
      const temporary = temporaryFor(path)
      try {
        if (options.makeFolders === true) await makeFolders(dirname(path))
        await writeDurably(temporary, body)
      } catch (error) {
        await forget(temporary)
        throw storeError(error, path, `${String(body.length)} bytes`)
      }
      return publish(temporary, path)
    },

    async putHint(location, body): Promise<void> {
      const path = pathOf(location)
      const temporary = temporaryFor(path)
      try {
        await writeDurably(temporary, body)
        await rename(temporary, path)
      } catch {
        // Nothing depends on a hint: a failure to write one must not fail a commit that landed.
        await forget(temporary)
      }
    },

    async open(location): Promise<ObjectWriter> {
      const path = pathOf(location)
      const temporary = temporaryFor(path)
      try {
        await makeFolders(dirname(path))
        const file = await open(temporary, 'wx')
        return localWriter(file, temporary, path)
      } catch (error) {
        throw storeError(error, path)
      }
    },

    async read(location): Promise<Uint8Array | undefined> {
      return withFile(location, async (file) => file.readFile())
    },

    async readRange(location, start, end): Promise<Uint8Array | undefined> {
      return withFile(location, async (file) => {
        const bytes = Buffer.allocUnsafe(Math.max(0, end - start))
        let filled = 0
        while (filled < bytes.length) {
          const { bytesRead } = await file.read(
            bytes,
            filled,
            bytes.length - filled,
            start + filled,
          )
          if (bytesRead === 0) break
          filled += bytesRead
        }
        return bytes.subarray(0, filled)
      })
    },

    async size(location): Promise<number | undefined> {
      const path = pathOf(location)
      try {
        const found = await stat(path)
        return found.isFile() ? found.size : undefined
      } catch (error) {
        if (isAbsent(error)) return undefined
        throw storeError(error, path)
      }
    },

    async list(prefix): Promise<readonly ObjectEntry[]> {
      const entries: ObjectEntry[] = []
      await walk(pathOf(prefix), entries)
      return entries.sort((a, b) => (a.location < b.location ? -1 : 1))
    },

    async remove(location): Promise<void> {
      const path = pathOf(location)
      try {
        await unlink(path)
      } catch (error) {
        if (!isAbsent(error)) throw storeError(error, path)
      }
    },
  }
}

/**
 * The path of a `file:///` location. Nothing is percent-decoded: other engines take the text behind
 * the scheme as the path, and a name must mean the same file to all of them.
 * @throws SluiceError LOCATION_REFUSED for any other location.
 */
export function pathOf(location: string): string {
  if (!location.startsWith(scheme) || location.includes('\0')) {
    throw new SluiceError('LOCATION_REFUSED', `${location}: not a file location`)
  }
  return location.slice(scheme.length - 1)
}

/** The `file:///` location of an absolute path, character for character; a trailing slash stays. */
export function locationOf(path: string): string {
  return `file://${path}`
}

function localWriter(file: FileHandle, temporary: string, path: string): ObjectWriter {
  let gathered: Uint8Array[] = []
  let gatheredBytes = 0
  let written = 0

  const drain = async (): Promise<void> => {
    const chunks = gathered
    gathered = []
    gatheredBytes = 0
    // A single writev may be short on a full disk; writing one by one names the error instead.
    for (const chunk of chunks) await writeWhole(file, chunk)
  }

  return {
    async write(bytes): Promise<void> {
      written += bytes.length
      // The encoder reuses its buffers, so what is kept beyond this call must be a copy.
      if (bytes.length < gatherBytes) {
        gathered.push(Uint8Array.prototype.slice.call(bytes))
        gatheredBytes += bytes.length
        if (gatheredBytes < gatherBytes) return
      }
      try {
        await drain()
        if (bytes.length >= gatherBytes) await writeWhole(file, bytes)
      } catch (error) {
        throw storeError(error, path)
      }
    },

    async finish(): Promise<number> {
      try {
        await drain()
        await file.sync()
        await file.close()
      } catch (error) {
        await file.close().catch(() => undefined)
        await forget(temporary)
        throw storeError(error, path)
      }
      const outcome = await publish(temporary, path)
      if (outcome.kind === 'applied') return written
      throw new SluiceError('STORE_UNAVAILABLE', `${path}: the file could not be given its name`, {
        cause: outcome.kind === 'unknown' ? outcome.cause : undefined,
      })
    },

    async abandon(): Promise<void> {
      gathered = []
      await file.close().catch(() => undefined)
      await forget(temporary)
    },
  }
}

/** Gives a whole, durable temporary file its final name, or says that the name is taken. */
async function publish(temporary: string, path: string): Promise<CreateOutcome> {
  try {
    await link(temporary, path)
  } catch (error) {
    await forget(temporary)
    const code = errnoOf(error)
    if (code === 'EEXIST') return { kind: 'rejected', reason: 'exists' }
    if (code === 'EIO' || code === 'ESTALE' || code === 'ETIMEDOUT') {
      return { kind: 'unknown', cause: error }
    }
    if (code === 'EPERM' || code === 'ENOTSUP' || code === 'EOPNOTSUPP') {
      throw new SluiceError('STORE_UNSUPPORTED', `${dirname(path)}: no hard links here`, {
        fix: 'put the warehouse on a file system with hard links (ext4, xfs, btrfs, apfs)',
        cause: error,
      })
    }
    throw storeError(error, path)
  }
  await forget(temporary)
  try {
    await syncFolder(dirname(path))
  } catch (cause) {
    return { kind: 'unknown', cause }
  }
  return { kind: 'applied' }
}

async function writeDurably(path: string, body: Uint8Array): Promise<void> {
  const file = await open(path, 'wx')
  try {
    await writeWhole(file, body)
    await file.sync()
  } finally {
    await file.close()
  }
}

async function writeWhole(file: FileHandle, bytes: Uint8Array): Promise<void> {
  let at = 0
  while (at < bytes.length) {
    const { bytesWritten } = await file.write(bytes, at, bytes.length - at)
    at += bytesWritten
  }
}

/** Makes the missing folders of `path`, each durable in its parent before the next is made. */
async function makeFolders(path: string): Promise<void> {
  try {
    await mkdir(path)
  } catch (error) {
    const code = errnoOf(error)
    if (code === 'EEXIST') return
    if (code !== 'ENOENT') throw error
    await makeFolders(dirname(path))
    try {
      await mkdir(path)
    } catch (again) {
      if (errnoOf(again) !== 'EEXIST') throw again
    }
  }
  await syncFolder(dirname(path))
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, constants.O_RDONLY)
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** Best effort: a temporary that stays is hidden, unreferenced, and the sweeper's. */
async function forget(temporary: string): Promise<void> {
  await unlink(temporary).catch(() => undefined)
}

async function withFile<T>(
  location: string,
  use: (file: FileHandle) => Promise<T>,
): Promise<T | undefined> {
  const path = pathOf(location)
  let file: FileHandle
  try {
    file = await open(path, 'r')
  } catch (error) {
    if (isAbsent(error)) return undefined
    throw storeError(error, path)
  }
  try {
    return await use(file)
  } catch (error) {
    throw storeError(error, path)
  } finally {
    await file.close()
  }
}

async function walk(folder: string, entries: ObjectEntry[]): Promise<void> {
  let found
  try {
    found = await readdir(folder, { withFileTypes: true })
  } catch (error) {
    if (isAbsent(error)) return
    throw storeError(error, folder)
  }
  for (const entry of found) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) {
      await walk(path, entries)
    } else if (entry.isFile()) {
      const facts = await stat(path).catch((error: unknown) => {
        // A file that vanished between listing and looking is simply not there.
        if (isAbsent(error)) return undefined
        throw storeError(error, path)
      })
      if (facts === undefined) continue
      const location = locationOf(join(folder, basename(path)))
      entries.push({ location, bytes: facts.size, modifiedAt: millis(Math.floor(facts.mtimeMs)) })
    }
  }
}

function isAbsent(error: unknown): boolean {
  const code = errnoOf(error)
  return code === 'ENOENT' || code === 'ENOTDIR'
}
