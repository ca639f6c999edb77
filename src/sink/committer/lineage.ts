import type { LoadedTable, SnapshotEntry } from '../../catalog/ports.ts'
import type { CommitId, SnapshotId } from '../../core/ids.ts'

/** Keys of a snapshot summary and of table properties that Sluice writes. Stable. */
export const summaryKeys = {
  commitId: 'sluice.commit-id',
  kind: 'sluice.kind',
  token: 'sluice.token',
  round: 'sluice.round',
  source: 'sluice.source',
  ledger: 'sluice.ledger',
  forceFinished: 'sluice.force-finished',
  version: 'sluice.version',
  /** Of an operator's decision: who made it, and why. */
  by: 'sluice.by',
  reason: 'sluice.reason',
  commitUser: 'commit-user',
} as const
export const propertyKeys = { token: 'sluice.token', progress: 'sluice.progress' } as const

/** Why the lineage does not say how far the table is. */
export type LostReason = 'branch-missing' | 'chain-broken' | 'cherry-picked' | 'before-first-commit'

export type LineageFinding =
  /** The newest own snapshot: authoritative. */
  | { readonly kind: 'found'; readonly snapshot: SnapshotEntry }
  /** Never tiered here. */
  | { readonly kind: 'fresh' }
  /** An own-looking snapshot of another source: this table is fed by somebody else. */
  | { readonly kind: 'other-source'; readonly source: string }
  | {
      readonly kind: 'lost'
      readonly reason: LostReason
      /** The parent that is named and not listed. */
      readonly missing?: SnapshotId
    }

/** Head, its parent, and so on, as far as snapshots are listed. */
export function* lineage(table: LoadedTable): Iterable<SnapshotEntry> {
  let at = table.head
  while (at !== undefined) {
    const snapshot = table.snapshots.get(at)
    if (snapshot === undefined) return
    yield snapshot
    at = snapshot.parent
  }
}

/**
 * Whether the listed lineage goes back as far as `base`, or to its root. Only then does a commit that
 * was put on `base` and is not found stand for one that did not land: history can be expired.
 */
export function reachesBack(table: LoadedTable, base: SnapshotId | undefined): boolean {
  let last: SnapshotEntry | undefined
  for (const each of lineage(table)) {
    if (each.id === base || each.parent === base) return true
    last = each
  }
  return last === undefined ? base === undefined : last.parent === undefined
}

/**
 * Walks from the head to the newest snapshot of ours for `source`. Ends come from the lineage and
 * from nothing else: a rollback moves the branch and leaves properties and the snapshot list behind.
 */
export function findOwn(table: LoadedTable, source: string): LineageFinding {
  const hasCopy = table.properties.has(propertyKeys.progress)
  if (table.head === undefined) {
    return hasCopy ? { kind: 'lost', reason: 'branch-missing' } : { kind: 'fresh' }
  }
  let at: SnapshotId | undefined = table.head
  while (at !== undefined) {
    const snapshot = table.snapshots.get(at)
    if (snapshot === undefined) return { kind: 'lost', reason: 'chain-broken', missing: at }
    if (snapshot.summary.has(summaryKeys.commitId)) {
      const fedBy = snapshot.summary.get(summaryKeys.source) ?? ''
      if (fedBy === source) return { kind: 'found', snapshot }
      return { kind: 'other-source', source: fedBy }
    }
    if (isPickOfOwn(table, snapshot)) return { kind: 'lost', reason: 'cherry-picked' }
    at = snapshot.parent
  }
  return hasCopy ? { kind: 'lost', reason: 'before-first-commit' } : { kind: 'fresh' }
}

/** Where a commit is: below the head, only listed (rolled back), or nowhere. */
export function placeOfCommit(
  table: LoadedTable,
  commit: CommitId,
  snapshot: SnapshotId,
): 'lineage' | 'listed' | 'absent' {
  for (const each of lineage(table)) {
    if (each.summary.get(summaryKeys.commitId) === commit) return 'lineage'
  }
  return table.snapshots.has(snapshot) ? 'listed' : 'absent'
}

/** A cherry-pick carries rows of ours without our ledger. */
function isPickOfOwn(table: LoadedTable, snapshot: SnapshotEntry): boolean {
  const picked = snapshot.summary.get('source-snapshot-id')
  if (picked === undefined || !/^\d{1,19}$/.test(picked)) return false
  for (const each of table.snapshots.values()) {
    if (String(each.id) === picked) return each.summary.has(summaryKeys.commitId)
  }
  return false
}
