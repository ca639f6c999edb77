import { lstat, realpath } from 'node:fs/promises'
import { errnoOf } from '../../core/errno.ts'
import { schemeOf } from '../iceberg/location.ts'
import { storeError } from './local-errors.ts'
import { pathOf } from './local-store.ts'

/**
 * Whether a location is a file of its own below a folder, with no symbolic link between the two and
 * none in its place. Stores without links have nothing else. Asked right before a file is deleted:
 * what was a folder when it was listed may be a link to somewhere else now.
 */
export async function isPlainFile(folder: string, location: string): Promise<boolean> {
  if (schemeOf(location) !== 'file') return true
  const [base, path] = [pathOf(folder), pathOf(location)]
  if (!path.startsWith(`${base}/`)) return false
  try {
    if (!(await lstat(path)).isFile()) return false
    return (await realpath(path)) === (await realpath(base)) + path.slice(base.length)
  } catch (error) {
    const code = errnoOf(error)
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP') return false
    throw storeError(error, path)
  }
}
