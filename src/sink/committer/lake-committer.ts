import type { LoadedTable } from '../../catalog/ports.ts'
import type { ObjectStore } from '../../catalog/store/object-store.ts'
import { SluiceError } from '../../core/errors.ts'
import type { Bucket, CommitId, Millis, Offset, SnapshotId, TableId } from '../../core/ids.ts'
import { check, unreachable } from '../../core/never.ts'
import type { IdSource } from '../../core/ports.ts'
import type { LogSource } from '../../source/ports.ts'
import type {
  Assignment,
  CommitResult,
  RoundCommitter,
  RoundPlan,
  RoundPlanner,
  Split,
  SplitResult,
} from '../ports.ts'
import { planSplits } from '../round/plan-splits.ts'
import { drawCommit, fenceChange, roundChange, snapshotOf } from './changes.ts'
import { type CommitPorts, commit, commitLimits, fencedError } from './commit.ts'
import { followedBy, type HeldTable, ledgerOf, tokenFor } from './held-table.ts'
import { type CommitRange, rivalOf } from './judge.ts'
import { isKeepaliveDue, keepalive } from './keepalive.ts'
import { endsOf } from './ledger.ts'
import { type ReadVersion, readVersion as soundRead } from './progress.ts'
import { showToken, type Token } from './token.ts'

/** A file of a round this old is looked for before it is committed. */
const oldRoundMs = 12 * 60 * 60 * 1000

export type LakeCommitterPorts = CommitPorts & {
  /** Asked for the files of rounds so old that another tool may have taken them for orphans. */
  readonly store?: Pick<ObjectStore, 'size'>
  readonly source: LogSource
  readonly ids: IdSource
  readonly held: (table: TableId) => HeldTable | undefined
}

/** What the planner read and the committer needs back. */
export type PlanContext = {
  readonly held: HeldTable
  readonly token: Token
  readonly version: ReadVersion
  /** On the monotonic clock. */
  readonly plannedAt: Millis
}

/** Plans rounds from the lake and commits them to it. */
export function lakeCommitter(ports: LakeCommitterPorts): RoundPlanner & RoundCommitter {
  return {
    plan: (assignment) => planRound(assignment, ports),
    commit: (plan, results, final) => commitRound(plan, results, final, ports),
  }
}

async function planRound(assignment: Assignment, ports: LakeCommitterPorts): Promise<RoundPlan> {
  const held = ports.held(assignment.table)
  const table = ports.source.table(assignment.table)
  if (held === undefined || table === undefined) {
    throw new SluiceError('TABLE_MISSING', `table ${String(assignment.table)} is not open here`)
  }
  const { readVersion = soundRead } = ports
  const token = tokenFor(held, assignment)
  let version = await readVersion(held.lake, held.sourceId)
  let splits = await splitsOn(version, held, token, assignment.table, ports)
  if (splits.length > 0 && (held.fenceFirst || assignment.takeOver)) {
    version = await fence(held, token, version, ports)
    held.fenceFirst = false
    splits = await splitsOn(version, held, token, assignment.table, ports)
  }
  if (splits.length === 0 && isKeepaliveDue(version, ports.clock.now())) {
    await keepalive(held, token, version, ports)
  }
  const context: PlanContext = { held, token, version, plannedAt: ports.clock.monotonic() }
  return { assignment, table, splits, context }
}

async function splitsOn(
  version: ReadVersion,
  held: HeldTable,
  token: Token,
  table: TableId,
  ports: LakeCommitterPorts,
): Promise<readonly Split[]> {
  const name = held.lake.name.join('.')
  const { uuid } = version.table
  if (uuid !== held.tableUuid) {
    throw new SluiceError('TABLE_REPLACED', `${name}: the table was dropped and made anew`, {
      details: { table: name, expected: held.tableUuid, found: uuid },
      state: 'nothing was written to the new table',
    })
  }
  if (version.progress.kind === 'lost') throw version.progress.error
  const rival = rivalOf(version, { token, drawn: held.drawn })
  if (rival !== undefined) throw fencedError(held, rival.token, token)

  const ledger = ledgerOf(version)
  follow(held, ledger?.commit, name)
  const ends = ledger === undefined ? new Map<Bucket, Offset>() : endsOf(ledger)
  const snapshots = await ports.source.kv?.newest(table)
  const splits = planSplits(name, await ports.source.ranges(table), ends, snapshots)
  // A commit whose reply was lost is found here, and nowhere else is the log told.
  ports.source.committed(table, ends)
  return splits
}

/**
 * The log was filled to follow one commit. If the newest own commit is another's, the same offsets
 * hold other records there; if it is an older one of ours, the branch was rolled back, and the log
 * has already dropped what is gone from the lake. In both cases nothing of this log may follow it.
 */
function follow(held: HeldTable, newest: CommitId | undefined, name: string): void {
  const followed = followedBy(held)
  if (newest === followed) return
  const isOurs = newest === undefined || newest === held.resumedFrom || held.drawn.has(newest)
  if (newest !== undefined && held.drawn.has(newest) && !held.landed.includes(newest)) {
    // A commit whose reply was lost is found here.
    held.landed.push(newest)
    return
  }
  throw new SluiceError(
    'COMMIT_STALE',
    isOurs
      ? `${name}: the branch was rolled back since this process committed`
      : `${name}: another process committed since it was opened`,
    {
      details: { table: name, commit_id: newest, followed },
      fix: 'run again: it goes on from what is in the lake now',
    },
  )
}

async function fence(
  held: HeldTable,
  token: Token,
  planned: ReadVersion,
  ports: LakeCommitterPorts,
): Promise<ReadVersion> {
  const id = drawCommit(ports.ids)
  const end = await commit(
    {
      held,
      claim: {
        commit: id,
        snapshotId: snapshotOf(id),
        token,
        tableUuid: planned.table.uuid,
        planHead: planned.table.head,
        schemaId: planned.table.schemaId,
        specId: planned.table.specId,
        ranges: [],
        drawn: held.drawn,
      },
      planned,
      build: () => fenceChange(token, id),
      isLanded: (version) => version.claim?.commit === id,
    },
    ports,
  )
  if (end.kind !== 'committed') throw end.error
  ports.journal.note({
    level: 'info',
    event: 'table.fenced',
    message: 'earlier holders can no longer commit',
    fields: { table: held.lake.name.join('.'), epoch: showToken(token) },
  })
  return (ports.readVersion ?? soundRead)(held.lake, held.sourceId)
}

async function commitRound(
  plan: RoundPlan,
  results: readonly SplitResult[],
  final: boolean,
  ports: LakeCommitterPorts,
): Promise<CommitResult> {
  const { held, token, version } = contextOf(plan)
  const ranges = rangesOf(plan, results)
  if (ranges.length === 0) return { kind: 'nothing' }
  await requireFiles(plan, results, ports)
  const id = drawCommit(ports.ids)
  const isWhole = plan.splits.every((split) =>
    ranges.some((range) => range.bucket === split.bucket && range.end === split.stop),
  )
  const end = await commit(
    {
      held,
      claim: {
        commit: id,
        snapshotId: snapshotOf(id),
        token,
        tableUuid: version.table.uuid,
        planHead: version.table.head,
        schemaId: version.table.schemaId,
        specId: version.table.specId,
        ranges,
        follows: ledgerOf(version)?.commit ?? 'nothing',
        ...(held.upserts === undefined ? {} : { replacesRows: true }),
        drawn: held.drawn,
      },
      planned: version,
      build: async (base) =>
        roundChange(base, {
          commit: id,
          token,
          source: held.sourceId,
          ranges,
          files: results.flatMap((result) => result.files),
          ...(await held.upserts?.deletesOf(base.table, results)),
          final,
          forceFinished: !isWhole,
          inputs: (ends) => ports.source.inputs(plan.table.id, ends),
        }),
    },
    ports,
    commitLimits,
  )
  switch (end.kind) {
    case 'committed': {
      // Continuity was judged on the version that was replaced, so the ends are the planned ones
      // and this round's: foreign commits carry them on unchanged.
      held.landed.push(id)
      if (!end.alreadyApplied) await held.upserts?.applied(end.version, results)
      const before = ledgerOf(version)
      const ends = new Map<Bucket, Offset>(before === undefined ? [] : endsOf(before))
      for (const range of ranges) ends.set(range.bucket, range.end)
      ports.source.committed(plan.table.id, ends)
      return {
        kind: 'committed',
        snapshotId: snapshotOf(id),
        round: (before?.round ?? 0) + 1,
        attempts: end.attempts,
        commitId: id,
        incarnation: token.incarnation,
        alreadyApplied: end.alreadyApplied,
        ...(held.upserts === undefined ? {} : { deleted: deletedBy(end.version, snapshotOf(id)) }),
      }
    }
    case 'rejected':
    case 'unknown':
      return end
    default:
      return unreachable(end)
  }
}

/** What the summary of a commit says: a vector that stands for an older one takes its rows over. */
function deletedBy(
  landed: LoadedTable,
  id: SnapshotId,
): { readonly rows: bigint; readonly files: number } {
  const summary = landed.snapshots.get(id)?.summary
  const count = (key: string): bigint => BigInt(summary?.get(key) ?? '0')
  return {
    rows: count('added-position-deletes') - count('removed-position-deletes'),
    files: Number(count('added-delete-files')),
  }
}

/**
 * Files of a long round are referenced by nothing until it commits, so an orphan removal with a short
 * age may have taken them.
 * @throws SluiceError COMMIT_STALE naming the first that is gone
 */
async function requireFiles(
  plan: RoundPlan,
  results: readonly SplitResult[],
  { store, clock }: LakeCommitterPorts,
): Promise<void> {
  if (store === undefined || clock.monotonic() - contextOf(plan).plannedAt < oldRoundMs) return
  for (const file of results.flatMap((result) => result.files)) {
    if ((await store.size(file.location)) === file.bytes) continue
    throw new SluiceError(
      'COMMIT_STALE',
      `${plan.table.name}: ${file.location} is gone, and its round is not committed yet`,
      {
        details: { table: plan.table.name, file: file.location },
        fix: 'let the orphan removal of other tools spare younger files, then run again',
      },
    )
  }
}

/** Buckets that moved. A bucket that read nothing keeps its old end and stays out of the commit. */
function rangesOf(plan: RoundPlan, results: readonly SplitResult[]): readonly CommitRange[] {
  const splits = new Map(plan.splits.map((split) => [split.bucket, split]))
  const ranges: CommitRange[] = []
  for (const result of results) {
    const split = splits.get(result.bucket)
    check(split !== undefined, 'a result belongs to a split of its round')
    check(
      result.start === split.start && result.end <= split.stop,
      'a result is a prefix of its split',
    )
    check(
      result.touched !== undefined || BigInt(result.rows) === result.end - result.start,
      'a result of a log has one row for each offset',
    )
    if (result.end === result.start && result.isSnapshot !== true) continue
    ranges.push({
      bucket: result.bucket,
      start: result.start,
      end: result.end,
      isFirst: split.isFirst,
    })
  }
  return ranges
}

/** @throws SluiceError INVARIANT_BROKEN when the plan is not from this planner. */
export function contextOf(plan: RoundPlan): PlanContext {
  check(isPlanContext(plan.context), 'a plan comes back as the planner made it')
  return plan.context
}

function isPlanContext(value: unknown): value is PlanContext {
  return typeof value === 'object' && value !== null && 'held' in value && 'version' in value
}
