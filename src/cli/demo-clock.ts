import { SluiceError } from '../core/errors.ts'
import { type Millis, millis } from '../core/ids.ts'
import { type Clock, type Order, order, type WaitSignal } from '../core/ports.ts'

type Sleeper = {
  readonly due: number
  readonly order: Order
  readonly number: number
  readonly wake: () => void
}

/**
 * A clock for demonstrations: it runs `speed` times as fast as the machine's, wakes sleepers in the
 * order of their due times, and stands still while real work is under way. So a walkthrough has the
 * same times on every machine, and a slow disk makes it slow, not different.
 */
export class PacedClock implements Clock {
  readonly #realNow: () => number
  readonly #wallBase: number
  readonly #sleepers: Sleeper[] = []
  #speed: number
  /** Time of the newest wake-up; time never runs past a sleeper that is due. */
  #at = 0
  /** Where the real clock and this one were together. */
  #anchor: { readonly real: number; readonly demo: number }
  #holds = 0
  #isSettling = false
  #count = 0
  #timer: NodeJS.Timeout | undefined

  /**
   * @param realNow Milliseconds that never go back.
   * @param wallBase Wall time that stands for the demo's beginning.
   */
  constructor(options: {
    readonly realNow: () => number
    readonly wallBase: number
    readonly speed: number
  }) {
    this.#realNow = options.realNow
    this.#wallBase = options.wallBase
    this.#speed = options.speed
    this.#anchor = { real: options.realNow(), demo: 0 }
  }

  now(): Millis {
    return millis(this.#wallBase + this.#current())
  }

  monotonic(): Millis {
    return millis(this.#current())
  }

  sleep(
    duration: number,
    options: { readonly order?: Order; readonly signal?: WaitSignal } = {},
  ): Promise<void> {
    const { signal } = options
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        const index = this.#sleepers.indexOf(sleeper)
        if (index >= 0) this.#sleepers.splice(index, 1)
        reject(new SluiceError('STOPPED', 'a wait was ended'))
      }
      const sleeper: Sleeper = {
        due: this.#current() + Math.max(0, Math.ceil(duration)),
        order: options.order ?? order.request,
        number: (this.#count += 1),
        wake: () => {
          signal?.removeEventListener('abort', stop)
          resolve()
        },
      }
      if (signal?.aborted === true) {
        reject(new SluiceError('STOPPED', 'a wait was ended'))
        return
      }
      signal?.addEventListener('abort', stop, { once: true })
      this.#sleepers.push(sleeper)
      if (sleeper === this.#next()) this.#arm()
    })
  }

  /** Stops time until the returned function is called. */
  hold(): () => void {
    this.#at = this.#current()
    this.#holds += 1
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#holds -= 1
      this.#settle()
    }
  }

  /** From now on time runs at another speed; `Infinity` jumps from one sleeper to the next. */
  setSpeed(speed: number): void {
    const demo = this.#current()
    this.#at = demo
    this.#speed = speed
    this.#anchor = { real: this.#realNow(), demo }
    this.#arm()
  }

  /** Where time would be if nothing had stopped it. */
  #target(): number {
    if (this.#speed === Infinity) return Infinity
    return this.#anchor.demo + (this.#realNow() - this.#anchor.real) * this.#speed
  }

  #current(): number {
    if (this.#holds > 0 || this.#isSettling) return this.#at
    const next = this.#next()
    const target = this.#target()
    const limit = next === undefined ? (target === Infinity ? this.#at : target) : next.due
    return Math.max(this.#at, Math.floor(Math.min(target, limit)))
  }

  #next(): Sleeper | undefined {
    let first: Sleeper | undefined
    for (const sleeper of this.#sleepers) {
      if (first === undefined || isBefore(sleeper, first)) first = sleeper
    }
    return first
  }

  #arm(): void {
    clearTimeout(this.#timer)
    if (this.#holds > 0 || this.#isSettling) return
    const next = this.#next()
    if (next === undefined) return
    const wait = this.#speed === Infinity ? 0 : (next.due - this.#target()) / this.#speed
    if (wait > 0) {
      this.#timer = setTimeout(() => {
        this.#arm()
      }, Math.ceil(wait))
      return
    }
    this.#sleepers.splice(this.#sleepers.indexOf(next), 1)
    this.#at = Math.max(this.#at, next.due)
    next.wake()
    this.#settle()
  }

  /** Whatever follows from what just happened happens at the same time, before anybody wakes. */
  #settle(): void {
    if (this.#isSettling) return
    this.#isSettling = true
    setImmediate(() => {
      this.#isSettling = false
      // Lost time is caught up at most by this much, so that a pause is not followed by a rush.
      const behind = this.#target() - this.#at
      if (behind > behindMax && behind !== Infinity) {
        this.#anchor = { real: this.#realNow(), demo: this.#at + behindMax }
      }
      this.#arm()
    })
  }
}

/** Demo time, in milliseconds. */
const behindMax = 60_000

function isBefore(left: Sleeper, right: Sleeper): boolean {
  if (left.due !== right.due) return left.due < right.due
  if (left.order !== right.order) return left.order < right.order
  return left.number < right.number
}
