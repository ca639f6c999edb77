import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { locationOf, localStore } from '../../src/catalog/store/local-store.ts'
import { seededChance, systemIds } from '../../src/core/system.ts'
import { readInput, readTable, skipWithout } from '../engines/engines.ts'
import { requireWhole } from '../support/audit.ts'
import { type CliEnd, documentOf, listOf, sluice, startSluice } from '../support/cli.ts'
import { appendRecords } from '../support/records.ts'

const seed = Number(process.env['SLUICE_KILL_SEED'] ?? Math.floor(Math.random() * 1e9))
const records = 80_000
const pauses = 15
const takeovers = 6
const races = 5

describe('two processes that fill one table', () => {
  const chance = seededChance(seed)
  const cwd = mkdtempSync(join(tmpdir(), 'sluice-two-'))
  let milliseconds = 0
  let rounds = 0
  before(async () => {
    appendRecords(join(cwd, 'input.ndjson'), 0, records)
    const startedAt = performance.now()
    const whole = await sluice(tier('whole'), { cwd })
    assert.equal(whole.exit, 0, whole.stderr)
    milliseconds = performance.now() - startedAt
    rounds = listOf(documentOf(whole)['rounds']).length
    assert.ok(rounds > 1, 'the memory is small enough for several rounds')
  })
  after(() => {
    rmSync(cwd, { recursive: true, force: true })
  })

  /** Each table in a lake of its own, so that the audit sees one. */
  const tier = (lake: string): readonly string[] => [
    ...['tier', 'input.ndjson', '--warehouse', `./${lake}`, '--table', 'two.t'],
    ...['--buckets', '4', '--memory', '32MiB', '--json'],
  ]
  const audit = (lake: string): Promise<void> =>
    requireWhole(localStore(systemIds), locationOf(join(cwd, lake)), records)

  test('the older one, paused until the newer has taken over and finished, adds nothing', async (t) => {
    t.diagnostic(`SLUICE_KILL_SEED=${seed}`)
    const ends: string[] = []
    for (let at = 0; at < pauses; at += 1) {
      const lake = `paused-${at}`
      const older = startSluice(tier(lake), { cwd })
      older.endInput()
      // Most of the time goes before the first commit; every other pause is counted from one.
      const commits = at % 2 === 0 ? 0 : 1 + chance.below(rounds)
      const seen = older.until(({ stderr }) => stderr.split('  round ').length > commits)
      const wait = chance.below(commits === 0 ? Math.ceil(milliseconds) : 150)
      await Promise.race([seen.then(() => sleep(wait)).catch(() => undefined), older.ended])
      older.kill('SIGSTOP')
      const newer = await sluice(tier(lake), { cwd })
      assert.equal(newer.exit, 0, `${lake}: ${newer.stdout}${newer.stderr}`)
      older.kill('SIGCONT')
      ends.push(`${wait} ms after commit ${commits}: ${outcomeOf(await older.ended)}`)
      await audit(lake)
      requireNothingNew(await sluice(tier(lake), { cwd }))
    }
    t.diagnostic(ends.join(', '))
    assert.ok(ends.some((end) => end.endsWith('fenced')))
  })

  test('the older one, resumed the moment the newer has written its fence, adds nothing', async (t) => {
    t.diagnostic(`SLUICE_KILL_SEED=${seed}`)
    const ends: string[] = []
    for (let at = 0; at < takeovers; at += 1) {
      const lake = `taken-${at}`
      const older = startSluice(tier(lake), { cwd })
      older.endInput()
      const commits = 1 + chance.below(rounds - 1)
      const wait = chance.below(100)
      await older.until(({ stderr }) => stderr.split('  round ').length > commits)
      await sleep(wait)
      older.kill('SIGSTOP')
      const before = versionsOf(join(cwd, lake))
      const newer = startSluice(tier(lake), { cwd })
      newer.endInput()
      while (versionsOf(join(cwd, lake)) === before && newer.child.exitCode === null) {
        await sleep(5)
      }
      older.kill('SIGCONT')
      const both = await Promise.all([older.ended, newer.ended])
      const [first, second] = both.map(outcomeOf)
      ends.push(`${wait} ms after commit ${commits}: ${first ?? ''} and ${second ?? ''}`)
      // The newest process wins: it goes on to the end beside an older one that is awake.
      assert.equal(second, 'done', ends.at(-1))
      await audit(lake)
      requireNothingNew(await sluice(tier(lake), { cwd }))
    }
    t.diagnostic(ends.join(', '))
    assert.ok(ends.some((end) => end.includes('fenced')))
  })

  test('both at once leave each record once, whoever wins', async (t) => {
    t.diagnostic(`SLUICE_KILL_SEED=${seed}`)
    const outcomes: string[] = []
    for (let at = 0; at < races; at += 1) {
      const lake = `raced-${at}`
      const first = sluice(tier(lake), { cwd })
      await sleep(chance.below(Math.ceil(milliseconds / 2)))
      const ends = await Promise.all([first, sluice(tier(lake), { cwd })])
      const both = ends.map(outcomeOf)
      outcomes.push(both.join(' and '))
      assert.ok(both.includes('done'), both.join())
      requireNothingNew(await sluice(tier(lake), { cwd }))
      await audit(lake)
    }
    t.diagnostic(outcomes.join(', '))
  })

  test('pyiceberg and DuckDB read what the input holds', { skip: skipWithout() }, async () => {
    const lakes = [`paused-${pauses - 1}`, `taken-${takeovers - 1}`, `raced-${races - 1}`]
    for (const lake of lakes) {
      const table = join(cwd, lake, 'two', 't')
      const expected = await readInput({ files: [join(cwd, 'input.ndjson')], table })
      assert.equal(expected.rows, records)
      for (const engine of ['pyiceberg', 'duckdb'] as const) {
        const found = await readTable({ engine, table, dataOnly: true })
        assert.equal(found.digest, expected.digest, `${engine}, ${lake}`)
      }
    }
  })
})

/** How many versions of its one table a lake holds. */
function versionsOf(lake: string): number {
  const names = readdirSync(join(lake, 'two/t/metadata'))
  return names.filter((name) => /^v\d+\.metadata\.json$/.test(name)).length
}

/** @throws unless the run ended as one that is done, or was fenced by a newer one, may end. */
function outcomeOf(end: CliEnd): string {
  if (end.exit === 0) return 'done'
  assert.equal(end.exit, 3, `${end.stdout}${end.stderr}`)
  const { error } = documentOf(end)
  assert.ok(typeof error === 'object' && error !== null && 'code' in error)
  assert.equal(error['code'], 'COMMIT_FENCED', end.stderr)
  return 'fenced'
}

function requireNothingNew(end: CliEnd): void {
  assert.equal(end.exit, 0, `${end.stdout}${end.stderr}`)
  assert.equal(documentOf(end)['rows'], 0)
}
