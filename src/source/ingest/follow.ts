import { type FileHandle, stat } from 'node:fs/promises'
import { SluiceError, isSluiceError } from '../../core/errors.ts'
import type { Clock } from '../../core/ports.ts'

export type FollowOptions = {
  readonly clock: Clock
  /** Pause between two looks at the end of a file; by default 200 ms. */
  readonly pollMs?: number
  /** Ends the input where it is; the unended last line is left for the next run. */
  readonly signal?: AbortSignal
}

/**
 * Waits at the end of a file until it has grown: true, or false once the signal aborts.
 * @throws SluiceError INPUT_CHANGED when the file was cut, or replaced by another under its name.
 */
export async function followFile(
  at: {
    readonly file: FileHandle
    readonly path: string
    readonly name: string
    readonly position: number
  },
  options: FollowOptions,
): Promise<boolean> {
  const { signal } = options
  const opened = await at.file.stat()
  for (;;) {
    if (signal?.aborted === true) return false
    const { size } = await at.file.stat()
    if (size < at.position) {
      throw changed(
        at.name,
        `was cut to ${String(size)} bytes after ${String(at.position)} were read`,
      )
    }
    if (size > at.position) return true
    if (await isReplaced(at.path, opened.ino)) {
      throw changed(at.name, `was replaced by another file after byte ${String(at.position)}`)
    }
    try {
      await options.clock.sleep(options.pollMs ?? 200, signal === undefined ? {} : { signal })
    } catch (error) {
      if (isSluiceError(error, 'STOPPED')) return false
      throw error
    }
  }
}

async function isReplaced(path: string, inode: number): Promise<boolean> {
  try {
    return (await stat(path)).ino !== inode
  } catch {
    // Removed or renamed: what is open can still be read, but nothing will be added under this name.
    return true
  }
}

function changed(name: string, what: string): SluiceError {
  return new SluiceError('INPUT_CHANGED', `${name}: ${what}`, {
    fix: 'what was read is kept; tier the new file as another input: --input-id NAME',
  })
}
