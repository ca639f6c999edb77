import { deepEqual, equal, rejects, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { isSluiceError } from '../../../src/core/errors.ts'
import { bucket, epoch, incarnation, millis, offset, tableId } from '../../../src/core/ids.ts'
import { silentJournal } from '../../../src/core/ports.ts'
import { seededChance } from '../../../src/core/system.ts'
import { type HeldTable, holdTable } from '../../../src/sink/committer/held-table.ts'
import { lakeCommitter } from '../../../src/sink/committer/lake-committer.ts'
import { readVersion } from '../../../src/sink/committer/progress.ts'
import type { Assignment, RoundPlan, SplitResult } from '../../../src/sink/ports.ts'
import { roundKey } from '../../../src/sink/round/round-key.ts'
import {
  addRound,
  dropRound,
  emptyBoard,
  endsAfter,
  forceRound,
  handOut,
  isComplete,
  movedResults,
  type SplitBoard,
  takeBack,
} from '../../../src/sink/round/split-board.ts'
import {
  emptyLake,
  numbers,
  openWorld,
  stillClock,
  type World,
} from '../../property/source/embedded-world.ts'
import { FakeLake } from '../../support/fake-lake.ts'
import { fixedOrder } from '../../support/tiering-world.ts'

/*
 * Failures of comparable systems that are about rounds and the log they read. The numbers are those
 * of the list in docs/simulation.md.
 */

const upTo = (count: number) => numbers(Array.from({ length: count }, (_, at) => at))

function assigned(number: number): Assignment {
  return {
    table: tableId(1n),
    incarnation: incarnation(2),
    epoch: epoch(number),
    takeOver: false,
  }
}

/** A round that reads `[10, 20)` of each bucket. */
function planOf(buckets: number, assignment: Assignment): RoundPlan {
  return {
    assignment,
    table: {
      id: tableId(1n),
      name: 'demo.a',
      kind: 'log',
      sourceId: 'a',
      schema: { fields: [] },
      bucketCount: buckets,
      bucketKey: undefined,
      freshnessMs: millis(60_000),
    },
    splits: Array.from({ length: buckets }, (_, at) => ({
      kind: 'log',
      bucket: bucket(at),
      start: offset(10n),
      stop: offset(20n),
      isFirst: false,
    })),
    context: undefined,
  }
}

function begin(board: SplitBoard, plan: RoundPlan): SplitBoard {
  return handOut(addRound(board, plan, fixedOrder)).board
}

function result(board: SplitBoard, reader: number, end: bigint): SplitResult {
  const split = board.readers[reader]?.split
  if (split === undefined) throw new Error(`reader ${reader} holds nothing`)
  const { bucket: of, start } = split
  return { bucket: of, start, end: offset(end), files: [], rows: Number(end - start) }
}

test('B-03 B-16 results of a dropped round never meet those of the next (fluss 3562, iceberg 15651)', () => {
  const [old, next] = [assigned(3), assigned(4)]
  let board = begin(emptyBoard(4), planOf(2, old))
  board = takeBack(board, 0, result(board, 0, 20n)).board
  board = dropRound(board, roundKey(old))
  board = begin(board, planOf(2, next))
  // The reader of the dropped round answers in the middle of the next one, for the same bucket.
  const late = takeBack(board, 1, result(board, 1, 17n))
  deepEqual([late.key, late.isStale], [roundKey(old), true])
  board = late.board
  equal(isComplete(board, roundKey(next)), false)
  for (const [reader, held] of board.readers.entries()) {
    if (held !== undefined) board = takeBack(board, reader, result(board, reader, 20n)).board
  }
  const round = board.rounds.get(roundKey(next))
  if (round === undefined) throw new Error('the round is on the board')
  equal(isComplete(board, roundKey(next)), true)
  deepEqual(
    movedResults(round).map(({ bucket: of, end }) => [of, end]),
    [
      [0, 20n],
      [1, 20n],
    ],
  )
})

test('B-03 what a forced round left unread is not in it, and a second answer is refused', () => {
  const forced = assigned(3)
  let board = forceRound(begin(emptyBoard(1), planOf(2, forced)), roundKey(forced))
  const first = result(board, 0, 15n)
  board = takeBack(board, 0, first).board
  const round = board.rounds.get(roundKey(forced))
  if (round === undefined) throw new Error('the round is on the board')
  equal(isComplete(board, roundKey(forced)), true)
  deepEqual([...endsAfter(round).values()], [15n, 10n])
  throws(() => takeBack(board, 0, first), { code: 'INVARIANT_BROKEN' })
})

/** The committer of a process that feeds the table, over a lake in memory. */
async function committing({ source, table }: World, lake: FakeLake) {
  let drawn = 0
  const ids = { bits128: () => (drawn += 1).toString(16).padStart(32, '1') }
  const held: HeldTable = holdTable(
    table.id,
    lake,
    table.sourceId,
    await readVersion(lake, table.sourceId),
  )
  const chance = seededChance(1)
  return lakeCommitter({
    source,
    clock: stillClock,
    chance,
    ids,
    journal: silentJournal,
    held: () => held,
  })
}

test('B-04 an offset always has its row, and a split that was read does not come again (fluss 3892)', async () => {
  const world = openWorld(emptyLake(2), { byKey: false })
  const lake = new FakeLake()
  const committer = await committing(world, lake)
  const { table, source } = world
  await source.append(table.id, upTo(100))
  const at = (number: number): Assignment => ({ ...assigned(number), table: table.id })
  const plan = await committer.plan(at(1))
  const [split] = plan.splits
  if (split === undefined) throw new Error('a split was planned')
  const { bucket: of, start, stop } = split
  const read = { bucket: of, start, files: [] }

  // Ends that move without rows could only be a bug here: they are not committed.
  await rejects(committer.commit(plan, [{ ...read, end: stop, rows: 0 }], false), {
    code: 'INVARIANT_BROKEN',
  })
  const idle = await committer.commit(plan, [{ ...read, end: start, rows: 0 }], false)
  equal(idle.kind, 'nothing')
  equal(lake.versions.length, 1)

  const whole = await committer.commit(plan, [{ ...read, end: stop, rows: 100 }], false)
  equal(whole.kind, 'committed')
  deepEqual((await committer.plan(at(2))).splits, [])
})

test('B-07 what a live round reads is kept, and what is gone is said (fluss 2512)', async () => {
  const { table, source } = openWorld(emptyLake(1), { byKey: false })
  await source.append(table.id, upTo(100))
  await source.append(table.id, upTo(100))
  const [first, end] = [offset(0n), offset(200n)]
  const pin = source.pin(table.id, bucket(0), first)
  const read = async (start: bigint): Promise<number> => {
    let rows = 0
    for await (const batch of source.read(table.id, bucket(0), offset(start), end)) {
      rows += batch.records.length
    }
    return rows
  }
  // Another holder has committed all of it while this round is still reading.
  source.committed(table.id, new Map([[bucket(0), end]]))
  equal(await read(0n), 200)
  pin.release()
  source.committed(table.id, new Map([[bucket(0), end]]))
  const isTruncated = (error: unknown): boolean => isSluiceError(error, 'LOG_TRUNCATED')
  await rejects(read(0n), isTruncated)
  throws(() => source.pin(table.id, bucket(0), first), isTruncated)
})
