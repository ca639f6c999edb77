import { SluiceError } from '../../core/errors.ts'
import type { WaitSignal } from '../../core/ports.ts'

export type AdmitOptions<Result> = {
  readonly bytes: number
  readonly whenFull: 'wait' | 'reject'
  readonly signal: WaitSignal | undefined
  /** When a wait of this group is ended, those behind it in the group are too: its order would break. */
  readonly group: string | undefined
  /** Runs as soon as there is room, in the same step that found it, and holds what it takes. */
  readonly take: () => Result
}

type Waiter = {
  readonly bytes: number
  readonly group: string | undefined
  readonly run: () => void
  readonly fail: (error: SluiceError) => void
}

/** Waiting appends beyond this number are refused with LOG_FULL, so that the queue is bounded too. */
const waitersMax = 10_000

/**
 * The memory that the logs of all tables share. Appends get in first come, first served; one that
 * alone exceeds the maximum gets in when nothing else is held, since it never would otherwise.
 */
export class LogBudget {
  readonly bytesMax: number
  readonly #waiters: Waiter[] = []
  readonly #onWait: () => void
  #held = 0
  #draining = false

  /** @param onWait Called after an append began to wait. */
  constructor(bytesMax: number, onWait: () => void) {
    this.bytesMax = bytesMax
    this.#onWait = onWait
  }

  get held(): number {
    return this.#held
  }

  get waiting(): number {
    return this.#waiters.length
  }

  hold(bytes: number): void {
    this.#held += bytes
  }

  /** Gives bytes back and lets in who fits now. */
  release(bytes: number): void {
    this.#held -= bytes
    this.#drain()
  }

  /**
   * Runs `take` when `bytes` fit.
   *
   * @throws SluiceError LOG_FULL when they do not and `whenFull` is `reject`; STOPPED when the signal
   * aborts first. Then `take` has not run.
   */
  admit<Result>(options: AdmitOptions<Result>): Promise<Result> {
    const { bytes, whenFull, signal, group, take } = options
    if (signal?.aborted === true) return Promise.reject(stopped())
    if (this.#waiters.length === 0 && this.#fits(bytes)) {
      return new Promise((resolve) => {
        resolve(take())
      })
    }
    if (whenFull === 'reject' || this.#waiters.length >= waitersMax) {
      return Promise.reject(this.#full(bytes))
    }
    return new Promise<Result>((resolve, reject) => {
      const abort = (): void => {
        this.#giveUp(waiter)
      }
      const waiter: Waiter = {
        bytes,
        group,
        run: () => {
          signal?.removeEventListener('abort', abort)
          try {
            resolve(take())
          } catch (error) {
            reject(error instanceof Error ? error : new Error(String(error)))
          }
        },
        fail: (error) => {
          signal?.removeEventListener('abort', abort)
          reject(error)
        },
      }
      this.#waiters.push(waiter)
      signal?.addEventListener('abort', abort, { once: true })
      this.#onWait()
    })
  }

  /** Ends every wait with STOPPED. */
  close(): void {
    for (const waiter of this.#waiters.splice(0)) waiter.fail(stopped())
  }

  #fits(bytes: number): boolean {
    return this.#held === 0 || this.#held + bytes <= this.bytesMax
  }

  #drain(): void {
    // What runs may lead to another release; the loop that is on its way then sees it.
    if (this.#draining) return
    this.#draining = true
    try {
      for (let next = this.#waiters[0]; next !== undefined; next = this.#waiters[0]) {
        if (!this.#fits(next.bytes)) break
        this.#waiters.shift()
        next.run()
      }
    } finally {
      this.#draining = false
    }
  }

  #giveUp(waiter: Waiter): void {
    const at = this.#waiters.indexOf(waiter)
    if (at < 0) return
    const behind = this.#waiters.slice(at + 1)
    const ended = behind.filter((each) => waiter.group !== undefined && each.group === waiter.group)
    for (const each of [waiter, ...ended]) {
      this.#waiters.splice(this.#waiters.indexOf(each), 1)
      each.fail(stopped())
    }
    this.#drain()
  }

  #full(bytes: number): SluiceError {
    return new SluiceError(
      'LOG_FULL',
      `the log holds ${this.#held} of ${this.bytesMax} bytes; ${bytes} more do not fit`,
      { details: { bytes, held: this.#held, max: this.bytesMax, waiting: this.waiting } },
    )
  }
}

function stopped(): SluiceError {
  return new SluiceError('STOPPED', 'the append was ended before the log had room')
}
