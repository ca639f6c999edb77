import type { LoadedTable, TableChange } from '../../catalog/ports.ts'
import { isSluiceError, SluiceError } from '../../core/errors.ts'
import type { SnapshotId } from '../../core/ids.ts'
import { unreachable } from '../../core/never.ts'
import type { Chance, Clock, Journal } from '../../core/ports.ts'
import type { HeldTable } from './held-table.ts'
import { type CommitClaim, judge as soundJudge, type Verdict } from './judge.ts'
import { lineage, reachesBack } from './lineage.ts'
import { type ReadVersion, readVersion as soundRead } from './progress.ts'
import { compareTokens, showToken, type Token } from './token.ts'

export type CommitLimits = {
  readonly attemptsMax: number
  readonly pauseMinMs: number
  readonly pauseMaxMs: number
  readonly budgetMs: number
}

/** Iceberg's own defaults for `commit.retry.*`. */
export const commitLimits: CommitLimits = {
  attemptsMax: 5,
  pauseMinMs: 100,
  pauseMaxMs: 60_000,
  budgetMs: 1_800_000,
}

export type CommitPorts = {
  readonly clock: Clock
  readonly chance: Chance
  readonly journal: Journal
  /** Only for tests that put in a wrong one to see that they find it. */
  readonly judge?: typeof soundJudge
  readonly readVersion?: typeof soundRead
}

export type CommitEnd =
  | {
      readonly kind: 'committed'
      readonly version: LoadedTable
      readonly attempts: number
      /** Recognized on a later look: the reply of the attempt that landed was lost. */
      readonly alreadyApplied: boolean
    }
  /** Not in the table. `error.effect` is `none` only where that is proven. */
  | { readonly kind: 'rejected'; readonly error: SluiceError }
  | { readonly kind: 'unknown'; readonly error: SluiceError }

export type CommitJob = {
  readonly held: HeldTable
  readonly claim: CommitClaim
  /** The first attempt may use the plan's version: nothing of ours is in flight yet, and the swap
   *  is bound to it. Every later attempt loads afresh. */
  readonly planned: ReadVersion
  /** What the commit changes on this version; what it throws ends the commit. */
  readonly build: (version: ReadVersion) => TableChange | Promise<TableChange>
  /** A commit without a snapshot (a fence) is recognized by other means than the lineage. */
  readonly isLanded?: (version: ReadVersion) => boolean
}

/**
 * The one commit loop. It holds one piece of judgement: which attempts are open. A request that was
 * sent may land as long as the version it was bound to is the newest, whatever its answer was: none,
 * or a "taken" that was read back from a store that may have lied. It is dead once another version
 * was read, since its number is taken, and our commit is not in a lineage that goes back to what it
 * was put on. So the loop ends with a look.
 */
export async function commit(
  job: CommitJob,
  ports: CommitPorts,
  limits: CommitLimits = commitLimits,
): Promise<CommitEnd> {
  const { held, claim } = job
  const { judge = soundJudge, readVersion = soundRead } = ports
  const startedAt = ports.clock.monotonic()
  /** Versions that attempts were bound to: their tokens, and the heads the attempts were put on. */
  const open = new Map<string, SnapshotId | undefined>()
  let lastCause: unknown
  held.drawn.add(claim.commit)

  for (let attempt = 1; attempt <= limits.attemptsMax + 1; attempt += 1) {
    try {
      const version = attempt === 1 ? job.planned : await readVersion(held.lake, held.sourceId)
      const { token } = version.table
      for (const [other, head] of open) {
        if (other !== token && reachesBack(version.table, head)) open.delete(other)
      }
      const verdict: Verdict =
        job.isLanded?.(version) === true
          ? { kind: 'committed', snapshotId: claim.snapshotId }
          : judge(version, claim)
      if (verdict.kind !== 'apply') return settle(job, verdict, version, attempt, open.size > 0)
      if (attempt > limits.attemptsMax) break
      const outcome = await held.lake.swap(version.table, await job.build(version))
      switch (outcome.kind) {
        case 'applied':
          verifyLanded(outcome.table, version.table, job)
          return {
            kind: 'committed',
            version: outcome.table,
            attempts: attempt,
            alreadyApplied: false,
          }
        case 'rejected':
          open.set(token, version.table.head)
          break
        case 'unknown':
          open.set(token, version.table.head)
          lastCause = outcome.cause
          noteDoubt(job, attempt, ports.journal)
          break
        default:
          return unreachable(outcome)
      }
    } catch (error) {
      if (!isSluiceError(error)) throw error
      if (!isPassing(error)) return failed(job, error, open.size > 0)
      lastCause = error
    }
    if (ports.clock.monotonic() - startedAt > limits.budgetMs) break
    await ports.clock.sleep(pauseOf(attempt, ports.chance, limits))
  }

  const error = contended(held.lake.name.join('.'), limits, lastCause)
  if (open.size > 0) return failed(job, error, true)
  return { kind: 'rejected', error: isSluiceError(lastCause) ? lastCause : error }
}

function noteDoubt({ held, claim }: CommitJob, attempt: number, journal: Journal): void {
  journal.note({
    level: 'warn',
    event: 'commit.in_doubt',
    message: 'no answer to a commit; reading whether it landed',
    fields: {
      table: held.lake.name.join('.'),
      commit_id: claim.commit,
      attempt,
      epoch: showToken(claim.token),
    },
  })
}

function settle(
  job: CommitJob,
  verdict: Exclude<Verdict, { kind: 'apply' }>,
  version: ReadVersion,
  attempt: number,
  inDoubt: boolean,
): CommitEnd {
  if (verdict.kind === 'committed') {
    return { kind: 'committed', version: version.table, attempts: attempt, alreadyApplied: true }
  }
  return failed(job, errorOf(job, verdict, version), inDoubt)
}

function failed(job: CommitJob, error: SluiceError, inDoubt: boolean): CommitEnd {
  if (!inDoubt) return { kind: 'rejected', error }
  const name = job.held.lake.name.join('.')
  return {
    kind: 'unknown',
    error: new SluiceError(
      'COMMIT_UNKNOWN',
      `${name}: no answer to a commit of epoch ${showToken(job.claim.token)}; it may have landed`,
      {
        details: { table: name, commit_id: job.claim.commit },
        state: 'nothing was deleted',
        fix: 'run again: it reads the lake and goes on from the truth',
        cause: error,
      },
    ),
  }
}

function errorOf(
  job: CommitJob,
  verdict: Exclude<Verdict, { kind: 'apply' | 'committed' }>,
  version: ReadVersion,
): SluiceError {
  const name = job.held.lake.name.join('.')
  const details = { table: name, commit_id: job.claim.commit }
  switch (verdict.kind) {
    case 'rolled-back':
      return new SluiceError(
        'COMMIT_CONFLICT',
        `${name}: the round was committed and then rolled back by somebody`,
        { details: { ...details, snapshot_id: verdict.snapshotId }, effect: 'unknown' },
      )
    case 'replaced':
      return new SluiceError(
        'TABLE_REPLACED',
        `${name}: the table was replaced while a round ran`,
        {
          details: { ...details, expected: job.claim.tableUuid, found: verdict.found },
          state: 'nothing was written to the new table',
        },
      )
    case 'lost':
      return verdict.error
    case 'fenced':
      return fencedError(job.held, verdict.by.token, job.claim.token)
    case 'stale':
      return new SluiceError(
        'COMMIT_STALE',
        `${name}: bucket ${String(verdict.bucket)} ends at ${show(verdict.found)}, the round begins at ${show(verdict.expected)}`,
        { details: { ...details, bucket: verdict.bucket, head: version.table.head } },
      )
    case 'overtaken':
      return new SluiceError(
        'COMMIT_STALE',
        `${name}: its newest round is not the one this round was planned on`,
        { details: { ...details, found: verdict.by, head: version.table.head } },
      )
    case 'changed':
      return new SluiceError('COMMIT_STALE', `${name}: its ${verdict.what} changed meanwhile`, {
        details,
        fix: 'run again: it goes by the new one',
      })
    default:
      return unreachable(verdict)
  }
}

/** The error of a holder that another one outranks, or came before under the same number. */
export function fencedError(
  held: Pick<HeldTable, 'lake' | 'landed'>,
  by: Token,
  ours: Token,
): SluiceError {
  const name = held.lake.name.join('.')
  const [theirs, own] = [showToken(by), showToken(ours)]
  const count = held.landed.length
  const before =
    count === 0
      ? 'this process committed nothing'
      : `our last ${count === 1 ? 'commit is' : `${String(count)} commits are`} in the lake`
  return new SluiceError(
    'COMMIT_FENCED',
    compareTokens(by, ours) === 0
      ? `${name}: another sluice started at the same time, claimed epoch ${theirs} as this one did, and came first`
      : `${name}: another sluice took the table over (epoch ${theirs} after our ${own})`,
    {
      details: { table: name, by: theirs, ours: own },
      state: `${before}; the round in flight added nothing`,
      fix: 'let the other one end, then run again: it goes on from what is in the lake',
    },
  )
}

/** A catalog that answers "applied" and did something else must not get a second round. */
function verifyLanded(landed: LoadedTable, base: LoadedTable, job: CommitJob): void {
  if (job.isLanded !== undefined) return
  const head = landed.head === undefined ? undefined : landed.snapshots.get(landed.head)
  const isOurs = head?.id === job.claim.snapshotId && head.parent === base.head
  if (!isOurs && !contains(landed, job.claim.snapshotId)) {
    throw new SluiceError('INVARIANT_BROKEN', 'a commit was applied and is not in the table', {
      details: { table: job.held.lake.name.join('.'), commit_id: job.claim.commit },
    })
  }
}

function contains(table: LoadedTable, id: SnapshotId): boolean {
  for (const each of lineage(table)) if (each.id === id) return true
  return false
}

/** Worth another attempt within the budget. */
function isPassing(error: SluiceError): boolean {
  return error.code === 'STORE_UNAVAILABLE'
}

function contended(name: string, limits: CommitLimits, cause: unknown): SluiceError {
  return new SluiceError(
    'COMMIT_CONTENDED',
    `${name}: ${String(limits.attemptsMax)} attempts to commit lost the race against others`,
    { details: { table: name }, cause, fix: 'run again' },
  )
}

/** Exponential, with a jitter between half and the whole. */
function pauseOf(attempt: number, chance: Chance, limits: CommitLimits): number {
  const full = Math.min(limits.pauseMaxMs, limits.pauseMinMs * 2 ** (attempt - 1))
  return full / 2 + chance.below(Math.max(1, Math.floor(full / 2)))
}

function show(end: bigint | undefined): string {
  return end === undefined ? 'no offset yet' : String(end)
}
