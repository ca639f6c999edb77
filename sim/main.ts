import { execFileSync, fork } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { addTally, type Batch, emptyTally, runBatch, type Tally } from './batch.ts'
import { expectedMarks, largeSet } from './expected-marks.ts'
import { drawPlan, type Plan, type Scenario, scenarios } from './plan.ts'
import { plantOf, plants } from './plants.ts'
import {
  failureLines,
  isFine,
  type PlantedReport,
  planText,
  reportJson,
  reportLines,
  type SimReport,
} from './report.ts'
import { runPlan } from './run.ts'
import { shrinkPlan, sizeOf } from './shrink.ts'
import type { WorkerMessage } from './worker.ts'

const usage = `npm run sim -- [options]
  --seed N        first seed (1)
  --seeds N       how many (1000, or as many as fit into --minutes)
  --minutes M     stop after so long
  --scenario S    ${scenarios.join(', ')} (all)
  --plan FILE     replay one plan, such as a failure wrote
  --plant NAME    put a bug in: ${plants.map(({ name }) => name).join(', ')}
  --planted       afterwards look for every planted bug
  --workers N     processes (2)
  --json          one JSON document`

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string' },
    minutes: { type: 'string' },
    scenario: { type: 'string', default: 'all' },
    plan: { type: 'string' },
    plant: { type: 'string' },
    planted: { type: 'boolean', default: false },
    workers: { type: 'string', default: '2' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

process.exitCode = await main()

async function main(): Promise<number> {
  if (values.help) {
    say(usage)
    return 0
  }
  const scenario = scenarios.find((each) => each === values.scenario)
  const plant = values.plant === undefined ? undefined : plantOf(values.plant)
  if (scenario === undefined || (values.plant !== undefined && plant === undefined)) {
    say(usage)
    return 2
  }
  if (values.plan !== undefined) return replay(values.plan)
  const first = whole(values.seed)
  const minutes = values.minutes === undefined ? undefined : Number(values.minutes)
  const seeds =
    values.seeds === undefined ? (minutes === undefined ? 1000 : 2 ** 31) : whole(values.seeds)
  const startedAt = Date.now()
  const until = minutes === undefined ? {} : { until: startedAt + minutes * 60_000 }
  const workers = whole(values.workers)
  const shownSeeds = seeds === 2 ** 31 ? '…' : String(first + seeds - 1)
  note(
    `sim  commit ${commitName()}  node ${process.versions.node}  scenario ${scenario}  ` +
      `seeds ${first}…${shownSeeds} (${workers} workers)`,
  )
  const tally = await inWorkers(workers, {
    first,
    step: 1,
    seeds,
    ...until,
    scenario: plant?.scenario ?? scenario,
    ...(plant === undefined ? {} : { plant: plant.name }),
    againEvery: 100,
  })
  const planted = values.planted ? await lookForPlants() : []
  const isLarge = tally.seeds >= largeSet && scenario === 'all' && plant === undefined
  const report: SimReport = {
    commit: commitName(),
    node: process.versions.node,
    scenario,
    firstSeed: first,
    seconds: (Date.now() - startedAt) / 1000,
    tally,
    missing: isLarge ? expectedMarks.filter((name) => tally.marks[name] === undefined) : [],
    planted,
    violations: await explain(tally, plant?.scenario ?? scenario),
  }
  if (values.json) process.stdout.write(`${reportJson(report)}\n`)
  else for (const line of reportLines(report)) say(line)
  return isFine(report) ? 0 : 1
}

/** Shares seeds among processes; a violation in one lets the others finish what they have. */
async function inWorkers(count: number, batch: Batch): Promise<Tally> {
  const tally = emptyTally()
  const file = import.meta.filename.endsWith('.ts') ? 'worker.ts' : 'worker.js'
  const one = (index: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const child = fork(join(import.meta.dirname, file))
      child.on('message', (message: WorkerMessage) => {
        if ('part' in message) addTally(tally, message.part)
      })
      child.on('exit', (code) => {
        if (code === 0) resolve()
        else reject(new Error(`a worker of the simulation ended with ${String(code)}`))
      })
      const share: Batch = {
        ...batch,
        first: batch.first + index,
        step: count,
        seeds: Math.ceil((batch.seeds - index) / count),
      }
      child.send(share)
    })
  await Promise.all(Array.from({ length: count }, (_, index) => one(index)))
  tally.violations.sort((a, b) => a.seed - b.seed)
  return tally
}

async function lookForPlants(): Promise<readonly PlantedReport[]> {
  const planted: PlantedReport[] = []
  Error.stackTraceLimit = 0
  for (const { name, scenario, seedsMax } of plants) {
    const tally = emptyTally()
    const batch = { first: 1, step: 1, seeds: seedsMax, scenario, plant: name }
    await runBatch(batch, Date.now, (part) => {
      addTally(tally, part)
    })
    const seed = tally.violations[0]?.seed
    planted.push({ name, found: seed !== undefined, seed })
  }
  return planted
}

async function explain(tally: Tally, scenario: Scenario): Promise<SimReport['violations']> {
  const explained: { invariant: string; seed: number; planFile: string }[] = []
  for (const { seed, invariant, message } of tally.violations.slice(0, 3)) {
    const plan = drawPlan(seed, scenario, values.plant)
    const seams = seamsOf(plan)
    const small =
      invariant === 'determinism' ? plan : await shrinkPlan(plan, invariant, seams.seams)
    const planFile = `sim-failure-${seed}.json`
    writeFileSync(planFile, planText(small))
    const { lines } = await runPlan(small, { ...seams, recording: true })
    const sizes = { before: sizeOf(plan), after: sizeOf(small) }
    for (const line of failureLines({ invariant, message, seed, planFile, ...sizes }, lines)) {
      note(line)
    }
    explained.push({ invariant, seed, planFile })
  }
  return explained
}

async function replay(file: string): Promise<number> {
  const plan = readPlan(file)
  const outcome = await runPlan(plan, { ...seamsOf(plan), recording: true })
  for (const line of outcome.lines) say(line)
  const { violation } = outcome
  say(
    violation === undefined
      ? `✓ no violation, ${outcome.commits} versions, trace ${outcome.traceHash}`
      : `✗ ${violation.invariant} ${violation.message}`,
  )
  return violation === undefined ? 0 : 1
}

/** Plans are files of this program; one that is not fails where it is used. */
function readPlan(file: string): Plan {
  const plan: unknown = JSON.parse(readFileSync(file, 'utf8'))
  if (!isPlan(plan)) throw new Error(`${file} is no plan of the simulation`)
  return plan
}

function isPlan(value: unknown): value is Plan {
  return (
    typeof value === 'object' &&
    value !== null &&
    'schema' in value &&
    value.schema === 'sluice.sim-plan/1'
  )
}

function seamsOf(plan: Plan): Parameters<typeof runPlan>[1] & object {
  const seams = plan.plant === undefined ? undefined : plantOf(plan.plant)?.seams
  return seams === undefined ? {} : { seams }
}

function commitName(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
  } catch {
    return 'unknown'
  }
}

function whole(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new Error(`${text} is no whole number`)
  return Number.parseInt(text, 10)
}

/** For people; with `--json` beside the document and not in it. */
function note(line: string): void {
  if (values.json) process.stderr.write(`${line}\n`)
  else say(line)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
