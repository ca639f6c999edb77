import { open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Replaces a file whole: after a crash it is the old one or the new one. */
export async function replaceDurably(path: string, body: string): Promise<void> {
  const temporary = `${path}.tmp`
  await writeDurably(temporary, body)
  await rename(temporary, path)
  await syncFolder(dirname(path))
}

export async function writeDurably(path: string, body: string): Promise<void> {
  const file = await open(path, 'w')
  try {
    await file.writeFile(body)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Makes what is on disk of a file last, whoever wrote it. */
export async function syncFile(path: string): Promise<void> {
  const file = await open(path, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Makes names in a folder last. */
export const syncFolder = syncFile
