import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { type CliEnd, type CliOptions, mainPath, repository, sluice } from '../support/cli.ts'
import { scratchFolder } from '../support/scratch.ts'

const ids = '{"id":1}\n{"id":2}\n{"id":3}\n'
const tierIds = ['tier', 'ids.ndjson', '--warehouse', './lake', '--table', 'demo.ids'] as const

type Case = {
  readonly args: readonly string[]
  readonly exit: number
  /** stderr as the interface gives it, without the line of the code. */
  readonly says: string
  readonly code?: string
}

/** What a command line, a name or a file that cannot be right is answered with. */
const refusals: Readonly<Record<string, Case>> = {
  'a missing file': {
    args: ['tier', 'flights.njson', '--warehouse', './lake', '--table', 'demo.flights'],
    exit: 2,
    says: 'error: flights.njson: no such file. Did you mean flights.ndjson?',
    code: 'INPUT_UNREADABLE',
  },
  'a missing file that is near to none': {
    args: ['tier', 'elsewhere/data-of-2026.csv', '--warehouse', './lake', '--table', 'a.b'],
    exit: 2,
    says: 'error: elsewhere/data-of-2026.csv: no such file',
    code: 'INPUT_UNREADABLE',
  },
  'a folder': {
    args: ['tier', 'folder', '--warehouse', './lake', '--table', 'a.b'],
    exit: 2,
    says: "error: folder: is a folder\n  fix    name files, for example 'folder/*.ndjson'",
    code: 'INPUT_UNREADABLE',
  },
  'a glob that matches nothing': {
    args: ['tier', 'folder/*.ndjson', '--warehouse', './lake', '--table', 'a.b'],
    exit: 2,
    says: 'error: "folder/*.ndjson": no file matches',
    code: 'INPUT_UNREADABLE',
  },
  'a JSON array': {
    args: ['tier', 'movies.json', '--warehouse', './lake'],
    exit: 2,
    says: `error: movies.json is one JSON array; tier wants one record per line
  fix    jq -c '.[]' movies.json | npx sluice tier - --input-id movies …`,
    code: 'INPUT_UNREADABLE',
  },
  'a schema file that is not there': {
    args: [...tierIds, '--schema', 'none.schema.json'],
    exit: 2,
    says: 'error: none.schema.json: no such file',
    code: 'INPUT_UNREADABLE',
  },
  'a schema file that is no JSON': {
    args: [...tierIds, '--schema', 'cut.schema.json'],
    exit: 2,
    says: 'error: cut.schema.json:1:13: not JSON: a value expected, the file ends',
    code: 'SCHEMA_UNSUPPORTED',
  },
  'an unknown type': {
    args: [...tierIds, '--schema', 'flights.schema.json'],
    exit: 2,
    says: 'error: flights.schema.json:7:15: type "BIGNIT" is not known. Did you mean BIGINT?',
    code: 'SCHEMA_UNSUPPORTED',
  },
  'VARCHAR, which Fluss calls STRING': {
    args: [...tierIds, '--schema', 'varchar.schema.json'],
    exit: 2,
    says: 'error: varchar.schema.json:1:38: type "VARCHAR" is called STRING in Fluss',
    code: 'SCHEMA_UNSUPPORTED',
  },
  'no buckets': {
    args: [...tierIds, '--buckets', '0'],
    exit: 2,
    says: 'error: --buckets 0: at least 1 bucket',
  },
  'a million buckets': {
    args: [...tierIds, '--buckets', '1000000'],
    exit: 2,
    says: 'error: --buckets 1000000: at most 4096 buckets (each is a log, a split and a file per round)',
  },
  'a freshness of bananas': {
    args: [...tierIds, '--freshness', '5 bananas'],
    exit: 2,
    says: 'error: --freshness "5 bananas" is not a duration\n  fix    30s, 5min, 1h30min, PT5M',
    code: 'CONFIG_INVALID',
  },
  'a misspelt option': {
    args: ['tier', 'ids.ndjson', '--warehouse', './lake', '--tabel', 'demo.ids'],
    exit: 2,
    says: 'error: unknown option --tabel. Did you mean --table?',
  },
  'a table name that climbs out of the lake': {
    args: ['tier', 'ids.ndjson', '--warehouse', './lake', '--table', '../../etc'],
    exit: 2,
    says: `error: table name "../../etc": a part may not be "..", or contain "/"
  fix    namespace.table, for example demo.etc`,
    code: 'NAME_INVALID',
  },
  'no warehouse': {
    args: ['tier', 'ids.ndjson'],
    exit: 2,
    says: `error: --warehouse is missing: nothing is written to a place not named
  fix    --warehouse ./lake, or SLUICE_WAREHOUSE`,
    code: 'CONFIG_INVALID',
  },
  'credentials in a URL': {
    args: ['tier', 'ids.ndjson', '--warehouse', 's3://AKIAEXAMPLE:hunter2@demo/lake'],
    exit: 2,
    says: `error: --warehouse: the URL contains credentials
  fix    put them in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY`,
    code: 'LOCATION_REFUSED',
  },
  'equality deletes': {
    args: [...tierIds, '--primary-key', 'id', '--delete-mode', 'equality'],
    exit: 2,
    says: `error: --delete-mode comes with equality deletes, not in this version
  fix    leave it out: rows are deleted by their position`,
    code: 'CONFIG_INVALID',
  },
  'a primary key that is no column': {
    args: [...tierIds, '--primary-key', 'idd'],
    exit: 2,
    says: `error: primary key "idd" is not a column. Did you mean id?`,
    code: 'SCHEMA_UNSUPPORTED',
  },
  'changes without a primary key': {
    args: [...tierIds, '--cdc', 'debezium'],
    exit: 2,
    says: `error: --cdc debezium: demo.ids has no primary key, and changes need one
  fix    --primary-key id`,
    code: 'CONFIG_INVALID',
  },
}

test('what cannot be right is refused with the facts and a way out, before anything is written', async (t) => {
  const cwd = scratchFolder(t)
  writeInputs(cwd)
  const before = readdirSync(cwd)
  for (const [what, { args, exit, says, code }] of Object.entries(refusals)) {
    await t.test(what, async () => {
      const end = await sluice(args, { cwd })
      requireSays(end, { exit, says, ...(code === undefined ? {} : { code }) })
      assert.deepEqual(readdirSync(cwd), before)
      assert.ok(!`${end.stdout}${end.stderr}`.includes('hunter2'))
    })
  }
})

test('all mistakes of one command line are told at once', async (t) => {
  const cwd = scratchFolder(t)
  writeInputs(cwd)
  const end = await sluice([...tierIds, '--buckets', '0', '--freshness', '5 bananas'], { cwd })
  assert.equal(end.exit, 2)
  assert.deepEqual(
    end.stderr.split('\n').filter((line) => line.startsWith('error: ')),
    ['error: --buckets 0: at least 1 bucket', 'error: --freshness "5 bananas" is not a duration'],
  )
})

test('a table that exists with another schema, bucket count or bucket key is not touched', async (t) => {
  const cwd = scratchFolder(t)
  writeInputs(cwd)
  const made = await sluice([...tierIds, '--buckets', '4', '--bucket-key', 'id'], { cwd })
  assert.equal(made.exit, 0, made.stderr)
  const before = filesIn(cwd)
  const columns = '{"columns":[{"name":"id","type":"STRING"}]}'
  writeFileSync(join(cwd, 'other.json'), columns)
  const cases = [
    {
      args: ['--buckets', '8'],
      says: `error: demo.ids exists with 4 buckets; --buckets 8 would move its records
  fix    leave --buckets out, or another --table`,
    },
    {
      args: ['--bucket-key', 'name'],
      says: `error: demo.ids exists with bucket key id; another would move its records
  fix    leave --bucket-key out, or another --table`,
    },
    {
      args: ['--schema', 'other.json'],
      says: `error: demo.ids exists with other columns: id is BIGINT there and STRING here
  fix    leave the schema out, or another --table`,
    },
  ]
  for (const { args, says } of cases) {
    const end = await sluice([...tierIds, ...args], { cwd })
    requireSays(end, { exit: 3, says, code: 'TABLE_MISMATCH' })
  }
  assert.deepEqual(filesIn(cwd), before)
})

test('a metadata file that is cut stops the run; nothing goes back to the one before', async (t) => {
  const cwd = scratchFolder(t)
  writeInputs(cwd)
  await sluice(tierIds, { cwd })
  writeFileSync(join(cwd, 'ids.ndjson'), `${ids}{"id":4}\n`)
  const metadata = join(cwd, 'lake/demo/ids/metadata')
  const versions = readdirSync(metadata).filter((name) => name.endsWith('.metadata.json'))
  const newest = `v${versions.length}`
  const before = `v${versions.length - 1}`
  const path = join(metadata, `${newest}.metadata.json`)
  writeFileSync(path, readFileSync(path).subarray(0, 300))
  const files = filesIn(cwd)
  const end = await sluice(tierIds, { cwd })
  requireSays(end, {
    exit: 3,
    says: `error: ./lake/demo/ids/metadata/${newest}.metadata.json: not JSON from byte 300 on (file is cut)
  state  nothing was changed; ${before} is whole
  fix    restore the file; sluice will not go back to ${before} by itself, that could drop commits`,
    code: 'DATA_CORRUPT',
  })
  assert.deepEqual(filesIn(cwd), files)
})

test('a warehouse without the right to write says whose it is', async (t) => {
  const cwd = scratchFolder(t)
  writeInputs(cwd)
  const lake = join(cwd, 'lake')
  mkdirSync(lake)
  const other = otherUser(t)
  if (other === undefined) return
  chmodSync(cwd, 0o755)
  chmodSync(lake, 0o555)
  const end = await sluice(tierIds, { cwd, ...other.options })
  requireSays(end, {
    exit: 5,
    says: `error: ./lake: cannot create files (EACCES, owner ${other.owner}, mode 555)
  state  nothing was written`,
    code: 'STORE_DENIED',
  })
  assert.deepEqual(readdirSync(lake), [])
})

test('a full disk ends the run with the rounds that are in; after that it goes on', async (t) => {
  const cwd = scratchFolder(t)
  writeInputs(cwd)
  const lake = join(cwd, 'lake')
  mkdirSync(lake)
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', lake])
  if (mounted.status !== 0) {
    t.skip(`no small file system can be mounted here: ${mounted.stderr.toString().trim()}`)
    return
  }
  try {
    const first = await sluice(tierIds, { cwd })
    assert.equal(first.exit, 0, first.stderr)
    spawnSync('dd', ['if=/dev/zero', `of=${lake}/filler`, 'bs=64k', 'count=1000'])
    const before = readdirSync(lake, { recursive: true })
    writeFileSync(join(cwd, 'ids.ndjson'), `${ids}{"id":4}\n`)
    const full = await sluice(tierIds, { cwd })
    const needed = /\((\d+) kB needed at most/.exec(full.stderr)?.[1] ?? ''
    requireSays(full, {
      exit: 5,
      says: `error: ./lake: disk full while writing bucket 0 of demo.ids (${needed} kB needed at most, 0 B free)
  state  3 records were in the lake before; this run added nothing
  fix    free space, run again: it goes on at record 3`,
      code: 'DISK_FULL',
    })
    assert.deepEqual(readdirSync(lake, { recursive: true }), before)
    // As much room as it said is enough.
    const { size } = statSync(join(lake, 'filler'))
    truncateSync(join(lake, 'filler'), size - Number(needed) * 1000)
    const after = await sluice(tierIds, { cwd })
    assert.match(after.stdout, /^✓ 1 record → demo\.ids in .* \(3 were there\)\n/)
  } finally {
    spawnSync('umount', [lake])
  }
})

test('query without DuckDB names the package and how to get it', async (t) => {
  const cwd = scratchFolder(t)
  writeInputs(cwd)
  await sluice(tierIds, { cwd })
  // A copy of the package that sees every dependency but this one.
  const copy = join(cwd, 'copy')
  mkdirSync(join(copy, 'node_modules'), { recursive: true })
  cpSync(join(dirname(mainPath), '..'), join(copy, 'dist/src'), { recursive: true })
  cpSync(join(repository, 'package.json'), join(copy, 'package.json'))
  const packages = join(repository, 'node_modules')
  for (const name of readdirSync(packages)) {
    if (name !== '@duckdb') symlinkSync(join(packages, name), join(copy, 'node_modules', name))
  }
  const end = await sluice(['query', './lake', 'select 1'], {
    cwd,
    main: join(copy, 'dist/src/cli/main.js'),
  })
  requireSays(end, {
    exit: 2,
    says: `error: query needs @duckdb/node-api, which is not installed
  fix    npm install @duckdb/node-api`,
    code: 'DEPENDENCY_MISSING',
  })
})

function writeInputs(cwd: string): void {
  writeFileSync(join(cwd, 'ids.ndjson'), ids)
  writeFileSync(join(cwd, 'flights.ndjson'), '{"delay":1}\n')
  writeFileSync(join(cwd, 'movies.json'), '[{"title":"a"},\n {"title":"b"}]\n')
  mkdirSync(join(cwd, 'folder'))
  writeFileSync(join(cwd, 'cut.schema.json'), '{"columns": ')
  writeFileSync(
    join(cwd, 'flights.schema.json'),
    `{
  "columns": [
    {"name": "date",
     "type": "STRING"},
    {
      "name": "delay",
      "type":"BIGNIT"
    }
  ]
}
`,
  )
  const varchar = '{"columns": [{"name": "id", "type": "VARCHAR(10)"}]}'
  writeFileSync(join(cwd, 'varchar.schema.json'), varchar)
}

function requireSays(
  end: CliEnd,
  expected: { readonly exit: number; readonly says: string; readonly code?: string },
): void {
  const { exit, says, code } = expected
  const codeLine =
    code === undefined
      ? ''
      : `  code   ${code} (exit ${exit}) · docs/reference/errors.md#${code.toLowerCase()}\n`
  assert.equal(end.stderr, `${says}\n${codeLine}`)
  assert.equal(end.exit, exit)
  assert.equal(end.stdout, '')
}

/** Root may write anywhere, so the command runs as nobody; anybody else runs it as themselves. */
function otherUser(
  t: TestContext,
): { readonly owner: string; readonly options: Pick<CliOptions, 'under'> } | undefined {
  const me = spawnSync('id', ['-un'], { encoding: 'utf8' }).stdout.trim()
  if (process.getuid?.() !== 0) return { owner: me, options: {} }
  const under = ['setpriv', '--reuid', '65534', '--clear-groups']
  const script = `fs.readFileSync('${mainPath}')`
  const args = [...under.slice(1), process.execPath, '-e', script]
  if (spawnSync('setpriv', args).status === 0) {
    return { owner: me, options: { under } }
  }
  t.skip('root may write anywhere, and setpriv cannot run the command as another user')
  return undefined
}

function filesIn(cwd: string): readonly string[] {
  return readdirSync(join(cwd, 'lake'), { recursive: true }).map(String).sort()
}
