import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { whyNotHere } from '../../../src/cli/platform.ts'
import type { Commands } from '../../../src/cli/run.ts'
import { watchSignals } from '../../../src/cli/signals.ts'
import { SluiceError } from '../../../src/core/errors.ts'
import { scratchFolder } from '../../support/scratch.ts'
import { runCli } from './lake-fixture.ts'

const failing = (error: Error): Commands => {
  const command = (): Promise<number> => Promise.reject(error)
  const load = (): Promise<typeof command> => Promise.resolve(command)
  return { tier: load, query: load, verify: load, progress: load, sweep: load, demo: load }
}
const tier = ['tier', 'flights.ndjson', '--warehouse', './lake', '--table', 'demo.flights']

test('shows an error as what is wrong and then only the lines that add something', async () => {
  const error = new SluiceError(
    'RECORD_REFUSED',
    'flights.ndjson line 1203: delay is "n/a", column delay of demo.flights is BIGINT',
    {
      where: 'flights.ndjson:1203:38 (byte 108,412)',
      state: 'lines 1 to 1202 are in the lake',
      fix: 'correct the line and run the same command again',
    },
  )
  const { exit, out, err } = await runCli(tier, {}, failing(error))
  assert.equal(exit, 3)
  assert.equal(out, '')
  assert.equal(
    err,
    [
      'error: flights.ndjson line 1203: delay is "n/a", column delay of demo.flights is BIGINT',
      '  where  flights.ndjson:1203:38 (byte 108,412)',
      '  state  lines 1 to 1202 are in the lake',
      '  fix    correct the line and run the same command again',
      '  code   RECORD_REFUSED (exit 3) · docs/reference/errors.md#record_refused',
      '',
    ].join('\n'),
  )
})

test('writes one JSON document on failure too', async () => {
  const error = new SluiceError('COMMIT_UNKNOWN', 'no answer', {
    details: { round: 7n, planHead: { snapshotId: 8n }, ends: new Map([['aB', 1n]]) },
  })
  const { exit, out } = await runCli([...tier, '--json'], {}, failing(error))
  assert.equal(exit, 4)
  assert.deepEqual(JSON.parse(out), {
    schema: 'sluice.receipt/1',
    ok: false,
    error: {
      code: 'COMMIT_UNKNOWN',
      message: 'no answer',
      effect: 'unknown',
      details: { round: 7, plan_head: { snapshot_id: 8 }, ends: { aB: 1 } },
      fix: null,
      exit: 4,
    },
  })
  const usage = await runCli(['tier', '--json', '--bukets', '4', '--warehouse', 'x', 'a.csv'])
  assert.equal(usage.exit, 2)
  const document = JSON.parse(usage.out) as { error: { code: string; message: string } }
  assert.equal(document.error.code, 'CONFIG_INVALID')
  assert.equal(document.error.message, 'unknown option --bukets. Did you mean --buckets?')
})

test('shows a stack only with -v, and a bug of ours as one', async () => {
  const bug = new TypeError('x is not a function')
  const quiet = await runCli(tier, {}, failing(bug))
  assert.equal(quiet.exit, 70)
  assert.match(quiet.err, /^error: unexpected: TypeError: x is not a function\n/)
  assert.ok(!quiet.err.includes('    at '))
  const verbose = await runCli([...tier, '-v'], {}, failing(bug))
  assert.match(verbose.err, /\n {4}at /)
})

test('never shows control characters or credentials of a message', async () => {
  const error = new SluiceError('STORE_DENIED', 'https://me:pw@host/x?sig=1 said \u001b[2J')
  const { err } = await runCli(tier, {}, failing(error))
  assert.match(err, /^error: https:\/\/\*\*\*@host\/x\?\*\*\* said \\x1b\[2J/)
})

test('obeys NO_COLOR, --color, CI, TERM=dumb and the locale', async () => {
  const error = new SluiceError('TABLE_MISSING', 'none → here')
  const colored = async (
    environment: Record<string, string>,
    ...more: string[]
  ): Promise<boolean> =>
    (await runCli([...tier, ...more], { tty: true, environment }, failing(error))).err.includes(
      '\u001b[31m',
    )
  assert.equal(await colored({}), true)
  assert.equal(await colored({ NO_COLOR: '1' }), false)
  assert.equal(await colored({ NO_COLOR: '' }), true)
  assert.equal(await colored({ CI: 'true' }), false)
  assert.equal(await colored({ TERM: 'dumb' }), false)
  assert.equal(await colored({}, '--color', 'never'), false)
  assert.equal(await colored({ NO_COLOR: '1' }, '--color=always'), true)
  const ascii = await runCli(tier, { environment: { LANG: 'C' } }, failing(error))
  assert.match(ascii.err, /^error: none -> here\n {2}code {3}TABLE_MISSING \(exit 3\) \| docs/)
})

test('shows help and version wherever they are asked for', async () => {
  for (const argv of [['--help'], ['help'], ['-h']]) {
    const { exit, out } = await runCli(argv)
    assert.equal(exit, 0)
    assert.match(out, /^sluice: log buckets into Iceberg tables/)
  }
  for (const argv of [
    ['tier', '--help'],
    ['help', 'tier'],
    ['tier', '-h', '--buckets', '0'],
  ]) {
    const { exit, out } = await runCli(argv)
    assert.equal(exit, 0)
    assert.match(out, /^sluice tier: /)
  }
  for (const argv of [['--version'], ['-V'], ['version']]) {
    assert.match((await runCli(argv)).out, /^sluice \d+\.\d+\.\d+ \(node /)
  }
  const none = await runCli([])
  assert.equal(none.exit, 2)
  assert.equal(none.out, '')
})

test('refuses an unknown command with the one that was meant', async () => {
  const { exit, err } = await runCli(['qeury', './lake', 'select 1'])
  assert.equal(exit, 2)
  assert.match(err, /^error: unknown command qeury\. Did you mean query\?\n/)
})

test('a configuration that cannot be read is told of, and nothing that may stand in it', async (t) => {
  const folder = scratchFolder(t)
  writeFileSync(join(folder, 'sluice.yaml'), 'warehouse: ./lake\njobb: {readers: 2}\n')
  const { exit, err } = await runCli(['tier', 'a.csv', '--bukets', '4'], { folder })
  assert.equal(exit, 2)
  assert.deepEqual(
    err.split('\n').filter((line) => line.startsWith('error: ')),
    [
      'error: unknown option --bukets. Did you mean --buckets?',
      'error: sluice.yaml:2:1: unknown key "jobb". Did you mean job?',
    ],
  )
})

test('finds sluice.yaml in the folder and tells about a misspelt variable', async (t) => {
  const folder = scratchFolder(t)
  writeFileSync(join(folder, 'sluice.yaml'), 'warehous: ./lake\n')
  const broken = await runCli(['tier', 'a.csv'], { folder })
  assert.equal(broken.exit, 2)
  assert.match(
    broken.err,
    /error: sluice\.yaml:1:1: unknown key "warehous"\. Did you mean warehouse\?/,
  )
  const environment = { SLUICE_READER: '3' }
  const done = failing(new SluiceError('STOPPED', 'x'))
  const { err } = await runCli(tier, { environment }, done)
  assert.match(
    err,
    /note {2}SLUICE_READER is set and means nothing\. Did you mean SLUICE_READERS\?/,
  )
})

test('a second signal leaves at once, but not the same Ctrl-C seen twice', () => {
  const listeners = new Map<string, () => void>()
  const source = {
    on: (event: string, listener: () => void) => listeners.set(event, listener),
    off: (event: string) => listeners.delete(event),
  }
  let now = 0
  const left: number[] = []
  const stop = watchSignals(source, { now: () => now, leave: (exit) => left.push(exit) })
  listeners.get('SIGINT')?.()
  assert.equal(stop.signal.aborted, true)
  assert.equal(stop.by(), 'SIGINT')
  now = 999
  listeners.get('SIGINT')?.()
  assert.deepEqual(left, [])
  now = 1000
  listeners.get('SIGTERM')?.()
  assert.deepEqual(left, [143])
  stop.close()
  assert.equal(listeners.size, 0)
})

test('refuses Windows and an old Node with what to do', () => {
  assert.match(whyNotHere('win32', '22.0.0') ?? '', /Windows is not supported/)
  assert.match(whyNotHere('linux', '20.18.1') ?? '', /Node 20\.18\.1 is too old/)
  assert.match(whyNotHere('linux', '18.20.0') ?? '', /Node 18/)
  assert.equal(whyNotHere('linux', '20.19.0'), undefined)
  assert.equal(whyNotHere('darwin', '24.1.0'), undefined)
})
