import type { StateName } from '../../coordinator/table-state.ts'
import type { SluiceError } from '../../core/errors.ts'
import type { CommitId, Epoch, Incarnation, Millis, SnapshotId } from '../../core/ids.ts'

/** One round that is in the lake. */
export type RoundReport = {
  readonly table: string
  readonly incarnation: Incarnation
  readonly epoch: Epoch
  readonly round: number
  readonly snapshotId: SnapshotId
  readonly rows: bigint
  /** Rows of the lake that the round took away, those it replaced included. */
  readonly rowsDeleted: bigint
  readonly deleteFiles: number
  /** The round was cut at its ceiling, or by a stop of the job. */
  readonly forceFinished: boolean
  /** From assignment to commit. */
  readonly seconds: number
  readonly files: number
  readonly bytes: bigint
  /** Requests the commit took; the reply of one may have been lost. */
  readonly attempts: number
  readonly commitId?: CommitId
  /** Wall time. */
  readonly committedAt: Millis
}

/** What a job tells while it runs. The failure of a table is an event; the others go on. */
export type TieringEvent =
  | {
      readonly event: 'state'
      readonly table: string
      readonly state: StateName
      readonly incarnation: Incarnation
      readonly epoch: Epoch
    }
  | ({ readonly event: 'committed' } & RoundReport)
  /** A round is given up. It may be in the lake all the same if `error.effect` is `unknown`. */
  | {
      readonly event: 'rejected'
      readonly table: string
      readonly incarnation: Incarnation
      readonly epoch: Epoch
      readonly error: SluiceError
    }
