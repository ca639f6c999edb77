import { errnoOf } from '../../core/errno.ts'
import { isSluiceError, SluiceError } from '../../core/errors.ts'

/**
 * Turns a system error into one a person can act on. Every error here is raised before a name
 * became visible, so the effect is `none`.
 */
export function storeError(error: unknown, path: string, what = ''): SluiceError {
  if (isSluiceError(error)) return error
  const code = errnoOf(error)
  const details = { path, errno: code }
  const cause = error
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
    case 'EFBIG':
      return new SluiceError('DISK_FULL', `${path}: disk full while writing${what && ` ${what}`}`, {
        details,
        fix: 'free space, run again: it goes on where the lake ends',
        cause,
      })
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new SluiceError('STORE_DENIED', `${path}: cannot read or create files (${code})`, {
        details,
        cause,
      })
    case 'ENOENT':
    case 'ENOTDIR':
      return new SluiceError('TABLE_MISSING', `${path}: its folder is gone`, { details, cause })
    case 'EMFILE':
    case 'ENFILE':
      return new SluiceError('LIMIT_EXCEEDED', `${path}: too many open files (${code})`, {
        details,
        fix: 'raise the limit of open files (ulimit -n) or use fewer buckets',
        cause,
      })
    case undefined:
    default:
      return new SluiceError(
        'STORE_UNAVAILABLE',
        `${path}: ${error instanceof Error ? error.message : String(error)}`,
        { details, cause, effect: 'none' },
      )
  }
}
