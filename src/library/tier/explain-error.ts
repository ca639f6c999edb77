import { readFile, stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { pathOf } from '../../catalog/store/local-store.ts'
import { type ErrorCode, type ErrorOptions, isSluiceError, SluiceError } from '../../core/errors.ts'
import { formatBytes, formatCount } from '../../core/text.ts'
import { inputEnd } from './input-state.ts'

/** How far a run came before an error ended it. */
export type Reached = {
  readonly warehouse: string
  readonly table: string
  /** Rounds that this run committed. */
  readonly rounds: readonly { readonly round: number }[]
  readonly isCreated: boolean
  /** Records in the lake now; undefined before the table was opened. */
  readonly records: bigint | undefined
  readonly snapshotId: bigint | undefined
  /** Bytes on a disk that the rest of the log takes at most. */
  readonly diskNeeded: number | undefined
}

/** Adds to an error what only the run knows: what is in the lake, and why the disk refused. */
export async function explainError(error: SluiceError, reached: Reached): Promise<SluiceError> {
  switch (error.code) {
    case 'RECORD_REFUSED':
    case 'LIMIT_EXCEEDED':
    case 'DATA_CORRUPT':
    case 'INPUT_CHANGED':
    case 'INPUT_UNREADABLE':
    case 'SCHEMA_UNSUPPORTED':
    case 'TABLE_MISMATCH':
    case 'CONFIG_INVALID': {
      const { code, state } = inputEnd(error, reached)
      return again(error, error.message, { code, ...(state === undefined ? {} : { state }) })
    }
    case 'STORE_DENIED':
      return denied(error, reached)
    case 'DISK_FULL':
      return diskFull(error, reached)
    default:
      return error
  }
}

async function denied(error: SluiceError, reached: Reached): Promise<SluiceError> {
  const { path, errno } = error.details
  if (typeof path !== 'string' || typeof errno !== 'string') return error
  const folder = await nearestFolder(path)
  if (folder === undefined || folder.path === path) return error
  const { uid, mode } = folder
  const rights = `owner ${await userName(uid)}, mode ${(mode & 0o7777).toString(8)}`
  const message = `${folder.path}: cannot create files (${errno}, ${rights})`
  return again(error, message, { state: stateOf(reached) })
}

async function diskFull(error: SluiceError, reached: Reached): Promise<SluiceError> {
  const bucket = error.details['bucket']
  const what = typeof bucket === 'number' ? `bucket ${String(bucket)}` : 'metadata'
  const folder = pathOf(reached.warehouse)
  const free = await freeBytes(folder)
  const needed = reached.diskNeeded
  const sizes = [
    ...(needed === undefined ? [] : [`${formatBytes(needed)} needed at most`]),
    ...(free === undefined ? [] : [`${formatBytes(free)} free`]),
  ]
  const left = sizes.length === 0 ? '' : ` (${sizes.join(', ')})`
  const at =
    reached.records === undefined || reached.records === 0n
      ? ''
      : `: it goes on at record ${formatCount(reached.records)}`
  const message = `${folder}: disk full while writing ${what} of ${reached.table}${left}`
  return again(error, message, {
    details: { ...error.details, needed_bytes: needed, free_bytes: free },
    state: stateOf(reached),
    fix: `free space, run again${at}`,
  })
}

function stateOf({ rounds, records }: Reached): string {
  const [first] = rounds
  const last = rounds.at(-1)
  if (first === undefined || last === undefined) {
    if (records === undefined) return 'nothing was written'
    return records === 0n
      ? 'the table is made and empty; this round left nothing'
      : `${formatCount(records)} records were in the lake before; this run added nothing`
  }
  const which =
    first.round === last.round
      ? `round ${String(first.round)} is`
      : `rounds ${String(first.round)} to ${String(last.round)} are`
  return `${which} in the lake; this round left nothing`
}

function again(
  error: SluiceError,
  message: string,
  { code = error.code, ...options }: ErrorOptions & { readonly code?: ErrorCode },
): SluiceError {
  return new SluiceError(code, message, {
    details: error.details,
    effect: error.effect,
    cause: error.cause ?? error,
    ...(error.fix === undefined ? {} : { fix: error.fix }),
    ...(error.where === undefined ? {} : { where: error.where }),
    ...options,
  })
}

type Folder = { readonly path: string; readonly uid: number; readonly mode: number }

/** The path itself if it is there, else the folder above it that is. */
async function nearestFolder(path: string): Promise<Folder | undefined> {
  for (let at = path; ; at = dirname(at)) {
    try {
      const { uid, mode } = await stat(at)
      return { path: at, uid, mode }
    } catch {
      if (at === dirname(at)) return undefined
    }
  }
}

async function userName(uid: number): Promise<string> {
  try {
    const users = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'))
    return users.find((user) => user[2] === String(uid))?.[0] ?? String(uid)
  } catch {
    return String(uid)
  }
}

async function freeBytes(folder: string): Promise<number | undefined> {
  try {
    const { bavail, bsize } = await statfs(folder)
    return bavail * bsize
  } catch {
    return undefined
  }
}

/** Anything that was thrown, explained if it is an error of ours. */
export async function explainThrown(error: unknown, reached: Reached): Promise<unknown> {
  return isSluiceError(error) ? await explainError(error, reached) : error
}
