import { type FileHandle, link, mkdir, open, stat, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { errnoOf } from '../../core/errno.ts'
import { SluiceError } from '../../core/errors.ts'
import type { KvFiles } from './files.ts'

/** Files of this machine. A name that ends in `.part` is a file some process did not finish. */
export const nodeKvFiles: KvFiles = {
  async write(path, parts) {
    const temporary = `${path}.part`
    try {
      await mkdir(dirname(path), { recursive: true })
      const bytes = await writeDurably(temporary, parts)
      await link(temporary, path)
      await syncFolder(dirname(path))
      return bytes
    } catch (error) {
      throw fileError(error, path)
    } finally {
      await unlink(temporary).catch(() => undefined)
    }
  },

  async size(path) {
    try {
      return (await stat(path)).size
    } catch (error) {
      const code = errnoOf(error)
      if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
      throw fileError(error, path)
    }
  },

  async read(path, start, end) {
    try {
      const file = await open(path, 'r')
      try {
        return await readRange(file, start, end)
      } finally {
        await file.close()
      }
    } catch (error) {
      throw fileError(error, path)
    }
  },
}

async function writeDurably(path: string, parts: Iterable<Uint8Array>): Promise<number> {
  let bytes = 0
  const file = await open(path, 'w')
  try {
    for (const part of parts) {
      let at = 0
      while (at < part.length) at += (await file.write(part, at, part.length - at)).bytesWritten
      bytes += part.length
    }
    await file.sync()
  } finally {
    await file.close()
  }
  return bytes
}

async function readRange(file: FileHandle, start: number, end: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(end - start)
  let filled = 0
  while (filled < bytes.length) {
    const { bytesRead } = await file.read(bytes, filled, bytes.length - filled, start + filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return bytes.subarray(0, filled)
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

function fileError(error: unknown, path: string): unknown {
  const code = errnoOf(error)
  const options = { details: { path, errno: code }, cause: error }
  switch (code) {
    case 'EEXIST':
      return new SluiceError('TABLE_EXISTS', `${path} is there already`, options)
    case 'ENOSPC':
    case 'EDQUOT':
      return new SluiceError('DISK_FULL', `${path}: disk full`, options)
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new SluiceError('STORE_DENIED', `${path}: no right to read or write it`, options)
    case undefined:
    default:
      return error
  }
}
