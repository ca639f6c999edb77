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
    case 'ENOENT': {
      const near = await nearestFile(path)
      const hint = near === undefined ? '' : `. Did you mean ${besides(name, near)}?`
      return new SluiceError('INPUT_UNREADABLE', `${name}: no such file${hint}`, options)
    }
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

async function nearestFile(path: string): Promise<string | undefined> {
  try {
    return nearest(basename(path), await readdir(dirname(path)))
  } catch {
    // The folder does not exist either, or may not be read: then there is nothing to suggest.
    return undefined
  }
}

function besides(name: string, file: string): string {
  return name.includes('/') ? join(dirname(name), file) : file
}
