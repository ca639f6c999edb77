import type { SluiceError } from '../../core/errors.ts'
import type { Bucket, CommitId, Offset, SnapshotId } from '../../core/ids.ts'
import { type LostReason, placeOfCommit, reachesBack } from './lineage.ts'
import type { ReadVersion } from './progress.ts'
import { compareTokens, type Token, type TokenClaim } from './token.ts'

/** One bucket's part of a round. An absent end in the lake is `isFirst`, never a start of 0. */
export type CommitRange = {
  readonly bucket: Bucket
  readonly start: Offset
  readonly end: Offset
  readonly isFirst: boolean
}

/** What a commit claims, fixed for all its attempts. */
export type CommitClaim = {
  readonly commit: CommitId
  readonly snapshotId: SnapshotId
  readonly token: Token
  /** Of the version the round was planned on. */
  readonly tableUuid: string
  readonly planHead: SnapshotId | undefined
  readonly schemaId: number
  readonly specId: number
  readonly ranges: readonly CommitRange[]
  /**
   * The newest own commit of the version the round was planned on. The ledger of the round is made
   * for that one: positions of inputs are a matter of all buckets, also of those it does not move.
   * Absent for a commit without rows, which may follow any.
   */
  readonly follows?: CommitId | 'nothing'
  /**
   * The round replaces rows that the version it was planned on has, so that one must still be below
   * the head: after a rollback other rows count.
   */
  readonly replacesRows?: true
  /**
   * An operator's decision, made on a table whose progress is lost for this reason. What it was
   * decided by was seen on one history, so on another it does not hold.
   */
  readonly decides?: LostReason
  /** Commit ids this process drew under its tokens; an equal token on another id is a rival. */
  readonly drawn: ReadonlySet<CommitId>
}

export type Verdict =
  | { readonly kind: 'apply' }
  | { readonly kind: 'committed'; readonly snapshotId: SnapshotId }
  /** It landed, and an operator rolled it away: its files belong to the table's history. */
  | { readonly kind: 'rolled-back'; readonly snapshotId: SnapshotId }
  | { readonly kind: 'replaced'; readonly found: string }
  | { readonly kind: 'lost'; readonly error: SluiceError }
  | { readonly kind: 'fenced'; readonly by: TokenClaim }
  | {
      readonly kind: 'stale'
      readonly bucket: Bucket
      readonly expected: Offset | undefined
      readonly found: Offset | undefined
    }
  /** The newest own commit is not the one the round was planned on: overtaken or rolled back. */
  | { readonly kind: 'overtaken'; readonly by: CommitId | undefined }
  | { readonly kind: 'changed'; readonly what: 'schema' | 'partition spec' | 'history' }

/**
 * Decides, against the very version about to be replaced, whether a commit may be made on it.
 *
 * The order of the questions matters. A commit that landed must say so even if a later holder has
 * since moved the token on: asked the other way round it would be reported as fenced, its files
 * deleted and its rows written twice. Continuity of the ranges is what makes rows appear exactly
 * once; the token saves a fenced holder's work and gives the better message.
 */
export function judge(version: ReadVersion, claim: CommitClaim): Verdict {
  const { table, progress } = version

  const place = placeOfCommit(table, claim.commit, claim.snapshotId)
  if (place === 'lineage') return { kind: 'committed', snapshotId: claim.snapshotId }
  if (place === 'listed') return { kind: 'rolled-back', snapshotId: claim.snapshotId }

  if (table.uuid !== claim.tableUuid) return { kind: 'replaced', found: table.uuid }
  if (table.head === undefined && claim.planHead !== undefined) {
    return { kind: 'replaced', found: 'a table without a branch' }
  }

  if (claim.decides !== undefined) {
    const isSame = progress.kind === 'lost' && progress.reason === claim.decides
    if (!isSame || table.head !== claim.planHead) return { kind: 'changed', what: 'history' }
  } else if (progress.kind === 'lost') return { kind: 'lost', error: progress.error }

  const rival = rivalOf(version, claim)
  if (rival !== undefined) return { kind: 'fenced', by: rival }

  const buckets = progress.kind === 'found' ? progress.ledger.buckets : undefined
  for (const range of claim.ranges) {
    const found = buckets?.get(range.bucket)?.end
    const expected = range.isFirst ? undefined : range.start
    if (found !== expected || range.end < range.start) {
      return { kind: 'stale', bucket: range.bucket, expected, found }
    }
  }

  const newest = progress.kind === 'found' ? progress.ledger.commit : undefined
  if (claim.follows !== undefined && claim.follows !== (newest ?? 'nothing')) {
    return { kind: 'overtaken', by: newest }
  }

  if (claim.replacesRows === true && !reachesBack(table, claim.planHead)) {
    return { kind: 'changed', what: 'history' }
  }

  if (table.schemaId !== claim.schemaId) return { kind: 'changed', what: 'schema' }
  if (table.specId !== claim.specId) return { kind: 'changed', what: 'partition spec' }
  return { kind: 'apply' }
}

/** The claim that outranks ours, or equals it on a commit that this process did not draw. */
export function rivalOf(
  version: ReadVersion,
  claim: Pick<CommitClaim, 'token' | 'drawn'>,
): TokenClaim | undefined {
  const highest = version.claim
  if (highest === undefined) return undefined
  const order = compareTokens(highest.token, claim.token)
  if (order > 0) return highest
  return order === 0 && !claim.drawn.has(highest.commit) ? highest : undefined
}
