import { isSluiceError, type SluiceError } from '../src/core/errors.ts'
import { columnarEncoder } from '../src/sink/parquet/columnar.ts'
import { inputsOf } from './inputs.ts'
import { jsonEncoder } from './json-encoder.ts'
import { type Author, TableOracle } from './oracle/table-oracle.ts'
import { Violation } from './oracle/violation.ts'
import { appendForeign, expire, rewriteForeign, rollBack } from './people.ts'
import type { Plan, WorldEvent } from './plan.ts'
import { type ProcessWatcher, SimProcess, type SimTable, warehouse } from './process.ts'
import { Random } from './random.ts'
import type { Seams } from './seams.ts'
import { SimStore } from './sim-store.ts'
import { nobody, type Pid, World } from './world.ts'

/** What came of one run. */
export type Outcome = {
  readonly violation: { readonly invariant: string; readonly message: string } | undefined
  readonly traceHash: string
  readonly simulatedMs: number
  readonly commits: number
  readonly calls: number
  readonly deliveries: number
  readonly marks: ReadonlyMap<string, number>
  readonly lines: readonly string[]
  /** A table ended with an error that only an operator can settle. */
  readonly isStuck: boolean
}

/** How long everything may take once nothing new goes wrong. */
const healedMs = 1_500_000
/** How long a request may still be under way after that. */
const lateMs = 260_000

/** Real Parquet; files of the simulation are not compressed. */
const parquetEncoder = columnarEncoder(() => {
  throw new Error('the simulation compresses nothing')
})

/** Causes that stay until a person decides. */
const stuckCodes: ReadonlySet<string> = new Set(['PROGRESS_LOST', 'TABLE_REPLACED'])

type Running = { readonly pid: Pid; readonly process: SimProcess; readonly startedAt: number }

/** Runs one plan from its first to its last event, and judges every version on the way. */
export function runPlan(
  plan: Plan,
  options: { readonly seams?: () => Seams; readonly recording?: boolean } = {},
): Promise<Outcome> {
  return new Run(plan, options.seams ?? (() => ({})), options.recording ?? false).toTheEnd()
}

class Run {
  readonly #plan: Plan
  readonly #seams: () => Seams
  readonly #world: World
  readonly #store: SimStore
  readonly #random: Random
  readonly #tables: readonly SimTable[]
  readonly #oracles: ReadonlyMap<string, TableOracle>
  readonly #marks = new Map<string, number>()
  readonly #running = new Map<number, Running>()
  readonly #hung = new Set<Running>()
  #violation: Violation | undefined
  #checks: (() => Promise<void>)[] = []
  #author: Author = 'sluice'
  #isHealed = false
  #doneAt: number | undefined
  #runsToEnd: number
  #isStuck = false

  constructor(plan: Plan, seams: () => Seams, recording: boolean) {
    this.#plan = plan
    this.#seams = seams
    this.#world = new World(plan.seed, recording)
    this.#random = new Random(plan.seed ^ 0x6d2b79f5)
    this.#runsToEnd = plan.events.some((event) => event.kind === 'rollback') ? 2 : 1
    this.#tables = Array.from({ length: plan.options.tables }, (_, at) => ({
      name: `demo.t${at}`,
      inputs: inputsOf(plan.options, at),
    }))
    this.#store = new SimStore(this.#world, {
      seed: plan.seed,
      faults: plan.faults,
      watcher: {
        wrote: (location, body, before) => {
          this.#wrote(location, body, before)
        },
        removed: (location) => {
          this.#judging(() => this.#oracleOf(location)?.removed(location))
        },
        fault: (kind) => {
          this.#mark(`fault.${kind}`)
        },
      },
    })
    this.#oracles = new Map(
      this.#tables.map((table) => [
        folderOf(table.name),
        new TableOracle(this.#store.objects, table.inputs),
      ]),
    )
  }

  async toTheEnd(): Promise<Outcome> {
    const { options, events } = this.#plan
    const world = this.#world
    world.onKilled = (pid) => {
      this.#died(pid)
    }
    for (let place = 0; place < options.places; place += 1) {
      world.later(nobody, place === 0 ? 0 : this.#random.below(20_000), () => {
        this.#start(place)
      })
    }
    for (const event of events) {
      world.later(nobody, event.at, () => {
        this.#happens(event)
      })
    }
    world.later(nobody, options.chaosMs, () => {
      this.#heal()
    })
    await world.run(
      options.chaosMs + healedMs,
      () => this.#settled(),
      () => this.#violation !== undefined || this.#isOver(),
    )
    this.#checkEnd()
    return {
      violation: this.#violation && {
        invariant: this.#violation.invariant,
        message: this.#violation.message,
      },
      traceHash: world.traceHash,
      simulatedMs: world.now,
      commits: [...this.#oracles.values()].reduce((sum, oracle) => sum + oracle.versions, 0),
      calls: this.#store.calls,
      deliveries: world.deliveries,
      marks: this.#marks,
      lines: world.lines,
      isStuck: this.#isStuck,
    }
  }

  #start(place: number): void {
    if (this.#doneAt !== undefined || (this.#isHealed && place > 0)) return
    const world = this.#world
    const pid = world.spawn()
    const process = new SimProcess({
      world,
      pid,
      store: this.#store.client(pid),
      options: this.#plan.options,
      tables: this.#tables,
      seams: this.#seams(),
      encoder: this.#plan.options.encoder === 'json' ? jsonEncoder : parquetEncoder,
      watcher: this.#watcher(pid),
      closesAt: this.#plan.options.chaosMs,
    })
    world.say(`process ${pid}  starts in place ${place}`)
    const running = { pid, process, startedAt: world.now }
    this.#running.set(place, running)
    process.run().then(
      (error) => {
        if (world.isAlive(pid)) this.#ended(place, running, error)
      },
      (error: unknown) => {
        this.#fail(new Violation('A', brokenText(error)))
      },
    )
  }

  #ended(place: number, running: Running, error: SluiceError | undefined): void {
    const { pid } = running
    this.#world.say(`process ${pid}  ends: ${error === undefined ? 'all is in' : error.message}`)
    this.#mark(error === undefined ? 'process.done' : `exit.${error.code}`)
    this.#hung.delete(running)
    if (this.#running.get(place) !== running) return
    this.#running.delete(place)
    if (error !== undefined && stuckCodes.has(error.code)) this.#isStuck = true
    if (error?.code === 'LOG_TRUNCATED') {
      this.#fail(new Violation('I-29', `the log dropped what is not in the lake: ${error.message}`))
    }
    if (this.#isHealed && (error === undefined || this.#isStuck)) {
      if (place > 0) return
      // A rollback behind the back of a process whose work was done is found by the next one.
      this.#runsToEnd -= 1
      if (this.#runsToEnd > 0 && !this.#isStuck) this.#restart(place)
      else this.#doneAt = this.#world.now
      return
    }
    // Whoever was fenced is not started again at once: the newest process is to win.
    this.#restart(place, error?.code === 'COMMIT_FENCED' ? 60_000 : 0)
  }

  #restart(place: number, least = 0): void {
    const delay = least + 1_000 + this.#random.below(20_000)
    this.#world.later(nobody, delay, () => {
      if (!this.#running.has(place)) this.#start(place)
    })
  }

  #died(pid: Pid): void {
    for (const [place, running] of this.#running) {
      if (running.pid !== pid) continue
      this.#running.delete(place)
      this.#restart(place)
    }
  }

  #heal(): void {
    this.#isHealed = true
    this.#store.heal()
    for (const { process } of this.#running.values()) process.heal()
    this.#world.say('from here on nothing new goes wrong')
  }

  #happens(event: WorldEvent): void {
    if (this.#isHealed) return
    const running = this.#running.get(event.place)
    const done = this.#act(event, running)
    if (!done) return
    this.#mark(`event.${event.kind}`)
    this.#world.say(`${event.kind}, place ${event.place}, ${event.ms} ms`)
  }

  /** @returns false when there was nothing it could happen to */
  #act(event: WorldEvent, running: Running | undefined): boolean {
    const world = this.#world
    switch (event.kind) {
      case 'kill':
        if (running === undefined) return false
        world.killAtDelivery(running.pid, world.deliveriesOf(running.pid) + (event.delivery ?? 1))
        return true
      case 'pause':
        if (running === undefined) return false
        this.#pause(event, running)
        return true
      case 'clock-jump':
        if (running === undefined) return false
        world.shiftWall(running.pid, event.ms)
        return true
      case 'partition':
        if (running === undefined || !this.#plan.options.remoteCoordinator) return false
        running.process.cutCoordinator(event.ms)
        return true
      case 'coordinator-restart':
        if (running === undefined) return false
        void running.process.restartCoordinator()
        return true
      case 'storm-503':
        this.#store.storm(event.ms)
        return true
      case 'disk-full':
        this.#store.fillDisk(event.ms)
        return true
      case 'foreign-append':
      case 'foreign-rewrite':
      case 'rollback':
      case 'expire':
        return this.#people(event)
    }
  }

  /** A process that hangs looks dead: half of the time somebody starts another beside it. */
  #pause(event: WorldEvent, running: Running): void {
    this.#world.pause(running.pid, event.ms)
    if (event.ms % 2 === 0) return
    this.#running.delete(event.place)
    this.#hung.add(running)
    this.#restart(event.place)
  }

  #people(event: WorldEvent): boolean {
    const table = this.#tables[event.place]
    if (table === undefined) return false
    const place = {
      world: this.#world,
      store: this.#store,
      random: this.#random,
      folder: folderOf(table.name),
    }
    switch (event.kind) {
      case 'foreign-append':
        this.#author = 'foreign-append'
        appendForeign(place, table.name.split('.')).catch(() => false)
        // All of it happens before the next delivery, and is judged after it.
        return true
      case 'foreign-rewrite':
        return this.#as('foreign-rewrite', () => rewriteForeign(place))
      case 'rollback':
        return this.#as('rollback', () => rollBack(place))
      case 'expire':
        return this.#as('expire', () => expire(place, event.ms % 5 === 0 ? 'head' : 'own'))
      default:
        return false
    }
  }

  #as(author: Author, work: () => boolean): boolean {
    this.#author = author
    const done = work()
    this.#author = 'sluice'
    return done
  }

  #wrote(location: string, body: Uint8Array, before: Uint8Array | undefined): void {
    const oracle = this.#oracleOf(location)
    if (oracle === undefined || location.endsWith('version-hint.text')) return
    if (before !== undefined && Buffer.compare(before, body) !== 0) {
      const invariant = location.includes('/data/') ? 'I-17' : 'I-16'
      this.#fail(new Violation(invariant, `${location} was written over`))
      return
    }
    const version = /\/metadata\/v(\d+)\.metadata\.json$/.exec(location)?.[1]
    if (version === undefined) return
    const author = this.#author
    this.#world.mixText(version)
    if (this.#world.isRecording) this.#world.say(`v${version} is there, by ${author}`)
    this.#checks.push(() => oracle.check(Number(version), body, author))
  }

  async #runChecks(): Promise<void> {
    const checks = this.#checks
    this.#checks = []
    this.#author = 'sluice'
    for (const check of checks) {
      try {
        await check()
      } catch (error) {
        if (!(error instanceof Violation)) throw error
        this.#fail(error)
      }
    }
  }

  #settled(): Promise<void> | undefined {
    return this.#checks.length === 0 ? undefined : this.#runChecks()
  }

  #watcher(pid: Pid): ProcessWatcher {
    return {
      mark: (name) => {
        this.#mark(name)
      },
      concluded: (_plan, results, outcome) => {
        if (!this.#world.isAlive(pid)) return
        const files = results.flatMap((result) => result.files.map((file) => file.location))
        const oracle = this.#oracleOf(files[0] ?? '')
        if (outcome.kind === 'committed') {
          if (outcome.alreadyApplied) this.#mark('commit.recognized')
          if (outcome.attempts > 1) this.#mark('commit.again')
          this.#judging(() => oracle?.committed(files, String(outcome.snapshotId)))
        } else if (outcome.kind === 'rejected' && outcome.error.effect === 'none') {
          this.#judging(() => oracle?.disowned(files))
        } else if (outcome.kind === 'unknown') this.#mark('commit.unknown')
      },
    }
  }

  #judging(judge: () => unknown): void {
    try {
      judge()
    } catch (error) {
      if (!(error instanceof Violation)) throw error
      this.#fail(error)
    }
  }

  #oracleOf(location: string): TableOracle | undefined {
    const folder = /^(.*)\/(?:metadata|data)\//.exec(location)?.[1]
    return folder === undefined ? undefined : this.#oracles.get(folder)
  }

  #isOver(): boolean {
    const done = this.#doneAt
    if (done === undefined) return false
    if (this.#world.now > done + lateMs) return true
    return this.#running.size === 0 && this.#hung.size === 0 && this.#plan.faults.length === 0
  }

  #checkEnd(): void {
    if (this.#violation !== undefined || this.#isStuck) return
    if (this.#doneAt === undefined) {
      this.#fail(new Violation('I-32', 'not everything was in long after faults had ended'))
      return
    }
    for (const oracle of this.#oracles.values()) {
      this.#judging(() => {
        oracle.atTheEnd()
      })
    }
  }

  #fail(violation: Violation): void {
    if (this.#violation !== undefined) return
    this.#violation = violation
    this.#world.say(`${violation.invariant}: ${violation.message}`)
  }

  #mark(name: string): void {
    this.#marks.set(name, (this.#marks.get(name) ?? 0) + 1)
  }
}

function folderOf(name: string): string {
  return `${warehouse}/${name.split('.').join('/')}`
}

function brokenText(error: unknown): string {
  if (isSluiceError(error)) return `${error.code}: ${error.message}`
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
