import type { HeartbeatResponse, RoundToken } from '../../coordinator/protocol.ts'
import { SluiceError } from '../../core/errors.ts'
import { check, unreachable } from '../../core/never.ts'
import type { JournalEntry } from '../../core/ports.ts'
import type { Assignment, CommitResult, RoundPlan, SplitResult } from '../ports.ts'
import { type RoundKey, roundKey } from '../round/round-key.ts'
import {
  addRound,
  type BoardRound,
  dropRound,
  emptyBoard,
  endsAfter,
  forceRound,
  type HandOut,
  handOut,
  isComplete,
  isForced,
  movedResults,
  type SplitBoard,
  takeBack,
} from '../round/split-board.ts'
import type { Beats } from './beats.ts'
import { asTableError, commitOutcome, createLane, reportRound } from './commit-round.ts'
import type { RoundReport } from './events.ts'
import { type LiveRound, liveRound, token, waitForCeiling } from './live-round.ts'
import type { AbandonedRound, JobOptions } from './options.ts'

/** The rounds a job holds, from assignment to report, and the board their splits lie on. */
export interface LiveRounds {
  board(): SplitBoard
  /** What a beat names: rounds whose end has not been reported. */
  inFlight(): readonly RoundToken[]
  /** Plans a table that was handed to this job. Resolves when its splits wait, or it is over. */
  begin(assignment: Assignment): Promise<void>
  startSplits(): void
  /** Drops the rounds that the coordinator says are not ours any more. */
  heard(response: HeartbeatResponse): void
  /** Ends each round with what it has read, and takes no other. */
  endAll(): void
  /** Gives up what is left. */
  abandonAll(): readonly AbandonedRound[]
  /** Lets everything lie as it is: the job is broken, and what it would still do may be wrong. */
  halt(): void
  /** Resolves when no round is left. */
  empty(): Promise<void>
  /** Resolves when the files of rounds that were given up are gone; nothing if none are going. */
  discarded(): Promise<unknown> | undefined
}

export type LiveRoundsOptions = Pick<
  JobOptions,
  | 'planner'
  | 'runner'
  | 'committer'
  | 'clock'
  | 'chance'
  | 'readers'
  | 'journal'
  | 'events'
  | 'isFinal'
> & {
  readonly beats: Beats
  readonly nameOf: (assignment: RoundToken) => string
  /** A reader or a round has ended: there may be something to hand out or to ask for. */
  readonly wake: () => void
  readonly committed: (report: RoundReport) => void
  /** Follows a promise nobody waits for; its failure ends the job. */
  readonly follow: (work: Promise<unknown>) => void
}

export function createLiveRounds(options: LiveRoundsOptions): LiveRounds {
  const { beats, clock, follow, runner } = options
  const discarding = new Set<Promise<void>>()
  const live = new Map<RoundKey, LiveRound>()
  const inCommitLane = createLane()
  let board = emptyBoard(options.readers)
  let isEnding = false
  let emptied: (() => void)[] = []

  async function begin(assignment: Assignment): Promise<void> {
    const round = liveRound(assignment, clock.monotonic())
    const { key } = round
    check(!live.has(key), `round ${key} is assigned once`)
    live.set(key, round)
    if (hasToEnd()) {
      release(round)
      return
    }
    let plan: RoundPlan
    try {
      plan = await options.planner.plan(assignment)
    } catch (thrown) {
      if (live.has(key)) fail(round, asTableError(thrown, `planning ${name(round)} failed`))
      return
    }
    if (!live.has(key)) return
    if (hasToEnd()) {
      release(round)
      return
    }
    if (plan.splits.length === 0) {
      settle(round, { forced: false, committed: false })
      return
    }
    board = addRound(board, plan, options.chance)
    round.phase = 'reading'
    note(round, 'round.started', `a round of ${name(round)} begins`, {
      splits: plan.splits.length,
    })
    follow(forceAtCeiling(round, plan.table.freshnessMs))
  }

  function startSplits(): void {
    const handed = handOut(board)
    board = handed.board
    for (const next of handed.started) follow(runSplit(next))
  }

  async function runSplit({ reader, key, split }: HandOut): Promise<void> {
    const round = live.get(key)
    const plan = board.rounds.get(key)?.plan
    check(round !== undefined && plan !== undefined, `round ${key} has splits while it lives`)
    let result: SplitResult | undefined
    let thrown: unknown
    try {
      result = await runner.run(plan, split, round.stop)
    } catch (error) {
      thrown = error
    }
    const taken = takeBack(board, reader, result)
    board = taken.board
    options.wake()
    if (taken.isStale) {
      if (result !== undefined) discard([result])
    } else if (result === undefined) {
      fail(round, asTableError(thrown, `reading ${plan.table.name} bucket ${split.bucket} failed`))
    } else if (isComplete(board, key)) complete(round)
  }

  /** Removes files that are in no commit; whoever ends the job may wait for it. */
  function discard(results: readonly SplitResult[]): void {
    const work = runner.discard(results).finally(() => discarding.delete(work))
    discarding.add(work)
    follow(work)
  }

  async function forceAtCeiling(round: LiveRound, freshnessMs: number): Promise<void> {
    if (await waitForCeiling(clock, round, freshnessMs)) force(round)
  }

  function force(round: LiveRound): void {
    if (round.phase !== 'reading') return
    round.stop.stopped = true
    board = forceRound(board, round.key)
    note(round, 'round.force_finished', `the round of ${name(round)} ends with what it has read`)
    if (isComplete(board, round.key)) complete(round)
  }

  function complete(round: LiveRound): void {
    round.phase = 'complete'
    round.over.abort()
    const read = readRound(round)
    const results = movedResults(read)
    if (results.length === 0) {
      discard(read.results)
      settle(round, { forced: isForced(read), committed: false })
      return
    }
    follow(inCommitLane(() => commit(round, read, results)))
  }

  async function commit(
    round: LiveRound,
    read: BoardRound,
    results: readonly SplitResult[],
  ): Promise<void> {
    if (live.get(round.key) !== round) return
    round.phase = 'committing'
    const { plan } = read
    const final = options.isFinal?.(plan.table, endsAfter(read)) ?? false
    const outcome = await commitOutcome(options.committer, { plan, results }, final)
    // Given up by `abandonAll` meanwhile: said to be in doubt already, and it still is.
    if (live.get(round.key) !== round) return
    conclude(round, read, results, outcome)
  }

  function conclude(
    round: LiveRound,
    read: BoardRound,
    results: readonly SplitResult[],
    outcome: CommitResult,
  ): void {
    const forced = isForced(read)
    switch (outcome.kind) {
      case 'committed': {
        const report = reportRound({ plan: read.plan, results }, outcome, {
          forceFinished: forced,
          seconds: (clock.monotonic() - round.assignedAt) / 1000,
          committedAt: clock.now(),
        })
        options.committed(report)
        options.events({ event: 'committed', ...report })
        settle(round, { forced, committed: true })
        return
      }
      case 'nothing':
        discard(read.results)
        settle(round, { forced, committed: false })
        return
      case 'rejected':
      case 'unknown':
        fail(round, outcome.error, outcome.kind === 'rejected' ? outcome.error.effect : 'unknown')
        return
      default:
        unreachable(outcome)
    }
  }

  /** The round is over and well. */
  function settle(
    round: LiveRound,
    end: { readonly forced: boolean; readonly committed: boolean },
  ): void {
    forget(round)
    if (!round.isFenced) follow(beats.finished({ ...token(round), ...end }))
    options.wake()
  }

  // A function, since the answer changes while a plan is made.
  const hasToEnd = (): boolean => isEnding

  /** The round was not begun: somebody else may have the table at once. */
  function release(round: LiveRound): void {
    forget(round)
    follow(beats.failed({ ...token(round), effect: 'none' }))
  }

  /** The round is over and not in the lake, or not surely so: then every file stays. */
  function fail(round: LiveRound, error: SluiceError, effect: 'none' | 'unknown' = 'none'): void {
    giveUp(round, error, effect)
    if (!round.isFenced) follow(beats.failed({ ...token(round), effect }))
    options.wake()
  }

  function giveUp(round: LiveRound, error: SluiceError, effect: 'none' | 'unknown'): void {
    const results = board.rounds.get(round.key)?.results ?? []
    if (effect === 'none' && results.length > 0) discard(results)
    forget(round)
    const { incarnation, epoch } = round.assignment
    options.events({ event: 'rejected', table: name(round), incarnation, epoch, error })
  }

  function heard(response: HeartbeatResponse): void {
    for (const { rejected, ...row } of response.inFlight) {
      const round = live.get(roundKey(row))
      if (rejected !== undefined && round !== undefined) fence(round, rejected)
    }
    for (const round of live.values()) {
      if (round.assignment.incarnation !== response.incarnation) fence(round, 'INCARNATION_STALE')
    }
  }

  function fence(round: LiveRound, reason: string): void {
    if (round.isFenced) return
    round.isFenced = true
    // A commit under way is judged at the lake, not here.
    if (round.phase === 'committing') return
    const error = new SluiceError(
      'LEASE_LOST',
      `the round of ${name(round)} belongs to this job no more`,
      { details: { ...token(round), reason } },
    )
    fail(round, error)
  }

  function abandonAll(): readonly AbandonedRound[] {
    return [...live.values()].map((round) => {
      const table = name(round)
      const effect = round.phase === 'committing' ? 'unknown' : 'none'
      fail(
        round,
        new SluiceError('STOPPED', `the round of ${table} was given up`, { effect }),
        effect,
      )
      return { table, effect }
    })
  }

  function forget(round: LiveRound): void {
    round.stop.stopped = true
    round.over.abort()
    live.delete(round.key)
    board = dropRound(board, round.key)
    if (live.size > 0) return
    for (const resolve of emptied) resolve()
    emptied = []
  }

  function readRound(round: LiveRound): BoardRound {
    const read = board.rounds.get(round.key)
    check(read !== undefined, `round ${round.key} is on the board while it is read`)
    return read
  }

  function note(
    round: LiveRound,
    event: string,
    message: string,
    more: JournalEntry['fields'] = {},
  ): void {
    const { incarnation, epoch } = round.assignment
    const fields = { table: name(round), incarnation, epoch, ...more }
    options.journal.note({ level: 'info', event, message, fields })
  }

  function name(round: LiveRound): string {
    return options.nameOf(round.assignment)
  }

  return {
    board: () => board,
    inFlight: () => [...live.values()].filter((round) => !round.isFenced).map(token),
    begin,
    startSplits,
    heard,
    endAll: () => {
      isEnding = true
      for (const round of live.values()) force(round)
    },
    abandonAll,
    discarded: () => (discarding.size === 0 ? undefined : Promise.all(discarding)),
    halt: () => {
      isEnding = true
      for (const round of live.values()) forget(round)
    },
    empty: () =>
      live.size === 0 ? Promise.resolve() : new Promise((resolve) => emptied.push(resolve)),
  }
}
