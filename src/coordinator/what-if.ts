/** What a round has to move, and with what. Rates are bytes per second. */
export type RoundLoad = {
  readonly bytes: number
  readonly buckets: number
  readonly readers: number
  readonly bytesPerSecondPerReader: number
}

/**
 * How long a round lasts, in seconds, when the data is spread evenly over its buckets. A real round
 * is at least this long, and at least as long as its largest bucket takes: `secondsOfBucket`.
 */
export function roundSeconds(load: RoundLoad): number {
  const atWork = Math.min(load.buckets, load.readers)
  return load.bytes / (atWork * load.bytesPerSecondPerReader)
}

/** How long one reader takes for one bucket, in seconds: no round that has it is shorter. */
export function secondsOfBucket(bytes: number, bytesPerSecondPerReader: number): number {
  return bytes / bytesPerSecondPerReader
}

/** What a log gathers between two commits. */
export function bytesSinceCommit(writeBytesPerSecond: number, seconds: number): number {
  return writeBytesPerSecond * seconds
}

/** Lag of a table whose job is otherwise idle: a sawtooth between `floor` and `peak`, in seconds. */
export type LagRange = { readonly floor: number; readonly peak: number; readonly period: number }

export function lagRange(freshness: number, round: number): LagRange {
  return { floor: round, peak: freshness + 2 * round, period: freshness + round }
}

export type FreshnessPlan =
  | ({ readonly kind: 'reachable'; readonly freshness: number; readonly advice: string } & LagRange)
  | { readonly kind: 'unreachable'; readonly advice: string }

/** Plans backwards: the freshness that keeps the peak of the lag at `target`. All in seconds. */
export function freshnessForTarget(target: number, round: number): FreshnessPlan {
  const freshness = target - 2 * round
  if (freshness <= 0) {
    return {
      kind: 'unreachable',
      advice: `not reachable, needs rounds under ${target / 2} s (target/2)`,
    }
  }
  return {
    kind: 'reachable',
    freshness,
    ...lagRange(freshness, round),
    advice: 'leave a margin: waiting in the queue and slower rounds add to the peak',
  }
}
