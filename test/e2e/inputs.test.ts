import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { Int32, Table, tableToIPC, Utf8, vectorFromArray } from 'apache-arrow'
import { type CliEnd, documentOf, flightsPath, sluice, startSluice } from '../support/cli.ts'
import { scratchFolder } from '../support/scratch.ts'

const into = (table: string): readonly string[] => ['--warehouse', './lake', '--table', table]
const schema = '{"columns":[{"name":"id","type":"BIGINT"},{"name":"note","type":"STRING"}]}'

/** What the error of a command says, without the line of its code. */
function errorOf({ stderr }: CliEnd): string {
  return stderr.slice(stderr.indexOf('error:')).replace(/\n {2}code .*\n$/, '')
}

function codeOf({ stderr, exit }: CliEnd): readonly unknown[] {
  return [/ {2}code {3}(\w+) /.exec(stderr)?.[1], exit]
}

async function rowsOf(cwd: string, sql: string): Promise<unknown> {
  const end = await sluice(['query', './lake', sql, '--json'], { cwd })
  assert.equal(end.exit, 0, end.stderr)
  return documentOf(end)['rows']
}

test('a .gz that is cut is tiered up to the cut, and goes on from there when it is whole', async (t) => {
  const cwd = scratchFolder(t)
  const stored = gzipSync(readFileSync(flightsPath))
  const path = join(cwd, 'flights.ndjson.gz')
  writeFileSync(path, stored.subarray(0, 40_000))
  // What gzip gets out of it before it notices.
  const unpacked = spawnSync('gzip', ['-dc', path]).stdout
  const whole = unpacked.subarray(0, unpacked.lastIndexOf(10) + 1)
  const count = whole.toString().split('\n').length - 1
  const end = await sluice(['tier', 'flights.ndjson.gz', ...into('demo.flights')], { cwd })
  assert.deepEqual(codeOf(end), ['DATA_CORRUPT', 3])
  const id = /snapshot {2}(\d+)/.exec(end.stdout)?.[1] ?? ''
  assert.equal(
    errorOf(end),
    `error: flights.ndjson.gz: the gzip stream is cut at byte 40,000
  where  flights.ndjson.gz:${count + 1}:1 (byte ${whole.length.toLocaleString('en-US')} of the text)
  state  lines 1 to ${count} are in the lake (snapshot ${id}); nothing from line ${count + 1} on is
  fix    get a whole copy of flights.ndjson.gz and run the same command again`,
  )
  assert.deepEqual(await rowsOf(cwd, 'select count(*) from demo.flights'), [[count]])

  const again = await sluice(['tier', 'flights.ndjson.gz', ...into('demo.flights')], { cwd })
  assert.deepEqual([again.exit, again.stdout], [3, ''])
  assert.equal(errorOf(again), errorOf(end))

  writeFileSync(path, stored)
  const mended = await sluice(['tier', 'flights.ndjson.gz', ...into('demo.flights'), '--json'], {
    cwd,
  })
  assert.equal(mended.exit, 0, mended.stderr)
  assert.equal(documentOf(mended)['rows'], 5000 - count)
  copyFileSync(flightsPath, join(cwd, 'plain.ndjson'))
  await sluice(['tier', 'plain.ndjson', ...into('demo.plain')], { cwd })
  const columns = 'date, delay, distance, origin, destination, __bucket, __offset'
  const differ = `select count(*) from (from demo.flights select ${columns} except all from demo.plain select ${columns})`
  assert.deepEqual(await rowsOf(cwd, differ), [[0]])
})

test('damage that shows as a bad line is told as damage, with doubt about what is in', async (t) => {
  const cwd = scratchFolder(t)
  const text = Array.from({ length: 50 }, (_, id) => `{"id":${id},"note":"n"}\n`).join('')
  const damaged = gzipSync(text, { level: 0 })
  damaged.write('x', damaged.indexOf('"id":20,') + 5)
  writeFileSync(join(cwd, 'a.ndjson.gz'), damaged)
  const end = await sluice(['tier', 'a.ndjson.gz', ...into('demo.a')], { cwd })
  assert.deepEqual(codeOf(end), ['DATA_CORRUPT', 3])
  const [head = '', ...rest] = errorOf(end).split('\n')
  assert.match(
    head,
    /^error: a\.ndjson\.gz: the gzip stream is damaged before byte [\d,]+ \(incorrect data check\); it shows first in a\.ndjson\.gz line 21: not JSON/,
  )
  const id = /snapshot {2}(\d+)/.exec(end.stdout)?.[1] ?? ''
  assert.deepEqual(rest, [
    `  where  a.ndjson.gz:21:7 (byte ${text.indexOf('20,"note"').toLocaleString('en-US')})`,
    `  state  lines 1 to 20 are in the lake (snapshot ${id}), where a value may be wrong; nothing from line 21 on is`,
    '  fix    get a whole copy of a.ndjson.gz and run the same command again; if that is refused as changed, roll the table back',
  ])
  const missing = gzipSync(text).subarray(0, 12)
  writeFileSync(join(cwd, 'b.ndjson.gz'), missing)
  const none = await sluice(['tier', 'b.ndjson.gz', ...into('demo.b')], { cwd })
  assert.deepEqual(codeOf(none), ['DATA_CORRUPT', 3])
  assert.match(errorOf(none), /\n {2}state {2}nothing was written\n/)
  assert.equal(existsSync(join(cwd, 'lake/demo/b')), false)
})

test('rows of an Arrow file that do not fit are set aside, or stop the run in their place', async (t) => {
  const cwd = scratchFolder(t)
  const table = new Table({
    id: vectorFromArray([0, 1, null, 3, null, 5], new Int32()),
    note: vectorFromArray(['a', 'b', 'c', null, 'e', 'f'], new Utf8()),
  })
  writeFileSync(join(cwd, 'rows.arrow'), tableToIPC(table, 'file'))
  writeFileSync(join(cwd, 'rows.json'), schema.replace('"BIGINT"', '"BIGINT NOT NULL"'))
  const tier = ['tier', 'rows.arrow', ...into('demo.rows'), '--schema', 'rows.json']
  const end = await sluice(tier, { cwd })
  assert.deepEqual(codeOf(end), ['RECORD_REFUSED', 3])
  const id = /snapshot {2}(\d+)/.exec(end.stdout)?.[1] ?? ''
  assert.equal(
    errorOf(end),
    `error: rows.arrow row 2: id is null, column id of demo.rows is BIGINT NOT NULL
  state  rows 0 to 1 are in the lake (snapshot ${id}); nothing from row 2 on is
  fix    set such records aside: --on-bad-record quarantine`,
  )
  const aside = await sluice([...tier, '--on-bad-record', 'quarantine'], { cwd })
  assert.equal(aside.exit, 0, aside.stderr)
  assert.match(aside.stdout, /^✓ 2 records → demo\.rows in .* \(2 were there\)\n/)
  assert.match(
    aside.stdout,
    /\n {2}set aside 2 bad records, a file each in .*\/lake\/_sluice\/quarantine\/demo\.rows\n/,
  )
  const folder = join(cwd, 'lake/_sluice/quarantine/demo.rows')
  const names = readdirSync(folder).sort()
  assert.deepEqual(
    names.map((name) => /-\d+\.ndjson$/.exec(name)?.[0]),
    ['-2.ndjson', '-4.ndjson'],
  )
  assert.deepEqual(JSON.parse(readFileSync(join(folder, names[0] ?? ''), 'utf8')), {
    input: 'rows.arrow',
    row: 2,
    code: 'RECORD_REFUSED',
    reason: 'id is null, column id of demo.rows is BIGINT NOT NULL',
    record: '{"id":null,"note":"c"}',
  })
  const sql = 'select id, note, __offset from demo.rows order by id'
  assert.deepEqual(await rowsOf(cwd, sql), [
    [0, 'a', 0],
    [1, 'b', 1],
    [3, null, 2],
    [5, 'f', 3],
  ])
})

test('a record of over 64 MiB is set aside by its beginning; what follows it is tiered', async (t) => {
  const cwd = scratchFolder(t)
  const long = `{"id":1,"note":"${'x'.repeat(64 * 1024 * 1024)}"}`
  writeFileSync(join(cwd, 'long.ndjson'), `{"id":0}\n${long}\n{"id":2}\n`)
  writeFileSync(join(cwd, 'long.json'), schema)
  const tier = ['tier', 'long.ndjson', ...into('demo.long'), '--schema', 'long.json']
  const end = await sluice([...tier, '--on-bad-record', 'quarantine', '--json'], { cwd })
  assert.equal(end.exit, 0, end.stderr)
  const receipt = documentOf(end)
  assert.deepEqual([receipt['rows'], receipt['quarantined']], [2, 1])
  const folder = join(cwd, 'lake/_sluice/quarantine/demo.long')
  const [name = ''] = readdirSync(folder)
  assert.match(name, /-9\.ndjson$/)
  const kept: unknown = JSON.parse(readFileSync(join(folder, name), 'utf8'))
  assert.deepEqual(kept, {
    input: 'long.ndjson',
    line: 2,
    byte: 9,
    code: 'RECORD_REFUSED',
    reason: 'a record of more than 67,108,864 bytes, of which the first 4,096 are kept',
    record: long.slice(0, 4096),
  })
  assert.deepEqual(await rowsOf(cwd, 'select id from demo.long order by id'), [[0], [2]])
})

test('the state of a bad record counts no header, and says how many records are in where lines do not tell', async (t) => {
  const cwd = scratchFolder(t)
  writeFileSync(join(cwd, 'a.json'), schema)
  const stateOf = async (name: string, text: string, ...more: string[]): Promise<string> => {
    writeFileSync(join(cwd, name), text)
    const table = name.replace(/\..*/, '')
    const args = ['tier', name, ...into(`demo.${table}`), '--schema', 'a.json', ...more]
    const end = await sluice(args, { cwd })
    assert.equal(end.exit, 3, end.stderr)
    return (
      /\n {2}state {2}(.*)\n/.exec(end.stderr)?.[1]?.replace(/snapshot \d+/, 'snapshot S') ?? ''
    )
  }
  const aside = ['--on-bad-record', 'quarantine', '--bad-records-max', '1']
  assert.equal(await stateOf('a.csv', 'id,note\nx,a\n'), 'nothing from line 2 on is in the lake')
  const one = 'line 2 is in the lake (snapshot S); nothing from line 3 on is'
  assert.equal(await stateOf('b.csv', 'id,note\n1,a\nx,b\n'), one)
  const two = 'lines 2 to 3 are in the lake (snapshot S); nothing from line 4 on is'
  assert.equal(await stateOf('c.csv', 'id,note\n1,a\n2,b\nx,c\n'), two)
  assert.equal(
    await stateOf('d.csv', 'id,note\n1,"a\nb"\n2,b\nx,c\n'),
    '2 records before line 5 are in the lake (snapshot S); nothing from line 5 on is',
  )
  const text = '{"id":1}\n{"id":"x"}\n{"id":3}\n{"id":"y"}\n'
  assert.equal(
    await stateOf('e.ndjson', text, ...aside),
    '2 records before line 4 are in the lake (snapshot S); nothing from line 4 on is',
  )
  assert.equal(
    await stateOf('f.ndjson', '{"id":"x"}\n{"id":"y"}\n', ...aside),
    'no record before line 2 is in the lake; nothing from line 2 on is',
  )
})

test('what cannot be an input is refused before anything is written', async (t) => {
  const cwd = scratchFolder(t)
  const table = new Table({ id: vectorFromArray([0, 1], new Int32()) })
  const ipc = tableToIPC(table, 'file')
  writeFileSync(join(cwd, 'a.arrow'), ipc)
  writeFileSync(join(cwd, 'cut.arrow'), ipc.subarray(0, -20))
  writeFileSync(join(cwd, 'a.json'), schema)
  writeFileSync(join(cwd, 'a.ndjson'), '{"id":1}\n')
  writeFileSync(join(cwd, 'array.json'), '[{"id":1}]')
  writeFileSync(join(cwd, 'names.csv'), 'id,nots\n1,\n')
  writeFileSync(join(cwd, 'utf16.csv'), Buffer.from('\ufeffid,note\n1,a\n', 'utf16le'))
  writeFileSync(join(cwd, 'mac.csv'), 'id,note\r1,a\r')
  const cases: readonly (readonly [readonly string[], number, string])[] = [
    [
      ['a.arrow', '--follow', '--schema', 'a.json'],
      2,
      'error: a.arrow: an Arrow file cannot be followed\n  fix    leave --follow out',
    ],
    [
      ['a.ndjson', 'a.arrow', '--follow'],
      2,
      'error: a.arrow: an Arrow file cannot be followed\n  fix    leave --follow out',
    ],
    [
      ['a.ndjson', 'array.json'],
      2,
      `error: array.json is one JSON array; tier wants one record per line
  fix    jq -c '.[]' array.json | npx sluice tier - --input-id array …`,
    ],
    [
      ['names.csv', '--schema', 'a.json'],
      3,
      `error: names.csv line 1: field "nots" is not a column of demo.t. Did you mean note?
  where  names.csv:1:1 (byte 0)
  state  nothing from line 1 on is in the lake
  fix    take the field out, or set records with a value there aside: --on-unknown-field quarantine`,
    ],
    [
      ['utf16.csv'],
      2,
      `error: utf16.csv is UTF-16; tier wants UTF-8
  fix    iconv -f UTF-16 -t UTF-8 < utf16.csv > utf16-utf8.csv`,
    ],
    [
      ['mac.csv'],
      2,
      String.raw`error: mac.csv: its lines end in CR alone; tier wants LF or CRLF
  fix    tr '\r' '\n' < mac.csv > mac-lf.csv`,
    ],
    [
      ['cut.arrow'],
      3,
      `error: cut.arrow: not a whole Arrow file (it does not end like one)
  state  nothing was written
  fix    get a whole copy of cut.arrow`,
    ],
  ]
  const before = readdirSync(cwd)
  for (const [args, exit, says] of cases) {
    await t.test(args.join(' '), async () => {
      const end = await sluice(['tier', ...args, ...into('demo.t')], { cwd })
      assert.equal(errorOf(end), says)
      assert.equal(end.exit, exit)
      assert.equal(end.stdout, '')
      assert.deepEqual(readdirSync(cwd), before)
    })
  }
  // The commands of two of them help.
  for (const [fix, name] of [
    ['iconv -f UTF-16 -t UTF-8 < utf16.csv > utf16-utf8.csv', 'utf16-utf8.csv'],
    [String.raw`tr '\r' '\n' < mac.csv > mac-lf.csv`, 'mac-lf.csv'],
  ] as const) {
    assert.equal(spawnSync('sh', ['-c', fix], { cwd }).status, 0)
    const end = await sluice(['tier', name, ...into(`demo."${name}"`)], { cwd })
    assert.match(end.stdout, /^✓ 1 record → /, end.stderr)
  }
})

test('a file that is not there is told before the table that its name would have given', async (t) => {
  const cwd = scratchFolder(t)
  writeFileSync(join(cwd, 'flights.ndjson'), '{"id":1}\n')
  const end = await sluice(['tier', 'flights.njson', '--warehouse', './lake'], { cwd })
  assert.deepEqual(codeOf(end), ['INPUT_UNREADABLE', 2])
  assert.equal(errorOf(end), 'error: flights.njson: no such file. Did you mean flights.ndjson?')
})

test('--follow of an input that stays silent ends cleanly at a signal, table or not', async (t) => {
  const cwd = scratchFolder(t)
  writeFileSync(join(cwd, 'a.ndjson'), '{"id":1}\n')
  await sluice(['tier', 'a.ndjson', ...into('demo.a')], { cwd })
  assert.equal(spawnSync('mkfifo', [join(cwd, 'pipe')]).status, 0)
  for (const [input, table, signal] of [
    ['-', 'demo.new', 'SIGINT'],
    ['-', 'demo.a', 'SIGINT'],
    ['-', 'demo.new', 'SIGTERM'],
    // Nobody has opened it for writing.
    ['pipe', 'demo.new', 'SIGINT'],
  ] as const) {
    const running = startSluice(['tier', input, ...into(table), '--follow', '-v'], {
      cwd,
      timeoutMs: 30_000,
    })
    await new Promise((resolve) => setTimeout(resolve, 1500))
    running.kill(signal)
    const end = await running.ended
    assert.deepEqual([end.exit, end.signal], [0, null], end.stderr)
    assert.equal(end.stdout, `✓ nothing to do: no records for ${table}\n`)
  }
  assert.equal(existsSync(join(cwd, 'lake/demo/new')), false)
  const waiting = startSluice(['tier', 'pipe', ...into('demo.new')], { cwd, timeoutMs: 30_000 })
  await new Promise((resolve) => setTimeout(resolve, 1500))
  waiting.kill('SIGINT')
  assert.equal((await waiting.ended).exit, 130)
})

test('a bad record in one of several followed inputs ends the run', async (t) => {
  const cwd = scratchFolder(t)
  writeFileSync(join(cwd, 'a.ndjson'), '{"id":1}\n{"id":2}\n')
  writeFileSync(join(cwd, 'b.ndjson'), '{"id":3}\n{"id":"x"}\n{"id":4}\n')
  writeFileSync(join(cwd, 'a.json'), schema)
  const args = ['tier', 'a.ndjson', 'b.ndjson', ...into('demo.t'), '--schema', 'a.json', '--follow']
  const end = await sluice(args, { cwd, timeoutMs: 60_000 })
  assert.deepEqual(codeOf(end), ['RECORD_REFUSED', 3])
  assert.match(errorOf(end), /^error: b\.ndjson line 2: id is "x"/)
  assert.match(errorOf(end), /\n {2}state {2}line 1 is in the lake \(snapshot \d+\); nothing/)
  assert.deepEqual(await rowsOf(cwd, 'select id from demo.t order by id'), [[1], [2], [3]])
})
