import { deepEqual, equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { takes } from '../../support/paced-runner.ts'
import {
  commitLines,
  commitTimes,
  createWorld,
  fixedOrder,
  type World,
  type WorldTable,
} from '../../support/tiering-world.ts'
import {
  addRound,
  dropRound,
  emptyBoard,
  endsAfter,
  forceRound,
  handOut,
  isComplete,
  isForced,
  movedResults,
  type SplitBoard,
  takeBack,
} from '../../../src/sink/round/split-board.ts'
import { roundKey } from '../../../src/sink/round/round-key.ts'
import type { RoundPlan } from '../../../src/sink/ports.ts'
import { bucket, epoch, incarnation, millis, offset, tableId } from '../../../src/core/ids.ts'

function table(name: string, buckets: number, seconds: (bucket: number) => number): WorldTable {
  return { name, buckets, freshness: 3_600, pace: takes((split) => seconds(split.bucket)) }
}

async function play(readers: number, ...tables: readonly WorldTable[]): Promise<World> {
  const world = await createWorld({ tables, readers })
  await world.run(1_000)
  return world
}

test('T-04 the bucket count caps one table; a longer list of readers changes nothing', async () => {
  const commits: number[] = []
  for (const readers of [1, 2, 4, 8, 16]) {
    const world = await play(
      readers,
      table('a', 4, () => 30),
    )
    commits.push(...commitTimes(world))
  }
  deepEqual(commits, [120, 60, 30, 30, 30])
  const world = await createWorld({ tables: [table('a', 4, () => 30)], readers: 16 })
  await world.run(29)
  equal(world.job.view().readers.filter((reads) => reads === undefined).length, 12)
})

test('T-05 T-62 lets spare readers pull the next table in the same instant', async () => {
  const world = await play(
    16,
    table('a', 4, () => 30),
    table('b', 12, () => 20),
  )
  deepEqual(world.lines.slice(0, 4), [
    '0 a Tiering 1',
    '0 a start 4',
    '0 b Tiering 1',
    '0 b start 12',
  ])
  deepEqual(commitLines(world), ['20 b', '30 a'])
})

test('T-62 does not ask for a table while no reader waits', async () => {
  const world = await play(
    16,
    table('clicks', 16, () => 30),
    table('orders', 8, () => 90),
    table('customers', 12, () => 100),
  )
  const asked = world.lines.filter((line) => line.includes('Tiering'))
  deepEqual(asked, ['0 clicks Tiering 1', '30 orders Tiering 1', '30 customers Tiering 1'])
})

test('T-06 takes four times as long on a quarter of the readers', async () => {
  const four = await play(
    4,
    table('a', 16, () => 30),
  )
  deepEqual(four.lines.slice(0, 9), [
    '0 a Tiering 1',
    '0 a start 4',
    '30 a end 4',
    '30 a start 4',
    '60 a end 4',
    '60 a start 4',
    '90 a end 4',
    '90 a start 4',
    '120 a end 4',
  ])
  deepEqual(commitTimes(four), [120])
  deepEqual(
    commitTimes(
      await play(
        16,
        table('a', 16, () => 30),
      ),
    ),
    [30],
  )
})

test('T-07 a reader takes its next split when it ends one', async () => {
  for (let heavy = 0; heavy < 16; heavy += 1) {
    const world = await play(
      4,
      table('a', 16, (i) => (i === heavy ? 40 : 10)),
    )
    // Four splits start at once; the later the heavy one does, the later the round ends.
    const [length] = commitTimes(world)
    equal(length, [50, 50, 60, 70][Math.floor(heavy / 4)], `heavy split at place ${heavy}`)
  }
})

const assignment = {
  table: tableId(1n),
  incarnation: incarnation(2),
  epoch: epoch(3),
  takeOver: false,
}
const key = roundKey(assignment)

function planOf(buckets: number, over: Partial<RoundPlan['assignment']> = {}): RoundPlan {
  return {
    assignment: { ...assignment, ...over },
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
    splits: Array.from({ length: buckets }, (_, i) => ({
      kind: 'log',
      bucket: bucket(i),
      start: offset(10n),
      stop: offset(20n),
      isFirst: false,
    })),
    context: undefined,
  }
}

function started(readers: number, plan: RoundPlan): SplitBoard {
  return handOut(addRound(emptyBoard(readers), plan, fixedOrder)).board
}

function end(board: SplitBoard, reader: number, at: bigint) {
  const split = board.readers[reader]?.split
  if (split === undefined) throw new Error(`reader ${reader} holds nothing`)
  const { bucket: of, start } = split
  return takeBack(board, reader, { bucket: of, start, end: offset(at), files: [], rows: 0 })
}

test('T-10 a round is complete when each split has been read', () => {
  let board = started(2, planOf(2))
  board = end(board, 1, 20n).board
  equal(isComplete(board, key), false)
  board = end(board, 0, 20n).board
  equal(isComplete(board, key), true)
  deepEqual(
    board.rounds.get(key)?.results.map((result) => result.bucket),
    [1, 0],
  )
})

test('T-39 a forced round moves what was read and leaves unread buckets where they were', () => {
  let board = forceRound(started(2, planOf(4)), key)
  deepEqual(board.pending, [])
  board = end(board, 0, 15n).board
  board = end(board, 1, 10n).board
  const round = board.rounds.get(key)
  if (round === undefined) throw new Error('the round is on the board')
  equal(isComplete(board, key), true)
  equal(isForced(round), true)
  deepEqual(
    movedResults(round).map((result) => [result.bucket, result.end]),
    [[0, 15n]],
  )
  deepEqual([...endsAfter(round).values()], [15n, 10n, 10n, 10n])
})

test('T-41 a round whose splits all reached their ends is not forced', () => {
  const complete = end(started(1, planOf(1)), 0, 20n).board
  equal(forceRound(complete, key), complete)
  const told = end(forceRound(started(1, planOf(1)), key), 0, 20n).board.rounds.get(key)
  equal(told !== undefined && isForced(told), false)
})

test('I-20 results of a dropped round are stale and never count for the next one', () => {
  let board = dropRound(started(1, planOf(1)), key)
  board = addRound(board, planOf(1, { epoch: epoch(4) }), fixedOrder)
  const late = end(board, 0, 20n)
  deepEqual([late.key, late.isStale], [key, true])
  equal(late.board.rounds.get(roundKey({ ...assignment, epoch: epoch(4) }))?.open, 1)
})

test('a result for another split than the one in hand is a bug, and said so', () => {
  const board = started(1, planOf(1))
  const wrong = { bucket: bucket(7), start: offset(10n), end: offset(20n), files: [], rows: 0 }
  throws(() => takeBack(board, 0, wrong), { code: 'INVARIANT_BROKEN' })
})
