import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { JsonValue } from '../../src/core/json64.ts'
import { seededChance } from '../../src/core/system.ts'
import { compareTables, fastEngines, skipWithout } from '../engines/engines.ts'
import { documentOf, listOf, type RunningCli, sluice, startSluice } from '../support/cli.ts'

const seed = Number(process.env['SLUICE_KILL_SEED'] ?? Math.floor(Math.random() * 1e9))
const kills = 50
const records = 100_000
/** Column types of what `recordsText` writes, as DuckDB reads them from the text by itself. */
const columns = '{id: BIGINT, name: VARCHAR, amount: DOUBLE, odd: BOOLEAN}'
const names = 'id, name, amount, odd'

describe('sluice killed by SIGKILL', () => {
  const chance = seededChance(seed)
  const cwd = mkdtempSync(join(tmpdir(), 'sluice-kill-'))
  after(() => {
    rmSync(cwd, { recursive: true, force: true })
  })
  before(() => {
    writeFileSync(join(cwd, 'input.ndjson'), recordsText(0, records))
  })

  const tier = (table: string, input = 'input.ndjson'): readonly string[] => [
    ...['tier', input, '--warehouse', './lake', '--table', table, '--buckets', '4'],
    ...['--memory', '32MiB', '--json'],
  ]

  test('at 50 random moments, and run again, ends with every record exactly once', async (t) => {
    t.diagnostic(`SLUICE_KILL_SEED=${seed}`)
    const startedAt = performance.now()
    const whole = documentOf(await sluice(tier('kill.whole'), { cwd }))
    const milliseconds = performance.now() - startedAt
    assert.ok(listOf(whole['rounds']).length > 1, 'the memory is small enough for several rounds')

    const moments: string[] = []
    let killed = 0
    for (let at = 0; at < kills; at += 1) {
      const table = `kill.t${at}`
      // Every other moment is counted from a commit, as most of the time goes before the first.
      const commits = at % 2 === 0 ? 0 : 1 + chance.below(listOf(whole['rounds']).length - 1)
      const wait = chance.below(commits === 0 ? Math.ceil(milliseconds) : 200)
      const running = startSluice(tier(table), { cwd })
      running.endInput()
      await Promise.race([committed(running, commits).then(() => sleep(wait)), running.ended])
      running.kill('SIGKILL')
      const { signal } = await running.ended
      if (signal === 'SIGKILL') killed += 1
      const end = await sluice(tier(table), { cwd })
      assert.equal(end.exit, 0, `killed after ${wait} ms: ${end.stdout}${end.stderr}`)
      const receipt = documentOf(end)
      const there = receipt['rows_before']
      moments.push(`${wait} ms after commit ${commits}: ${signal === null ? 'ended' : sum(there)}`)
      assert.equal(sum(there, receipt['rows']), records, `killed after ${wait} ms`)
    }
    t.diagnostic(`killed at (records in the lake): ${moments.join(', ')}`)
    assert.ok(killed > kills / 2, `only ${killed} of ${kills} were still running`)

    const tables = Array.from({ length: kills }, (_, at) => `t${at}`)
    for (let at = 0; at < kills; at += 10) {
      await requireExact(cwd, tables.slice(at, at + 10), 'input.ndjson', records)
    }
    requireTidy(join(cwd, 'lake'))
  })

  test('while it follows a growing file ends with every record exactly once', async (t) => {
    const input = join(cwd, 'growing.ndjson')
    const text = recordsText(0, 10_000)
    writeFileSync(input, '')
    writeFileSync(join(cwd, 'growing.json'), schema)
    const args = [
      ...['tier', 'growing.ndjson', '--warehouse', './lake', '--table', 'kill.growing'],
      ...['--schema', 'growing.json', '--json', '-q'],
    ]
    let written = 0
    const grow = (): void => {
      // Pieces end anywhere, also within a record.
      const next = Math.min(text.length, written + 1 + chance.below(400_000))
      appendFileSync(input, text.slice(written, next))
      written = next
    }
    const waits: number[] = []
    for (let at = 0; at < 8; at += 1) {
      const running = startSluice([...args, '--follow', '--freshness', '1s'], { cwd })
      const wait = 300 + chance.below(2500)
      waits.push(wait)
      const until = performance.now() + wait
      while (performance.now() < until) {
        grow()
        await sleep(100)
      }
      running.kill('SIGKILL')
      assert.equal((await running.ended).signal, 'SIGKILL')
    }
    t.diagnostic(`SLUICE_KILL_SEED=${seed}, killed after ${waits.join(', ')} ms`)
    while (written < text.length) grow()
    const end = await sluice(args, { cwd })
    assert.equal(end.exit, 0, `${end.stdout}${end.stderr}`)
    await requireExact(cwd, ['growing'], 'growing.ndjson', 10_000)
    requireTidy(join(cwd, 'lake'))
  })

  // Their own readers of metadata, where `requireExact` goes by the files that Sluice names.
  for (const engine of fastEngines) {
    test(`and ${engine} reads in each of these tables what its input holds`, {
      skip: skipWithout(engine),
    }, async () => {
      const judged = async (input: string, rows: number, names: string[]): Promise<void> => {
        const tables = names.map((name) => join(cwd, 'lake', 'kill', name))
        const found = await compareTables({ engine, file: join(cwd, input), tables })
        assert.deepEqual(
          found,
          tables.map((table) => ({ table, rows, differences: [] })),
        )
      }
      const killed = Array.from({ length: kills }, (_, at) => `t${at}`)
      await judged('input.ndjson', records, killed)
      await judged('growing.ndjson', 10_000, ['growing'])
    })
  }
})

const schema = JSON.stringify({
  columns: [
    { name: 'id', type: 'BIGINT' },
    { name: 'name', type: 'STRING' },
    { name: 'amount', type: 'DOUBLE' },
    { name: 'odd', type: 'BOOLEAN' },
  ],
})

/** Resolves when `count` rounds of a run are in the lake. */
function committed(running: RunningCli, count: number): Promise<void> {
  return running.until(({ stderr }) => stderr.split('  round ').length > count)
}

/** Every cell of the tables is that of the input, and the offsets of each bucket have no gap. */
async function requireExact(
  cwd: string,
  tables: readonly string[],
  input: string,
  rows: number,
): Promise<void> {
  const read = `read_ndjson('${join(cwd, input)}', columns = ${columns})`
  const cells = tables.map(
    (name) => `select '${name}' as tab, (select count(*) from kill.${name}) as n, (select count(*)
      from (select ${names} from kill.${name} except all select ${names} from input)) as other`,
  )
  const cellsSql = `with input as materialized (select ${names} from ${read}) ${cells.join(' union all ')}`
  const compared = documentOf(await sluice(['query', './lake', cellsSql, '--json'], { cwd }))
  assert.equal(compared['row_count'], tables.length, JSON.stringify(compared['error']))
  for (const row of rowsOf(compared['rows'])) assert.deepEqual(row, [row[0], rows, 0])

  const buckets = tables.map(
    (name) => `select '${name}' as tab, __bucket, count(*) as n, count(distinct __offset) as d,
      min(__offset) as first, max(__offset) as last from kill.${name} group by __bucket`,
  )
  const sql = buckets.join(' union all ')
  const offsets = documentOf(await sluice(['query', './lake', sql, '--json'], { cwd }))
  assert.ok(rowsOf(offsets['rows']).length >= tables.length)
  for (const row of rowsOf(offsets['rows'])) {
    const [, , count, distinct, first, last] = row
    assert.deepEqual([first, sum(last, 1), distinct], [0, count, count], JSON.stringify(row))
  }
}

/** Whatever a kill left behind lies where the sweeper looks for it. */
function requireTidy(lake: string): void {
  for (const name of readdirSync(lake, { recursive: true }).map(String)) {
    if (statSync(join(lake, name)).isDirectory()) continue
    assert.match(name, /^(?:kill\/[^/]+\/(?:data|metadata)|_sluice)\//)
  }
}

/** Sizes vary, so that a kill meets files of all lengths. */
function recordsText(from: number, to: number): string {
  let text = ''
  let state = 7
  for (let id = from; id < to; id += 1) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    const name = `record ${state} ${'x'.repeat(state % 600)}`
    const odd = id % 3 === 0 ? 'null' : String(id % 2 === 1)
    text += `{"id":${id},"name":"${name}","amount":${state % 100_000}.5,"odd":${odd}}\n`
  }
  return text
}

function rowsOf(value: JsonValue | undefined): readonly (readonly JsonValue[])[] {
  assert.ok(Array.isArray(value))
  return value as readonly (readonly JsonValue[])[]
}

function sum(...parts: readonly (JsonValue | undefined)[]): number {
  return parts.reduce<number>((total, part) => total + Number(part), 0)
}
