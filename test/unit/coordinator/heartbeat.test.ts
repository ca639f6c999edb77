import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import {
  addTable,
  type CoordinatorState,
  emptyCoordinator,
  removeTable,
  tellTable,
} from '../../../src/coordinator/coordinator.ts'
import { handleHeartbeat } from '../../../src/coordinator/heartbeat.ts'
import type { HeartbeatRequest, RoundToken } from '../../../src/coordinator/protocol.ts'
import { epoch, incarnation, millis, tableId } from '../../../src/core/ids.ts'
import { takes } from '../../support/paced-runner.ts'
import { createWorld } from '../../support/tiering-world.ts'

const nothing: HeartbeatRequest = { failed: [], inFlight: [], finished: [], requestTable: false }
const ask: HeartbeatRequest = { ...nothing, requestTable: true }
const ids = [1n, 2n, 3n, 4n].map(tableId)

/** Tables 1 to 4, all pending since 0 under epoch 1, the first `assigned` of them handed out. */
function pending(assigned: number): CoordinatorState {
  let state = emptyCoordinator(incarnation(5))
  for (const table of ids) {
    state = addTable(state, { table, name: `t${table}`, freshnessMs: 60_000 }).state
    state = tellTable(state, table, { kind: 'created' }, millis(0)).state
    state = tellTable(state, table, { kind: 'triggered' }, millis(0)).state
  }
  for (let i = 0; i < assigned; i += 1) state = handleHeartbeat(state, ask, millis(0)).state
  return state
}

function token(id: bigint, over: Partial<RoundToken> = {}): RoundToken {
  return { table: tableId(id), incarnation: incarnation(5), epoch: epoch(1), ...over }
}

test('T-49 one beat carries four things, handled as failed, in flight, finished, request', () => {
  const request: HeartbeatRequest = {
    finished: [{ ...token(3n), forced: true, committed: true }],
    inFlight: [token(2n)],
    failed: [{ ...token(1n), effect: 'none' }],
    requestTable: true,
  }
  const step = handleHeartbeat(pending(3), request, millis(7_000))
  deepEqual(
    step.transitions.map((moved) => `${moved.name} ${moved.to} ${moved.epoch}`),
    ['t1 Failed 1', 't1 Pending 2', 't3 Tiered 1', 't3 Pending 2', 't4 Tiering 1'],
  )
  deepEqual(step.response, {
    incarnation: 5,
    failed: [token(1n)],
    inFlight: [token(2n)],
    finished: [token(3n)],
    assignment: { ...token(4n), takeOver: false },
  })
  deepEqual(step.state.queue, [1n, 3n])
})

test('T-61 each request gets at most one table, the head of the queue', () => {
  const step = handleHeartbeat(pending(1), ask, millis(0))
  equal(step.response.assignment?.table, 2n)
  deepEqual(step.state.queue, [3n, 4n])
  equal(handleHeartbeat(pending(4), ask, millis(0)).response.assignment, undefined)
})

const strangers: readonly (readonly [string, RoundToken, string])[] = [
  ['a table nobody knows', token(9n), 'TABLE_UNKNOWN'],
  ['an older incarnation', token(1n, { incarnation: incarnation(4) }), 'INCARNATION_STALE'],
  ['another epoch', token(1n, { epoch: epoch(0) }), 'EPOCH_STALE'],
  ['a table that is not assigned', token(4n), 'STATE_WRONG'],
]
for (const [what, row, rejected] of strangers) {
  test(`a report about ${what} changes nothing and is answered ${rejected}`, () => {
    const state = pending(3)
    const request: HeartbeatRequest = {
      failed: [{ ...row, effect: 'unknown' }],
      inFlight: [row],
      finished: [{ ...row, forced: false, committed: true }],
      requestTable: false,
    }
    const step = handleHeartbeat(state, request, millis(1_000))
    equal(step.state, state)
    const { failed, inFlight, finished } = step.response
    deepEqual([failed, inFlight, finished].flat(), Array(3).fill({ ...row, rejected }))
  })
}

test('a bad row does not spoil the good ones', () => {
  const request = { ...nothing, inFlight: [token(9n), token(1n)] }
  const { response, state } = handleHeartbeat(pending(1), request, millis(5_000))
  deepEqual(response.inFlight, [{ ...token(9n), rejected: 'TABLE_UNKNOWN' }, token(1n)])
  const held = state.tables.get(tableId(1n))?.state
  equal(held?.kind === 'Tiering' && held.heardAt, 5_000)
})

test('a dropped table leaves the queue and its holder learns of it', () => {
  const step = removeTable(pending(1), tableId(2n))
  deepEqual(step.state.queue, [3n, 4n])
  const gone = removeTable(step.state, tableId(1n)).state
  const beat = handleHeartbeat(gone, { ...nothing, inFlight: [token(1n)] }, millis(1))
  equal(beat.response.inFlight[0]?.rejected, 'TABLE_UNKNOWN')
})

test('a table in doubt is handed out to be taken over, until a commit of its holder', () => {
  let state = pending(1)
  state = handleHeartbeat(
    state,
    { ...nothing, failed: [{ ...token(1n), effect: 'unknown' }] },
    millis(0),
  ).state
  for (let i = 0; i < 3; i += 1) state = handleHeartbeat(state, ask, millis(0)).state
  const again = handleHeartbeat(state, ask, millis(0))
  deepEqual(again.response.assignment, { ...token(1n, { epoch: epoch(2) }), takeOver: true })
})

test('T-50 a finish is reported at once, not at the next poll', async () => {
  const world = await createWorld({
    tables: [{ name: 'a', buckets: 1, freshness: 300, pace: takes(() => 61) }],
    readers: 1,
  })
  await world.run(61)
  deepEqual(world.lines.slice(-2), ['61 a Tiered 1', '61 a Scheduled 1'])
  equal(world.coordinator.tables()[0]?.dueAt, 361_000)
})

test('T-50 a failure is reported at once, not at the next poll', async () => {
  const world = await createWorld({
    tables: [{ name: 'a', buckets: 1, freshness: 300, pace: takes(() => 61) }],
    readers: 1,
    wrap: (_ports, { clock }) => ({
      runner: {
        run: async () => {
          await clock.sleep(7_000)
          throw new Error('the log is gone')
        },
        discard: () => Promise.resolve(),
      },
    }),
  })
  await world.run(7)
  deepEqual(world.lines.slice(-3), ['7 a Failed 1', '7 a Pending 2', '7 a Tiering 2'])
})
