import type { SnapshotEntry } from '../../src/catalog/ports.ts'
import { commitId, offset, snapshotId } from '../../src/core/ids.ts'
import { bucket } from '../../src/core/ids.ts'
import { type CommitClaim, judge } from '../../src/sink/committer/judge.ts'
import { decodeLedger } from '../../src/sink/committer/ledger.ts'
import { propertyKeys, summaryKeys } from '../../src/sink/committer/lineage.ts'
import type { ReadVersion } from '../../src/sink/committer/progress.ts'
import { soundReader } from './catalog-fold.ts'
import type { Mutation } from './protocol-model.ts'

const stranger = { commit: commitId('9'.repeat(32)), snapshotId: snapshotId(9n) }

function withoutFollows(claim: CommitClaim): CommitClaim {
  const { follows, ...rest } = claim
  return follows === undefined ? claim : rest
}

/** Neither where a round begins nor who holds the table is asked. */
export const noContinuity: Mutation = {
  judge: (version, claim) =>
    judge({ ...version, claim: undefined }, { ...withoutFollows(claim), ranges: [] }),
}

export const noOwnId: Mutation = {
  judge: (version, claim) => judge(version, { ...claim, ...stranger }),
}

export const tokenBeforeId: Mutation = {
  judge: (version, claim) => {
    const verdict = judge(version, { ...claim, ...stranger })
    return verdict.kind === 'fenced' ? verdict : judge(version, claim)
  },
}

/** A snapshot that was rolled away is not looked for in the list. */
export const listNotAsked: Mutation = {
  judge: (version, claim) => {
    const verdict = judge(version, claim)
    return verdict.kind === 'rolled-back'
      ? judge(version, { ...claim, snapshotId: stranger.snapshotId })
      : verdict
  },
}

/** A round may follow any commit as long as its own buckets fit. */
export const followsNotAsked: Mutation = {
  judge: (version, claim) => judge(version, withoutFollows(claim)),
}

export const endsFromProperties: Mutation = {
  read: (table) => {
    const version = soundReader(table)
    const text = table.properties.get(propertyKeys.progress)
    if (text === undefined || version.progress.kind !== 'found') return version
    const copy = JSON.parse(text) as { readonly ends: readonly (readonly [null, number, string])[] }
    const buckets = new Map(
      copy.ends.map(([, id, end]) => [
        bucket(id),
        { origin: offset(0n), end: offset(BigInt(end)) },
      ]),
    )
    const { progress } = version
    return { ...version, progress: { ...progress, ledger: { ...progress.ledger, buckets } } }
  },
}

export const newestListed: Mutation = {
  read: (table) => {
    const own = [...table.snapshots.values()].filter((each) =>
      each.summary.has(summaryKeys.commitId),
    )
    const newest = own.reduce<SnapshotEntry | undefined>(
      (best, each) => (best === undefined || each.sequence > best.sequence ? each : best),
      undefined,
    )
    const version = soundReader(table)
    if (newest === undefined) return version
    const ledger = decodeLedger(newest.summary.get(summaryKeys.ledger) ?? '', 'model')
    return { ...version, progress: { kind: 'found', ledger, snapshot: newest } }
  },
}

export const absentIsZero: Mutation = {
  read: (table) => {
    const version = soundReader(table)
    return version.progress.kind === 'lost' ? { ...version, progress: { kind: 'fresh' } } : version
  },
}

export const tokenFromLineage: Mutation = {
  read: (table) => {
    const version: ReadVersion = soundReader(table)
    const { progress } = version
    if (progress.kind !== 'found') return { ...version, claim: undefined }
    const { token, commit } = progress.ledger
    return { ...version, claim: { token, commit } }
  },
}
