import { drawPlan, type Scenario } from './plan.ts'
import { plantOf } from './plants.ts'
import { type Outcome, runPlan } from './run.ts'

export type Batch = {
  readonly first: number
  /** From one seed to the next, so that several workers share a range. */
  readonly step: number
  readonly seeds: number
  /** Stops early at this time, in milliseconds since 1970. */
  readonly until?: number
  readonly scenario: Scenario
  readonly plant?: string
  /** One seed in so many is run again and has to go the same way. */
  readonly againEvery?: number
}

/** What a number of runs came to; adds up. */
export type Tally = {
  seeds: number
  simulatedMs: number
  commits: number
  rechecked: number
  stuck: number
  /** Of all traces together, whatever their order. Equal for equal seeds on every machine. */
  trace: number
  marks: Record<string, number>
  violations: { seed: number; invariant: string; message: string }[]
}

export function emptyTally(): Tally {
  return {
    seeds: 0,
    simulatedMs: 0,
    commits: 0,
    rechecked: 0,
    stuck: 0,
    trace: 0,
    marks: {},
    violations: [],
  }
}

export function addTally(to: Tally, more: Tally): void {
  to.seeds += more.seeds
  to.simulatedMs += more.simulatedMs
  to.commits += more.commits
  to.rechecked += more.rechecked
  to.stuck += more.stuck
  to.trace = (to.trace + more.trace) >>> 0
  for (const [name, count] of Object.entries(more.marks)) {
    to.marks[name] = (to.marks[name] ?? 0) + count
  }
  to.violations.push(...more.violations)
}

/** Violations after which a batch ends: more would say the same. */
const violationsMax = 3

/** Runs seeds until their number, the time, or a violation ends it; tells every now and then. */
export async function runBatch(
  batch: Batch,
  now: () => number,
  tell: (part: Tally) => void,
): Promise<void> {
  const seams = batch.plant === undefined ? undefined : plantOf(batch.plant)?.seams
  let part = emptyTally()
  let broken = 0
  for (let done = 0; done < batch.seeds; done += 1) {
    if (batch.until !== undefined && now() > batch.until) break
    const seed = batch.first + done * batch.step
    const plan = drawPlan(seed, batch.scenario, batch.plant)
    const run = (): Promise<Outcome> => runPlan(plan, seams === undefined ? {} : { seams })
    const outcome = await run()
    addOutcome(part, seed, outcome)
    if (outcome.violation !== undefined) broken += 1
    if (batch.againEvery !== undefined && seed % batch.againEvery === 0) {
      part.rechecked += 1
      const again = await run()
      if (fingerprint(again) !== fingerprint(outcome)) {
        broken += 1
        const message = `seed ${seed} went two ways: ${fingerprint(outcome)}, ${fingerprint(again)}`
        part.violations.push({ seed, invariant: 'determinism', message })
      }
    }
    if (broken > 0 && (batch.plant !== undefined || broken >= violationsMax)) break
    if (part.seeds >= 25) {
      tell(part)
      part = emptyTally()
    }
  }
  tell(part)
}

export function addOutcome(tally: Tally, seed: number, outcome: Outcome): void {
  tally.seeds += 1
  tally.simulatedMs += outcome.simulatedMs
  tally.commits += outcome.commits
  tally.stuck += outcome.isStuck ? 1 : 0
  tally.trace = (tally.trace + Number.parseInt(outcome.traceHash, 16)) >>> 0
  for (const [name, times] of outcome.marks) tally.marks[name] = (tally.marks[name] ?? 0) + times
  if (outcome.violation !== undefined) tally.violations.push({ seed, ...outcome.violation })
}

/** Equal for equal runs, on every machine and every version of Node. */
export function fingerprint(outcome: Outcome): string {
  return `${outcome.traceHash}/${outcome.deliveries}/${outcome.simulatedMs}`
}
