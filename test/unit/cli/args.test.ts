import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseArguments } from '../../../src/cli/args.ts'
import { ManyProblems, problems } from '../../../src/cli/problems.ts'
import { readTierRequest } from '../../../src/cli/tier-options.ts'
import type { TierRequest } from '../../../src/cli/tier-request.ts'
import { readConfig } from '../../../src/cli/config.ts'
import { isSluiceError, type SluiceError } from '../../../src/core/errors.ts'

type Around = {
  readonly environment?: Record<string, string>
  readonly yaml?: string
  readonly folder?: string
}

function read(line: string | readonly string[], around: Around = {}): TierRequest | undefined {
  const found = problems()
  const argv = typeof line === 'string' ? line.split(' ') : line
  const given = parseArguments(argv, found)
  const request = readTierRequest(
    given,
    {
      environment: around.environment ?? {},
      folder: around.folder ?? '/home/me',
      config:
        around.yaml === undefined
          ? undefined
          : readConfig(around.yaml, '/etc/sluice.yaml', around.environment ?? {}),
    },
    found,
  )
  found.settle()
  return request
}

function refusals(line: string | readonly string[], around: Around = {}): readonly SluiceError[] {
  try {
    read(line, around)
  } catch (error) {
    if (error instanceof ManyProblems) return error.problems
    assert.ok(isSluiceError(error), String(error))
    return [error]
  }
  assert.fail('nothing was refused')
}

function messages(line: string | readonly string[], around: Around = {}): readonly string[] {
  return refusals(line, around).map((problem) => problem.message)
}

const plain = 'tier flights.ndjson --warehouse ./lake --table demo.flights'

test('reads the command of the readme', () => {
  const request = read(`${plain} --buckets 4`)
  assert.deepEqual(request?.inputs, ['flights.ndjson'])
  assert.equal(request.warehouse, 'file:///home/me/lake')
  assert.deepEqual(request.table, ['demo', 'flights'])
  assert.equal(request.buckets, 4)
  assert.equal(request.memoryBytes, 512 * 1024 ** 2)
  assert.equal(request.shutdownTimeoutMs, 30_000)
  assert.equal(request.onBadRecord, 'fail')
  assert.equal(request.freshnessMs, undefined)
  assert.ok(request.readers >= 1 && request.readers <= 16)
})

test('takes --name=value, options anywhere and everything after --', () => {
  const request = read('tier --warehouse=./lake --table=a.b --follow -- --odd.ndjson')
  assert.deepEqual(request?.inputs, ['--odd.ndjson'])
  assert.equal(request.follow, true)
})

test('names the table after a file with a plain name, and asks otherwise', () => {
  assert.deepEqual(read('tier data/flights.ndjson.gz --warehouse ./lake')?.table, [
    'default',
    'flights',
  ])
  assert.deepEqual(messages('tier - --warehouse ./lake'), ['--table is missing: stdin has no name'])
  assert.deepEqual(messages('tier a.csv b.csv --warehouse ./lake'), [
    '--table is missing: there are 2 inputs',
  ])
  const folder = mkdtempSync(join(tmpdir(), 'sluice-args-'))
  try {
    writeFileSync(join(folder, '2024.01.csv'), '')
    assert.deepEqual(messages('tier 2024.01.csv --warehouse ./lake', { folder }), [
      '--table is missing: "2024.01" is no plain name',
    ])
    // A table is not asked for by the name of a file that is not there.
    assert.deepEqual(messages('tier 2024.01.cvs --warehouse ./lake', { folder }), [
      '2024.01.cvs: no such file. Did you mean 2024.01.csv?',
    ])
    assert.deepEqual(messages('tier 2024.01.cvs --warehouse ./lake --buckets 0', { folder }), [
      '2024.01.cvs: no such file. Did you mean 2024.01.csv?',
      '--buckets 0: at least 1 bucket',
    ])
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('refuses bucket counts outside 1 to 4096', () => {
  assert.deepEqual(messages(`${plain} --buckets 1000000`), [
    '--buckets 1000000: at most 4096 buckets (each is a log, a split and a file per round)',
  ])
  assert.deepEqual(messages(`${plain} --buckets 0`), ['--buckets 0: at least 1 bucket'])
  assert.deepEqual(messages(`${plain} --buckets -3`), ['--buckets -3: at least 1 bucket'])
  assert.deepEqual(messages(`${plain} --buckets four`), ['--buckets "four" is not a whole number'])
})

test('refuses a freshness in bananas with the forms it takes', () => {
  const [problem] = refusals([...plain.split(' '), '--freshness', '5 bananas'])
  assert.equal(problem?.message, '--freshness "5 bananas" is not a duration')
  assert.equal(problem.fix, '30s, 5min, 1h30min, PT5M')
  assert.equal(problem.code, 'CONFIG_INVALID')
})

test('refuses a path as a table name', () => {
  const [problem] = refusals('tier a.csv --warehouse ./lake --table ../../etc')
  assert.equal(problem?.code, 'NAME_INVALID')
  assert.equal(problem.message, 'table name "../../etc": a part may not be "..", or contain "/"')
  assert.equal(problem.fix, 'namespace.table, for example demo.etc')
})

test('refuses credentials in a URL without repeating them', () => {
  const [problem] = refusals('tier a.csv --warehouse s3://key:hunter2@bucket/lake --table a.b')
  assert.equal(problem?.code, 'LOCATION_REFUSED')
  assert.equal(problem.message, '--warehouse: the URL contains credentials')
  assert.equal(problem.fix, 'put them in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY')
  assert.ok(!JSON.stringify(problem).includes('hunter2'))
})

test('refuses secrets in the arguments without repeating them', () => {
  for (const line of [
    `${plain} --password hunter2`,
    `${plain} --s3-secret-access-key=hunter2`,
    `${plain} --table-property s3.secret-access-key=hunter2`,
    `${plain} AKIAHUNTER2HUNTER2HU`,
  ]) {
    const [problem] = refusals(line)
    assert.match(problem?.message ?? '', /^argument \d+ .* there is no option for one$/)
    for (const each of refusals(line)) assert.ok(!/hunter2/i.test(each.message), each.message)
  }
})

test('suggests the option that was meant and does not take its value for an input', () => {
  assert.deepEqual(messages('tier a.ndjson --warehouse ./lake --tabel demo.flights'), [
    'unknown option --tabel. Did you mean --table?',
  ])
  assert.deepEqual(
    messages('teir a.ndjson --warehouse ./lake --table a.b')[0],
    'unknown command teir. Did you mean tier?',
  )
})

test('tells all that is wrong with a command line at once', () => {
  const all = messages(
    'tier --buckets 0 --freshness 5 --memory lots --readers 0 --encoder fast --wat',
  )
  assert.deepEqual(all.length, 8)
  assert.ok(all.some((message) => message.startsWith('tier needs an input')))
  assert.ok(all.some((message) => message.startsWith('--warehouse is missing')))
})

test('tells at most 20 problems', () => {
  const line = `${plain} ${Array.from({ length: 40 }, (_, i) => `--zzzzzz${String(i)}`).join(' ')}`
  assert.equal(messages(line).length, 20)
})

test('says what the options of later versions come with', () => {
  for (const [option, expected] of [
    ['--delete-mode equality', '--delete-mode comes with equality deletes, not in this version'],
    ['--format-version 4', '--format-version "4" is not known. Did you mean 2?'],
    ['--lake-format paimon', '--lake-format paimon comes with a later version'],
    ['--fluss host:9123', '--fluss comes with the Fluss source, not in this version'],
    [
      '--catalog http://127.0.0.1:8181',
      '--catalog: REST catalogs come with a later version; this one knows file',
    ],
    ['--partition-by day(ts)', '--partition-by comes with partitioned tables, not in this version'],
    [
      '--on-unknown-field evolve',
      '--on-unknown-field evolve comes with schema evolution, not in this version',
    ],
  ] as const) {
    assert.deepEqual(messages(`${plain} ${option}`), [expected], option)
  }
  assert.match(
    messages('doctor ./lake')[0] ?? '',
    /^sluice doctor comes with the checks of stores and engines/,
  )
  assert.equal(
    read(`${plain} --format-version 2 --lake-format iceberg --catalog file`)?.follow,
    false,
  )
})

test('names an option that is missing its value, doubled, or of another command', () => {
  assert.deepEqual(messages(`${plain} --buckets`), ['--buckets needs a value: --buckets N'])
  assert.deepEqual(messages(`${plain} --buckets 1 --buckets 2`), [
    '--buckets is given more than once',
  ])
  assert.deepEqual(messages(`${plain} --follow=yes`), ['--follow takes no value'])
  assert.deepEqual(messages(`${plain} --speed 3`), [
    '--speed is no option of sluice tier, but of: demo',
  ])
  assert.deepEqual(messages(`${plain} -z`), ['unknown option -z'])
})

test('a flag beats the environment, that the configuration, that the default', () => {
  const yaml = 'version: 1\njob:\n  readers: 3\n  memory: 1GiB\n'
  assert.equal(read(plain, { yaml })?.readers, 3)
  const environment = { SLUICE_READERS: '5' }
  assert.equal(read(plain, { yaml, environment })?.readers, 5)
  assert.equal(read(`${plain} --readers 7`, { yaml, environment })?.readers, 7)
  assert.equal(read(plain, { yaml, environment })?.memoryBytes, 1024 ** 3)
})

test('names the variable or the line of a value that is wrong', () => {
  assert.deepEqual(messages(plain, { environment: { SLUICE_READERS: '0' } }), [
    'SLUICE_READERS 0: at least 1 reader',
  ])
  assert.deepEqual(messages(plain, { yaml: 'job:\n  readers: 0\n' }), [
    'sluice.yaml:2:12: readers 0: at least 1 reader',
  ])
})

test('takes what the configuration says about the table at hand', () => {
  const yaml = [
    'defaults: {table.datalake.freshness: 5min}',
    'tables:',
    '  demo.flights:',
    '    bucket.num: 16',
    '    bucket.key: id',
    '    columns: {id: BIGINT NOT NULL, total: "DECIMAL(12, 2)"}',
    '    properties: {table.datalake.freshness: 1min, iceberg.write.parquet.compression-level: 3}',
    '  other.table: {bucket.num: 2}',
  ].join('\n')
  const request = read(plain, { yaml })
  assert.equal(request?.buckets, 16)
  assert.equal(request.bucketKey, 'id')
  assert.equal(request.freshnessMs, 60_000)
  assert.deepEqual(
    [...(request.columns ?? [])],
    [
      ['id', 'BIGINT NOT NULL'],
      ['total', 'DECIMAL(12, 2)'],
    ],
  )
  assert.equal(read(`${plain} --freshness 10s`, { yaml })?.freshnessMs, 10_000)
  assert.equal(request.properties.get('iceberg.write.parquet.compression-level'), '3')
})

test('passes properties through and refuses a misspelt one', () => {
  const request = read(
    `${plain} --table-property owner=me --table-property iceberg.x=1 --target-file-size 1MiB`,
  )
  assert.deepEqual(
    [...(request?.properties ?? [])],
    [
      ['owner', 'me'],
      ['iceberg.x', '1'],
      ['iceberg.write.target-file-size-bytes', '1048576'],
    ],
  )
  assert.deepEqual(messages(`${plain} --table-property table.datalake.freshnes=1min`), [
    'table property "table.datalake.freshnes" is not known. Did you mean table.datalake.freshness?',
  ])
  assert.deepEqual(messages(`${plain} --table-property table.datalake.freshness=0s`), [
    '--table-property table.datalake.freshness "0s" is not a duration: it must be longer than zero',
  ])
})

test('escapes what it repeats', () => {
  const [message] = messages([...plain.split(' '), '--\u001b[31m'])
  assert.equal(message, 'unknown option "--\\x1b[31m"')
})

test('reads what is about primary-key tables', () => {
  const request = read(
    `${plain} --primary-key "a,b",c --op-column op --format-version 3 --kv-engine rocksdb --state-dir s`,
  )
  assert.deepEqual(request?.primaryKey, ['a,b', 'c'])
  assert.deepEqual(request.changes, { kind: 'op-column', column: 'op' })
  assert.equal(request.formatVersion, 3)
  assert.equal(request.kv?.engine, 'rocksdb')
  assert.match(request.kv.stateFolder, /\/s\/kv$/)
  assert.deepEqual(read(`${plain} --primary-key id --cdc debezium`)?.changes, { kind: 'debezium' })
  for (const [options, expected] of [
    ['--primary-key id,,b', '--primary-key "id,,b": names of columns with commas between'],
    ['--primary-key id,id', '--primary-key names "id" twice'],
    ['--cdc maxwell', '--cdc "maxwell" is not known'],
    ['--kv-engine level', '--kv-engine "level" is not known'],
    [
      '--cdc debezium --op-column op',
      '--op-column is of flat records, and --cdc of envelopes, which have an op of their own',
    ],
  ] as const) {
    assert.deepEqual(messages(`${plain} ${options}`), [expected], options)
  }
})
