import { SluiceError } from '../../src/core/errors.ts'
import { type Millis, millis } from '../../src/core/ids.ts'
import { type Clock, type Order, order, type WaitSignal } from '../../src/core/ports.ts'

type Sleeper = {
  readonly at: number
  readonly order: Order
  readonly place: number
  readonly wakeUp: () => void
}

/**
 * A clock that stands still until a test moves it. Sleeps end by time, then by `order`, then in the
 * order they were begun, and every promise reaction runs dry in between: the same calls always give
 * the same run.
 */
export class VirtualClock implements Clock {
  #now: number
  #places = 0
  #sleepers: Sleeper[] = []
  readonly #wallOffset: number

  /** Times in whole milliseconds. Wall time runs `wallOffset` ahead of the monotonic one. */
  constructor(options: { readonly start?: number; readonly wallOffset?: number } = {}) {
    this.#now = options.start ?? 0
    this.#wallOffset = options.wallOffset ?? 1_700_000_000_000
  }

  now(): Millis {
    return millis(this.#now + this.#wallOffset)
  }

  monotonic(): Millis {
    return millis(this.#now)
  }

  sleep(
    duration: number,
    options: { readonly order?: Order; readonly signal?: WaitSignal } = {},
  ): Promise<void> {
    const { signal } = options
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        this.#sleepers = this.#sleepers.filter((other) => other !== sleeper)
        reject(new SluiceError('STOPPED', 'a wait was ended'))
      }
      const sleeper: Sleeper = {
        at: this.#now + Math.max(0, duration),
        order: options.order ?? order.result,
        place: (this.#places += 1),
        wakeUp: () => {
          signal?.removeEventListener('abort', stop)
          resolve()
        },
      }
      if (signal?.aborted === true) {
        stop()
        return
      }
      signal?.addEventListener('abort', stop, { once: true })
      this.#sleepers.push(sleeper)
    })
  }

  /** Lets everything happen that is due up to `at`, and stands at `at` then. */
  async advanceTo(at: number): Promise<void> {
    while (await this.#step(at));
    this.#now = Math.max(this.#now, at)
  }

  /** Moves on until the work is done. Throws if nothing is left that could finish it. */
  async settle<T>(work: Promise<T>): Promise<T> {
    const state = { isDone: false }
    const watched = work.finally(() => {
      state.isDone = true
    })
    watched.catch(() => undefined)
    for (;;) {
      await quiescence()
      if (state.isDone) return watched
      if (!(await this.#step(Infinity))) {
        throw new Error(`deadlock at ${String(this.#now)} ms: work is open and nobody sleeps`)
      }
    }
  }

  /** Sleeps that have not ended. */
  get sleepers(): number {
    return this.#sleepers.length
  }

  async #step(until: number): Promise<boolean> {
    await quiescence()
    const next = this.#sleepers.reduce<Sleeper | undefined>(
      (first, other) => (first === undefined || isBefore(other, first) ? other : first),
      undefined,
    )
    if (next === undefined || next.at > until) return false
    this.#sleepers = this.#sleepers.filter((other) => other !== next)
    this.#now = Math.max(this.#now, next.at)
    next.wakeUp()
    return true
  }
}

/** Resolves once every promise reaction that is queued, and all that they queue, has run. */
export async function quiescence(): Promise<void> {
  await Promise.resolve()
  await new Promise<void>((resolve) => {
    process.nextTick(resolve)
  })
}

function isBefore(a: Sleeper, b: Sleeper): boolean {
  return a.at - b.at < 0 || (a.at === b.at && (a.order - b.order || a.place - b.place) < 0)
}
