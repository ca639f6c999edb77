import type { Millis } from '../../core/ids.ts'
import type { Clock, IdSource } from '../../core/ports.ts'
import type { ObjectStore } from './object-store.ts'
import { probeConditionalWrites } from './probe-conditional.ts'

/** Remembers which stores have passed the probe. It may forget, and it never fails. */
export interface ProbeCache {
  /** When the store passed, on the wall clock of this machine. */
  passedAt(store: ProbedStore): Promise<Millis | undefined>
  remember(store: ProbedStore, at: Millis): Promise<void>
}

/** Remembers nothing. */
export const noProbeCache: ProbeCache = {
  passedAt: () => Promise.resolve(undefined),
  remember: () => Promise.resolve(),
}

/** A store, as far as its conditional writes go. */
export type ProbedStore = { readonly endpoint: string; readonly bucket: string }

/**
 * Probes a store unless it passed within a day. Only a pass is kept: a store that failed is probed
 * again each time, so that one that was put right is not refused by memory.
 * @throws SluiceError as `probeConditionalWrites`
 */
export async function probeUnlessKnown(
  store: ObjectStore,
  probed: ProbedStore & { readonly warehouse: string },
  ports: {
    readonly clock: Pick<Clock, 'now'>
    readonly ids: IdSource
    readonly cache: ProbeCache
  },
): Promise<void> {
  const { clock, ids, cache } = ports
  const passedAt = await cache.passedAt(probed)
  const age = passedAt === undefined ? undefined : clock.now() - passedAt
  // A time in the future is a clock that was set back, and says nothing.
  if (age !== undefined && age >= 0 && age < keptMillis) return
  await probeConditionalWrites(store, probed.warehouse, ids)
  await cache.remember(probed, clock.now())
}

const keptMillis = 24 * 60 * 60 * 1000
