import { SluiceError } from '../../core/errors.ts'
import type { Millis } from '../../core/ids.ts'
import type { Clock } from '../../core/ports.ts'
import type { ObjectStore, ObjectWriter } from './object-store.ts'

type Entry = { readonly body: Uint8Array; readonly modifiedAt: Millis }

/** Objects in memory: for tests and the simulation. Atomic, since nothing here awaits. */
export function memoryStore(clock: Pick<Clock, 'now'>): ObjectStore & {
  readonly objects: ReadonlyMap<string, Entry>
} {
  const objects = new Map<string, Entry>()
  const put = (location: string, body: Uint8Array): void => {
    objects.set(location, { body, modifiedAt: clock.now() })
  }
  return {
    objects,
    createIfAbsent: (location, body) => {
      if (objects.has(location)) return Promise.resolve({ kind: 'rejected', reason: 'exists' })
      put(location, copyOf(body))
      return Promise.resolve({ kind: 'applied' })
    },
    putHint: (location, body) => {
      put(location, copyOf(body))
      return Promise.resolve()
    },
    open: (location) => Promise.resolve(memoryWriter(location, objects, put)),
    read: (location) => Promise.resolve(objects.get(location)?.body),
    readRange: (location, start, end) =>
      Promise.resolve(objects.get(location)?.body.subarray(start, end)),
    size: (location) => Promise.resolve(objects.get(location)?.body.length),
    list: (prefix) =>
      Promise.resolve(
        [...objects]
          .filter(([location]) => location.startsWith(prefix))
          .map(([location, entry]) => ({
            location,
            bytes: entry.body.length,
            modifiedAt: entry.modifiedAt,
          }))
          .sort((a, b) => (a.location < b.location ? -1 : 1)),
      ),
    remove: (location) => {
      objects.delete(location)
      return Promise.resolve()
    },
  }
}

function memoryWriter(
  location: string,
  objects: ReadonlyMap<string, Entry>,
  put: (location: string, body: Uint8Array) => void,
): ObjectWriter {
  const chunks: Uint8Array[] = []
  return {
    write: (bytes) => {
      chunks.push(copyOf(bytes))
      return Promise.resolve()
    },
    finish: () => {
      if (objects.has(location)) {
        throw new SluiceError('INVARIANT_BROKEN', `${location}: a data file name was used twice`)
      }
      const body = Buffer.concat(chunks)
      put(location, body)
      return Promise.resolve(body.length)
    },
    abandon: () => Promise.resolve(),
  }
}

/** A copy in any case: the `slice` of a Buffer is a view on memory that its owner reuses. */
function copyOf(bytes: Uint8Array): Uint8Array {
  return Uint8Array.prototype.slice.call(bytes)
}
