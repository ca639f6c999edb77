import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf } from '../../../core/errno.ts'
import { SluiceError } from '../../../core/errors.ts'
import { walContent } from './log-records.ts'
import type { Manifest } from './manifest.ts'
import type { WalNote } from './store-note.ts'

/**
 * Finds out before a store is opened whether a write-ahead log is missing or cut that a family still
 * needs. RocksDB would open such a store: each family would be as of its own last flush, and none
 * would say so. What is known for sure:
 *
 * - A flushed family is done with all logs below the one that was current then, so that one or a
 *   later one is still there.
 * - The oldest log that is needed is there: the one the manifest names, or the one the last open
 *   began. (At an open the manifest names a number that no log has to bear.)
 * - Changes are numbered without gaps from one log to the next, and only the last log has none.
 * - The logs before the one that was current at the last flush reach to the last change in files.
 *
 * What remains is a newest log that is shorter than it was. That is an earlier state of all families
 * at once, and replay from `applied` heals it.
 * @throws SluiceError DATA_CORRUPT naming the log
 */
export async function checkWal(
  folder: string,
  manifest: Manifest,
  note: WalNote | undefined,
): Promise<void> {
  // Without the note no open was ever finished, so that no change was acknowledged.
  if (note === undefined) return
  const logs = await logNumbers(folder)
  const current = Math.max(manifest.oldestLog, ...manifest.families.map(({ log }) => log))
  if (!logs.some((log) => log >= current)) throw lost(folder, `no log from ${logName(current)} on`)
  let oldest = manifest.oldestLog
  // With another manifest an open began that wrote all older changes to files, and was not finished.
  if (note.manifest === manifest.name) {
    oldest = Math.max(oldest, note.log)
    if (!logs.includes(oldest)) throw lost(folder, `${logName(oldest)} is missing`)
  }
  const needed = logs.filter((log) => log >= oldest)
  const chain = new ChangeChain(folder)
  for (const log of needed.filter((each) => each < current)) await chain.add(log)
  chain.checkReaches(manifest.lastInFiles)
  for (const log of needed.filter((each) => each >= current)) await chain.add(log)
}

/** The changes of logs, one log after another. */
class ChangeChain {
  readonly #folder: string
  #end: bigint | undefined
  #last: string | undefined
  #empty: string | undefined

  constructor(folder: string) {
    this.#folder = folder
  }

  async add(log: number): Promise<void> {
    const name = logName(log)
    this.#last = name
    const content = walContent(await readFile(join(this.#folder, name)))
    if (content.kind === 'empty') {
      this.#empty ??= name
      return
    }
    if (content.kind === 'gap') throw this.#gap(name, content.expected, content.found)
    if (this.#empty !== undefined) throw lost(this.#folder, `${this.#empty} holds no changes`)
    if (this.#end !== undefined && this.#end !== content.range.from) {
      throw this.#gap(name, this.#end, content.range.from)
    }
    this.#end = content.range.end
  }

  checkReaches(change: bigint): void {
    if (this.#last === undefined || (this.#end ?? 0n) > change) return
    throw lost(
      this.#folder,
      `${this.#last} ends before change ${String(change)}, which is in a file`,
    )
  }

  #gap(name: string, expected: bigint, found: bigint): SluiceError {
    const next = `change ${String(found)} where ${String(expected)} is next`
    return lost(this.#folder, `${name} goes on at ${next}`)
  }
}

/** Numbers of the write-ahead logs in a folder, in order. */
export async function logNumbers(folder: string): Promise<number[]> {
  const numbers = (await readdir(folder)).flatMap((name) => {
    const match = /^(\d{6,})\.log$/.exec(name)
    return match?.[1] === undefined ? [] : [Number(match[1])]
  })
  return numbers.sort((a, b) => a - b)
}

export function logName(number: number): string {
  return `${String(number).padStart(6, '0')}.log`
}

function lost(folder: string, what: string): SluiceError {
  return new SluiceError(
    'DATA_CORRUPT',
    `KV store ${folder}: its write-ahead log was removed or cut: ${what}`,
    {
      details: { folder, what },
      fix: 'delete the store and let it be built again from its last checkpoint and the log',
      state: 'families may be as of different moments; nothing was opened or changed',
    },
  )
}

/** Whether logs hold changes that are in no file, or may: one that goes just now held some. */
export async function mayHaveChanges(folder: string, manifest: Manifest): Promise<boolean> {
  for (const log of await logNumbers(folder)) {
    if (log < manifest.oldestLog) continue
    try {
      const content = walContent(await readFile(join(folder, logName(log))))
      if (content.kind !== 'empty') return true
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return true
      throw error
    }
  }
  return false
}
