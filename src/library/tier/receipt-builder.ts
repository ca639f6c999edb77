import type { InputReport, Receipt, RoundReport } from './tier-types.ts'
import type { RoundReport as JobRound } from '../../sink/job/events.ts'
import type { SessionTable } from '../tiering-session.ts'
import type { LoadedTable } from '../../catalog/ports.ts'
import type { BucketEnds } from '../../source/ports.ts'

/** Collects what a run did, for its receipt. */
export class ReceiptBuilder {
  readonly notes: string[] = []
  readonly inputs: InputReport[] = []
  readonly rounds: RoundReport[] = []
  created = false
  files = 0
  bytes = 0
  rows = 0n
  rowsDeleted = 0n
  deleteFiles = 0
  #snapshotId: bigint | undefined

  addRound(report: JobRound): RoundReport {
    const round: RoundReport = {
      round: report.round,
      incarnation: report.incarnation,
      epoch: report.epoch,
      snapshotId: report.snapshotId,
      commitId: report.commitId ?? '',
      rows: report.rows,
      rowsDeleted: report.rowsDeleted,
      deleteFiles: report.deleteFiles,
      forceFinished: report.forceFinished,
      attempts: report.attempts,
      outcome: 'committed',
      seconds: report.seconds,
    }
    this.rounds.push(round)
    this.files += report.files
    this.bytes += Number(report.bytes)
    this.rows += report.rows
    this.rowsDeleted += report.rowsDeleted
    this.deleteFiles += report.deleteFiles
    this.#snapshotId = report.snapshotId
    return round
  }

  build(at: {
    readonly opened: SessionTable
    readonly name: string
    readonly warehouse: string
    readonly ends: BucketEnds
    readonly seconds: number
    readonly peakMemoryBytes: number
    readonly quarantined: number
    readonly quarantineFolder: string
    readonly error: Error | undefined
  }): Receipt {
    const { opened } = at
    const before = opened.resumed?.buckets
    const { table } = opened.version
    return {
      ok: at.error === undefined,
      table: at.name,
      kind: opened.table.kind,
      tableUuid: table.uuid,
      created: this.created,
      warehouse: at.warehouse,
      snapshotId: this.#snapshotId ?? table.head,
      rows: this.rows,
      rowsBefore: recordsBefore(opened),
      rowsDeleted: this.rowsDeleted,
      quarantined: at.quarantined,
      quarantineFile: at.quarantined === 0 ? undefined : at.quarantineFolder,
      inputs: this.inputs,
      buckets: [...at.ends]
        .sort(([a], [b]) => a - b)
        .map(([bucket, end]) => ({ bucket, start: before?.get(bucket)?.end ?? 0n, end })),
      files: this.files,
      deleteFiles: this.deleteFiles,
      bytes: this.bytes,
      inputBytes: this.inputs.reduce((sum, input) => sum + input.bytes, 0),
      rounds: this.rounds,
      seconds: at.seconds,
      peakMemoryBytes: at.peakMemoryBytes,
      notes: this.notes,
      error: at.error,
    }
  }
}

/** What the lake held when it was opened: records of a log, live rows of a primary-key table. */
export function recordsBefore({ table, resumed, version }: SessionTable): bigint {
  if (table.kind === 'primary-key') return liveRows(version.table)
  let records = 0n
  for (const { origin, end } of resumed?.buckets.values() ?? []) records += end - origin
  return records
}

function liveRows({ head, snapshots }: LoadedTable): bigint {
  const summary = head === undefined ? undefined : snapshots.get(head)?.summary
  const total = (key: string): bigint => {
    const text = summary?.get(key) ?? ''
    return /^\d{1,18}$/.test(text) ? BigInt(text) : 0n
  }
  return total('total-records') - total('total-position-deletes')
}
