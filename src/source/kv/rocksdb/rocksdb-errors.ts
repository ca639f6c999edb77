import { errnoOf } from '../../../core/errno.ts'
import { type Effect, type ErrorOptions, isSluiceError, SluiceError } from '../../../core/errors.ts'

/** What an open store holds of descriptors, to explain that there are no more. */
export type DescriptorUse = {
  readonly families: readonly string[]
  readonly files: number
  readonly maxOpenFiles: number
}

export type ErrorContext = {
  readonly folder: string
  readonly use?: DescriptorUse
  /** `unknown` where a batch may be in the log although it failed. */
  readonly effect?: Effect
}

/** How many of the newest names show whether families are made as the program goes on. */
const newestShown = 5

/**
 * Turns what RocksDB says into an error a person can act on. It passes almost everything on as `EIO`
 * with a text, so that the text decides.
 */
export function rocksDbError(error: unknown, context: ErrorContext): SluiceError {
  if (isSluiceError(error)) return error
  const { folder, effect = 'none' } = context
  const text = textOf(error)
  const store = `KV store ${folder}`
  const errno = errnoOf(error)
  if (isTooManyOpenFiles(error)) return tooManyOpenFiles(error, context)
  const options = { details: { folder, text }, cause: error, effect } satisfies ErrorOptions
  if (/no space left|disk quota|file too large/i.test(text) || errno === 'ENOSPC') {
    return new SluiceError('DISK_FULL', `${store}: disk full`, {
      ...options,
      fix: 'free space and open the store again: what was acknowledged is there',
    })
  }
  if (/lock hold by|while lock file|resource temporarily unavailable/i.test(text)) {
    return inUse(store, options)
  }
  const message = `${store}: ${withoutFolder(text, folder)}`
  if (/corrupt|checksum|ahead of wals|does not exist \(create_if_missing/i.test(text)) {
    return new SluiceError('DATA_CORRUPT', message, {
      ...options,
      fix: 'restore the store from a checkpoint, or let it be built again from the log',
    })
  }
  if (/not opened: /i.test(text)) return new SluiceError('FAMILY_ORPHANED', message, options)
  if (/permission denied|read-only file system/i.test(text) || errno === 'EACCES') {
    return new SluiceError('STORE_DENIED', message, options)
  }
  return new SluiceError('STORE_UNAVAILABLE', message, options)
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
  cause: unknown,
  { folder, use, effect = 'none' }: ErrorContext,
): SluiceError {
  const limit = openFilesLimit()
  const what = `KV store ${folder}: too many open files`
  if (use === undefined) {
    return new SluiceError('LIMIT_EXCEEDED', `${what}, limit ${limit}`, {
      details: { limit },
      fix: 'raise the limit of open files (ulimit -n)',
      cause,
      effect,
    })
  }
  const { families, files, maxOpenFiles } = use
  const newest = families.slice(-newestShown)
  return new SluiceError(
    'LIMIT_EXCEEDED',
    `${what}, with ${String(families.length)} families and ${String(files)} files of them, limit ${limit}, maxOpenFiles ${String(maxOpenFiles)}`,
    {
      details: { families: families.length, files, limit, maxOpenFiles, newest },
      fix: `raise the limit of open files (ulimit -n), which each family counts against, or set maxOpenFiles, which bounds files only; if families are made as the program goes on, make their names keys instead (newest: ${newest.join(', ')})`,
      cause,
      effect,
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
