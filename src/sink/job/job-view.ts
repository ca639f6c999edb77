import type { TableStatus } from '../../coordinator/protocol.ts'
import type { Millis } from '../../core/ids.ts'
import { type RoundKey, roundKey } from '../round/round-key.ts'
import { readersOf, type SplitBoard } from '../round/split-board.ts'
import type { RoundReport } from './events.ts'

export type TableView = TableStatus & {
  /** Of the round that runs; absent when there is none or it is being planned. */
  readonly splits?: { readonly done: number; readonly running: number; readonly all: number }
  /** Until the next round is due; absent when no timer runs. */
  readonly dueInMs?: number
}

/** A picture of the job at one moment. */
export type JobView = {
  /** On the monotonic clock, as is `heardAt`. */
  readonly now: Millis
  /** When the coordinator answered last. */
  readonly heardAt: Millis | undefined
  readonly phase: 'running' | 'stopping' | 'ended'
  readonly tables: readonly TableView[]
  /** Which table each reader reads, by number of the reader. */
  readonly readers: readonly (string | undefined)[]
  /** The newest commits in order of completion, at most `commitsMax`. */
  readonly commits: readonly RoundReport[]
}

export const commitsMax = 100

export function viewJob(
  tables: readonly TableStatus[],
  board: SplitBoard,
  rest: Pick<JobView, 'now' | 'heardAt' | 'phase' | 'commits'>,
): JobView {
  return {
    ...rest,
    tables: tables.map((status) => viewTable(status, board, rest.now)),
    readers: board.readers.map((held) =>
      held === undefined ? undefined : nameOf(board, held.key, tables),
    ),
  }
}

function viewTable(status: TableStatus, board: SplitBoard, now: Millis): TableView {
  const due = status.dueAt === undefined ? {} : { dueInMs: Math.max(0, status.dueAt - now) }
  const key = roundKey(status)
  const round = board.rounds.get(key)
  if (round === undefined) return { ...status, ...due }
  const all = round.plan.splits.length
  const running = readersOf(board, key).length
  return { ...status, ...due, splits: { done: round.results.length, running, all } }
}

function nameOf(board: SplitBoard, key: RoundKey, tables: readonly TableStatus[]): string {
  const round = board.rounds.get(key)
  if (round !== undefined) return round.plan.table.name
  // The round is given up, and its reader has not ended yet.
  const id = key.slice(0, key.indexOf('/'))
  return tables.find((status) => String(status.table) === id)?.name ?? id
}
