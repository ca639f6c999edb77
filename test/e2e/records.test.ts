import assert from 'node:assert/strict'
import { openSync, readdirSync, readFileSync, writeFileSync, writeSync, closeSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { documentOf, listOf, sluice } from '../support/cli.ts'
import { scratchFolder } from '../support/scratch.ts'

const schema = '{"columns":[{"name":"id","type":"BIGINT"},{"name":"note","type":"STRING"}]}'
const tier = [
  ...['tier', 'notes.ndjson', '--warehouse', './lake', '--table', 'demo.notes'],
  ...['--schema', 'notes.json'],
] as const

/** Ten records, the seventh of which is not right. */
function writeNotes(cwd: string, seventh = '{"id":"n/a","note":"seven"}'): void {
  writeFileSync(join(cwd, 'notes.json'), schema)
  const lines = Array.from({ length: 10 }, (_, id) => `{"id":${id},"note":"note ${id}"}`)
  lines[6] = seventh
  writeFileSync(join(cwd, 'notes.ndjson'), `${lines.join('\n')}\n`)
}

test('a bad record stops the run with its place; what is before is in, and mended it goes on', async (t) => {
  const cwd = scratchFolder(t)
  writeNotes(cwd)
  const end = await sluice(tier, { cwd })
  assert.equal(end.exit, 3)
  assert.match(end.stdout, /^✗ 6 records → demo\.notes in /)
  const id = /snapshot {2}(\d+)/.exec(end.stdout)?.[1] ?? ''
  const error = end.stderr.slice(end.stderr.indexOf('error:'))
  // Six lines of 25 bytes go before; the value is the seventh character of its line.
  assert.equal(
    error,
    `error: notes.ndjson line 7: id is "n/a", column id of demo.notes is BIGINT
  where  notes.ndjson:7:7 (byte 156)
  state  lines 1 to 6 are in the lake (snapshot ${id}); nothing from line 7 on is
  fix    correct the line and run the same command again, or set such records aside: --on-bad-record quarantine
  code   RECORD_REFUSED (exit 3) · docs/reference/errors.md#record_refused
`,
  )
  assert.deepEqual(await idsIn(cwd), [0, 1, 2, 3, 4, 5])

  const again = await sluice(tier, { cwd })
  assert.equal(again.exit, 3)
  assert.equal(again.stdout, '')

  writeNotes(cwd, '{"id":6,"note":"mended"}')
  const mended = await sluice(tier, { cwd })
  assert.equal(mended.exit, 0, mended.stderr)
  assert.match(mended.stdout, /^✓ 4 records → demo\.notes in .* \(6 were there\)\n/)
  assert.deepEqual(await idsIn(cwd), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
})

test('quarantine keeps the record, its place and the reason, once', async (t) => {
  const cwd = scratchFolder(t)
  writeNotes(cwd)
  const args = [...tier, '--on-bad-record', 'quarantine', '--json']
  const end = await sluice(args, { cwd })
  assert.equal(end.exit, 0, end.stderr)
  const receipt = documentOf(end)
  assert.equal(receipt['rows'], 9)
  assert.equal(receipt['quarantined'], 1)
  assert.deepEqual(await idsIn(cwd), [0, 1, 2, 3, 4, 5, 7, 8, 9])

  const folder = join(cwd, 'lake/_sluice/quarantine/demo.notes')
  const [name = ''] = readdirSync(folder)
  assert.match(name, /-150\.ndjson$/, 'named by the first byte of the record')
  const kept: unknown = JSON.parse(readFileSync(join(folder, name), 'utf8'))
  assert.deepEqual(kept, {
    input: 'notes.ndjson',
    line: 7,
    byte: 150,
    code: 'RECORD_REFUSED',
    reason: 'id is "n/a", column id of demo.notes is BIGINT',
    record: '{"id":"n/a","note":"seven"}',
  })
  const again = documentOf(await sluice(args, { cwd }))
  assert.equal(again['rows'], 0)
  assert.deepEqual(readdirSync(folder), [name])
})

test('more bad records than --bad-records-max stop the run although they are set aside', async (t) => {
  const cwd = scratchFolder(t)
  writeNotes(cwd)
  const text = readFileSync(join(cwd, 'notes.ndjson'), 'utf8')
  writeFileSync(join(cwd, 'notes.ndjson'), `${text}{"id":"b"}\n{"id":"c"}\n{"id":13}\n`)
  const args = [...tier, '--on-bad-record', 'quarantine', '--bad-records-max', '2']
  const end = await sluice(args, { cwd })
  assert.equal(end.exit, 3)
  assert.match(end.stderr, /error: notes\.ndjson line 12: over 2 bad records/)
  assert.match(end.stderr, /LIMIT_EXCEEDED \(exit 3\)/)
  assert.deepEqual(await idsIn(cwd), [0, 1, 2, 3, 4, 5, 7, 8, 9])
})

test('a field that the table does not have is refused, or set aside; never dropped', async (t) => {
  const cwd = scratchFolder(t)
  writeNotes(cwd, '{"id":6,"note":"six","nota":1}')
  const end = await sluice(tier, { cwd })
  assert.equal(end.exit, 3)
  assert.match(
    end.stderr,
    /error: notes\.ndjson line 7: field "nota" is not a column of demo\.notes\. Did you mean note\?\n/,
  )
  assert.match(end.stderr, / {2}fix {4}.*--on-unknown-field quarantine\n/)
  const aside = await sluice([...tier, '--on-unknown-field', 'quarantine'], { cwd })
  assert.equal(aside.exit, 0, aside.stderr)
  assert.deepEqual(await idsIn(cwd), [0, 1, 2, 3, 4, 5, 7, 8, 9])
})

test('T-14 T-40 a file much larger than the memory is tiered in rounds that tile it', async (t) => {
  const cwd = scratchFolder(t)
  const count = 120_000
  const file = openSync(join(cwd, 'big.ndjson'), 'w')
  let bytes = 0
  for (let from = 0; from < count; from += 1000) {
    const lines = Array.from(
      { length: 1000 },
      (_, at) => `{"id":${from + at},"text":"${`${from + at} `.repeat(75)}"}\n`,
    )
    bytes += writeSync(file, lines.join(''))
  }
  closeSync(file)
  assert.ok(bytes > 50e6)
  const args = ['tier', 'big.ndjson', '--warehouse', './lake', '--memory', '32MiB', '--json']
  const end = await sluice(args, { cwd })
  assert.equal(end.exit, 0, end.stderr)
  const receipt = documentOf(end)
  const rounds = listOf(receipt['rounds'])
  assert.ok(rounds.length >= 4, `${rounds.length} rounds for ${bytes} bytes`)
  assert.equal(
    rounds.reduce((sum, round) => sum + Number(round['rows']), 0),
    count,
  )
  t.diagnostic(`${rounds.length} rounds, ${Number(receipt['peak_memory_bytes']) / 1e6} MB`)
  const sql = `select count(*), count(distinct id), min(id), max(id),
    count(*) filter (where text = repeat(id || ' ', 75)) from "default".big`
  assert.deepEqual(await rowsOf(cwd, sql), [[count, count, 0, count - 1, count]])
  const offsets = `select count(*) = max(__offset) + 1 and min(__offset) = 0
    and count(distinct __offset) = count(*) from "default".big group by __bucket`
  assert.deepEqual(await rowsOf(cwd, offsets), [[true], [true], [true], [true]])
})

async function idsIn(cwd: string): Promise<unknown> {
  const rows = await rowsOf(cwd, 'select id from demo.notes order by id')
  assert.ok(Array.isArray(rows))
  return rows.flat()
}

async function rowsOf(cwd: string, sql: string): Promise<unknown> {
  const end = await sluice(['query', './lake', sql, '--json'], { cwd })
  assert.equal(end.exit, 0, end.stderr)
  return documentOf(end)['rows']
}
