import type { Tally } from './batch.ts'
import type { Plan } from './plan.ts'

export type PlantedReport = {
  readonly name: string
  readonly found: boolean
  readonly seed: number | undefined
  /** The smallest that still finds it. */
  readonly plan: Plan | undefined
}

export type SimReport = {
  readonly commit: string
  readonly node: string
  readonly firstSeed: number
  readonly seconds: number
  readonly tally: Tally
  readonly missing: readonly string[]
  readonly planted: readonly PlantedReport[]
  readonly violations: readonly {
    readonly invariant: string
    readonly seed: number
    readonly planFile: string
  }[]
}

export function isFine(report: SimReport): boolean {
  return (
    report.violations.length === 0 &&
    report.missing.length === 0 &&
    report.planted.every((plant) => plant.found)
  )
}

/** `sluice.sim/1` */
export function reportJson(report: SimReport): string {
  const { tally } = report
  return JSON.stringify({
    schema: 'sluice.sim/1',
    ok: isFine(report),
    commit: report.commit,
    node: report.node,
    first_seed: report.firstSeed,
    seeds: tally.seeds,
    simulated_seconds: Math.round(tally.simulatedMs / 1000),
    seconds: report.seconds,
    commits_checked: tally.commits,
    faults: Object.fromEntries(faultsOf(tally)),
    marks: tally.marks,
    missing: report.missing,
    planted: report.planted.map(({ name, found, seed, plan }) => ({
      name,
      found,
      seed: seed ?? null,
      plan: plan ?? null,
    })),
    rechecked: tally.rechecked,
    trace: tally.trace.toString(16),
    violations: report.violations.map(({ invariant, seed, planFile }) => ({
      invariant,
      seed,
      plan_file: planFile,
    })),
  })
}

export function reportLines(report: SimReport): readonly string[] {
  const { tally, planted } = report
  const number = (value: number): string => value.toLocaleString('en-US')
  const mark = (name: string): string => number(tally.marks[name] ?? 0)
  const lines = [
    `  simulated ${simulated(tally.simulatedMs)} · commits checked ${number(tally.commits)} · ` +
      `process kills ${mark('event.kill')} · zombies ${mark('event.pause')} · ` +
      `coordinator restarts ${mark('coordinator.restarted')}`,
    `  faults    ${faultsOf(tally)
      .map(([kind, count]) => `${kind} ${number(count)}`)
      .join(' · ')}`,
  ]
  if (report.missing.length > 0) lines.push(`  never seen: ${report.missing.join(', ')}`)
  if (planted.length > 0) {
    const seeds = planted
      .flatMap(({ seed }) => (seed === undefined ? [] : [seed]))
      .sort((a, b) => a - b)
    const found = planted.filter((plant) => plant.found).length
    lines.push(
      `  planted   ${found} of ${planted.length} found, median seed ` +
        `${seeds[Math.floor(seeds.length / 2)] ?? '-'}, worst ${seeds.at(-1) ?? '-'}`,
    )
    for (const plant of planted) if (!plant.found) lines.push(`  not found: ${plant.name}`)
  }
  if (tally.rechecked > 0) {
    const unequal = tally.violations.filter(({ invariant }) => invariant === 'determinism').length
    lines.push(`  again     ${tally.rechecked - unequal} of ${tally.rechecked} re-runs identical`)
  }
  const count = tally.violations.length
  lines.push(
    `${isFine(report) ? '✓' : '✗'} ${count} violations in ${number(tally.seeds)} seeds, ${report.seconds.toFixed(1)} s`,
  )
  return lines
}

export function failureLines(
  failure: {
    readonly invariant: string
    readonly message: string
    readonly seed: number
    readonly before: number
    readonly after: number
    readonly planFile: string
  },
  lines: readonly string[],
): readonly string[] {
  return [
    `✗ ${failure.invariant} ${failure.message}`,
    `  seed ${failure.seed} · shrunk from ${failure.before} faults to ${failure.after} · plan written to ${failure.planFile}`,
    ...lines.slice(-40).map((line) => `  ${line}`),
    `  replay    npm run sim -- --plan ${failure.planFile}`,
  ]
}

export function planText(plan: Plan): string {
  return `${JSON.stringify(plan, undefined, 2)}\n`
}

function faultsOf(tally: Tally): readonly (readonly [string, number])[] {
  return Object.entries(tally.marks)
    .filter(([name]) => name.startsWith('fault.'))
    .map(([name, count]) => [name.slice('fault.'.length), count] as const)
    .sort((a, b) => b[1] - a[1])
}

function simulated(ms: number): string {
  const hours = ms / 3_600_000
  return hours < 48 ? `${hours.toFixed(1)} hours` : `${(hours / 24).toFixed(1)} days`
}
