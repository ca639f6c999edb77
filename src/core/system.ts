import { randomBytes } from 'node:crypto'
import { SluiceError } from './errors.ts'
import { type Millis, millis } from './ids.ts'
import type { Chance, Clock, IdSource } from './ports.ts'

/** The machine's own clock. `order` has no meaning here: the callers settle what is due at once. */
export const systemClock: Clock = {
  now: () => millis(Date.now()),
  monotonic: () => Math.floor(performance.now()) as Millis,
  sleep: (duration, options) =>
    new Promise((resolve, reject) => {
      const signal = options?.signal
      const stop = (): void => {
        clearTimeout(timer)
        reject(new SluiceError('STOPPED', 'a wait was ended'))
      }
      if (signal?.aborted === true) {
        reject(new SluiceError('STOPPED', 'a wait was ended'))
        return
      }
      // Timers hold at most 2^31 - 1 ms; longer waits are cut, and their callers look again.
      const timer = setTimeout(
        () => {
          signal?.removeEventListener('abort', stop)
          resolve()
        },
        Math.min(Math.max(0, duration), 2 ** 31 - 1),
      )
      signal?.addEventListener('abort', stop, { once: true })
    }),
}

export const systemIds: IdSource = { bits128: () => randomBytes(16).toString('hex') }

/** xorshift32 (Marsaglia 2003): the same numbers for the same seed on every platform. */
export function seededChance(seed: number): Chance {
  let state = Math.imul(seed, 2654435761) >>> 0 || 1
  const next = (): number => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    state >>>= 0
    return state
  }
  // Neighboring seeds start out alike.
  for (let i = 0; i < 8; i += 1) next()
  return { below: (bound) => Math.floor((next() / 2 ** 32) * bound) }
}
