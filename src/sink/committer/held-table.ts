import type { DeleteFile, LakeTable, LiveDelete, LoadedTable } from '../../catalog/ports.ts'
import {
  type CommitId,
  type Incarnation,
  incarnation,
  type TableId,
  type Epoch,
} from '../../core/ids.ts'
import type { SplitResult } from '../ports.ts'
import type { Ledger } from './ledger.ts'
import type { ReadVersion } from './progress.ts'
import type { Token } from './token.ts'

/**
 * What this process knows about a table it writes. Nothing here steers a round: progress is read
 * from the lake each time. It only says which claims are our own.
 */
export type HeldTable = {
  readonly id: TableId
  readonly lake: LakeTable
  readonly sourceId: string
  /** Of the table that was taken over; one made anew under its name is another. */
  readonly tableUuid: string
  /** Claimed by our first commit or fence; two processes that read the same highest token settle it
   *  by the swap. */
  readonly incarnation: Incarnation
  /** Commits drawn by this process. */
  readonly drawn: Set<CommitId>
  /** Newest own commit in the lake when the source was resumed from it; undefined if there was none. */
  readonly resumedFrom: CommitId | undefined
  /** Own commits that this process knows to be in the lake, in their order. */
  readonly landed: CommitId[]
  /** Of a primary-key table: how a round replaces the rows that the lake has. */
  readonly upserts?: Upserts | undefined
  /** The holder before us may still be writing, so our first round begins with a fence. */
  fenceFirst: boolean
}

/** What the commit of a round needs to know of the rows it replaces. */
export interface Upserts {
  /** Writes the deletes of a round as they are on this very version. Asked for every attempt. */
  deletesOf(
    table: LoadedTable,
    results: readonly SplitResult[],
  ): Promise<{
    readonly deletes: readonly DeleteFile[]
    readonly droppedDeletes: readonly LiveDelete[]
  }>
  /** Told that a round landed. Never throws: what it misses is read from the lake later. */
  applied(landed: LoadedTable, results: readonly SplitResult[]): Promise<void>
}

/** Takes a table over from what `version` shows: the newest process gets the highest token. */
export function holdTable(
  id: TableId,
  lake: LakeTable,
  sourceId: string,
  version: ReadVersion,
  upserts?: Upserts,
): HeldTable {
  const ledger = ledgerOf(version)
  return {
    id,
    lake,
    sourceId,
    tableUuid: version.table.uuid,
    incarnation: incarnation((version.claim?.token.incarnation ?? 0) + 1),
    drawn: new Set(),
    resumedFrom: ledger?.commit,
    landed: [],
    upserts,
    fenceFirst: version.claim !== undefined && !isFinished(version),
  }
}

/** The commit that the log of this process goes on from; undefined before the first one. */
export function followedBy(held: HeldTable): CommitId | undefined {
  return held.landed.at(-1) ?? held.resumedFrom
}

export function ledgerOf(version: ReadVersion): Ledger | undefined {
  return version.progress.kind === 'found' ? version.progress.ledger : undefined
}

/** The highest claim is of a holder that said it would not write again. */
function isFinished(version: ReadVersion): boolean {
  const ledger = ledgerOf(version)
  return ledger !== undefined && ledger.final && ledger.commit === version.claim?.commit
}

/**
 * The token of one assignment. The coordinator of this process counts its lives from 1; a later life
 * starts its epochs anew, so it has to outrank the one before (I-10, I-11).
 */
export function tokenFor(
  held: HeldTable,
  { incarnation: life, epoch }: { readonly incarnation: Incarnation; readonly epoch: Epoch },
): Token {
  return { generation: 0, incarnation: incarnation(held.incarnation + life - 1), epoch }
}
