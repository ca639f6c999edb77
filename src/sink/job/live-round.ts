import type { RoundToken } from '../../coordinator/protocol.ts'
import { Ending } from '../../core/ending.ts'
import { isSluiceError } from '../../core/errors.ts'
import { type Clock, order } from '../../core/ports.ts'
import type { Assignment } from '../ports.ts'
import { type RoundKey, roundKey } from '../round/round-key.ts'

/** A round in the hands of a job, from assignment to report. */
export type LiveRound = {
  readonly key: RoundKey
  readonly assignment: Assignment
  /** On the monotonic clock. */
  readonly assignedAt: number
  /** Shared with the splits that are being read. */
  readonly stop: { stopped: boolean }
  /** Ends the wait for the ceiling. */
  readonly over: Ending
  phase: 'planning' | 'reading' | 'complete' | 'committing'
  /** The table was given away; a commit that was under way by then is judged at the lake. */
  isFenced: boolean
}

export function liveRound(assignment: Assignment, assignedAt: number): LiveRound {
  return {
    key: roundKey(assignment),
    assignment,
    assignedAt,
    stop: { stopped: false },
    over: new Ending(),
    phase: 'planning',
    isFenced: false,
  }
}

export function token({ assignment }: LiveRound): RoundToken {
  const { table, incarnation, epoch } = assignment
  return { table, incarnation, epoch }
}

/**
 * Waits until a round has lasted one freshness since its assignment; false if it is over before. A
 * plan that alone took that long gets a full freshness from its end: a round that can never begin
 * would come again for ever.
 */
export async function waitForCeiling(
  clock: Clock,
  round: LiveRound,
  freshnessMs: number,
): Promise<boolean> {
  const fromAssignment = round.assignedAt + freshnessMs
  const now = clock.monotonic()
  const ceiling = fromAssignment > now ? fromAssignment : now + freshnessMs
  try {
    for (let left = ceiling - now; left > 0; left = ceiling - clock.monotonic()) {
      await clock.sleep(left, { order: order.deadline, signal: round.over })
    }
    return true
  } catch (error) {
    if (isSluiceError(error, 'STOPPED')) return false
    throw error
  }
}
