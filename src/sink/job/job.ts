import type { TableAssignment } from '../../coordinator/protocol.ts'
import { Ending } from '../../core/ending.ts'
import { isSluiceError } from '../../core/errors.ts'
import type { Millis } from '../../core/ids.ts'
import { order } from '../../core/ports.ts'
import { wantsTable } from '../round/split-board.ts'
import { createBeats } from './beats.ts'
import type { RoundReport, TieringEvent } from './events.ts'
import { commitsMax, type JobView, viewJob } from './job-view.ts'
import { createLiveRounds } from './live-rounds.ts'
import { noteEvent } from './note-event.ts'
import { type JobOptions, pollIntervalMs, type RunningJob, type StopReport } from './options.ts'

/** How long a job that ends waits for files of lost rounds to be removed. */
const cleanUpMs = 5_000

/**
 * Starts a tiering job: it asks for a table whenever a reader waits and no split does, reads the
 * splits, commits complete rounds one at a time, and reports each end at once. What is due at one
 * instant is settled in the order of `order` in core/ports.ts.
 */
export function startJob(options: JobOptions): RunningJob {
  const { clock, coordinator, journal } = options
  const tell = (event: TieringEvent): void => {
    noteEvent(journal, event)
    options.events(event)
  }
  const end = new Ending()
  const { promise: done, resolve: resolveDone, reject: rejectDone } = deferred()
  let phase: JobView['phase'] = 'running'
  let heardAt: Millis | undefined
  let commits: readonly RoundReport[] = []
  let isAwake = false
  let isAsking = false
  let stopping: Promise<StopReport> | undefined

  const beats = createBeats({
    coordinator,
    journal,
    inFlight: () => rounds.inFlight(),
    answered: (response) => {
      heardAt = clock.monotonic()
      rounds.heard(response)
    },
  })
  const rounds = createLiveRounds({
    ...options,
    events: tell,
    beats,
    wake,
    follow,
    nameOf: ({ table }) => tableName(options, table),
    committed: (report) => {
      commits = [...commits, report].slice(-commitsMax)
    },
  })
  const unwatch = coordinator.watch((moved) => {
    const { name: table, to: state, incarnation, epoch } = moved
    tell({ event: 'state', table, state, incarnation, epoch })
    if (state === 'Pending') wake()
  })
  follow(poll())
  wake()

  /** Looks for work once everything that is due at this instant has happened. */
  function wake(): void {
    if (isAwake || phase === 'ended') return
    isAwake = true
    follow(
      untilEnd(async () => {
        await clock.sleep(0, { order: order.request, signal: end })
        isAwake = false
        rounds.startSplits()
        await askForTable()
      }),
    )
  }

  /** One table at a time: whether another is wanted shows when the splits of this one are known. */
  async function askForTable(): Promise<void> {
    if (!mayAsk()) return
    isAsking = true
    let assignment: TableAssignment | undefined
    try {
      assignment = await beats.send({ requestTable: true })
      if (assignment !== undefined) await rounds.begin(assignment)
    } finally {
      isAsking = false
    }
    if (assignment !== undefined) wake()
  }

  function mayAsk(): boolean {
    return !isAsking && phase === 'running' && wantsTable(rounds.board())
  }

  async function poll(): Promise<void> {
    await untilEnd(async () => {
      for (;;) {
        const duration = options.pollIntervalMs ?? pollIntervalMs
        await clock.sleep(duration, { order: order.request, signal: end })
        // Not awaited: the next beat must not be late because a plan takes long.
        if (mayAsk()) follow(askForTable())
        else await beats.send({ requestTable: false })
      }
    })
  }

  async function stop(timeoutMs: number): Promise<StopReport> {
    if (phase === 'ended') return { abandoned: [] }
    phase = 'stopping'
    journal.note({ level: 'info', event: 'job.stopping', message: 'no new rounds are begun' })
    rounds.endAll()
    const waited = new Ending()
    const time = clock.sleep(timeoutMs, { order: order.request, signal: waited })
    await Promise.race([rounds.empty(), time.catch(() => undefined), done.catch(() => undefined)])
    waited.abort()
    const abandoned = rounds.abandonAll()
    const discarded = rounds.discarded()
    if (discarded !== undefined) await atMost(cleanUpMs, discarded)
    leave()
    resolveDone()
    return { abandoned }
  }

  async function atMost(ms: number, work: Promise<unknown>): Promise<void> {
    const over = new Ending()
    const time = clock.sleep(ms, { order: order.request, signal: over })
    await Promise.race([work, time]).catch(() => undefined)
    time.catch(() => undefined)
    over.abort()
  }

  function leave(): void {
    phase = 'ended'
    unwatch()
    end.abort()
  }

  function follow(work: Promise<unknown>): void {
    work.catch((error: unknown) => {
      if (phase === 'ended') return
      journal.note({ level: 'error', event: 'job.failed', message: String(error) })
      leave()
      rounds.halt()
      rejectDone(error)
    })
  }

  return {
    stop: (timeoutMs) => (stopping ??= stop(timeoutMs)),
    done,
    view: () =>
      viewJob(coordinator.tables(), rounds.board(), {
        now: clock.monotonic(),
        heardAt,
        phase,
        commits,
      }),
  }
}

async function untilEnd(work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!isSluiceError(error, 'STOPPED')) throw error
  }
}

function tableName({ coordinator }: JobOptions, table: bigint): string {
  return coordinator.tables().find((known) => known.table === table)?.name ?? `table ${table}`
}

function deferred(): {
  readonly promise: Promise<void>
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
} {
  let resolve = (): void => undefined
  let reject: (error: unknown) => void = () => undefined
  const promise = new Promise<void>((yes, no) => {
    resolve = yes
    reject = no
  })
  // Nobody has to watch `done`: a failure is also in the journal.
  promise.catch(() => undefined)
  return { promise, resolve, reject }
}
