import { execFileSync, fork } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { addOutcome, addTally, type Batch, emptyTally, runBatch, type Tally } from './batch.ts'
import { expectedMarks, largeSet } from './expected-marks.ts'
import { readOptions, type SimOptions, usage } from './options.ts'
import { drawPlan, type Plan } from './plan.ts'
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

const read = readOptions(process.argv.slice(2), Math.random())
switch (read.kind) {
  case 'help':
    say(usage)
    break
  case 'refused':
    process.stderr.write(`${read.why}\n${usage}\n`)
    process.exitCode = 2
    break
  case 'run': {
    const { planFile } = read.options
    process.exitCode =
      planFile === undefined ? await run(read.options) : await replay(planFile, read.options)
  }
}

/** More seeds than any time is enough for. */
const seedsMax = 2 ** 31

async function run(options: SimOptions): Promise<number> {
  const { firstSeed, seeds, minutes, scenario, plant, workers } = options
  const startedAt = Date.now()
  const shownSeeds = seeds === undefined ? '' : String(firstSeed + seeds - 1)
  note(
    `sim  commit ${commitName()}  node ${process.versions.node}  scenario ${scenario}  ` +
      `seeds ${firstSeed}…${shownSeeds} (${workers} workers)`,
    options,
  )
  const tally = await inWorkers(workers, {
    first: firstSeed,
    step: 1,
    seeds: seeds ?? seedsMax,
    ...(minutes === undefined ? {} : { until: startedAt + minutes * 60_000 }),
    scenario,
    ...(plant === undefined ? {} : { plant: plant.name }),
    againEvery: 100,
  })
  const planted = options.isPlanted ? await lookForPlants() : []
  const isLarge = tally.seeds >= largeSet && scenario === 'all' && plant === undefined
  return tell(
    {
      commit: commitName(),
      node: process.versions.node,
      firstSeed,
      seconds: (Date.now() - startedAt) / 1000,
      tally,
      missing: isLarge ? expectedMarks.filter((name) => tally.marks[name] === undefined) : [],
      planted,
      violations: await explain(tally, options),
    },
    options,
  )
}

function tell(report: SimReport, { isJson }: SimOptions): number {
  if (isJson) process.stdout.write(`${reportJson(report)}\n`)
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

/** Their plans are made smaller, but not for long. */
async function lookForPlants(): Promise<readonly PlantedReport[]> {
  const planted: PlantedReport[] = []
  Error.stackTraceLimit = 0
  for (const { name, scenario, seedsMax: seeds, seams } of plants) {
    const tally = emptyTally()
    const batch = { first: 1, step: 1, seeds, scenario, plant: name }
    await runBatch(batch, Date.now, (part) => {
      addTally(tally, part)
    })
    const [found] = tally.violations
    if (found === undefined) {
      planted.push({ name, found: false, seed: undefined, plan: undefined })
      continue
    }
    const { seed, invariant } = found
    const plan = await shrinkPlan(drawPlan(seed, scenario, name), invariant, seams, 40)
    planted.push({ name, found: true, seed, plan })
  }
  return planted
}

async function explain(tally: Tally, options: SimOptions): Promise<SimReport['violations']> {
  const explained: { invariant: string; seed: number; planFile: string }[] = []
  for (const { seed, invariant, message } of tally.violations.slice(0, 3)) {
    const plan = drawPlan(seed, options.scenario, options.plant?.name)
    const seams = seamsOf(plan)
    const small =
      invariant === 'determinism' ? plan : await shrinkPlan(plan, invariant, seams.seams)
    const planFile = `sim-failure-${seed}.json`
    writeFileSync(planFile, planText(small))
    const { lines } = await runPlan(small, { ...seams, recording: true })
    const sizes = { before: sizeOf(plan), after: sizeOf(small) }
    for (const line of failureLines({ invariant, message, seed, planFile, ...sizes }, lines)) {
      note(line, options)
    }
    explained.push({ invariant, seed, planFile })
  }
  return explained
}

async function replay(file: string, options: SimOptions): Promise<number> {
  const plan = readPlan(file)
  if (plan === undefined) {
    process.stderr.write(`${file} is no plan of the simulation\n`)
    return 2
  }
  const startedAt = Date.now()
  const outcome = await runPlan(plan, { ...seamsOf(plan), recording: true })
  for (const line of outcome.lines) note(line, options)
  const { violation } = outcome
  note(
    violation === undefined
      ? `✓ no violation, ${outcome.commits} versions, trace ${outcome.traceHash}`
      : `✗ ${violation.invariant} ${violation.message}`,
    options,
  )
  const tally = emptyTally()
  addOutcome(tally, plan.seed, outcome)
  const report: SimReport = {
    commit: commitName(),
    node: process.versions.node,
    firstSeed: plan.seed,
    seconds: (Date.now() - startedAt) / 1000,
    tally,
    missing: [],
    planted: [],
    violations: tally.violations.map(({ invariant, seed }) => ({
      invariant,
      seed,
      planFile: file,
    })),
  }
  if (options.isJson) return tell(report, options)
  return isFine(report) ? 0 : 1
}

/** Plans are files of this program, so only that a file is one is looked at. */
function readPlan(file: string): Plan | undefined {
  try {
    const plan: unknown = JSON.parse(readFileSync(file, 'utf8'))
    return isPlan(plan) ? plan : undefined
  } catch {
    return undefined
  }
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
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], {
      cwd: import.meta.dirname,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  } catch {
    return 'unknown'
  }
}

/** For people; with `--json` beside the document and not in it. */
function note(line: string, { isJson }: SimOptions): void {
  if (isJson) process.stderr.write(`${line}\n`)
  else say(line)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
