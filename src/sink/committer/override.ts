import type { LakeTable, LoadedTable } from '../../catalog/ports.ts'
import { SluiceError } from '../../core/errors.ts'
import { type Bucket, epoch, offset, type SnapshotId, tableId } from '../../core/ids.ts'
import { unreachable } from '../../core/never.ts'
import type { IdSource } from '../../core/ports.ts'
import type { BucketEnds, InputsProgress } from '../../source/ports.ts'
import { drawCommit, ledgerChange, snapshotOf } from './changes.ts'
import { type CommitPorts, commit } from './commit.ts'
import { type HeldTable, holdTable } from './held-table.ts'
import type { BucketProgress, Gap, Ledger } from './ledger.ts'
import { summaryKeys } from './lineage.ts'
import { type ProgressCopy, readCopy } from './progress-copy.ts'
import { type ReadVersion, readVersion } from './progress.ts'

/** How far a table is, decided by an operator where the lake cannot prove it. */
export type Decision = {
  readonly ends: BucketEnds
  /** Who decided, and why: both go into the snapshot's summary. */
  readonly by: string
  readonly reason: string
  /** Decides against what the rows say. */
  readonly force: boolean
}

export type RecordedDecision = {
  readonly snapshotId: SnapshotId
  /** Inputs that go on where they were; the others are taken as new. */
  readonly inputs: InputsProgress
  /** Offsets declared to be in no row. */
  readonly gaps: readonly Gap[]
}

/**
 * Records an operator's decision after `PROGRESS_LOST`, as a snapshot without rows under a new token.
 * It is a commit like any other: judged, bound to the version it was checked on, and recognized when
 * its reply was lost.
 * @throws SluiceError CONFIG_INVALID when progress is not lost, a bucket with rows is left out, or the
 *   rows say otherwise; and the errors of a commit
 */
export async function recordDecision(
  lake: LakeTable,
  source: string,
  decision: Decision,
  ports: CommitPorts & { readonly ids: IdSource },
): Promise<RecordedDecision> {
  const name = lake.name.join('.')
  const version = await readVersion(lake, source)
  const { progress, table } = version
  if (progress.kind !== 'lost') {
    throw new SluiceError('CONFIG_INVALID', `${name}: its progress is known, so none can be set`, {
      details: { table: name, progress: progress.kind },
      fix: `sluice tier goes on by itself; to go back, roll the branch back`,
    })
  }
  const rows = await lake.dataEnds(table)
  checkDecision(name, decision, rows, table.bucketCount)
  const held = holdTable(tableId(0n), lake, source, version)
  const id = drawCommit(ports.ids)
  const ledger = ledgerOfDecision(version, held, { decision, commit: id, rows })
  const end = await commit(
    {
      held,
      claim: {
        commit: id,
        snapshotId: snapshotOf(id),
        token: ledger.token,
        tableUuid: table.uuid,
        planHead: table.head,
        schemaId: table.schemaId,
        specId: table.specId,
        ranges: [],
        decides: progress.reason,
        drawn: held.drawn,
      },
      planned: version,
      build: (base) =>
        ledgerChange(base, ledger, {
          files: [],
          forceFinished: false,
          notes: new Map([
            [summaryKeys.by, decision.by],
            [summaryKeys.reason, decision.reason],
          ]),
        }),
    },
    ports,
  )
  switch (end.kind) {
    case 'committed':
      return { snapshotId: snapshotOf(id), inputs: ledger.inputs, gaps: ledger.gaps }
    case 'rejected':
    case 'unknown':
      throw end.error
    default:
      return unreachable(end)
  }
}

/**
 * Holds a decision against the rows. What is below the end of a bucket is never read again, and what
 * is above it is read once more, so without force an end must be exactly where the rows end.
 * @param rows One more than the highest offset in each bucket; undefined when some file does not say.
 */
export function checkDecision(
  name: string,
  decision: Pick<Decision, 'ends' | 'force'>,
  rows: ReadonlyMap<Bucket, bigint> | undefined,
  bucketCount: number,
): void {
  const { ends, force } = decision
  const refuse = (message: string, fix: string): never => {
    throw new SluiceError('CONFIG_INVALID', `${name}: ${message}`, {
      details: { table: name },
      fix,
    })
  }
  for (const each of ends.keys()) {
    if (each < bucketCount) continue
    refuse(`there is no bucket ${String(each)}`, `buckets are 0 to ${String(bucketCount - 1)}`)
  }
  if (rows === undefined) {
    if (!force) refuse('its files do not say how far their rows reach', 'look, then add --force')
    if (ends.size === bucketCount) return
    refuse('its files do not say which buckets have rows', 'set every bucket')
    return
  }
  const missing = [...rows.keys()].filter((each) => !ends.has(each)).sort((a, b) => a - b)
  if (missing.length > 0) {
    const fix = missing.map((each) => `--set ${String(each)}=${String(rows.get(each))}`).join(' ')
    refuse(`bucket ${missing.join(', ')} has rows and is not set`, fix)
  }
  for (const [each, end] of ends) {
    const found = rows.get(each) ?? 0n
    if (force || end === found) continue
    const what =
      end > found
        ? `offsets ${String(found)} to ${String(end - 1n)} are in no row and would never be`
        : `offsets ${String(end)} to ${String(found - 1n)} are in rows and would be added again`
    refuse(
      `bucket ${String(each)} set to ${String(end)}, but ${what}`,
      'correct it, or add --force',
    )
  }
}

function ledgerOfDecision(
  version: ReadVersion,
  held: HeldTable,
  made: {
    readonly decision: Decision
    readonly commit: Ledger['commit']
    readonly rows: ReadonlyMap<Bucket, bigint> | undefined
  },
): Ledger {
  const { decision, commit: id, rows } = made
  const before = usableLedger(version.table)
  const buckets = new Map<Bucket, BucketProgress>()
  for (const [each, end] of decision.ends) {
    const origin = before?.buckets.get(each)?.origin ?? offset(0n)
    buckets.set(each, { origin: origin < end ? origin : end, end })
  }
  const holes = [...decision.ends].flatMap(([each, end]): Gap[] => {
    const from = rows?.get(each) ?? buckets.get(each)?.origin ?? 0n
    if (rows === undefined || end <= from) return []
    const gap = { bucket: each, from: offset(from), to: end }
    return [{ ...gap, reason: decision.reason, by: decision.by }]
  })
  return {
    source: held.sourceId,
    table: version.table.uuid,
    kind: 'override',
    token: {
      generation: version.claim?.token.generation ?? 0,
      incarnation: held.incarnation,
      epoch: epoch(0),
    },
    round: before?.round ?? 0,
    commit: id,
    final: true,
    buckets,
    gaps: [...(before?.gaps ?? []), ...holes],
    inputs: carriedInputs(version.table, decision.ends),
  }
}

/**
 * Positions of inputs belong to the ends they were recorded with: with others, records between the
 * two would be skipped or doubled without a word.
 */
export function carriedInputs(table: LoadedTable, ends: BucketEnds): InputsProgress {
  const copy = readCopy(table)
  if (copy?.ends === undefined) return new Map()
  const isSame =
    copy.ends.size === ends.size && [...copy.ends].every(([each, end]) => ends.get(each) === end)
  return isSame ? (usableLedger(table)?.inputs ?? new Map()) : new Map()
}

/** The whole ledger of the property's copy, if it is there and of this table. */
function usableLedger(table: LoadedTable): ProgressCopy['ledger'] {
  const ledger = readCopy(table)?.ledger
  return ledger?.table === table.uuid ? ledger : undefined
}
