import type { Chance, Clock } from '../../core/ports.ts'
import { failureOf, isTransient } from './s3-errors.ts'

export type RetryLimits = {
  /** Tries of one call, the first included. */
  readonly attemptsMax: number
  /** Milliseconds; the ceiling of the first wait, of any wait, and of all tries of a call. */
  readonly delayFirst: number
  readonly delayMax: number
  readonly totalMax: number
  /** Retries that all calls together may make beyond what their successes pay back. */
  readonly budgetMax: number
}

/** About two minutes of a store that asks to slow down, then the call fails clean. */
export const standardRetries: RetryLimits = {
  attemptsMax: 12,
  delayFirst: 100,
  delayMax: 20_000,
  totalMax: 120_000,
  budgetMax: 200,
}

export interface Retrier {
  /** Runs a read, or a write that may be repeated with the same bytes. Never a conditional one. */
  run<T>(attempt: () => Promise<T>): Promise<T>
}

/**
 * One loop and one budget for everything sent to a store. The budget keeps a store in trouble from
 * being asked many times as much as one in health; ten successes pay for one retry.
 */
export function retrier(
  ports: { readonly clock: Clock; readonly chance: Chance },
  limits: RetryLimits = standardRetries,
): Retrier {
  const { clock, chance } = ports
  // In tenths, since a success is worth a tenth of a retry.
  let budget = limits.budgetMax * 10
  let isKnown = false
  return {
    async run<T>(attempt: () => Promise<T>): Promise<T> {
      const startedAt = clock.monotonic()
      for (let tries = 1; ; tries += 1) {
        try {
          const result = await attempt()
          isKnown = true
          budget = Math.min(limits.budgetMax * 10, budget + 1)
          return result
        } catch (error) {
          const failure = failureOf(error)
          if (failure.kind !== 'not-sent') isKnown = true
          if (!isTransient(failure)) throw error
          // Where nobody ever answered, the place is more likely wrong than down.
          const isLost = failure.kind === 'not-sent' && !isKnown
          const attemptsMax = isLost ? attemptsUnreached : limits.attemptsMax
          const delay = retryDelay(tries, limits, chance)
          const isLate = clock.monotonic() - startedAt + delay > limits.totalMax
          if (tries >= attemptsMax || isLate || budget < 10) throw error
          budget -= 10
          await clock.sleep(delay)
        }
      }
    },
  }
}

/** Milliseconds before try `tries + 1`: anything up to a ceiling that doubles, so that many
 *  callers who were refused at one moment do not come back at one moment. */
export function retryDelay(tries: number, limits: RetryLimits, chance: Chance): number {
  const ceiling = Math.min(limits.delayMax, limits.delayFirst * 2 ** (tries - 1))
  return 1 + chance.below(ceiling)
}

const attemptsUnreached = 5
