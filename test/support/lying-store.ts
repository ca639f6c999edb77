import type { ProbeCache } from '../../src/catalog/store/probe-cache.ts'
import type { Millis } from '../../src/core/ids.ts'
import type { ObjectStore } from '../../src/catalog/store/object-store.ts'

/**
 * A store that looks whether a name is free and then writes, with a pause in between, as servers do
 * that keep conditional writes without a lock. One writer at a time never notices.
 */
export function checkThenWriteStore(
  inner: ObjectStore,
  pause: () => Promise<void> = () => new Promise((resolve) => setImmediate(resolve)),
): ObjectStore {
  return {
    ...inner,
    async createIfAbsent(location, body) {
      if ((await inner.size(location)) !== undefined) return { kind: 'rejected', reason: 'exists' }
      await pause()
      await inner.remove(location)
      await inner.createIfAbsent(location, body)
      return { kind: 'applied' }
    },
  }
}

/** A store that takes every create for a put, as servers do that do not know the header. */
export function unconditionalStore(inner: ObjectStore): ObjectStore {
  return {
    ...inner,
    async createIfAbsent(location, body) {
      await inner.remove(location)
      return inner.createIfAbsent(location, body)
    },
  }
}

/** A store whose lists leave out what was created last. */
export function staleListStore(inner: ObjectStore): ObjectStore {
  return { ...inner, list: async (prefix) => (await inner.list(prefix)).slice(0, -1) }
}

/** A store whose winner finds the bytes of another writer. */
export function lastBodyStore(inner: ObjectStore): ObjectStore {
  return {
    ...inner,
    async createIfAbsent(location, body, options) {
      const outcome = await inner.createIfAbsent(location, body, options)
      if (outcome.kind === 'rejected') await inner.putHint(location, body)
      return outcome
    },
  }
}

/** The memory of the probe, gone with the test. */
export function memoryProbeCache(): ProbeCache {
  const passed = new Map<string, Millis>()
  const key = ({ endpoint, bucket }: { endpoint: string; bucket: string }): string =>
    `${endpoint} ${bucket}`
  return {
    passedAt: (store) => Promise.resolve(passed.get(key(store))),
    remember: (store, at) => {
      passed.set(key(store), at)
      return Promise.resolve()
    },
  }
}
