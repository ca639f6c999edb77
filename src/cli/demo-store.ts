import type { ObjectStore, ObjectWriter } from '../catalog/store/object-store.ts'
import type { PacedClock } from './demo-clock.ts'

/** Stops the demo's clock while a request to the store is under way. */
export function pausingStore(store: ObjectStore, clock: PacedClock): ObjectStore {
  const paused = async <T>(work: () => Promise<T>): Promise<T> => {
    const release = clock.hold()
    try {
      return await work()
    } finally {
      release()
    }
  }
  return {
    createIfAbsent: (...given) => paused(() => store.createIfAbsent(...given)),
    putHint: (...given) => paused(() => store.putHint(...given)),
    read: (...given) => paused(() => store.read(...given)),
    readRange: (...given) => paused(() => store.readRange(...given)),
    size: (...given) => paused(() => store.size(...given)),
    list: (...given) => paused(() => store.list(...given)),
    remove: (...given) => paused(() => store.remove(...given)),
    open: async (...given): Promise<ObjectWriter> => {
      const writer = await paused(() => store.open(...given))
      return {
        write: (bytes) => paused(() => writer.write(bytes)),
        finish: () => paused(() => writer.finish()),
        abandon: () => paused(() => writer.abandon()),
      }
    },
  }
}
