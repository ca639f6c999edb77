import type { WaitSignal } from './ports.ts'

/**
 * Ends waits before their time, once. It is an AbortController without the events and exceptions of
 * the DOM, which cost more than the waits of a job and its coordinator.
 */
export class Ending implements WaitSignal {
  readonly #listeners = new Set<() => void>()
  #aborted = false

  get aborted(): boolean {
    return this.#aborted
  }

  addEventListener(_event: 'abort', listener: () => void): void {
    if (!this.#aborted) this.#listeners.add(listener)
  }

  removeEventListener(_event: 'abort', listener: () => void): void {
    this.#listeners.delete(listener)
  }

  /** Ends what waits, and what would begin to. */
  abort(): void {
    this.#aborted = true
    for (const listener of this.#listeners) {
      this.#listeners.delete(listener)
      listener()
    }
  }
}
