/** A holder that is silent for longer than this has lost its table. The same for every table. */
export const leaseMs = 120_000

/** Silence is looked at when the clock shows a multiple of this. */
export const sweepMs = 15_000

/** The delay after the second failure in a row; each one more doubles it, up to the freshness. */
export const retryDelayMs = 1_000

/**
 * How long a table still waits, when its last round finished `sinceFinishMs` ago: between nothing,
 * when it is overdue, and one whole freshness, when a clock went back.
 */
export function delayUntilDue(freshnessMs: number, sinceFinishMs: number): number {
  return Math.min(freshnessMs, Math.max(0, freshnessMs - sinceFinishMs))
}

/** How long a table waits after it was reported failed for the nth time in a row, n from 1. */
export function delayAfterFailure(freshnessMs: number, failuresInARow: number): number {
  if (failuresInARow < 2) return 0
  return Math.min(freshnessMs, retryDelayMs * 2 ** Math.min(failuresInARow - 2, 30))
}

/** Silence has to exceed the lease: at its exact length the holder is alive. */
export function isSilentTooLong(heardAt: number, now: number): boolean {
  return now - heardAt > leaseMs
}

/** The first sweep that will find a holder silent for too long, if nothing is heard from it. */
export function sweepThatExpires(heardAt: number): number {
  return (Math.floor((heardAt + leaseMs) / sweepMs) + 1) * sweepMs
}
