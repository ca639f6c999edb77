import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { stepTable } from '../../../src/coordinator/table-machine.ts'
import type {
  Rejection,
  StateName,
  TableEvent,
  TableState,
} from '../../../src/coordinator/table-state.ts'
import { epoch, millis } from '../../../src/core/ids.ts'

const policy = { freshnessMs: 60_000 }
const now = millis(300_000)
const common = { epoch: epoch(3), inDoubt: false, failuresInARow: 0, failuresTotal: 0 }

// Due, and silent for too long, at `now`.
const states: { readonly [K in TableState['kind']]: TableState } = {
  New: { ...common, kind: 'New' },
  Scheduled: {
    ...common,
    kind: 'Scheduled',
    since: 240_000,
    armedAt: millis(240_000),
    dueAt: 300_000,
  },
  Pending: { ...common, kind: 'Pending', enteredAt: millis(290_000) },
  Tiering: {
    ...common,
    kind: 'Tiering',
    startedAt: millis(170_000),
    heardAt: millis(179_999),
    wanted: false,
  },
  Failed: { ...common, kind: 'Failed', armedAt: millis(299_000), dueAt: 300_000 },
}

const events = {
  created: { kind: 'created' },
  switchedOn: { kind: 'switchedOn' },
  switchedOff: { kind: 'switchedOff' },
  restarted: { kind: 'restarted', sinceFinishMs: 10_000 },
  freshnessChanged: { kind: 'freshnessChanged' },
  due: { kind: 'due' },
  triggered: { kind: 'triggered' },
  assigned: { kind: 'assigned' },
  heartbeat: { kind: 'heartbeat', epoch: epoch(3) },
  finished: { kind: 'finished', epoch: epoch(3), forced: false, committed: true },
  finishedForced: { kind: 'finished', epoch: epoch(3), forced: true, committed: true },
  failed: { kind: 'failed', epoch: epoch(3), effect: 'none' },
  staleReport: { kind: 'finished', epoch: epoch(2), forced: false, committed: true },
  expired: { kind: 'expired' },
} as const satisfies Record<TableEvent['kind'], TableEvent> & Record<string, TableEvent>

type On = keyof typeof events
/** The states entered, the last with its epoch; `=` for none; or why nothing changed. */
type Cell = Rejection | '=' | `${string}@${number}`

// A state or an event more does not compile until its cells are filled in. The same table is in
// docs/coordinator.md. No event meets `Tiered`: the step that enters it leaves it.
const table: Record<Exclude<StateName, 'Tiered'>, Record<On, Cell>> = {
  New: {
    created: 'Scheduled@3',
    switchedOn: 'Scheduled@3',
    switchedOff: 'STATE_WRONG',
    restarted: 'Scheduled@3',
    freshnessChanged: '=',
    due: 'STATE_WRONG',
    triggered: 'STATE_WRONG',
    assigned: 'STATE_WRONG',
    heartbeat: 'STATE_WRONG',
    finished: 'STATE_WRONG',
    finishedForced: 'STATE_WRONG',
    failed: 'STATE_WRONG',
    staleReport: 'EPOCH_STALE',
    expired: 'STATE_WRONG',
  },
  Scheduled: {
    created: 'STATE_WRONG',
    switchedOn: 'STATE_WRONG',
    switchedOff: 'New@3',
    restarted: 'STATE_WRONG',
    freshnessChanged: '=',
    due: 'Pending@4',
    triggered: 'Pending@4',
    assigned: 'STATE_WRONG',
    heartbeat: 'STATE_WRONG',
    finished: 'STATE_WRONG',
    finishedForced: 'STATE_WRONG',
    failed: 'STATE_WRONG',
    staleReport: 'EPOCH_STALE',
    expired: 'STATE_WRONG',
  },
  Pending: {
    created: 'STATE_WRONG',
    switchedOn: 'STATE_WRONG',
    switchedOff: 'New@3',
    restarted: 'STATE_WRONG',
    freshnessChanged: '=',
    due: 'STATE_WRONG',
    triggered: '=',
    assigned: 'Tiering@3',
    heartbeat: 'STATE_WRONG',
    finished: 'STATE_WRONG',
    finishedForced: 'STATE_WRONG',
    failed: 'STATE_WRONG',
    staleReport: 'EPOCH_STALE',
    expired: 'STATE_WRONG',
  },
  Tiering: {
    created: 'STATE_WRONG',
    switchedOn: 'STATE_WRONG',
    switchedOff: 'New@3',
    restarted: 'STATE_WRONG',
    freshnessChanged: '=',
    due: 'STATE_WRONG',
    triggered: '=',
    assigned: 'STATE_WRONG',
    heartbeat: '=',
    finished: 'Tiered Scheduled@3',
    finishedForced: 'Tiered Pending@4',
    failed: 'Failed Pending@4',
    staleReport: 'EPOCH_STALE',
    expired: 'Failed Pending@4',
  },
  Failed: {
    created: 'STATE_WRONG',
    switchedOn: 'STATE_WRONG',
    switchedOff: 'New@3',
    restarted: 'STATE_WRONG',
    freshnessChanged: '=',
    due: 'Pending@4',
    triggered: '=',
    assigned: 'STATE_WRONG',
    heartbeat: 'STATE_WRONG',
    finished: 'STATE_WRONG',
    finishedForced: 'STATE_WRONG',
    failed: 'STATE_WRONG',
    staleReport: 'EPOCH_STALE',
    expired: 'STATE_WRONG',
  },
}

for (const [from, row] of Object.entries(table) as [TableState['kind'], Record<On, Cell>][]) {
  for (const [on, expected] of Object.entries(row) as [On, Cell][]) {
    test(`T-59 ${from} on ${on} gives ${expected}`, () => {
      const state = states[from]
      const step = stepTable(state, events[on], now, policy)
      const entered = step.moves.map((move) => move.to).join(' ')
      const moved = entered === '' ? '=' : `${entered}@${step.state.epoch}`
      equal(step.rejected ?? moved, expected)
      if (step.rejected !== undefined) equal(step.state, state, 'the very same state')
      equal(step.state.kind, step.moves.at(-1)?.to ?? from, 'the moves end where the state is')
    })
  }
}

test('T-59 T-60 no step rests in Tiered, and the epoch grows on entry to Pending only', () => {
  for (const state of Object.values(states)) {
    for (const event of Object.values(events)) {
      const step = stepTable(state, event, now, policy)
      ok(states[step.state.kind])
      const entries = step.moves.filter((move) => move.to === 'Pending').length
      equal(step.state.epoch - state.epoch, entries)
    }
  }
})

test('T-60 the sixth re-queue has epoch 7; a finish under 6 changes nothing', () => {
  let state: TableState = stepTable(states.New, { kind: 'created' }, millis(0), policy).state
  state = { ...state, epoch: epoch(0) }
  state = stepTable(state, { kind: 'triggered' }, millis(0), policy).state
  for (let i = 0; i < 6; i += 1) {
    state = stepTable(state, { kind: 'assigned' }, millis(0), policy).state
    const forced = { kind: 'finished', epoch: state.epoch, forced: true, committed: true } as const
    state = stepTable(state, forced, millis(0), policy).state
  }
  equal(state.kind, 'Pending')
  equal(state.epoch, 7)
  const held = stepTable(state, { kind: 'assigned' }, millis(0), policy).state
  const finish = { kind: 'finished', forced: false, committed: true } as const
  const stale = stepTable(held, { ...finish, epoch: epoch(6) }, millis(1), policy)
  equal(stale.rejected, 'EPOCH_STALE')
  equal(stale.state, held)
  equal(stepTable(held, { ...finish, epoch: epoch(7) }, millis(1), policy).rejected, undefined)
})

test('T-52 silence has to exceed 120 s', () => {
  const held: TableState = { ...states.Tiering, kind: 'Tiering', heardAt: millis(0) } as TableState
  const at = (ms: number): string | undefined =>
    stepTable(held, { kind: 'expired' }, millis(ms), policy).rejected
  deepEqual([119_900, 120_000, 120_100, 135_000].map(at), [
    'NOT_DUE',
    'NOT_DUE',
    undefined,
    undefined,
  ])
})

test('a round asked for while another runs is due as soon as that one finishes', () => {
  const wanted = stepTable(states.Tiering, { kind: 'triggered' }, now, policy).state
  const step = stepTable(wanted, events.finished, now, policy)
  deepEqual(
    step.moves.map((move) => `${move.from} ${move.to} ${move.epoch}`),
    ['Tiering Tiered 3', 'Tiered Scheduled 3', 'Scheduled Pending 4'],
  )
})

test('failures in a row wait 0, 1, 2, 4 … s and never longer than the freshness', () => {
  let state: TableState = states.Tiering
  const delays: number[] = []
  for (let i = 0; i < 9; i += 1) {
    const fail = { kind: 'failed', epoch: state.epoch, effect: 'none' } as const
    state = stepTable(state, fail, now, policy).state
    delays.push(state.kind === 'Failed' ? state.dueAt - now : 0)
    if (state.kind === 'Failed') {
      equal(stepTable(state, { kind: 'due' }, now, policy).rejected, 'NOT_DUE')
      state = stepTable(state, { kind: 'due' }, millis(state.dueAt), policy).state
    }
    state = stepTable(state, { kind: 'assigned' }, now, policy).state
  }
  deepEqual(
    delays,
    [0, 1, 2, 4, 8, 16, 32, 60, 60].map((s) => s * 1000),
  )
  const finish = { ...events.finished, epoch: state.epoch }
  equal(stepTable(state, finish, now, policy).state.failuresInARow, 0)
})

// Cause of doubt → doubt of the next holder. An accepted finish settles it if it committed.
const doubts: readonly (readonly [string, TableState, TableEvent, boolean])[] = [
  ['a finish that committed', states.Tiering, events.finished, false],
  ['a failure without effect', states.Tiering, events.failed, false],
  ['a failure of unknown effect', states.Tiering, { ...events.failed, effect: 'unknown' }, true],
  ['silence', states.Tiering, events.expired, true],
  ['switching off while it is held', states.Tiering, events.switchedOff, true],
  ['switching off while nobody holds it', states.Pending, events.switchedOff, false],
  ['a commit after doubt', inDoubt(states.Tiering), events.finished, false],
  [
    'an empty round after doubt',
    inDoubt(states.Tiering),
    { ...events.finished, committed: false },
    true,
  ],
  ['a failure without effect after doubt', inDoubt(states.Tiering), events.failed, true],
]
for (const [cause, state, event, expected] of doubts) {
  test(`after ${cause} the next holder ${expected ? 'takes over' : 'needs no fence'}`, () => {
    equal(stepTable(state, event, now, policy).state.inDoubt, expected)
  })
}

function inDoubt(state: TableState): TableState {
  return { ...state, inDoubt: true }
}
