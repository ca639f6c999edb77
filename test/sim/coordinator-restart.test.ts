import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import {
  createEmbeddedCoordinator,
  type EmbeddedCoordinator,
} from '../../src/coordinator/embedded-coordinator.ts'
import type { HeartbeatRequest } from '../../src/coordinator/protocol.ts'
import { incarnation } from '../../src/core/ids.ts'
import { takes } from '../support/paced-runner.ts'
import { commitLines, createWorld, type WorldTable } from '../support/tiering-world.ts'

// I-10, T-31. The coordinator dies at 40 with a round of `a` under way, and comes back at 45 under
// the next incarnation, with what the lake says about each table.
test('T-31 I-10 a job drops its rounds when the coordinator comes back, and reads them again', async () => {
  const a: WorldTable = { name: 'a', buckets: 2, freshness: 200, pace: takes(() => 80) }
  const b: WorldTable = { name: 'b', buckets: 2, freshness: 300, pace: takes(() => 10) }
  const restarted: { coordinator?: EmbeddedCoordinator } = {}
  const takeOvers: string[] = []
  const world = await createWorld({
    tables: [b, a],
    readers: 2,
    wrap: ({ coordinator, planner }, { clock }) => ({
      coordinator: {
        ...coordinator,
        heartbeat: (request: HeartbeatRequest) => {
          if (clock.monotonic() < 40_000) return coordinator.heartbeat(request)
          return restarted.coordinator?.heartbeat(request) ?? Promise.reject(new Error('no route'))
        },
      },
      planner: {
        plan: (assignment) => {
          const { table, incarnation: life, epoch, takeOver } = assignment
          takeOvers.push(`${table} ${life}.${epoch}${takeOver ? ' takes over' : ''}`)
          return planner.plan(assignment)
        },
      },
    }),
  })
  await world.run(45)
  equal(commitLines(world).join(), '10 b')
  const second = createEmbeddedCoordinator({ clock: world.clock, incarnation: incarnation(2) })
  restarted.coordinator = second
  const names = { a: world.id('a'), b: world.id('b') }
  // `b` was committed 35 s ago; `a` never, and what its holder is about is not known.
  second.register({ table: names.b, name: 'b', freshnessMs: 300_000, sinceFinishMs: 35_000 })
  second.register({
    table: names.a,
    name: 'a',
    freshnessMs: 200_000,
    sinceFinishMs: 200_000,
    inDoubt: true,
  })
  equal(second.tables().find((table) => table.name === 'b')?.dueAt, 310_000)
  await world.run(150)
  const lost = world.events.flatMap((event) =>
    event.event === 'rejected'
      ? [`${event.table} ${event.incarnation}.${event.epoch} ${event.error.code}`]
      : [],
  )
  // The first beat after 45 is that of 60. The round of 1.1 would have committed at 90.
  deepEqual(lost, ['a 1.1 LEASE_LOST'])
  equal(world.runner.discarded.length, 2)
  deepEqual(takeOvers, ['1 1.1', '2 1.1', '2 2.1 takes over'])
  deepEqual(commitLines(world), ['10 b', '140 a'])
})
