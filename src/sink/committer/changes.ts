import { createHash } from 'node:crypto'
import type { DataFile, DeleteFile, LiveDelete, TableChange } from '../../catalog/ports.ts'
import {
  type Bucket,
  type CommitId,
  commitId,
  type SnapshotId,
  snapshotId,
} from '../../core/ids.ts'
import type { IdSource } from '../../core/ports.ts'
import type { BucketEnds, InputsProgress } from '../../source/ports.ts'
import { ledgerOf } from './held-table.ts'
import type { CommitRange } from './judge.ts'
import { type BucketProgress, encodeLedger, type Ledger } from './ledger.ts'
import { propertyKeys, summaryKeys } from './lineage.ts'
import { encodeCopy } from './progress-copy.ts'
import type { ReadVersion } from './progress.ts'
import { encodeClaim, type Token } from './token.ts'

/** A longer ledger moves from the summary into the header of the manifest list. */
const inlineBytesMax = 4096

/** The version of this package, written into summaries. */
const version = '0.1.0'

export type RoundChange = {
  readonly commit: CommitId
  readonly token: Token
  readonly source: string
  readonly ranges: readonly CommitRange[]
  readonly files: readonly DataFile[]
  /** Of a primary-key table: rows that are replaced or deleted, derived for the base. */
  readonly deletes?: readonly DeleteFile[]
  readonly droppedDeletes?: readonly LiveDelete[]
  readonly final: boolean
  readonly forceFinished: boolean
  /** How far each input is once the lake holds everything below the given ends. */
  readonly inputs: (ends: BucketEnds) => InputsProgress
}

/** Names one commit: 128 random bits, since tokens can repeat and a derived id with them. */
export function drawCommit(ids: IdSource): CommitId {
  return commitId(ids.bits128())
}

/** 63 bits of the commit's id, so that all attempts of a round carry the same snapshot id. */
export function snapshotOf(commit: CommitId): SnapshotId {
  const bits = BigInt(`0x${commit.slice(0, 16)}`) & (2n ** 63n - 1n)
  return snapshotId(bits === 0n ? 1n : bits)
}

/** Adds the round's files and moves the ends, in one swap on `base`. */
export function roundChange(base: ReadVersion, round: RoundChange): TableChange {
  const previous = ledgerOf(base)
  const buckets = new Map<Bucket, BucketProgress>(previous?.buckets)
  for (const range of round.ranges) {
    const origin = buckets.get(range.bucket)?.origin ?? range.start
    buckets.set(range.bucket, { origin, end: range.end })
  }
  const ends = new Map([...buckets].map(([each, progress]) => [each, progress.end]))
  const ledger: Ledger = {
    source: round.source,
    table: base.table.uuid,
    kind: 'round',
    token: round.token,
    round: (previous?.round ?? 0) + 1,
    commit: round.commit,
    final: round.final,
    buckets,
    gaps: previous?.gaps ?? [],
    inputs: round.inputs(ends),
  }
  return ledgerChange(base, ledger, round)
}

/**
 * A snapshot that carries a ledger, with or without files: an operator's decision, or a sign of life
 * above the commits of others, is an append without files.
 */
export function ledgerChange(
  base: ReadVersion,
  ledger: Ledger,
  added: Pick<RoundChange, 'files' | 'forceFinished' | 'deletes' | 'droppedDeletes'> & {
    /** More of the summary. */
    readonly notes?: ReadonlyMap<string, string>
  },
): TableChange {
  const text = encodeLedger(ledger)
  const isInline = Buffer.byteLength(text) <= inlineBytesMax
  const summary = new Map<string, string>([
    [summaryKeys.commitUser, '__sluice'],
    [summaryKeys.commitId, ledger.commit],
    [summaryKeys.kind, ledger.kind],
    [summaryKeys.token, tokenText(ledger.token)],
    [summaryKeys.round, String(ledger.round)],
    [summaryKeys.source, ledger.source],
    [summaryKeys.ledger, isInline ? text : `manifest-list;sha256=${sha256(text)}`],
    [summaryKeys.version, version],
  ])
  if (added.forceFinished) summary.set(summaryKeys.forceFinished, 'true')
  for (const [key, value] of added.notes ?? []) summary.set(key, value)
  const id = snapshotOf(ledger.commit)
  const { files, deletes = [], droppedDeletes = [] } = added
  return {
    snapshot: {
      id,
      operation: deletes.length === 0 ? 'append' : files.length === 0 ? 'delete' : 'overwrite',
      summary,
      files,
      ...(deletes.length === 0 ? {} : { deletes }),
      ...(droppedDeletes.length === 0 ? {} : { droppedDeletes }),
      ...(isInline ? {} : { headerLedger: text }),
    },
    setProperties: new Map([
      [propertyKeys.token, encodeClaim({ token: ledger.token, commit: ledger.commit })],
      [propertyKeys.progress, encodeCopy(ledger, id, base.table.lastSequence + 1n)],
    ]),
  }
}

/** A new version that only raises the token: every commit bound to an older version now fails. */
export function fenceChange(token: Token, commit: CommitId): TableChange {
  return { setProperties: new Map([[propertyKeys.token, encodeClaim({ token, commit })]]) }
}

function tokenText(token: Token): string {
  return JSON.stringify([token.generation, token.incarnation, token.epoch])
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
