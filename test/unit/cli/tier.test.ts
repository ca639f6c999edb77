import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Command } from '../../../src/cli/command.ts'
import { problems } from '../../../src/cli/problems.ts'
import { readTierRequest } from '../../../src/cli/tier-options.ts'
import type { Receipt, RoundReport, TierEvent, TierRun } from '../../../src/cli/tier-request.ts'
import { tierWith } from '../../../src/cli/tier.ts'
import { SluiceError } from '../../../src/core/errors.ts'
import { type CliRun, runCli } from './lake-fixture.ts'

const round: RoundReport = {
  round: 1,
  incarnation: 1,
  epoch: 1,
  snapshotId: 3_055_729_675_574_597_004n,
  commitId: 'c1',
  rows: 5000n,
  rowsDeleted: 0n,
  deleteFiles: 0,
  forceFinished: false,
  attempts: 1,
  outcome: 'committed',
  seconds: 0.31,
}

function receipt(over: Partial<Receipt> = {}): Receipt {
  return {
    ok: true,
    table: 'demo.flights',
    kind: 'log',
    tableUuid: '8e7d280e-7867-4ec9-805e-a4ffd1d690f7',
    created: true,
    warehouse: 'file:///home/me/lake',
    snapshotId: 3_055_729_675_574_597_004n,
    rows: 5000n,
    rowsBefore: 0n,
    rowsDeleted: 0n,
    quarantined: 0,
    quarantineFile: undefined,
    inputs: [
      {
        id: 'sha256:5f2c',
        name: 'flights.ndjson',
        records: 5000n,
        bytes: 446_166,
        position: '446166',
        alreadyThere: 0n,
        valuesCut: 0,
        exactlyOnce: true,
      },
    ],
    buckets: [1928n, 1024n, 1024n, 1024n].map((end, bucket) => ({ bucket, start: 0n, end })),
    files: 4,
    deleteFiles: 0,
    bytes: 61_204,
    inputBytes: 446_166,
    rounds: [round],
    seconds: 0.4,
    peakMemoryBytes: 141_557_760,
    notes: [],
    error: undefined,
    ...over,
  }
}

/** Runs `tier` with a run that tells these events and ends with this receipt. */
async function tier(run: TierRun, more: readonly string[] = [], tty = false): Promise<CliRun> {
  const command: Command = (context) => {
    const request = readTierRequest(context.given, context.around, problems())
    assert.ok(request !== undefined)
    return tierWith(run, request, context)
  }
  const load = (): Promise<Command> => Promise.resolve(command)
  const argv = [
    'tier',
    'flights.ndjson',
    '--warehouse',
    './lake',
    '--table',
    'demo.flights',
    ...more,
  ]
  const all = { tier: load, query: load, verify: load, progress: load, sweep: load, demo: load }
  return await runCli(argv, { tty }, all)
}

const telling =
  (end: Receipt, events: readonly TierEvent[] = []): TierRun =>
  (_, hooks) => {
    for (const event of events) hooks.onEvent(event)
    return Promise.resolve(end)
  }

test('prints the receipt of the readme', async () => {
  const { exit, out } = await tier(telling(receipt()))
  assert.equal(exit, 0)
  assert.equal(
    out,
    [
      '✓ 5,000 records → demo.flights in 0.4 s',
      '  snapshot  3055729675574597004   round 1, epoch 1.1',
      '  files     4 data files, 61 kB (from 446 kB)',
      '  buckets   0: 1,928  1: 1,024  2: 1,024  3: 1,024',
      '  rate      12,500 rows/s, 1.1 MB/s',
      '',
    ].join('\n'),
  )
})

test('says that there is nothing to do, and how much was there', async () => {
  const again = receipt({
    created: false,
    rows: 0n,
    rounds: [],
    inputs: receipt().inputs.map((input) => ({ ...input, alreadyThere: 5000n })),
  })
  assert.equal(
    (await tier(telling(again))).out,
    '✓ nothing to do: demo.flights holds all 5,000 records of flights.ndjson (snapshot 3055729675574597004)\n',
  )
  const grown = receipt({ created: false, rows: 1000n, rowsBefore: 5000n, seconds: 0.3 })
  assert.match(
    (await tier(telling(grown))).out,
    /^✓ 1,000 records → demo\.flights in 0\.3 s \(5,000 were there\)\n/,
  )
})

test('counts values that were cut, and one record that was there', async () => {
  const cut = receipt({
    rowsBefore: 1n,
    inputs: [3, 4].map((valuesCut) => ({ ...receipt().inputs[0]!, valuesCut })),
  })
  const { out } = await tier(telling(cut))
  assert.match(out, /^✓ 5,000 records of 2 inputs → demo\.flights in 0\.4 s \(1 was there\)\n/)
  assert.match(out, /\n {2}cut {7}7 values to microseconds, as declared\n/)
})

test('sums up many buckets, several rounds and what was set aside', async () => {
  const buckets = Array.from({ length: 16 }, (_, bucket) => ({
    bucket,
    start: 0n,
    end: BigInt(bucket * 100),
  }))
  const { out } = await tier(
    telling(
      receipt({
        buckets,
        rounds: [round, { ...round, round: 2, epoch: 2, forceFinished: true }],
        quarantined: 2,
        quarantineFile: './lake/_sluice/quarantine/demo.flights',
      }),
    ),
  )
  assert.match(out, /buckets {3}16: min 0, median 700, max 1,500\n/)
  assert.match(out, /rounds {4}2, 1 force-finished\n/)
  assert.match(
    out,
    /set aside 2 bad records, a file each in \.\/lake\/_sluice\/quarantine\/demo\.flights\n/,
  )
})

test('writes sluice.receipt/1 with all its keys', async () => {
  const { out } = await tier(telling(receipt()), ['--json'])
  assert.deepEqual(JSON.parse(out), {
    schema: 'sluice.receipt/1',
    ok: true,
    table: 'demo.flights',
    table_uuid: '8e7d280e-7867-4ec9-805e-a4ffd1d690f7',
    created: true,
    warehouse: 'file:///home/me/lake',
    snapshot_id: '3055729675574597004',
    rows: 5000,
    rows_before: 0,
    rows_deleted: 0,
    quarantined: 0,
    quarantine_file: null,
    inputs: [
      {
        id: 'sha256:5f2c',
        name: 'flights.ndjson',
        records: 5000,
        bytes: 446166,
        position: '446166',
        already_there: 0,
        values_cut: 0,
        exactly_once: true,
      },
    ],
    buckets: [
      { bucket: 0, start: 0, end: 1928 },
      { bucket: 1, start: 0, end: 1024 },
      { bucket: 2, start: 0, end: 1024 },
      { bucket: 3, start: 0, end: 1024 },
    ],
    files: 4,
    delete_files: 0,
    bytes: 61204,
    input_bytes: 446166,
    rounds: [
      {
        round: 1,
        incarnation: 1,
        epoch: 1,
        snapshot_id: '3055729675574597004',
        commit_id: 'c1',
        rows: 5000,
        rows_deleted: 0,
        delete_files: 0,
        force_finished: false,
        attempts: 1,
        outcome: 'committed',
        seconds: 0.31,
      },
    ],
    seconds: 0.4,
    rows_per_second: 12500,
    mb_per_second: 1.115,
    peak_memory_bytes: 141557760,
    notes: [],
    error: null,
  })
})

test('shows what was committed, then the error, when a run stopped after commits', async () => {
  const error = new SluiceError('RECORD_REFUSED', 'flights.ndjson line 7: not JSON')
  const stopped = receipt({ ok: false, error })
  const { exit, out, err } = await tier(telling(stopped))
  assert.equal(exit, 3)
  assert.match(out, /^✗ 5,000 records → demo\.flights/)
  assert.match(err, /^error: flights\.ndjson line 7: not JSON\n/)
  const json = await tier(telling(stopped), ['--json'])
  const document = JSON.parse(json.out) as { ok: boolean; rows: number; error: { exit: number } }
  assert.deepEqual([document.ok, document.rows, document.error.exit], [false, 5000, 3])
  const none = await tier(telling(receipt({ ok: false, error, rows: 0n, rounds: [] })))
  assert.equal(none.out, '')
})

test('a run that follows its input and is told to stop has done its work', async () => {
  const error = new SluiceError('STOPPED', 'interrupted')
  assert.equal((await tier(telling(receipt({ error })), ['--follow'])).exit, 0)
  assert.equal((await tier(telling(receipt({ error })))).exit, 130)
})

const events: readonly TierEvent[] = [
  {
    event: 'created',
    table: 'demo.flights',
    buckets: 4,
    columns: [
      { name: 'date', type: 'STRING' },
      { name: 'delay', type: 'BIGINT' },
    ],
  },
  { event: 'note', message: 'date stays STRING' },
  { event: 'resuming', table: 'demo.big', records: 9_600_000n, round: 7, fenced: 1 },
  {
    event: 'progress',
    input: 'big.ndjson',
    bytes: 55,
    bytesTotal: 100,
    records: 11_200_000n,
    committed: 9_600_000n,
    round: 7,
  },
  { event: 'committed', table: 'demo.flights', ...round },
]

test('tells what happens in lines where nobody watches, and nothing with -q', async () => {
  const { err } = await tier(telling(receipt(), events))
  assert.equal(
    err,
    [
      'created demo.flights (4 buckets): date STRING, delay BIGINT',
      '  note  date stays STRING',
      'resuming demo.big: 9,600,000 records are in the lake (round 7); epoch 1 is fenced',
      'demo.flights  round 1 epoch 1.1  5,000 rows  0.3 s  snapshot 3055729675574597004',
      '',
    ].join('\n'),
  )
  assert.equal((await tier(telling(receipt(), events), ['-q'])).err, '')
})

test('draws a bar on a terminal and takes it away at the end', async () => {
  const { err } = await tier(telling(receipt(), events), ['--color', 'never'], true)
  assert.match(err, /big\.ndjson {2}█{4}░{4} {2}55 % {2}11\.2 M records .* committed 9\.6 M/)
  assert.ok(err.endsWith('\u001b[1A\u001b[J\u001b[?25h'), JSON.stringify(err.slice(-60)))
})

test('writes one event a line with --follow --json, the receipt last', async () => {
  const { out } = await tier(telling(receipt(), events), ['--follow', '--json'])
  const lines = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  assert.deepEqual(
    lines.map((line) => line['event']),
    ['created', 'note', 'resuming', 'progress', 'committed', 'receipt'],
  )
  assert.equal(lines[3]?.['bytes_total'], 100)
  assert.equal(lines[4]?.['snapshot_id'], '3055729675574597004')
  assert.equal(lines[5]?.['schema'], 'sluice.receipt/1')
})
