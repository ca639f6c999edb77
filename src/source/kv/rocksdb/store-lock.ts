import { link, readFile, rename, unlink } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { errnoOf } from '../../../core/errno.ts'
import { SluiceError } from '../../../core/errors.ts'
import { isJsonObject, parseJson, stringifyJson } from '../../../core/json64.ts'
import { writeDurably } from './durable-file.ts'
import { inUse } from './rocksdb-errors.ts'

export const lockName = 'SLUICE.lock'

export interface StoreLock {
  release(): Promise<void>
}

let taken = 0

type Holder = {
  readonly host: string
  readonly pid: number
  /** When the process began, where the system says: a number of a process is used again. */
  readonly begun: string
  /** Tells the stores of one process apart. */
  readonly token: string
}

/**
 * Keeps a store to one process. RocksDB has a lock of its own, which it must give up for every
 * checkpoint; whoever opened the store in that moment would break it for both.
 * @throws SluiceError STORE_UNAVAILABLE when it is held
 */
export async function lockStore(folder: string): Promise<StoreLock> {
  const path = join(folder, lockName)
  taken += 1
  const token = String(taken)
  const own = { host: hostname(), pid: process.pid, begun: await begunOf(process.pid), token }
  if (!(await createWhole(path, own))) await takeOver(path, own, folder)
  return {
    release: () => unlink(path),
  }
}

/** Replaces the lock of a process that is gone. Only one may do so at a time. */
async function takeOver(path: string, own: Holder, folder: string): Promise<void> {
  const turn = `${path}.turn`
  await refuseIfAlive(path, folder)
  if (!(await createWhole(turn, own))) {
    throw inUse(`KV store ${folder}`, { fix: `delete ${turn} if no other process opens the store` })
  }
  try {
    await refuseIfAlive(path, folder)
    const temporary = `${path}.tmp`
    await writeDurably(temporary, encode(own))
    await rename(temporary, path)
  } finally {
    await unlink(turn)
  }
}

async function refuseIfAlive(path: string, folder: string): Promise<void> {
  const holder = await readHolder(path)
  if (holder === undefined) return
  const store = `KV store ${folder}`
  const details = { host: holder.host, pid: holder.pid }
  if (holder.host !== hostname()) {
    const fix = `close it on ${holder.host}, or delete ${path} if that machine is gone`
    throw inUse(store, { details, fix })
  }
  if (await isAlive(holder)) throw inUse(store, { details })
}

async function isAlive({ pid, begun }: Holder): Promise<boolean> {
  try {
    process.kill(pid, 0)
  } catch (error) {
    // EPERM says that it is there and somebody else's.
    if (errnoOf(error) === 'ESRCH') return false
  }
  const now = await begunOf(pid)
  return now === '' || begun === '' || now === begun
}

/** Field 22 of `/proc/<pid>/stat`, after the name, which may hold spaces and parentheses. */
async function begunOf(pid: number): Promise<string> {
  try {
    const text = await readFile(`/proc/${String(pid)}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? ''
  } catch {
    return ''
  }
}

/** False when the name is taken. A link shows the file whole or not at all. */
async function createWhole(path: string, holder: Holder): Promise<boolean> {
  const temporary = `${path}.${String(holder.pid)}.${holder.token}`
  await writeDurably(temporary, encode(holder))
  try {
    await link(temporary, path)
    return true
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false
    throw error
  } finally {
    await unlink(temporary)
  }
}

function encode({ host, pid, begun, token }: Holder): string {
  return `${stringifyJson({ host, pid, begun, token })}\n`
}

/** A lock that cannot be read is nobody's: it never reached the disk. */
async function readHolder(path: string): Promise<Holder | undefined> {
  let bytes: Buffer
  try {
    bytes = await readFile(path)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined
    throw error
  }
  try {
    const value = parseJson(bytes, { name: path })
    if (!isJsonObject(value)) return undefined
    const { host, pid, begun, token } = value
    if (typeof host !== 'string' || typeof pid !== 'number') return undefined
    if (typeof begun !== 'string' || typeof token !== 'string') return undefined
    return { host, pid, begun, token }
  } catch (error) {
    if (error instanceof SluiceError) return undefined
    throw error
  }
}
