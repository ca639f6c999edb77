import { readdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { SluiceError, isSluiceError } from '../../core/errors.ts'
import { nearest } from '../../core/suggest.ts'

/** What a failed open or read of an input means to its user; never the system's own sentence. */
export async function fileProblem(
  error: unknown,
  path: string,
  name: string,
): Promise<SluiceError> {
  if (isSluiceError(error)) return error
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
  const options = { details: { path, code }, cause: error }
  switch (code) {
    case 'ENOENT':
      return noSuchFile(path, name, await namesBeside(path), error)
    case 'EISDIR':
      return new SluiceError('INPUT_UNREADABLE', `${name}: is a folder`, options)
    case 'EACCES':
    case 'EPERM':
      return new SluiceError('INPUT_UNREADABLE', `${name}: no permission to read it (${code})`, {
        ...options,
        fix: `chmod u+r ${name}`,
      })
    default:
      return new SluiceError('INPUT_UNREADABLE', `${name}: cannot be read (${code})`, options)
  }
}

/** @param names What is in the folder that the file would be in. */
export function noSuchFile(
  path: string,
  name: string,
  names: readonly string[],
  cause?: unknown,
): SluiceError {
  const near = nearest(basename(path), names)
  const hint = near === undefined ? '' : `. Did you mean ${besides(name, near)}?`
  return new SluiceError('INPUT_UNREADABLE', `${name}: no such file${hint}`, {
    details: { path, code: 'ENOENT' },
    ...(cause === undefined ? {} : { cause }),
  })
}

async function namesBeside(path: string): Promise<readonly string[]> {
  try {
    return await readdir(dirname(path))
  } catch {
    // The folder does not exist either, or may not be read: then there is nothing to suggest.
    return []
  }
}

function besides(name: string, file: string): string {
  return name.includes('/') ? join(dirname(name), file) : file
}
