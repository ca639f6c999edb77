import type { LakeTable, LoadedTable, SnapshotEntry } from '../catalog/ports.ts'
import { isSluiceError, type SluiceError } from '../core/errors.ts'
import type { Bucket, SnapshotId } from '../core/ids.ts'
import { unreachable } from '../core/never.ts'
import type { Ledger } from '../sink/committer/ledger.ts'
import { findOwn, lineage, summaryKeys } from '../sink/committer/lineage.ts'
import { type Proof, prove, type ProgressCopy, readCopy } from '../sink/committer/progress-copy.ts'
import { interpretVersion, type ReadVersion } from '../sink/committer/progress.ts'
import type { TokenClaim } from '../sink/committer/token.ts'
import type { BucketEnds, InputsProgress } from '../source/ports.ts'

/** What `sluice tier` would go by. */
export type ProgressVerdict =
  | { readonly kind: 'found'; readonly by: 'lineage' | Proof }
  /** Found below: the branch went back from a later snapshot of ours. */
  | { readonly kind: 'rolled-back'; readonly from: bigint }
  | { readonly kind: 'fresh' }
  /** PROGRESS_LOST, or TABLE_REPLACED. */
  | { readonly kind: 'lost' | 'replaced'; readonly reason: string; readonly error: SluiceError }

/** What lineage, properties and rows of one version of a table say about progress, side by side. */
export type ProgressReport = {
  readonly uuid: string
  readonly head: SnapshotId | undefined
  readonly bucketCount: number
  readonly verdict: ProgressVerdict
  /** What is gone by; undefined when it is fresh or lost. */
  readonly ledger: Ledger | undefined
  /** The highest token ever written. */
  readonly claim: TokenClaim | undefined
  /** The newest snapshot of ours below the head. */
  readonly own: SnapshotEntry | undefined
  /** Snapshots of others above it. */
  readonly foreign: readonly SnapshotEntry[]
  /** The parent at which the history ends although it goes on. */
  readonly missing: SnapshotId | undefined
  readonly copy: (ProgressCopy & { readonly proof: Proof | undefined }) | undefined
  /** Where the rows of each bucket end; undefined when a file does not say. */
  readonly rows: ReadonlyMap<Bucket, bigint> | undefined
  /** Those that a run goes on with, or that the property's copy still has. */
  readonly inputs: InputsProgress
}

/**
 * Loads the newest version and gathers all that can be known of its progress.
 * @throws SluiceError TABLE_EXISTS when another source feeds the table; DATA_CORRUPT
 */
export async function progressReport(lake: LakeTable, source: string): Promise<ProgressReport> {
  const table = await lake.load()
  const finding = findOwn(table, source)
  const missing = finding.kind === 'lost' ? finding.missing : undefined
  const rows = await lake.dataEnds(table)
  const copy = readCopy(table)
  const read = await interpreted(lake, table, source)
  const proof = copy === undefined ? undefined : prove(copy, missing, rows)
  const verdict: ProgressVerdict = isSluiceError(read)
    ? { kind: 'replaced', reason: 'other-table', error: read }
    : verdictOf(read, proof)
  const ledger =
    isSluiceError(read) || read.progress.kind !== 'found' ? undefined : read.progress.ledger
  return {
    uuid: table.uuid,
    head: table.head,
    bucketCount: table.bucketCount,
    verdict,
    ledger,
    claim: isSluiceError(read) ? undefined : read.claim,
    own: finding.kind === 'found' ? finding.snapshot : undefined,
    foreign: foreignSnapshots(table),
    missing,
    copy: copy === undefined ? undefined : { ...copy, proof },
    rows,
    inputs: ledger?.inputs ?? copy?.ledger?.inputs ?? new Map(),
  }
}

/** Snapshots of other writers between the head and our newest one, or the end of the history. */
export function foreignSnapshots(table: LoadedTable): readonly SnapshotEntry[] {
  const found: SnapshotEntry[] = []
  for (const each of lineage(table)) {
    if (each.summary.has(summaryKeys.commitId)) break
    found.push(each)
  }
  return found
}

/** The ends that the lineage itself gives, whatever the property says. */
export function lineageEnds(report: ProgressReport): BucketEnds | undefined {
  if (report.own === undefined || report.ledger === undefined) return undefined
  return new Map([...report.ledger.buckets].map(([each, { end }]) => [each, end]))
}

async function interpreted(
  lake: LakeTable,
  table: LoadedTable,
  source: string,
): Promise<ReadVersion | SluiceError> {
  try {
    return await interpretVersion(lake, table, source)
  } catch (error) {
    if (isSluiceError(error, 'TABLE_REPLACED')) return error
    throw error
  }
}

function verdictOf({ progress }: ReadVersion, proof: Proof | undefined): ProgressVerdict {
  switch (progress.kind) {
    case 'fresh':
      return { kind: 'fresh' }
    case 'lost': {
      const { error, reason } = progress
      return { kind: error.code === 'TABLE_REPLACED' ? 'replaced' : 'lost', reason, error }
    }
    case 'found':
      if (progress.rolledBackFrom !== undefined) {
        return { kind: 'rolled-back', from: progress.rolledBackFrom }
      }
      return { kind: 'found', by: progress.snapshot === undefined ? (proof ?? 'rows') : 'lineage' }
    default:
      return unreachable(progress)
  }
}
