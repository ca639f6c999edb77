import { offset } from '../../src/core/ids.ts'
import { type Clock, order } from '../../src/core/ports.ts'
import type {
  RoundPlan,
  SnapshotSplit,
  Split,
  SplitResult,
  SplitRunner,
} from '../../src/sink/ports.ts'

/** What a reader does between two looks at its stop signal. */
export type Step = { readonly ms: number; readonly records: number }

/** How long a split takes, step by step. No step at all: it is read in no time. */
export type Pace = (plan: RoundPlan, split: Split) => Iterable<Step>

export type PacedRunner = SplitRunner & {
  readonly discarded: readonly SplitResult[]
}

/** Reads nothing and writes nothing, but takes its time and obeys its stop signal between steps. */
export function pacedRunner(options: {
  readonly clock: Clock
  readonly pace: Pace
  /** Rows of a KV snapshot, which is read whole whatever is asked of it. */
  readonly snapshotRows?: (plan: RoundPlan, split: SnapshotSplit) => number
  readonly started?: (plan: RoundPlan, split: Split) => void
  readonly ended?: (plan: RoundPlan, split: Split) => void
}): PacedRunner {
  const { clock } = options
  const discarded: SplitResult[] = []
  return {
    discarded,
    run: async (plan, split, stop) => {
      options.started?.(plan, split)
      const { bucket, start } = split
      if (split.kind === 'snapshot') {
        const rows = options.snapshotRows?.(plan, split) ?? 0
        for (const step of options.pace(plan, { ...split, stop: offset(start + BigInt(rows)) })) {
          await clock.sleep(step.ms, { order: order.result })
        }
        options.ended?.(plan, split)
        return { bucket, start, end: start, files: [], rows, isSnapshot: true }
      }
      let end: bigint = split.start
      for (const step of options.pace(plan, split)) {
        await clock.sleep(step.ms, { order: order.result })
        end += BigInt(step.records)
        if (end >= split.stop) break
        // Deadlines of this instant come first, so that a stop at 60 s stops at 60 s.
        await clock.sleep(0, { order: order.request })
        if (stop.stopped) break
      }
      options.ended?.(plan, split)
      return { bucket, start, end: offset(end), files: [], rows: Number(end - start) }
    },
    discard: (results) => {
      discarded.push(...results)
      return Promise.resolve()
    },
  }
}

/** A whole split takes `seconds`, in steps of a second. */
export function takes(seconds: (split: Split, plan: RoundPlan) => number): Pace {
  return function* (plan, split) {
    const count = Math.max(1, Math.ceil(seconds(split, plan)))
    const all = Number(split.stop - split.start)
    for (let i = 0; i < count; i += 1) {
      const records = Math.floor((all * (i + 1)) / count) - Math.floor((all * i) / count)
      yield { ms: Math.round((seconds(split, plan) * 1000) / count), records }
    }
  }
}

/** A reader moves so many records a second, in batches. */
export function moves(recordsPerSecond: number, batch: number): Pace {
  return function* (_plan, split) {
    for (let left = Number(split.stop - split.start); left > 0; left -= batch) {
      const records = Math.min(batch, left)
      yield { ms: Math.round((records * 1000) / recordsPerSecond), records }
    }
  }
}
