import type { Bucket, Offset } from '../../core/ids.ts'
import { check } from '../../core/never.ts'
import type { Chance } from '../../core/ports.ts'
import type { BucketEnds } from '../../source/ports.ts'
import type { Split, RoundPlan, SplitResult } from '../ports.ts'
import { roundKey, type RoundKey } from './round-key.ts'
import { shuffle } from './shuffle.ts'

/*
 * Which reader reads what. Pure. Splits of all rounds wait in one line; a reader holds one split at
 * a time and takes the next one, of whatever round, when it has none. A round is complete when each
 * of its splits has been read or skipped: that is the barrier of its commit.
 */

export type BoardSplit = { readonly key: RoundKey; readonly split: Split }

export type BoardRound = {
  readonly plan: RoundPlan
  /** Splits that are not read to their end: waiting or in some reader's hands. */
  readonly open: number
  readonly results: readonly SplitResult[]
  /** Its ceiling came before it was complete. Whether something was cut by it: `isForced`. */
  readonly endedEarly: boolean
}

export type SplitBoard = {
  readonly pending: readonly BoardSplit[]
  /** What each reader holds, by number of the reader. */
  readonly readers: readonly (BoardSplit | undefined)[]
  /** Readers without a split, the one that waits longest first. */
  readonly waiting: readonly number[]
  readonly rounds: ReadonlyMap<RoundKey, BoardRound>
}

export type HandOut = { readonly reader: number } & BoardSplit

export function emptyBoard(readers: number): SplitBoard {
  const numbers = Array.from({ length: readers }, (_, reader) => reader)
  return {
    pending: [],
    readers: numbers.map(() => undefined),
    waiting: numbers,
    rounds: new Map(),
  }
}

/** Puts the splits of a round at the end of the line, in an order that chance decides. */
export function addRound(board: SplitBoard, plan: RoundPlan, chance: Chance): SplitBoard {
  const key = roundKey(plan.assignment)
  check(!board.rounds.has(key), `round ${key} is planned once`)
  const round: BoardRound = { plan, open: plan.splits.length, results: [], endedEarly: false }
  const splits = shuffle(plan.splits, chance).map((split) => ({ key, split }))
  return {
    ...board,
    pending: [...board.pending, ...splits],
    rounds: new Map(board.rounds).set(key, round),
  }
}

/** Gives the waiting readers the next splits, first come, first served. */
export function handOut(board: SplitBoard): {
  readonly board: SplitBoard
  readonly started: readonly HandOut[]
} {
  const count = Math.min(board.pending.length, board.waiting.length)
  if (count === 0) return { board, started: [] }
  const readers = [...board.readers]
  const started = board.pending.slice(0, count).flatMap((next, i): HandOut[] => {
    const reader = board.waiting[i]
    if (reader === undefined) return []
    check(readers[reader] === undefined, `reader ${reader} holds one split at a time`)
    readers[reader] = next
    return [{ reader, ...next }]
  })
  return {
    board: {
      ...board,
      readers,
      pending: board.pending.slice(count),
      waiting: board.waiting.slice(count),
    },
    started,
  }
}

/**
 * Takes a reader's split back. The result counts if its round is still on the board, otherwise the
 * round was dropped: `isStale`, and nobody will commit it.
 */
export function takeBack(
  board: SplitBoard,
  reader: number,
  result: SplitResult | undefined,
): { readonly board: SplitBoard; readonly key: RoundKey; readonly isStale: boolean } {
  const held = board.readers[reader]
  check(held !== undefined, `reader ${reader} gives back a split it holds`)
  const { key } = held
  const freed: SplitBoard = {
    ...board,
    readers: board.readers.map((holds, i) => (i === reader ? undefined : holds)),
    waiting: [...board.waiting, reader],
  }
  const round = board.rounds.get(key)
  if (round === undefined || result === undefined) {
    return { board: freed, key, isStale: round === undefined }
  }
  check(
    result.bucket === held.split.bucket && result.start === held.split.start,
    `reader ${reader} answers for the split it holds`,
  )
  const next: BoardRound = {
    ...round,
    open: round.open - 1,
    results: [...round.results, result],
  }
  return { board: { ...freed, rounds: setRound(board, key, next) }, key, isStale: false }
}

/**
 * Ends a round at its ceiling: splits nobody has begun are skipped, the caller tells the readers of
 * the others to stop. A snapshot counts only as a whole, so its splits stay and are read to their
 * end. A round that is complete is not forced.
 */
export function forceRound(board: SplitBoard, key: RoundKey): SplitBoard {
  const round = board.rounds.get(key)
  if (round === undefined || round.open === 0) return board
  const pending = board.pending.filter(
    (waits) => waits.key !== key || waits.split.kind === 'snapshot',
  )
  const skipped = board.pending.length - pending.length
  const next: BoardRound = { ...round, open: round.open - skipped, endedEarly: true }
  return { ...board, pending, rounds: setRound(board, key, next) }
}

/** Forgets a round: what it has read is not committed, and results to come are stale. */
export function dropRound(board: SplitBoard, key: RoundKey): SplitBoard {
  if (!board.rounds.has(key)) return board
  const rounds = new Map(board.rounds)
  rounds.delete(key)
  return { ...board, pending: board.pending.filter((waits) => waits.key !== key), rounds }
}

/** True when every split of the round was read or skipped. */
export function isComplete(board: SplitBoard, key: RoundKey): boolean {
  return board.rounds.get(key)?.open === 0
}

/** True when the ceiling has left something of the plan unread, so that the rest is wanted at once. */
export function isForced(round: BoardRound): boolean {
  const ends = endsAfter(round)
  return round.endedEarly && round.plan.splits.some(({ bucket, stop }) => ends.get(bucket) !== stop)
}

/** A reader waits and no split does: time to ask for another table. */
export function wantsTable(board: SplitBoard): boolean {
  return board.pending.length === 0 && board.waiting.length > 0
}

/** Readers that hold a split of the round. */
export function readersOf(board: SplitBoard, key: RoundKey): readonly number[] {
  return board.readers.flatMap((held, reader) => (held?.key === key ? [reader] : []))
}

/** What the round moves: results with records of the log in them or a snapshot, ascending by bucket. */
export function movedResults(round: BoardRound): readonly SplitResult[] {
  return round.results
    .filter((result) => result.end > result.start || result.isSnapshot === true)
    .sort((a, b) => a.bucket - b.bucket)
}

/** Where each bucket of the plan ends once the round is in the lake; unread ones end where they began. */
export function endsAfter(round: BoardRound): BucketEnds {
  const ends = new Map<Bucket, Offset>()
  for (const { bucket, start } of round.plan.splits) ends.set(bucket, start)
  for (const { bucket, end } of round.results) ends.set(bucket, end)
  return ends
}

function setRound(
  board: SplitBoard,
  key: RoundKey,
  round: BoardRound,
): ReadonlyMap<RoundKey, BoardRound> {
  return new Map(board.rounds).set(key, round)
}
