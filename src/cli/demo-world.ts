import { setMaxListeners } from 'node:events'
import { fileCatalog } from '../catalog/iceberg/file-catalog.ts'
import type { ObjectStore } from '../catalog/store/object-store.ts'
import { isSluiceError, type SluiceError } from '../core/errors.ts'
import type { Chance, Journal } from '../core/ports.ts'
import { order } from '../core/ports.ts'
import { seededChance, systemIds } from '../core/system.ts'
import { openWarehouse } from '../library/open-lake.ts'
import {
  dividedMemory,
  isPassing,
  type SessionTable,
  TieringSession,
} from '../library/tiering-session.ts'
import type { RoundReport, TieringEvent } from '../sink/job/events.ts'
import type { JobView } from '../sink/job/job-view.ts'
import type { RunningJob } from '../sink/job/options.ts'
import type { SplitRunner } from '../sink/ports.ts'
import type { TableId } from '../core/ids.ts'
import { PacedClock } from './demo-clock.ts'
import { DemoProducer } from './demo-producer.ts'
import { pausingStore } from './demo-store.ts'
import { createdAt, type DemoTable, demoTables } from './demo-tables.ts'

export type DemoOptions = {
  /** `file:///…` without a slash at the end. */
  readonly warehouse: string
  /** Asked when the tables' first wait is over. */
  readonly speed: () => number
  readonly seed: number
  readonly readers: number
  /** Of production, in milliseconds of demo time. */
  readonly durationMs: number
  readonly journal: Journal
  readonly signal: AbortSignal
  /** Milliseconds of the machine that never go back. */
  readonly realNow: () => number
  readonly wallNow: number
}

/** One commit, with what the walkthrough wants to show of it. */
export type DemoCommit = RoundReport & {
  /** Seconds of demo time. */
  readonly at: number
  /** How old the oldest record was that only became visible now. */
  readonly peakLag: number
}

export type DemoPart = {
  readonly table: DemoTable
  readonly opened: SessionTable
  readonly producer: DemoProducer
  rowsInLake: bigint
  /** Everything produced before is in the lake; seconds of demo time. */
  visibleUntil: number
  /** When the round that runs was cut. */
  cutAt: number
}

/** Seconds of demo time at which an event happened, and the event. */
export type DemoListener = (event: TieringEvent, at: number, commit: DemoCommit | undefined) => void

/** The walkthrough: three tables, their producers, and one job on a fast clock. */
export class DemoWorld {
  readonly parts: readonly DemoPart[]
  readonly clock: PacedClock
  readonly store: ObjectStore
  readonly commits: DemoCommit[] = []
  fences = 0
  /** How many times as fast as the machine's the clock runs, once it does. */
  speed = Infinity
  #job: RunningJob | undefined
  readonly #session: TieringSession
  readonly #options: DemoOptions
  readonly #draining: AbortController
  /** Lets time run for the first time. */
  readonly #release: () => void
  #failure: Error | undefined
  #failures = 0
  /** Tables whose next round was asked for while draining. */
  readonly #asked = new Set<string>()
  #wake: () => void = () => undefined

  private constructor(
    options: DemoOptions,
    made: {
      readonly clock: PacedClock
      readonly store: ObjectStore
      readonly session: TieringSession
      readonly parts: readonly DemoPart[]
      readonly draining: AbortController
      readonly release: () => void
    },
  ) {
    this.#options = options
    this.clock = made.clock
    this.store = made.store
    this.parts = made.parts
    this.#session = made.session
    this.#draining = made.draining
    this.#release = made.release
  }

  /** Makes the tables. Time is `createdAt` and runs from the first `play` on. */
  static async open(options: DemoOptions): Promise<DemoWorld> {
    const { warehouse, realNow } = options
    // Nothing the demo writes may lie in the future when somebody looks at it.
    const startsAt = Math.floor(options.wallNow - options.durationMs - 120_000)
    const clock = new PacedClock({
      realNow,
      wallBase: startsAt + createdAt * 1000,
      speed: Infinity,
    })
    const release = clock.hold()
    const chance = seededChance(options.seed)
    const opened = await openWarehouse(warehouse, { clock, chance, ids: systemIds })
    const store = pausingStore(opened.store, clock)
    const catalog = fileCatalog({ store, warehouse, clock, ids: systemIds })
    const draining = new AbortController()
    // One listener for each split, and one for each table.
    setMaxListeners(0, draining.signal, options.signal)
    const session = new TieringSession(
      {
        lake: { ...opened, store, catalog },
        ...dividedMemory(768 * 1024 ** 2),
        readers: options.readers,
        aroundRunner: (runner) => pacedRunner(runner, clock, draining.signal),
      },
      { clock, chance, ids: systemIds, journal: options.journal },
    )
    const parts: DemoPart[] = []
    for (const table of demoTables) {
      const { table: lake } = await catalog.create({
        name: ['demo', table.name],
        schema: table.schema,
        bucketCount: table.buckets,
        ...(table.bucketKey === undefined ? {} : { bucketKey: table.bucketKey }),
        properties: new Map([['table.datalake.freshness', `${table.freshness.toString()}s`]]),
      })
      const session_ = await session.openTable({
        name: `demo.${table.name}`,
        lake,
        definition: {
          schema: table.schema,
          bucketCount: table.buckets,
          bucketKey: table.bucketKey,
          freshnessMs: table.freshness * 1000,
        },
        start: 'waits-one-freshness',
      })
      parts.push(partOf(table, session_, { options, clock, session, startsAt, draining }))
    }
    return new DemoWorld(options, { clock, store, session, parts, draining, release })
  }

  /** Seconds of demo time; 0 is when the job starts. */
  now(): number {
    return createdAt + this.clock.monotonic() / 1000
  }

  view(): JobView | undefined {
    return this.#job?.view()
  }

  /** Produces and tiers until everything is in the lake. @throws what ended it early */
  async play(listener: DemoListener): Promise<void> {
    const { clock } = this
    const { signal } = this.#options
    const ends = this.parts.map(({ producer }) => producer.run())
    const produced = Promise.all(ends)
    produced.catch((error: unknown) => {
      this.#fail(error)
    })
    // The first five minutes are the tables' first wait; nobody wants to watch it.
    const waited = clock.sleep(-createdAt * 1000, { order: order.sweep, signal })
    this.#release()
    await waited
    this.speed = this.#options.speed()
    clock.setSpeed(this.speed)
    this.#session.listen((event) => {
      this.#hear(event, listener)
    })
    const job = this.#session.start(() => this.#draining.signal.aborted)
    this.#job = job
    job.done.catch((error: unknown) => {
      this.#fail(error)
    })
    await Promise.race([produced, this.#failed()])
    // What is due at the last moment still happens as in the walkthrough.
    await clock.sleep(0, { order: order.request, signal })
    this.#draining.abort()
    await this.#drain()
  }

  async close(): Promise<void> {
    this.#draining.abort()
    await this.#job?.stop(0)
    this.#session.close()
  }

  async #drain(): Promise<void> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure
      this.#options.signal.throwIfAborted()
      const waiting = this.parts.filter(
        ({ opened }) => !this.#session.source.endsAt(opened.table.id, new Map()),
      )
      if (waiting.length === 0) return
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      for (const { opened } of waiting) {
        // Once for each round: a second request would be another round, of nothing.
        if (this.#asked.has(opened.table.name)) continue
        this.#asked.add(opened.table.name)
        this.#session.coordinator.trigger(opened.table.id)
      }
      await woken
    }
  }

  #hear(event: TieringEvent, listener: DemoListener): void {
    const at = this.now()
    const part = this.parts.find(({ opened }) => opened.table.name === event.table)
    let commit: DemoCommit | undefined
    if (event.event === 'state' && event.state === 'Tiering' && part !== undefined) {
      part.cutAt = at
    }
    if (event.event === 'committed' && part !== undefined) {
      commit = { ...event, at, peakLag: at - part.visibleUntil }
      this.commits.push(commit)
      this.#failures = 0
      part.rowsInLake += event.rows
      part.visibleUntil = Math.min(part.cutAt, this.#options.durationMs / 1000)
    }
    if (event.event === 'rejected') this.#rejected(event.error)
    if (event.event !== 'state') this.#asked.delete(event.table)
    listener(event, at, commit)
    this.#wake()
  }

  #rejected(error: SluiceError): void {
    if (isSluiceError(error, 'COMMIT_FENCED')) this.fences += 1
    this.#failures += 1
    if (!isPassing(error) || this.#failures > 3) this.#fail(error)
  }

  #onFail: (error: unknown) => void = () => undefined

  #fail(error: unknown): void {
    this.#failure ??= error instanceof Error ? error : new Error(String(error))
    this.#onFail(this.#failure)
    this.#wake()
  }

  #failed(): Promise<never> {
    return new Promise((_, reject) => {
      this.#onFail = reject
      this.#options.signal.addEventListener('abort', () => {
        reject(new DOMException('stopped', 'AbortError'))
      })
      if (this.#failure !== undefined) reject(this.#failure)
    })
  }
}

function partOf(
  table: DemoTable,
  opened: SessionTable,
  around: {
    readonly options: DemoOptions
    readonly clock: PacedClock
    readonly session: TieringSession
    readonly startsAt: number
    readonly draining: AbortController
  },
): DemoPart {
  const { options, clock, session, startsAt } = around
  const id: TableId = opened.table.id
  const chance: Chance = seededChance(options.seed * 31 + table.name.length)
  const producer = new DemoProducer({
    table,
    id,
    source: session.source,
    clock,
    chance,
    startsAt,
    until: options.durationMs / 1000,
    signal: options.signal,
  })
  return { table, opened, producer, rowsInLake: 0n, visibleUntil: table.from, cutAt: table.from }
}

/** Demo time between two looks at whether a split was told to stop. */
const lookMs = 1000

/** Makes each split last as long as in the walkthrough, whatever it took to write. */
function pacedRunner(runner: SplitRunner, clock: PacedClock, draining: AbortSignal): SplitRunner {
  return {
    discard: (results) => runner.discard(results),
    run: async (plan, split, stop) => {
      const endsAt = clock.monotonic() + secondsOf(plan.table.name, split.isFirst) * 1000
      const release = clock.hold()
      let result
      try {
        result = await runner.run(plan, split, stop)
      } finally {
        release()
      }
      try {
        for (let left = endsAt - clock.monotonic(); left > 0; left = endsAt - clock.monotonic()) {
          if (stop.stopped) break
          const duration = Math.min(lookMs, left)
          await clock.sleep(duration, { order: order.result, signal: draining })
        }
      } catch (error) {
        if (!isSluiceError(error, 'STOPPED')) throw error
      }
      return result
    },
  }
}

function secondsOf(name: string, isFirst: boolean): number {
  const table = demoTables.find((each) => `demo.${each.name}` === name)
  if (table === undefined) return 0
  return isFirst ? table.splitSeconds.first : table.splitSeconds.later
}
