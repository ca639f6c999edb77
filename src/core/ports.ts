import type { Millis } from './ids.ts'

/**
 * What is decided first when several things are due at one instant: results before timers, timers
 * before deadlines, so that a round that is complete at its deadline is not cut.
 */
export const order = { result: 1, freshness: 2, deadline: 3, sweep: 4, request: 5 } as const
export type Order = (typeof order)[keyof typeof order]

/** Tells that a wait is over before its time. An AbortSignal is one. */
export interface WaitSignal {
  readonly aborted: boolean
  addEventListener(
    event: 'abort',
    listener: () => void,
    options?: { readonly once?: boolean },
  ): void
  removeEventListener(event: 'abort', listener: () => void): void
}

export interface Clock {
  /** Wall time in milliseconds since 1970; may jump. For times that are written or shown. */
  now(): Millis
  /** Milliseconds since some start; never goes back. For leases, deadlines and durations. */
  monotonic(): Millis
  /**
   * Waits. Of several sleeps due at one instant the lower `order` wakes first.
   * @throws SluiceError STOPPED when `signal` aborts first.
   */
  sleep(
    duration: number,
    options?: { readonly order?: Order; readonly signal?: WaitSignal },
  ): Promise<void>
}

/** Chance that can be replayed. Never for identifiers: see `IdSource`. */
export interface Chance {
  /** A whole number in `[0, bound)`; `bound` is at most 2^32. */
  below(bound: number): number
}

export interface IdSource {
  /** 128 bits that nobody else draws, as 32 lower-case hexadecimal digits. */
  bits128(): string
}

/** Where notes for people go; the composition root decides what becomes of them. */
export interface Journal {
  note(entry: JournalEntry): void
}

export type JournalEntry = {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  /** Stable and dotted, such as `round.committed`. */
  readonly event: string
  readonly message: string
  readonly fields?: Readonly<Record<string, string | number | bigint | boolean | undefined>>
}

export const silentJournal: Journal = { note: () => undefined }
