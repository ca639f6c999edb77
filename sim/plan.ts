import { Random } from './random.ts'

/** What may become of one request to the store. */
export const faultKinds = [
  'reject-before',
  'lost-reply',
  'delayed-apply',
  'contended',
  'doubled',
  'slow',
  'short-read',
  'corrupt-read',
  'stale-read',
  'stale-list',
] as const
export type FaultKind = (typeof faultKinds)[number]

/** What else may happen to the world, at a time. */
export const eventKinds = [
  'kill',
  'pause',
  'clock-jump',
  'partition',
  'coordinator-restart',
  'storm-503',
  'disk-full',
  'foreign-append',
  'foreign-rewrite',
  'rollback',
  'expire',
] as const
export type EventKind = (typeof eventKinds)[number]

/** A fault belongs to the nth request, so that a plan can be made smaller by leaving entries out. */
export type StoreFault = {
  readonly call: number
  /** Counts only requests that create if absent, which is what a commit hangs on. */
  readonly ofCreates?: true
  /** What becomes of the next requests of the same process. */
  readonly then?: readonly FaultKind[]
  readonly kind: FaultKind
  /** How much later it is applied or answered. */
  readonly ms: number
}

export type WorldEvent = {
  /** Milliseconds after the start. */
  readonly at: number
  readonly kind: EventKind
  /** Which of the places that run processes; of operators, which table. */
  readonly place: number
  /** How long, or how far. */
  readonly ms: number
  /** Of a kill: in the place of the nth delivery from then on, and not at once. */
  readonly delivery?: number
}

export type PlanOptions = {
  readonly tables: number
  readonly buckets: number
  /** Places that run a process on the same tables. */
  readonly places: number
  readonly inputs: number
  readonly recordsPerInput: number
  readonly readers: number
  readonly freshnessMs: number
  /** How long the inputs grow, and faults happen. */
  readonly chaosMs: number
  readonly byKey: boolean
  readonly encoder: 'json' | 'columnar'
  /** Cuts the log into small reads, so that rounds end within what was appended at once. */
  readonly readBytesMax: number
  readonly targetFileBytes: number
  /** False: no fence is ever written. Rows have to be right without. */
  readonly fences: boolean
  /** Beats go over a network that can lose them. */
  readonly remoteCoordinator: boolean
  readonly logMemoryBytes: number
  /** Before each batch a reader gets, so that rounds reach their ceiling while they read. */
  readonly readPauseMs?: number
}

export const scenarios = ['calm', 'store', 'processes', 'people', 'all'] as const
export type Scenario = (typeof scenarios)[number]

/** Everything that decides a run. Equal plans give equal runs. */
export type Plan = {
  readonly schema: 'sluice.sim-plan/1'
  readonly scenario: Scenario
  readonly seed: number
  /** A bug that is planted on purpose. */
  readonly plant?: string
  readonly options: PlanOptions
  readonly faults: readonly StoreFault[]
  readonly events: readonly WorldEvent[]
}

/** Requests that a plan may disturb; a run makes fewer. */
const callsMax = 1500

/**
 * The plan of a seed. Each kind of fault is in or out with equal chance and then has a rate of its
 * own, so that some runs are all time-outs and others are calm.
 */
export function drawPlan(seed: number, scenario: Scenario, plant?: string): Plan {
  const random = new Random(seed)
  const options = drawOptions(random.fork())
  const faults = hasStoreFaults(scenario) ? drawFaults(random.fork()) : []
  const events = drawEvents(random.fork(), scenario, options)
  const plan = { schema: 'sluice.sim-plan/1', scenario, seed, options, faults, events } as const
  return plant === undefined ? plan : { ...plan, plant }
}

function hasStoreFaults(scenario: Scenario): boolean {
  return scenario === 'store' || scenario === 'all'
}

function drawOptions(random: Random): PlanOptions {
  const encoder = random.isLucky(0.05) ? 'columnar' : 'json'
  return {
    encoder,
    tables: random.isLucky(0.15) ? 2 : 1,
    buckets: random.between(1, 3),
    places: random.pick([1, 1, 2, 2, 3]),
    inputs: random.pick([1, 1, 2]),
    recordsPerInput: random.between(10, 60),
    readers: random.between(1, 3),
    freshnessMs: random.pick([10_000, 20_000, 40_000]),
    chaosMs: random.between(45, 180) * 1000,
    byKey: !random.isLucky(0.15),
    readBytesMax: random.pick([64, 200, 2 ** 20]),
    targetFileBytes: random.isLucky(0.2) ? 400 : 2 ** 20,
    fences: !random.isLucky(0.1),
    remoteCoordinator: random.isLucky(0.5),
    logMemoryBytes: random.isLucky(0.2) ? 3_000 : 2 ** 20,
    readPauseMs: random.pick([0, 0, 0, 0, 6_000]),
  }
}

function drawFaults(random: Random): readonly StoreFault[] {
  const rates = faultKinds.flatMap((kind) => {
    const rate = random.isLucky(0.5) ? (random.below(1000) / 1000) * rateMax[kind] : 0
    return rate === 0 ? [] : [{ kind, rate }]
  })
  const faults: StoreFault[] = []
  for (let call = 0; call < callsMax; call += 1) {
    // One number says whether this call fails, and how.
    let chance = random.fraction()
    const drawn = rates.find(({ rate }) => {
      chance -= rate
      return chance < 0
    })
    if (drawn === undefined) continue
    const { kind } = drawn
    faults.push({ call, kind, ms: drawDelay(random) })
    // A network that fails once often fails again.
    if (random.isLucky(0.5)) faults.push({ call: call + 1, kind, ms: drawDelay(random) })
  }
  return [...faults, ...drawCommitFaults(random)]
}

/** Faults at the moment that matters, often followed by more: a network that fails, fails for a while. */
function drawCommitFaults(random: Random): readonly StoreFault[] {
  const rate = random.isLucky(0.6) ? random.below(350) / 1000 : 0
  const faults: StoreFault[] = []
  for (let call = 1; call < 60; call += 1) {
    if (!random.isLucky(rate)) continue
    const then = Array.from({ length: random.pick([0, 0, 1, 2, 4, 12]) }, () =>
      random.pick(followKinds),
    )
    const kind = random.pick(createKinds)
    faults.push({ call, ofCreates: true, kind, ms: drawDelay(random), then })
  }
  return faults
}

const createKinds = ['lost-reply', 'delayed-apply', 'doubled', 'contended', 'slow'] as const
const followKinds = [
  'reject-before',
  'corrupt-read',
  'short-read',
  'stale-read',
  'delayed-apply',
] as const

/** As often short as long: what lands late has to meet what is tried next. */
function drawDelay(random: Random): number {
  return random.between(1, random.pick([300, 3_000, 30_000, 200_000]))
}

const rateMax: Readonly<Record<FaultKind, number>> = {
  'reject-before': 0.03,
  'lost-reply': 0.03,
  'delayed-apply': 0.03,
  contended: 0.06,
  doubled: 0.06,
  slow: 0.02,
  'short-read': 0.02,
  'corrupt-read': 0.02,
  'stale-read': 0.04,
  'stale-list': 0.1,
}

function drawEvents(
  random: Random,
  scenario: Scenario,
  options: PlanOptions,
): readonly WorldEvent[] {
  const kinds = eventKinds.filter(
    (kind) => belongsTo(kind, scenario) && random.isLucky(isOfStore(kind) ? 0.25 : 0.5),
  )
  if (kinds.length === 0) return []
  const events: WorldEvent[] = []
  const count = random.between(1, 8)
  for (let each = 0; each < count; each += 1) {
    const kind = kinds[random.below(kinds.length)]
    if (kind === undefined) continue
    const isOfTable = kind.startsWith('foreign') || kind === 'rollback' || kind === 'expire'
    events.push({
      at: random.between(1_000, options.chaosMs),
      kind,
      place: random.below(isOfTable ? options.tables : options.places),
      ms: lengthOf(kind, random),
      ...(kind === 'kill' ? { delivery: random.between(1, 60) } : {}),
    })
  }
  return events.sort((a, b) => a.at - b.at)
}

function isOfStore(kind: EventKind): boolean {
  return kind === 'storm-503' || kind === 'disk-full'
}

function belongsTo(kind: EventKind, scenario: Scenario): boolean {
  if (scenario === 'all') return true
  if (isOfStore(kind)) return scenario === 'store'
  const isOfPeople = kind.startsWith('foreign') || kind === 'rollback' || kind === 'expire'
  return scenario === (isOfPeople ? 'people' : 'processes')
}

function lengthOf(kind: EventKind, random: Random): number {
  if (kind === 'clock-jump') return random.pick([-86_400_000, -120_000, 120_000, 86_400_000])
  if (kind === 'pause') return random.between(30_000, 240_000)
  if (kind === 'partition') return random.between(20_000, 200_000)
  return random.between(2_000, 60_000)
}
