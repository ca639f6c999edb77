import { isSluiceError, SluiceError } from '../../core/errors.ts'
import type { Millis } from '../../core/ids.ts'
import type { CommitResult, RoundCommitter, RoundPlan, SplitResult } from '../ports.ts'
import type { RoundReport } from './events.ts'

/** Runs what it is given one after another, in the order it was given: the lane of the commits. */
export function createLane(): (work: () => Promise<void>) => Promise<void> {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const turn = last.then(work)
    last = turn.catch(() => undefined)
    return turn
  }
}

/**
 * Asks the committer, and makes an outcome of what it throws: whatever broke after a commit began
 * may have broken after it landed. Only a broken invariant is thrown on.
 */
export async function commitOutcome(
  committer: RoundCommitter,
  round: { readonly plan: RoundPlan; readonly results: readonly SplitResult[] },
  final: boolean,
): Promise<CommitResult> {
  try {
    return await committer.commit(round.plan, round.results, final)
  } catch (thrown) {
    const error = asTableError(thrown, `committing ${round.plan.table.name} failed`)
    return { kind: error.effect === 'none' ? 'rejected' : 'unknown', error }
  }
}

/** What a table's round failed of. @throws INVARIANT_BROKEN as it is: the job must not go on. */
export function asTableError(thrown: unknown, what: string): SluiceError {
  if (isSluiceError(thrown, 'INVARIANT_BROKEN')) throw thrown
  if (isSluiceError(thrown)) return thrown
  const reason = thrown instanceof Error ? thrown.message : String(thrown)
  return new SluiceError('INVARIANT_BROKEN', `${what} without a reason we know (${reason})`, {
    cause: thrown,
  })
}

export function reportRound(
  round: { readonly plan: RoundPlan; readonly results: readonly SplitResult[] },
  committed: Extract<CommitResult, { kind: 'committed' }>,
  facts: Pick<RoundReport, 'forceFinished' | 'seconds'> & { readonly committedAt: Millis },
): RoundReport {
  const files = round.results.flatMap((result) => result.files)
  const { incarnation, epoch } = round.plan.assignment
  return {
    table: round.plan.table.name,
    incarnation: committed.incarnation ?? incarnation,
    epoch,
    round: committed.round,
    snapshotId: committed.snapshotId,
    rows: round.results.reduce((sum, result) => sum + BigInt(result.rows), 0n),
    rowsDeleted: committed.deleted?.rows ?? 0n,
    deleteFiles: committed.deleted?.files ?? 0,
    files: files.length,
    bytes: files.reduce((sum, file) => sum + BigInt(file.bytes), 0n),
    attempts: committed.attempts,
    ...(committed.commitId === undefined ? {} : { commitId: committed.commitId }),
    ...facts,
  }
}
