import { errnoOf } from '../../../core/errno.ts'
import { type ErrorOptions, isSluiceError, SluiceError } from '../../../core/errors.ts'

/** What an open store holds of descriptors, to explain that there are no more. */
export type DescriptorUse = {
  readonly families: readonly string[]
  readonly files: number
  readonly maxOpenFiles: number
}

/** How many of the newest names show whether families are made as the program goes on. */
const newestShown = 5

/**
 * Turns what RocksDB says into an error a person can act on. It passes almost everything on as `EIO`
 * with a text, so that the text decides.
 */
export function rocksDbError(error: unknown, folder: string, use?: DescriptorUse): SluiceError {
  if (isSluiceError(error)) return error
  const text = textOf(error)
  const store = `KV store ${folder}`
  const errno = errnoOf(error)
  if (isTooManyOpenFiles(error)) return tooManyOpenFiles(store, { use, cause: error })
  const options = { details: { folder, text }, cause: error } satisfies ErrorOptions
  if (/no space left|disk quota|file too large/i.test(text) || errno === 'ENOSPC') {
    return new SluiceError('DISK_FULL', `${store}: disk full`, {
      ...options,
      fix: 'free space and open the store again: what was acknowledged is there',
    })
  }
  if (/lock hold by|while lock file|resource temporarily unavailable/i.test(text)) {
    return inUse(store, options)
  }
  if (/corrupt|checksum|ahead of wals|does not exist \(create_if_missing/i.test(text)) {
    return new SluiceError('DATA_CORRUPT', `${store}: ${withoutFolder(text, folder)}`, {
      ...options,
      fix: 'restore the store from a checkpoint, or let it be built again from the log',
    })
  }
  if (/not opened: /i.test(text)) {
    return new SluiceError('FAMILY_ORPHANED', `${store}: ${withoutFolder(text, folder)}`, options)
  }
  if (/permission denied|read-only file system/i.test(text) || errno === 'EACCES') {
    return new SluiceError('STORE_DENIED', `${store}: ${withoutFolder(text, folder)}`, options)
  }
  return new SluiceError('STORE_UNAVAILABLE', `${store}: ${withoutFolder(text, folder)}`, options)
}

/** Asked for apart, because what to say of it is found out only then. */
export function isTooManyOpenFiles(error: unknown): boolean {
  const errno = errnoOf(error)
  return errno === 'EMFILE' || errno === 'ENFILE' || /too many open files/i.test(textOf(error))
}

export function inUse(store: string, options: ErrorOptions = {}): SluiceError {
  return new SluiceError('STORE_UNAVAILABLE', `${store} is open already`, {
    fix: 'close it where it is open, or end that process',
    effect: 'none',
    ...options,
  })
}

function tooManyOpenFiles(
  store: string,
  { use, cause }: { readonly use: DescriptorUse | undefined; readonly cause: unknown },
): SluiceError {
  const limit = openFilesLimit()
  if (use === undefined) {
    return new SluiceError('LIMIT_EXCEEDED', `${store}: too many open files, limit ${limit}`, {
      details: { limit },
      fix: 'raise the limit of open files (ulimit -n)',
      cause,
    })
  }
  const { families, files, maxOpenFiles } = use
  const newest = families.slice(-newestShown)
  return new SluiceError(
    'LIMIT_EXCEEDED',
    `${store}: too many open files, with ${String(families.length)} families and ${String(files)} files of them, limit ${limit}, maxOpenFiles ${String(maxOpenFiles)}`,
    {
      details: { families: families.length, files, limit, maxOpenFiles, newest },
      fix: `raise the limit of open files (ulimit -n), which each family counts against, or set maxOpenFiles, which bounds files only; if families are made as the program goes on, make their names keys instead (newest: ${newest.join(', ')})`,
      cause,
    },
  )
}

/** Asked without opening a file, because at that moment none can be opened. */
function openFilesLimit(): string {
  const report: unknown = process.report.getReport()
  const limits = memberOf(report, 'userLimits')
  const soft = memberOf(memberOf(limits, 'open_files'), 'soft')
  return typeof soft === 'number' || typeof soft === 'string' ? String(soft) : 'unknown'
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  return Object.entries(value).find(([key]) => key === name)?.[1]
}

/** The message of an error and of those below it: the binding wraps what RocksDB says. */
function textOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(textOf).find(Boolean) ?? ''
  if (!(error instanceof Error)) return String(error)
  return error.cause === undefined ? error.message : textOf(error.cause)
}

function withoutFolder(text: string, folder: string): string {
  return text.replaceAll(`${folder}/`, '').trim()
}
