import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { appendFileSync, copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { documentOf, flightsPath, listOf, mainPath, sluice, textOf } from '../support/cli.ts'
import { scratchFolder } from '../support/scratch.ts'

const lake = ['--warehouse', './lake'] as const
const flights = ['tier', 'flights.ndjson', ...lake, '--table', 'demo.flights'] as const

/** An output whose times, sizes and ids are those of one run only. */
function shape(text: string): string {
  return text
    .replace(/\b\d{15,19}\b/g, 'ID')
    .replace(/\bin [\d.]+ (?:ms|s)\b/g, 'in TIME')
    .replace(/^(\s+files .*?), [\d.]+ (?:B|kB)/gm, '$1, SIZE')
    .replace(/^( {2}rate +).*/gm, '$1RATE')
    .replace(/(rows\s+)[\d.]+ (?:ms|s)\b/g, '$1TIME')
}

test('a file becomes a table, and the same command again adds nothing', async (t) => {
  const cwd = scratchFolder(t)
  copyFileSync(flightsPath, join(cwd, 'flights.ndjson'))
  const first = await sluice([...flights, '--buckets', '4'], { cwd })
  assert.equal(first.exit, 0, first.stderr)
  assert.equal(
    shape(first.stdout),
    `✓ 5,000 records → demo.flights in TIME
  snapshot  ID   round 1, epoch 1.1
  files     4 data files, SIZE (from 446 kB)
  buckets   0: 1,928  1: 1,024  2: 1,024  3: 1,024
  rate      RATE
`,
  )
  assert.equal(
    shape(first.stderr),
    `created demo.flights (4 buckets): date STRING, delay BIGINT, distance BIGINT, origin STRING, destination STRING
  note  date stays STRING: "2001/01/01 01:10" is not ISO 8601; declare a type with --schema
demo.flights  round 1 epoch 1.1  5,000 rows  TIME  snapshot ID
`,
  )
  const id = /snapshot {2}(\d+)/.exec(first.stdout)?.[1] ?? ''
  const before = tree(cwd)
  const again = await sluice(flights, { cwd })
  assert.deepEqual(again, {
    exit: 0,
    signal: null,
    stdout: `✓ nothing to do: demo.flights holds all 5,000 records of flights.ndjson (snapshot ${id})\n`,
    stderr: '',
  })
  assert.deepEqual(tree(cwd), before, 'nothing was written')
})

test('again after a kill between swap and hint, the hint names the newest version', async (t) => {
  const cwd = scratchFolder(t)
  copyFileSync(flightsPath, join(cwd, 'flights.ndjson'))
  assert.equal((await sluice(flights, { cwd })).exit, 0)
  const hint = join(cwd, 'lake/demo/flights/metadata/version-hint.text')
  assert.equal(readFileSync(hint, 'utf8'), '2')
  writeFileSync(hint, '1')
  const read = await sluice(['progress', './lake', 'demo.flights'], { cwd })
  assert.equal(read.exit, 0, read.stderr)
  assert.equal(readFileSync(hint, 'utf8'), '1')
  assert.equal((await sluice(flights, { cwd })).exit, 0)
  assert.equal(readFileSync(hint, 'utf8'), '2')
})

test('a grown file adds its tail; renamed it is recognized, and a copy adds nothing', async (t) => {
  const cwd = scratchFolder(t)
  copyFileSync(flightsPath, join(cwd, 'flights.ndjson'))
  await sluice(flights, { cwd })
  const lines = readFileSync(flightsPath, 'utf8').split('\n').slice(0, 1000)
  appendFileSync(join(cwd, 'flights.ndjson'), `${lines.join('\n')}\n`)
  const grown = await sluice(flights, { cwd })
  assert.match(grown.stdout, /^✓ 1,000 records → demo\.flights in [\d.]+ s \(5,000 were there\)\n/)
  assert.match(grown.stdout, /round 2, epoch 2\.1\n/)

  copyFileSync(join(cwd, 'flights.ndjson'), join(cwd, 'renamed.ndjson'))
  const renamed = ['tier', 'renamed.ndjson', ...lake, '--table', 'demo.flights']
  const copied = await sluice(renamed, { cwd })
  assert.match(
    copied.stdout,
    /^✓ nothing to do: demo\.flights holds all 6,000 records of renamed\.ndjson \(snapshot \d+\)\n$/,
  )
  appendFileSync(join(cwd, 'renamed.ndjson'), `${lines[0] ?? ''}\n`)
  const renamedGrown = await sluice(renamed, { cwd })
  assert.match(renamedGrown.stdout, /^✓ 1 record → demo\.flights in .* \(6,000 were there\)\n/)

  const named = documentOf(await sluice([...flights, '--input-id', 'twice', '--json'], { cwd }))
  assert.equal(named['rows'], 6000)
  assert.equal(named['rows_before'], 6001)
  const namedAgain = await sluice([...flights, '--input-id', 'twice'], { cwd })
  assert.match(namedAgain.stdout, /^✓ nothing to do: demo\.flights holds all 6,000 records/)
})

test('another file is appended after the first, and each is known afterwards', async (t) => {
  const cwd = scratchFolder(t)
  const days = ['monday', 'tuesday', 'wednesday']
  for (const [day, name] of days.entries()) {
    const lines = Array.from({ length: 300 }, (_, at) => `{"day":${day},"at":${at}}\n`)
    writeFileSync(join(cwd, `${name}.ndjson`), lines.join(''))
  }
  const table = [...lake, '--table', 'demo.days']
  await sluice(['tier', 'monday.ndjson', ...table], { cwd })
  const second = await sluice(['tier', 'tuesday.ndjson', ...table], { cwd })
  assert.match(second.stdout, /^✓ 300 records → demo\.days in .* \(300 were there\)\n/)
  const all = await sluice(['tier', '*.ndjson', ...table], { cwd })
  assert.match(all.stdout, /^✓ 300 records of 3 inputs → demo\.days in .* \(600 were there\)\n/)
  const named = await sluice(['tier', ...days.map((day) => `${day}.ndjson`), ...table], { cwd })
  assert.match(named.stdout, /^✓ nothing to do: demo\.days holds all 900 records of 3 inputs /)
})

test('a file whose beginning has changed is refused, and nothing is written', async (t) => {
  const cwd = scratchFolder(t)
  const path = join(cwd, 'flights.ndjson')
  copyFileSync(flightsPath, path)
  await sluice(flights, { cwd })
  const before = tree(cwd)
  const text = readFileSync(path, 'utf8')
  writeFileSync(path, `${text.slice(0, 70_000).replaceAll('ORD', 'XXX')}${text.slice(70_000)}`)
  const changed = await sluice(flights, { cwd })
  assert.equal(changed.exit, 3)
  assert.equal(changed.stdout, '')
  assert.match(
    changed.stderr,
    /^error: flights\.ndjson: its first 446,166 bytes are not the ones tiered.*\n {2}fix {4}restore the file, or tier it as another input: --input-id flights-2\n {2}code {3}INPUT_CHANGED \(exit 3\) · docs\/reference\/errors\.md#input_changed\n$/,
  )
  assert.deepEqual(tree(cwd), before)
  const asAnother = await sluice([...flights, '--input-id', 'flights-2'], { cwd })
  assert.match(asAnother.stdout, /^✓ 5,000 records → demo\.flights in .* \(5,000 were there\)\n/)
})

test('a last line without newline is read; gone on without one it is refused', async (t) => {
  const cwd = scratchFolder(t)
  const path = join(cwd, 'ids.ndjson')
  const ids = ['tier', 'ids.ndjson', ...lake] as const
  writeFileSync(path, '{"id":1}\n{"id":2}')
  const first = await sluice(ids, { cwd })
  assert.match(first.stdout, /^✓ 2 records → default\.ids /)
  writeFileSync(path, '{"id":1}\n{"id":2}3}\n')
  const wrong = await sluice(ids, { cwd })
  assert.equal(wrong.exit, 3)
  assert.match(wrong.stderr, /^error: ids\.ndjson: the last record was still being written/)
  assert.match(wrong.stderr, /INPUT_CHANGED \(exit 3\)/)
  writeFileSync(path, '{"id":1}\n{"id":2}\n{"id":3}')
  const right = await sluice(ids, { cwd })
  assert.match(right.stdout, /^✓ 1 record → default\.ids .* \(2 were there\)\n/)
})

test('stdin without an id is always new and says so; with one it is known', async (t) => {
  const cwd = scratchFolder(t)
  const input = '{"id":1}\n{"id":2}\n'
  const stdin = ['tier', '-', ...lake, '--table', 'demo.ids'] as const
  const first = await sluice(stdin, { cwd, input })
  assert.match(first.stdout, /^✓ 2 records → demo\.ids in /)
  assert.match(first.stdout, /\n {2}note {6}stdin has no id: again would append it again\n$/)
  const again = documentOf(await sluice([...stdin, '--json'], { cwd, input }))
  assert.equal(again['rows'], 2)
  assert.equal(again['rows_before'], 2)
  assert.equal(listOf(again['inputs'])[0]?.['exactly_once'], false)

  const named = [...stdin, '--input-id', 'feed'] as const
  const once = await sluice(named, { cwd, input })
  assert.match(once.stdout, /^✓ 2 records → demo\.ids in .* \(4 were there\)\n/)
  assert.doesNotMatch(once.stdout, /note/)
  const twice = await sluice(named, { cwd, input })
  assert.match(twice.stdout, /^✓ nothing to do: demo\.ids holds all 2 records of stdin /)
  const more = await sluice(named, { cwd, input: `${input}{"id":3}\n` })
  assert.match(more.stdout, /^✓ 1 record → demo\.ids in .* \(6 were there\)\n/)
})

test('an empty file is refused without --schema and makes an empty table with one', async (t) => {
  const cwd = scratchFolder(t)
  writeFileSync(join(cwd, 'empty.ndjson'), '')
  writeFileSync(join(cwd, 'id.json'), '{"columns":[{"name":"id","type":"BIGINT"}]}')
  const refused = await sluice(['tier', 'empty.ndjson', ...lake], { cwd })
  assert.equal(refused.exit, 2)
  assert.equal(
    refused.stderr,
    `error: empty.ndjson: no records, so no column types
  fix    declare the columns with --schema
  code   INPUT_UNREADABLE (exit 2) · docs/reference/errors.md#input_unreadable
`,
  )
  assert.deepEqual(tree(cwd), [])
  const made = await sluice(['tier', 'empty.ndjson', ...lake, '--schema', 'id.json'], { cwd })
  assert.equal(made.exit, 0)
  assert.equal(made.stderr, 'created default.empty (4 buckets): id BIGINT\n')
  const query = ['query', './lake', 'select count(*) as n from "default".empty', '--json']
  const read = documentOf(await sluice(query, { cwd }))
  assert.deepEqual(read['rows'], [[0]])
})

test('T-01 another number of buckets is refused with exit 3, and nothing is written', async (t) => {
  const cwd = scratchFolder(t)
  copyFileSync(flightsPath, join(cwd, 'flights.ndjson'))
  await sluice([...flights, '--buckets', '4'], { cwd })
  const before = tree(cwd)
  const end = await sluice([...flights, '--buckets', '8'], { cwd })
  assert.equal(end.exit, 3)
  assert.equal(end.stdout, '')
  assert.equal(
    end.stderr,
    `error: demo.flights exists with 4 buckets; --buckets 8 would move its records
  fix    leave --buckets out, or another --table
  code   TABLE_MISMATCH (exit 3) · docs/reference/errors.md#table_mismatch
`,
  )
  assert.deepEqual(tree(cwd), before)
})

test('the JSON receipt has the keys of its schema, with snapshot ids as strings', async (t) => {
  const cwd = scratchFolder(t)
  copyFileSync(flightsPath, join(cwd, 'flights.ndjson'))
  const receipt = documentOf(await sluice([...flights, '--json', '-q'], { cwd }))
  assert.deepEqual(Object.keys(receipt), [
    ...['schema', 'ok', 'table', 'table_uuid', 'created', 'warehouse', 'snapshot_id', 'rows'],
    ...['rows_before', 'rows_deleted', 'quarantined', 'quarantine_file', 'inputs', 'buckets'],
    ...['files', 'delete_files', 'bytes', 'input_bytes', 'rounds', 'seconds', 'rows_per_second'],
    ...['mb_per_second', 'peak_memory_bytes', 'notes', 'error'],
  ])
  const [input] = listOf(receipt['inputs'])
  const [round] = listOf(receipt['rounds'])
  assert.equal(receipt['schema'], 'sluice.receipt/1')
  assert.equal(receipt['ok'], true)
  assert.equal(receipt['created'], true)
  assert.equal(receipt['warehouse'], `file://${cwd}/lake`)
  assert.match(textOf(receipt['snapshot_id']), /^\d{1,19}$/)
  assert.equal(round?.['snapshot_id'], receipt['snapshot_id'])
  assert.match(textOf(input?.['id']), /^sha256:[0-9a-f]{8,}/)
  assert.deepEqual(
    { ...input, id: '' },
    {
      ...{ id: '', name: 'flights.ndjson', records: 5000, bytes: 446_166, position: '446166' },
      ...{ already_there: 0, values_cut: 0, exactly_once: true },
    },
  )
  assert.deepEqual(receipt['buckets'], [
    { bucket: 0, start: 0, end: 1928 },
    { bucket: 1, start: 0, end: 1024 },
    { bucket: 2, start: 0, end: 1024 },
    { bucket: 3, start: 0, end: 1024 },
  ])
  assert.deepEqual(
    [receipt['rows'], receipt['files'], receipt['input_bytes'], receipt['error']],
    [5000, 4, 446_166, null],
  )
  assert.deepEqual(Object.keys(round ?? {}), [
    ...['round', 'incarnation', 'epoch', 'snapshot_id', 'commit_id', 'rows', 'rows_deleted'],
    ...['delete_files', 'force_finished'],
    ...['attempts', 'outcome', 'seconds'],
  ])
  const quoted = documentOf(
    await sluice([...flights, '--json', '--json-bigint', 'string'], { cwd }),
  )
  assert.equal(quoted['rows_before'], '5000')
})

test('a failure with --json is one document too', async (t) => {
  const cwd = scratchFolder(t)
  const end = await sluice(['tier', 'nothing.ndjson', ...lake, '--json'], { cwd })
  assert.equal(end.exit, 2)
  const document = documentOf(end)
  assert.equal(document['schema'], 'sluice.receipt/1')
  assert.equal(document['ok'], false)
  const [error] = listOf([document['error'] ?? null])
  assert.equal(error?.['code'], 'INPUT_UNREADABLE')
  assert.equal(error['message'], 'nothing.ndjson: no such file')
  assert.equal(error['exit'], 2)
})

test('-q keeps the result and leaves the notes out', async (t) => {
  const cwd = scratchFolder(t)
  copyFileSync(flightsPath, join(cwd, 'flights.ndjson'))
  const end = await sluice([...flights, '-q'], { cwd })
  assert.match(end.stdout, /^✓ 5,000 records/)
  assert.equal(end.stderr, '')
})

test('a pipe that is closed by its reader ends the command with 0', (t) => {
  const cwd = scratchFolder(t)
  copyFileSync(flightsPath, join(cwd, 'flights.ndjson'))
  const script = `"$0" "$@" | true; echo "\${PIPESTATUS[0]}"`
  const args = ['-c', script, process.execPath, mainPath, ...flights]
  const end = spawnSync('bash', args, { cwd, encoding: 'utf8' })
  assert.equal(end.stdout, '0\n', end.stderr)
  assert.doesNotMatch(end.stderr, /EPIPE|error/)
})

test('color is for terminals, and NO_COLOR keeps it off there', async (t) => {
  const cwd = scratchFolder(t)
  copyFileSync(flightsPath, join(cwd, 'flights.ndjson'))
  const piped = await sluice(flights, { cwd })
  assert.ok(!`${piped.stdout}${piped.stderr}`.includes('\u001b'))
  const always = await sluice([...flights, '--color', 'always'], { cwd })
  assert.ok(always.stdout.includes('\u001b['))
  const terminal = (env: Readonly<Record<string, string>>): string => {
    const command = [process.execPath, mainPath, ...flights].map((word) => `'${word}'`).join(' ')
    const args = ['-qec', command, '/dev/null']
    const end = spawnSync('script', args, {
      cwd,
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], LANG: 'C.UTF-8', TERM: 'xterm-256color', ...env },
    })
    return end.stdout
  }
  if (spawnSync('script', ['--version']).status !== 0) {
    t.diagnostic('no script(1) here: not tried on a terminal')
    return
  }
  const colored = /\u001b\[\d+m/
  assert.match(terminal({}), colored)
  assert.doesNotMatch(terminal({ NO_COLOR: '1' }), colored)
  assert.match(terminal({ NO_COLOR: '1' }), /nothing to do/)
})

test('signs that a locale cannot show are written in ASCII', async (t) => {
  const cwd = scratchFolder(t)
  writeFileSync(join(cwd, 'ids.ndjson'), '{"id":1}\n')
  const end = await sluice(['tier', 'ids.ndjson', ...lake], { cwd, env: { LANG: 'C' } })
  assert.match(end.stdout, /^ok 1 record -> default\.ids /)
  assert.ok(/^[\x00-\x7f]*$/.test(`${end.stdout}${end.stderr}`))
})

/** Everything that lies in the lake, with sizes. */
function tree(cwd: string): readonly string[] {
  try {
    return readdirSync(join(cwd, 'lake'), { recursive: true }).map(String).sort()
  } catch {
    return []
  }
}
