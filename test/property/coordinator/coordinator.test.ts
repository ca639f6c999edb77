import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  addTable,
  type CoordinatorState,
  emptyCoordinator,
  fireDue,
  removeTable,
  sweep,
  tellTable,
} from '../../../src/coordinator/coordinator.ts'
import { handleHeartbeat } from '../../../src/coordinator/heartbeat.ts'
import type { RoundToken, TableTransition } from '../../../src/coordinator/protocol.ts'
import { epoch, incarnation, millis, tableId } from '../../../src/core/ids.ts'

const life = incarnation(1)
const anyTable = fc.integer({ min: 1, max: 4 }).map((id) => tableId(BigInt(id)))
const anyToken: fc.Arbitrary<RoundToken> = fc.record({
  table: anyTable,
  incarnation: fc.constantFrom(life, life, life, incarnation(2)),
  epoch: fc.integer({ min: 0, max: 6 }).map(epoch),
})
type Act =
  | { readonly kind: 'add' | 'drop' | 'off' | 'on' | 'trigger'; readonly table: bigint }
  | { readonly kind: 'fire' | 'sweep' | 'ask' }
  | { readonly kind: 'beat' | 'finish' | 'force' | 'fail'; readonly token: RoundToken }
const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({
    kind: fc.constantFrom('add', 'add', 'off', 'on', 'trigger', 'trigger'),
    table: anyTable,
  }),
  fc.record({ kind: fc.constantFrom('fire', 'sweep', 'ask', 'ask') }),
  fc.record({ kind: fc.constantFrom('beat', 'finish', 'force', 'fail'), token: anyToken }),
)
const timeline = fc.array(fc.tuple(act, fc.integer({ min: 0, max: 100_000 })), { maxLength: 80 })

const nothing = { failed: [], inFlight: [], finished: [], requestTable: false }

type Done = {
  readonly state: CoordinatorState
  readonly transitions: readonly TableTransition[]
  readonly rejected: boolean
}

function run(state: CoordinatorState, next: Act, at: number): Done {
  const now = millis(at)
  const done = (step: Omit<Done, 'rejected'> & { rejected?: unknown }): Done => ({
    ...step,
    rejected: step.rejected !== undefined,
  })
  switch (next.kind) {
    case 'add': {
      const table = tableId(next.table)
      const added = addTable(state, { table, name: `t${next.table}`, freshnessMs: 60_000 })
      if (added.rejected !== undefined) return done(added)
      const created = tellTable(added.state, table, { kind: 'created' }, now)
      return done({ ...created, transitions: [...added.transitions, ...created.transitions] })
    }
    case 'drop':
      return done(removeTable(state, tableId(next.table)))
    case 'off':
      return done(tellTable(state, tableId(next.table), { kind: 'switchedOff' }, now))
    case 'on':
      return done(tellTable(state, tableId(next.table), { kind: 'switchedOn' }, now))
    case 'trigger':
      return done(tellTable(state, tableId(next.table), { kind: 'triggered' }, now))
    case 'fire':
      return done(fireDue(state, now))
    case 'sweep':
      return done(sweep(state, now))
    case 'ask':
      return done(handleHeartbeat(state, { ...nothing, requestTable: true }, now))
    case 'beat':
    case 'finish':
    case 'force':
    case 'fail': {
      const { kind, token } = next
      const finished = [{ ...token, forced: kind === 'force', committed: true }]
      const step = handleHeartbeat(
        state,
        {
          inFlight: kind === 'beat' ? [token] : [],
          failed: kind === 'fail' ? [{ ...token, effect: 'none' }] : [],
          finished: kind === 'finish' || kind === 'force' ? finished : [],
          requestTable: false,
        },
        now,
      )
      const { inFlight, failed, finished: ended } = step.response
      const rejected = [...inFlight, ...failed, ...ended].find((row) => row.rejected)
      return done({ state: step.state, transitions: step.transitions, rejected })
    }
  }
}

test('T-60 I-07 I-08 I-11 epochs grow by one on entry to Pending only, and fence other claims', () => {
  fc.assert(
    fc.property(timeline, (steps) => {
      let state = emptyCoordinator(life)
      let now = 0
      const epochs = new Map<bigint, number>()
      const assigned = new Set<string>()
      for (const [next, wait] of steps) {
        now += wait
        const done = run(state, next, now)
        if (done.rejected) equal(done.state, state, 'a rejected call leaves the very same state')
        if ('token' in next) {
          const held = state.tables.get(next.token.table)?.state
          const isHolder =
            next.token.incarnation === life &&
            held?.kind === 'Tiering' &&
            held.epoch === next.token.epoch
          equal(done.rejected, !isHolder)
        }
        for (const moved of done.transitions) {
          const before = epochs.get(moved.table) ?? 0
          equal(moved.epoch, moved.to === 'Pending' ? before + 1 : before)
          epochs.set(moved.table, moved.epoch)
          if (moved.to !== 'Tiering') continue
          const name = `${moved.table}.${moved.epoch}`
          ok(!assigned.has(name), `${name} is assigned once`)
          assigned.add(name)
        }
        state = done.state
        const pending = [...state.tables.values()].filter((t) => t.state.kind === 'Pending')
        deepEqual(state.queue.toSorted(), pending.map((t) => t.table).toSorted())
      }
    }),
    { numRuns: 1_000 },
  )
})

test('T-61 I-26 tables are assigned in the order in which they entered the queue', () => {
  fc.assert(
    fc.property(timeline, (steps) => {
      let state = emptyCoordinator(life)
      let now = 0
      let waiting: bigint[] = []
      for (const [next, wait] of steps) {
        now += wait
        const done = run(state, next, now)
        let assignments = 0
        for (const moved of done.transitions) {
          if (moved.to === 'Pending') waiting.push(moved.table)
          else if (moved.to === 'Tiering') {
            equal(moved.table, waiting.shift())
            assignments += 1
          } else if (moved.from === 'Pending') {
            waiting = waiting.filter((table) => table !== moved.table)
          }
        }
        ok(assignments <= 1)
        state = done.state
        deepEqual(state.queue, waiting)
      }
    }),
    { numRuns: 1_000 },
  )
})
