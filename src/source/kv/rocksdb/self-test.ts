import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FamilyOptions } from '../ports.ts'
import { type Binding, unfit } from './binding.ts'
import { logName } from './check-wal.ts'
import { openDatabase } from './database.ts'
import { logRecords, walContent } from './log-records.ts'
import { readManifest } from './manifest.ts'
import { writeTogether } from './write-batch.ts'

const options: FamilyOptions = {
  writeBufferSize: 1 << 20,
  maxWriteBufferNumber: 2,
  level0FileNumCompactionTrigger: 4,
  blockSize: 4_096,
  filter: 'none',
}

const names = ['default', 'left', 'right']

/**
 * Tries, on a store that is thrown away, what the engine builds on and no interface promises: that
 * a batch reaches the families its operations were meant for as one record of the log, and that
 * manifest and log are read as this version writes them.
 * @throws SluiceError DEPENDENCY_MISSING
 */
export async function selfTest(binding: Binding): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-kv-'))
  try {
    await tryBatch(binding, folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function tryBatch(binding: Binding, folder: string): Promise<void> {
  const families = names.map((name) => ({ name, options }))
  const opening = { folder, families, createIfMissing: true, maxOpenFiles: -1, files: 0 }
  const { database, sessions, log } = await openDatabase(binding, opening)
  try {
    const [, left, right] = names.flatMap((name) => sessions.get(name) ?? [])
    if (left === undefined || right === undefined) throw unfit('it opens no column families')
    const key = Buffer.from('key')
    await writeTogether({
      families: [left, right, left],
      keys: [key, key, Buffer.from('gone')],
      values: [Buffer.from('l'), Buffer.from('r'), undefined],
    })
    const found = await Promise.all(
      [left, right].map(async (family) => {
        const batch = family.read({ capacity: 1, autoDestroy: true })
        const value = batch.get(key)
        batch.tryFlush()
        return String(await value)
      }),
    )
    if (found.join() !== 'l,r') throw unfit('a batch does not reach its families')
    const bytes = await readFile(join(folder, logName(log)))
    const content = walContent(bytes)
    const changes = content.kind === 'whole' ? content.range.end - content.range.from : 0n
    const isOneRecord = [...logRecords(bytes)].length === 1 && changes === 3n
    if (!isOneRecord) throw unfit('a batch is not one record of the log')
    await left.flush()
    const manifest = await readManifest(folder)
    const files = manifest?.families.map((family) => `${family.name}:${String(family.files.size)}`)
    if (files?.join() !== 'default:0,left:1,right:0') throw unfit('its manifest reads differently')
  } finally {
    await database.close({ force: true })
  }
}
