import { SluiceError } from '../../src/core/errors.ts'
import type { KvFiles } from '../../src/source/kv/files.ts'

/** Files in memory, by path. */
export function kvFilesInMemory(files = new Map<string, Buffer>()): KvFiles {
  return {
    write: (path, parts) => {
      if (files.has(path)) throw new SluiceError('TABLE_EXISTS', `${path} is there already`)
      const whole = Buffer.concat([...parts].map((part) => Buffer.from(part)))
      files.set(path, whole)
      return Promise.resolve(whole.length)
    },
    size: (path) => Promise.resolve(files.get(path)?.length),
    read: (path, start, end) => {
      const found = files.get(path)
      return found === undefined
        ? Promise.reject(new Error(`${path} is not there`))
        : Promise.resolve(Uint8Array.from(found.subarray(start, end)))
    },
  }
}
