import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { faultKinds } from '../../sim/plan.ts'
import { readOptions } from '../../sim/options.ts'
import { scratchFolder } from '../support/scratch.ts'

const ending = import.meta.filename.endsWith('.ts') ? 'ts' : 'js'
const main = join(import.meta.dirname, `../../sim/main.${ending}`)

type Run = { readonly status: number | null; readonly stdout: string; readonly stderr: string }

function sim(folder: string, ...args: readonly string[]): Run {
  const all = [...process.execArgv.filter((each) => !each.startsWith('--test')), main, ...args]
  return spawnSync(process.execPath, all, { cwd: folder, encoding: 'utf8' })
}

function members(text: string): ReadonlyMap<string, unknown> {
  const document: unknown = JSON.parse(text)
  ok(typeof document === 'object' && document !== null)
  return new Map(Object.entries(document))
}

test('--json is one document of sluice.sim/1, with what stands in its reference', (t) => {
  const { status, stdout } = sim(scratchFolder(t), '--seed', '7', '--seeds', '20', '--json')
  equal(status, 0)
  const report = members(stdout)
  equal(report.get('schema'), 'sluice.sim/1')
  equal(report.get('ok'), true)
  equal(report.get('first_seed'), 7)
  equal(report.get('seeds'), 20)
  equal(report.get('node'), process.versions.node)
  equal(typeof report.get('commit'), 'string')
  for (const key of ['simulated_seconds', 'commits_checked', 'rechecked']) {
    ok(Number.isSafeInteger(report.get(key)), key)
  }
  deepEqual(report.get('violations'), [])
  deepEqual(report.get('planted'), [])
  const faults = Object.entries(report.get('faults') ?? {})
  const known = new Set<string>([...faultKinds, '503', 'disk-full'])
  ok(faults.length > 0)
  deepEqual(
    faults.filter(([kind, count]) => !known.has(kind) || typeof count !== 'number'),
    [],
  )
  const marks = new Map<string, unknown>(Object.entries(report.get('marks') ?? {}))
  for (const [kind, count] of faults) equal(marks.get(`fault.${kind}`), count)
})

test('--plant ends with 1, names the seed and a plan, and --plan fails the same way', (t) => {
  const folder = scratchFolder(t)
  const args = ['--plant', 'swap-on-newest', '--seed', '1', '--seeds', '50', '--json'] as const
  const found = sim(folder, ...args, '--workers', '1')
  equal(found.status, 1)
  const report = members(found.stdout)
  equal(report.get('ok'), false)
  const violations = report.get('violations')
  ok(Array.isArray(violations))
  const first: unknown = violations[0]
  ok(typeof first === 'object' && first !== null)
  const violation = new Map<string, unknown>(Object.entries(first))
  deepEqual([...violation.keys()], ['invariant', 'seed', 'plan_file'])
  const invariant = String(violation.get('invariant'))
  const file = String(violation.get('plan_file'))
  equal(file, `sim-failure-${String(violation.get('seed'))}.json`)
  ok(existsSync(join(folder, file)))
  match(found.stderr, new RegExp(`replay {4}npm run sim -- --plan ${file}`))
  const plan = members(readFileSync(join(folder, file), 'utf8'))
  equal(plan.get('schema'), 'sluice.sim-plan/1')
  equal(plan.get('plant'), 'swap-on-newest')

  const replayed = sim(folder, '--plan', file)
  equal(replayed.status, 1)
  match(replayed.stdout, new RegExp(`✗ ${invariant} `))
})

test('without --seed it is drawn, without an end a minute; what is no option ends with 2', (t) => {
  const run = readOptions([], 0.5)
  ok(run.kind === 'run')
  deepEqual(
    [run.options.firstSeed, run.options.minutes, run.options.seeds, run.options.scenario],
    [500_001, 1, undefined, 'all'],
  )
  const planted = readOptions(['--plant', 'check-once', '--seeds', '9'], 0)
  ok(planted.kind === 'run')
  deepEqual([planted.options.scenario, planted.options.minutes], ['processes', undefined])
  const chosen = readOptions(['--plant', 'check-once', '--scenario', 'all'], 0)
  equal(chosen.kind === 'run' && chosen.options.scenario, 'all')
  for (const args of [
    ['--seed', 'x'],
    ['--minutes', 'soon'],
    ['--scenario', 'none'],
    ['--plant', 'none'],
    ['--workers', '0'],
    ['--sed', '1'],
  ]) {
    equal(readOptions(args, 0).kind, 'refused', args.join(' '))
  }
  equal(sim(scratchFolder(t), '--seed', 'x').status, 2)
})
