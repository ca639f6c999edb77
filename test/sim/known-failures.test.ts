import { equal, fail, ok } from 'node:assert/strict'
import { test } from 'node:test'
import {
  drawPlan,
  type Plan,
  type PlanOptions,
  type StoreFault,
  type WorldEvent,
} from '../../sim/plan.ts'
import { plantOf } from '../../sim/plants.ts'
import { type Outcome, runPlan } from '../../sim/run.ts'
import type { Seams } from '../../sim/seams.ts'

/*
 * Failures of comparable systems, replayed as plans against this one. The number is that of the
 * list in docs/simulation.md. A script that nothing could fail proves nothing, so most are played once
 * more with the bug of the other system put in, and then have to fail.
 */

const options: PlanOptions = {
  ...drawPlan(1, 'calm').options,
  tables: 1,
  buckets: 2,
  places: 1,
  inputs: 1,
  recordsPerInput: 40,
  readers: 2,
  freshnessMs: 10_000,
  chaosMs: 120_000,
  byKey: true,
  encoder: 'json',
  readBytesMax: 2 ** 20,
  targetFileBytes: 2 ** 20,
  fences: true,
  remoteCoordinator: false,
  logMemoryBytes: 2 ** 20,
}

type Script = {
  readonly options?: Partial<PlanOptions>
  readonly faults?: readonly StoreFault[]
  readonly events?: readonly WorldEvent[]
  /** What the others had: the name of a planted bug, or where it gets in. */
  readonly bug?: string | (() => Seams)
}

/** The script under six seeds: the times within a round differ, the failure is the same. */
async function play(script: Script): Promise<ReadonlyMap<string, number>> {
  const marks = new Map<string, number>()
  for (let seed = 1; seed <= seeds; seed += 1) {
    const outcome: Outcome = await runPlan(planOf(script, seed))
    const { violation } = outcome
    equal(
      violation,
      undefined,
      `seed ${seed}: ${violation?.invariant ?? ''} ${violation?.message ?? ''}`,
    )
    for (const [name, count] of outcome.marks) marks.set(name, (marks.get(name) ?? 0) + count)
  }
  if (script.bug !== undefined) await fails(script, script.bug)
  return marks
}

async function fails(script: Script, bug: string | (() => Seams)): Promise<void> {
  const seams = typeof bug === 'string' ? plantOf(bug)?.seams : bug
  ok(seams !== undefined, String(bug))
  for (let seed = 1; seed <= seeds; seed += 1) {
    const { violation } = await runPlan(planOf(script, seed), { seams })
    if (violation !== undefined) return
  }
  fail(`nothing breaks with ${typeof bug === 'string' ? bug : 'the bug'} put in`)
}

function planOf(script: Script, seed: number): Plan {
  return {
    schema: 'sluice.sim-plan/1',
    scenario: 'all',
    seed,
    options: { ...options, ...script.options },
    faults: script.faults ?? [],
    events: script.events ?? [],
  }
}

const seeds = 6

function onCreate(
  call: number,
  kind: StoreFault['kind'],
  then: StoreFault['then'] = [],
): StoreFault {
  return { call, ofCreates: true, kind, ms: 400, then }
}

function slowly(calls: readonly number[], ms: number): readonly StoreFault[] {
  return calls.map((call) => ({ ...onCreate(call, 'slow'), ms }))
}

function event(at: number, kind: WorldEvent['kind'], ms: number, more = {}): WorldEvent {
  return { at: at * 1000, kind, place: 0, ms, ...more }
}

test('B-01 a worker that is cut from its coordinator, and not from the store (fluss 2648)', async () => {
  const marks = await play({
    options: { remoteCoordinator: true, places: 2, chaosMs: 180_000 },
    faults: slowly([3, 4, 5, 6, 7, 8, 9, 10], 120_000),
    events: [event(25, 'partition', 130_001), event(25, 'partition', 130_001, { place: 1 })],
    bug: 'check-once',
  })
  ok((marks.get('heartbeat.lost') ?? 0) > 0)
})

test('B-02 a commit of which nobody was told is not read again (fluss 1064)', async () => {
  const marks = await play({
    faults: [2, 3, 5].map((call) => onCreate(call, 'lost-reply', ['reject-before'])),
    bug: 'own-memory',
  })
  ok((marks.get('fault.lost-reply') ?? 0) > 0)
  ok((marks.get('commit.recognized') ?? 0) > 0)
})

test('B-06 a coordinator that restarts is known by its incarnation (fluss 3921)', async () => {
  const marks = await play({
    events: [event(15, 'coordinator-restart', 1), event(40, 'coordinator-restart', 1)],
  })
  equal(marks.get('coordinator.restarted'), 12)
})

test('B-09 B-17 a swap without an answer deletes nothing (clickhouse 112081)', async () => {
  const marks = await play({
    faults: [2, 3, 4].map((call) => onCreate(call, 'lost-reply', ['reject-before'])),
    bug: 'eager-delete',
  })
  ok((marks.get('commit.in_doubt') ?? 0) > 0)
})

test('B-10 a commit that is still on its way while its status is asked (iceberg 3717)', async () => {
  const marks = await play({
    faults: [2, 4, 6].map((call) => onCreate(call, 'delayed-apply')),
    bug: 'eager-delete',
  })
  ok((marks.get('fault.delayed-apply') ?? 0) > 0)
})

test('B-11 B-18 a request that is answered "taken" because it was sent twice (iceberg 13867)', async () => {
  const marks = await play({
    faults: [2, 3, 4, 5].map((call) =>
      onCreate(call, 'doubled', call % 2 === 0 ? ['reject-before'] : []),
    ),
    bug: 'conflict-is-final',
  })
  ok((marks.get('commit.recognized') ?? 0) > 0)
})

test('B-12 a table whose creation gets no answer (iceberg 15050)', async () => {
  const marks = await play({
    faults: [onCreate(1, 'lost-reply'), onCreate(2, 'delayed-apply')],
    bug: 'eager-delete',
  })
  equal(marks.get('fault.lost-reply'), seeds)
})

test('B-13 a commit whose reply is lost with its process is known after the restart (iceberg 16008)', async () => {
  for (const delivery of [20, 30, 40, 50, 60]) {
    const marks = await play({
      faults: [onCreate(2, 'lost-reply')],
      events: [event(10, 'kill', 0, { delivery })],
      // Whoever starts again takes its inputs for new.
      bug: () => ({ resume: ({ ends }) => ({ ends, inputs: new Map() }) }),
    })
    equal(marks.get('event.kill'), seeds)
  }
})

test('B-14 a switch-over registers no file twice (iceberg 16282)', async () => {
  const marks = await play({
    options: { places: 2 },
    events: [event(20, 'pause', 60_001), event(45, 'pause', 30_001, { place: 1 })],
    bug: 'no-continuity',
  })
  ok((marks.get('table.fenced') ?? 0) > 0)
})

test('B-15 a zombie that wakes does not take progress back (iceberg 17551)', async () => {
  // In the middle of a round, another process beside it, and past the lease as well as within it.
  const options = { chaosMs: 240_000, readPauseMs: 6_000 }
  const within = await play({
    options,
    events: [event(16, 'pause', 100_001)],
    bug: 'no-continuity',
  })
  equal(within.get('rejected.COMMIT_FENCED'), seeds)
  const past = await play({ options, events: [event(16, 'pause', 150_001)] })
  equal(past.get('rejected.LEASE_LOST'), seeds)
})

test('B-19 409 means that nothing was written (arrow-rs-object-store 852)', async () => {
  const marks = await play({ faults: [2, 3, 5, 7].map((call) => onCreate(call, 'contended')) })
  ok((marks.get('commit.again') ?? 0) > 0)
})

test('B-20 a paused writer that finds its version taken does not commit again (delta-rs 268)', async () => {
  await play({
    options: { places: 3 },
    faults: slowly([3, 5, 7, 9], 120_000),
    bug: 'check-once',
  })
})

test('F-56 a branch that is rolled back is filled again from there', async () => {
  const marks = await play({
    events: [event(35, 'rollback', 1), event(70, 'rollback', 1)],
    bug: 'ends-from-properties',
  })
  equal(marks.get('event.rollback'), 12)
})

test('F-55 F-57 foreign commits and expiry on top of ours', async () => {
  await play({
    events: [
      event(25, 'foreign-append', 1),
      event(35, 'foreign-rewrite', 1),
      event(45, 'expire', 1),
      event(55, 'foreign-append', 1),
      event(65, 'expire', 1),
    ],
  })
})

test('F-47 F-48 clocks that jump by a day, and back', async () => {
  await play({
    events: [event(20, 'clock-jump', 86_400_000), event(50, 'clock-jump', -172_800_000)],
  })
})
