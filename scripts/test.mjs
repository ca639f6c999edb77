// Runs the rings of the test suite whose parts are installed, and says which ran.
//   npm test                          every ring this machine can run
//   npm test -- --ring unit,property  these rings only
//   npm test -- --require-all         a ring that cannot run is a failure (for CI)
//   npm test -- --no-build            on the compiled output as it is
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { rings } from './rings.mjs'

const root = join(import.meta.dirname, '..')
const { values: options } = parseArgs({
  options: {
    ring: { type: 'string' },
    'require-all': { type: 'boolean', default: false },
    'no-build': { type: 'boolean', default: false },
  },
})

const wanted = options.ring?.split(',')
const unknown = wanted?.find((name) => !rings.some((ring) => ring.name === name))
if (unknown !== undefined) {
  console.error(`no ring is called ${unknown}; there are ${rings.map((r) => r.name).join(', ')}`)
  process.exit(2)
}

if (!options['no-build']) {
  const built = spawnSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: 'inherit' })
  if (built.status !== 0) process.exit(built.status ?? 1)
}

const scratch = mkdtempSync(join(tmpdir(), 'sluice-test-'))
const reports = []
let passed = 0
let failed = 0
let skipped = 0
for (const ring of rings) {
  if (wanted !== undefined && !wanted.includes(ring.name)) continue
  const why = ring.missing()
  if (why !== undefined) {
    const isFailure = options['require-all'] && ring.optional !== true
    if (isFailure) failed += 1
    reports.push({ ring: ring.name, line: `NOT RUN  ${why}`, isFailure })
    continue
  }
  const files = (ring.folders ?? [ring.name]).flatMap((folder) => testFiles(folder))
  if (files.length === 0) {
    reports.push({ ring: ring.name, line: 'NOT RUN  it has no tests yet', isFailure: false })
    continue
  }
  console.log(`\n── ring ${ring.name}: ${files.length} files`)
  const startedAt = performance.now()
  const counts = await runRing(ring, files)
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  passed += counts.passed
  failed += counts.failed
  skipped += counts.skipped
  const line = `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped, ${seconds} s`
  reports.push({ ring: ring.name, line, isFailure: counts.failed > 0 })
}
rmSync(scratch, { recursive: true, force: true })

console.log('\nrings')
for (const { ring, line, isFailure } of reports) {
  console.log(`  ${isFailure ? 'FAIL' : 'ok  '} ${ring.padEnd(12)} ${line}`)
}
console.log(`\n${passed} passed, ${failed} failed, ${skipped} skipped`)
process.exit(failed > 0 ? 1 : 0)

function testFiles(folder) {
  const base = join(root, 'dist/test', folder)
  try {
    return readdirSync(base, { recursive: true })
      .map(String)
      .filter((name) => name.endsWith('.test.js'))
      .sort()
      .map((name) => join(base, name))
  } catch (error) {
    if (error.code === 'ENOENT') return []
    throw error
  }
}

/** Two reporters at once: one for people, one whose totals are read afterwards. */
async function runRing(ring, files) {
  const tap = join(scratch, `${ring.name}.tap`)
  const child = spawn(
    ring.node ?? process.execPath,
    [
      '--test',
      '--test-concurrency=2',
      '--test-reporter=spec',
      '--test-reporter-destination=stdout',
      '--test-reporter=tap',
      `--test-reporter-destination=${tap}`,
      ...files,
    ],
    {
      cwd: root,
      stdio: ['ignore', 'inherit', 'inherit'],
      // A single engine that is missing then fails its tests instead of skipping them.
      env: { ...process.env, ...(options['require-all'] ? { SLUICE_ENGINES: 'required' } : {}) },
    },
  )
  const code = await new Promise((resolve) => child.on('exit', (exit) => resolve(exit ?? 1)))
  const text = readFileSync(tap, 'utf8')
  const total = (name) => Number(new RegExp(`^# ${name} (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
  const counts = {
    passed: total('pass'),
    failed: total('fail') + total('cancelled'),
    skipped: total('skipped') + total('todo'),
  }
  if (code !== 0 && counts.failed === 0) counts.failed = 1
  return counts
}
