import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import type { HeartbeatRequest } from '../../../src/coordinator/protocol.ts'
import { SluiceError } from '../../../src/core/errors.ts'
import { check } from '../../../src/core/never.ts'
import type { CommitResult } from '../../../src/sink/ports.ts'
import { moves, takes } from '../../support/paced-runner.ts'
import {
  commitLines,
  commitTimes,
  createWorld,
  type World,
  type WorldTable,
} from '../../support/tiering-world.ts'

const a: WorldTable = { name: 'a', buckets: 2, freshness: 60, pace: takes(() => 30) }
const b: WorldTable = { name: 'b', buckets: 2, freshness: 60, pace: takes(() => 30) }

function rejections(world: World): string[] {
  return world.events.flatMap((event) =>
    event.event === 'rejected' ? [`${event.table} ${event.error.code} ${event.error.effect}`] : [],
  )
}

test('T-02 a table with nothing new is finished at once and due one freshness later', async () => {
  const world = await createWorld({ tables: [{ ...a, written: () => 0 }], readers: 2 })
  await world.run(0)
  deepEqual(world.lines, ['0 a Tiering 1', '0 a Tiered 1', '0 a Scheduled 1'])
  equal(world.coordinator.tables()[0]?.dueAt, 60_000)
  deepEqual(world.versions, [])
})

test('T-09 leaves records appended after planning to the next round', async () => {
  const written = (at: number): number => (at > 0 ? 1_500 : 1_000)
  const world = await createWorld({ tables: [{ ...a, buckets: 1, written }], readers: 1 })
  await world.run(120)
  deepEqual(
    world.versions.map((version) => version.ranges),
    [[[0, 0, 1_000]], [[0, 1_000, 1_500]]],
  )
})

test('T-49 beats every 30 s and names what is in flight', async () => {
  const beats: string[] = []
  const world = await createWorld({
    tables: [{ ...a, freshness: 600, pace: takes(() => 100) }],
    readers: 2,
    wrap: ({ coordinator }, { clock }) => ({
      coordinator: {
        ...coordinator,
        heartbeat: (request: HeartbeatRequest) => {
          const parts = [request.failed, request.inFlight, request.finished].map((p) => p.length)
          beats.push(
            `${clock.monotonic() / 1000} ${parts.join(' ')}${request.requestTable ? ' ask' : ''}`,
          )
          return coordinator.heartbeat(request)
        },
      },
    }),
  })
  await world.run(120)
  deepEqual(beats, [
    '0 0 0 0 ask',
    '30 0 1 0',
    '60 0 1 0',
    '90 0 1 0',
    '100 0 0 1',
    '100 0 0 0 ask',
    '120 0 0 0 ask',
  ])
})

test('a report whose beat was lost is said again with the next one', async () => {
  const world = await createWorld({
    tables: [a],
    readers: 2,
    wrap: ({ coordinator }, { clock }) => ({
      coordinator: {
        ...coordinator,
        heartbeat: (request: HeartbeatRequest) =>
          clock.monotonic() === 30_000
            ? Promise.reject(new Error('no route'))
            : coordinator.heartbeat(request),
      },
    }),
  })
  await world.run(70)
  deepEqual(world.lines.slice(-3), ['30 a commit 1', '60 a Tiered 1', '60 a Scheduled 1'])
})

test('the failure of one table does not stop the others, and comes again with growing delay', async () => {
  const world = await createWorld({
    tables: [a, b],
    readers: 4,
    wrap: ({ planner }) => ({
      planner: {
        plan: (assignment) =>
          assignment.table === 1n
            ? Promise.reject(new SluiceError('PROGRESS_LOST', 'a has lost its progress'))
            : planner.plan(assignment),
      },
    }),
  })
  await world.run(30)
  deepEqual(commitLines(world), ['30 b'])
  const tries = world.lines.filter((line) => line.includes('a Tiering'))
  deepEqual(
    tries.map((line) => Number(line.split(' ')[0])),
    [0, 0, 1, 3, 7, 15],
  )
  equal(rejections(world)[0], 'a PROGRESS_LOST none')
})

test('a broken invariant ends the job', async () => {
  const world = await createWorld({
    tables: [a, b],
    readers: 2,
    wrap: () => ({
      planner: {
        plan: () => {
          check(false, 'one and one is two')
        },
      },
    }),
  })
  await world.run(0)
  await rejects(world.job.done, { code: 'INVARIANT_BROKEN' })
  await world.run(500)
  deepEqual(commitTimes(world), [])
  equal(world.job.view().phase, 'ended')
})

test('a failed split fails the round, drops its other splits and removes its files', async () => {
  const world = await createWorld({
    tables: [{ ...a, buckets: 4, freshness: 600 }],
    readers: 2,
    wrap: ({ runner }, { clock }) => ({
      runner: {
        discard: (results) => runner.discard(results),
        run: async (plan, split, stop) => {
          const isBroken = plan.assignment.epoch === 1 && split.bucket === 3
          if (!isBroken) return runner.run(plan, split, stop)
          await clock.sleep(10_000)
          throw new SluiceError('DISK_FULL', 'the disk is full')
        },
      },
    }),
  })
  await world.run(120)
  deepEqual(rejections(world), ['a DISK_FULL none'])
  // Buckets 0 and 1 ended at 30; bucket 2, stopped at 40, had read a part.
  deepEqual(
    world.runner.discarded.map((result) => result.bucket),
    [0, 1, 2],
  )
  deepEqual(
    world.lines.filter((line) => line.includes('Failed') || line.includes('Pending')),
    ['40 a Failed 1', '40 a Pending 2'],
  )
  deepEqual(commitTimes(world), [100])
})

const outcomes: readonly (readonly [string, CommitResult, number, boolean])[] = [
  [
    'fenced',
    { kind: 'rejected', error: new SluiceError('COMMIT_FENCED', 'a is held by 1.9') },
    2,
    false,
  ],
  ['unknown', { kind: 'unknown', error: new SluiceError('COMMIT_UNKNOWN', 'no reply') }, 0, true],
]
for (const [what, outcome, discarded, takeOver] of outcomes) {
  test(`a ${what} commit drops the round and ${takeOver ? 'keeps' : 'removes'} its files`, async () => {
    const takeOvers: boolean[] = []
    const world = await createWorld({
      tables: [a],
      readers: 2,
      wrap: ({ planner, committer }) => ({
        planner: {
          plan: (assignment) => {
            takeOvers.push(assignment.takeOver)
            return planner.plan(assignment)
          },
        },
        committer: {
          commit: (plan, results, final) =>
            plan.assignment.epoch === 1
              ? Promise.resolve(outcome)
              : committer.commit(plan, results, final),
        },
      }),
    })
    await world.run(60)
    equal(world.runner.discarded.length, discarded)
    deepEqual(takeOvers, [false, takeOver])
    deepEqual(commitTimes(world), [60])
  })
}

test('I-08 a table that is switched off under a running round: the round is dropped, not committed', async () => {
  const world = await createWorld({ tables: [{ ...a, pace: takes(() => 50) }], readers: 2 })
  await world.run(10)
  world.coordinator.switchTiering(world.id('a'), 'off')
  await world.run(200)
  deepEqual(world.versions, [])
  deepEqual(rejections(world), ['a LEASE_LOST none'])
  // Told at the beat of 30; the readers were stopped and their files removed.
  equal(world.runner.discarded.length, 2)
})

test('T-57 a job that was cut off for 200 s learns that it is fenced and drops the round', async () => {
  const cut = { from: 35_000, to: 235_000 }
  const world = await createWorld({
    tables: [{ ...a, freshness: 600, pace: takes(() => 220) }],
    readers: 2,
    wrap: ({ coordinator }, { clock }) => ({
      coordinator: {
        ...coordinator,
        heartbeat: (request: HeartbeatRequest) =>
          clock.monotonic() >= cut.from && clock.monotonic() < cut.to
            ? Promise.reject(new Error('no route'))
            : coordinator.heartbeat(request),
      },
      // The lake is reachable: the commit at 220 lands or not by its token, not by this job.
      committer: {
        commit: () =>
          Promise.resolve({
            kind: 'rejected',
            error: new SluiceError('COMMIT_FENCED', 'a is held by 1.2'),
          }),
      },
    }),
  })
  await world.run(250)
  deepEqual(world.versions, [], 'the round is dropped')
  deepEqual(rejections(world).slice(0, 1), ['a COMMIT_FENCED none'])
  const states = world.lines.filter((line) => !/ (start|end) /.test(line))
  deepEqual(states.slice(0, 4), [
    '0 a Tiering 1',
    '165 a Failed 1',
    '165 a Pending 2',
    '240 a Tiering 2',
  ])
})

test('stop commits what was read, skips what was not begun, and ends', async () => {
  const world = await createWorld({
    tables: [{ ...a, buckets: 3, pace: moves(100, 100), written: () => 5_000 }],
    readers: 2,
  })
  await world.run(10)
  const stopped = world.job.stop(5_000)
  equal(world.job.stop(5_000), stopped)
  deepEqual(await world.clock.settle(stopped), { abandoned: [] })
  await world.job.done
  // The batch of the second that had begun is read to its end.
  deepEqual(
    world.versions.map((version) => version.ends),
    [[1_100, 1_100, undefined]],
  )
  await world.run(500)
  equal(world.versions.length, 1)
  equal(world.job.view().phase, 'ended')
})

test('stop gives up what does not fit its time: nothing is committed, and files are removed', async () => {
  const world = await createWorld({ tables: [{ ...a, pace: moves(1, 1_000) }], readers: 2 })
  await world.run(10)
  deepEqual(await world.clock.settle(world.job.stop(5_000)), {
    abandoned: [{ table: 'a', effect: 'none' }],
  })
  equal(world.clock.monotonic(), 15_000)
  await world.run(2_000)
  deepEqual(world.versions, [])
  equal(world.runner.discarded.length, 2)
})

test('stop never removes the files of a commit that is under way', async () => {
  const world = await createWorld({ tables: [a], readers: 2, commitSeconds: 100 })
  await world.run(40)
  deepEqual(await world.clock.settle(world.job.stop(5_000)), {
    abandoned: [{ table: 'a', effect: 'unknown' }],
  })
  await world.run(300)
  deepEqual(commitTimes(world), [130], 'it lands all the same')
  equal(world.runner.discarded.length, 0)
})

test('says of a round whether it is the last of its inputs', async () => {
  const ends: unknown[] = []
  const world = await createWorld({
    tables: [{ ...a, written: (at) => (at > 0 ? 20 : 10) }],
    readers: 2,
    job: {
      isFinal: (table, after) => {
        ends.push([table.name, ...after.values()])
        return [...after.values()].every((end) => end === 20n)
      },
    },
  })
  await world.run(120)
  deepEqual(ends, [
    ['a', 10n, 10n],
    ['a', 20n, 20n],
  ])
  deepEqual(
    world.versions.map((version) => version.final),
    [false, true],
  )
})

test('a table asked for while a reader waits is tiered at once, without a poll', async () => {
  const world = await createWorld({ tables: [{ ...a, start: 'created' }], readers: 2 })
  await world.run(7)
  world.coordinator.trigger(world.id('a'))
  await world.run(7)
  deepEqual(world.lines, ['7 a Pending 1', '7 a Tiering 1', '7 a start 2'])
})

test('shows how things stand', async () => {
  const world = await createWorld({
    tables: [{ ...a, buckets: 3 }, b, { ...b, name: 'c', start: 'created', freshness: 300 }],
    readers: 2,
  })
  await world.run(40)
  const view = world.job.view()
  deepEqual(
    view.tables.map(({ name, state, epoch, queuePosition, splits, dueInMs }) => ({
      ...{ name, state, epoch, queuePosition, splits, dueInMs },
    })),
    [
      {
        ...{ name: 'a', state: 'Tiering', epoch: 1, queuePosition: undefined },
        ...{ splits: { done: 2, running: 1, all: 3 }, dueInMs: undefined },
      },
      {
        ...{ name: 'b', state: 'Tiering', epoch: 1, queuePosition: undefined },
        ...{ splits: { done: 0, running: 1, all: 2 }, dueInMs: undefined },
      },
      {
        ...{ name: 'c', state: 'Scheduled', epoch: 0, queuePosition: undefined },
        ...{ splits: undefined, dueInMs: 260_000 },
      },
    ],
  )
  deepEqual(view.readers, ['a', 'b'])
  deepEqual([view.now, view.heardAt, view.phase], [40_000, 30_000, 'running'])
  await world.run(60)
  deepEqual(
    world.job.view().commits.map((commit) => [commit.table, commit.round, commit.seconds]),
    [['a', 1, 60]],
  )
})

test('a table that is lost while its commit is under way: the lake judges, no file is removed', async () => {
  const world = await createWorld({ tables: [a], readers: 2, commitSeconds: 60 })
  await world.run(40)
  world.coordinator.switchTiering(world.id('a'), 'off')
  await world.run(200)
  deepEqual(commitTimes(world), [90])
  equal(world.events.filter((event) => event.event === 'committed').length, 1)
  deepEqual([rejections(world), world.runner.discarded.length], [[], 0])
})

test('a table that is lost while its round waits for the lane is not committed', async () => {
  const world = await createWorld({ tables: [a, b], readers: 4, commitSeconds: 60 })
  await world.run(40)
  world.coordinator.switchTiering(world.id('b'), 'off')
  await world.run(140)
  await world.job.stop(0)
  await world.run(300)
  deepEqual(commitLines(world), ['90 a'])
  deepEqual([rejections(world), world.runner.discarded.length], [['b LEASE_LOST none'], 2])
})
