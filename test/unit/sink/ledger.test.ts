import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { isSluiceError } from '../../../src/core/errors.ts'
import { bucket, commitId, epoch, incarnation, millis, offset } from '../../../src/core/ids.ts'
import { decodeLedger, encodeLedger, type Ledger } from '../../../src/sink/committer/ledger.ts'

const blocks = { bytes: 65_536, digests: '0123456789abcdef' }
const whole: Ledger = {
  source: 'embedded:demo.t',
  table: '8e7d280e-7867-4ec9-805e-a4ffd1d690f7',
  kind: 'round',
  token: { generation: 0, incarnation: incarnation(1), epoch: epoch(1) },
  round: 1,
  commit: commitId('a'.repeat(32)),
  final: true,
  buckets: new Map([[bucket(0), { origin: offset(0n), end: offset(7n) }]]),
  gaps: [],
  inputs: new Map([
    [
      'sha256:aa',
      {
        name: 'a.ndjson',
        position: '140000',
        records: 5n,
        digest: 'ab'.repeat(32),
        blocks,
        tieredAt: millis(1_796_133_720_000),
        extra: new Map([[bucket(0), 2n]]),
        ahead: {
          position: '150000',
          digest: 'cd'.repeat(32),
          blocks,
          tieredAt: millis(1_796_133_721_000),
        },
      },
    ],
  ]),
}

/** The one input as it stands in the text of a ledger. */
function inputIn(text: string): Record<string, unknown> {
  const { inputs } = JSON.parse(text) as { inputs: [string, Record<string, unknown>][] }
  const [, input] = inputs[0] ?? []
  ok(input)
  return input
}

test('a ledger reads back as it was, times and blocks of inputs included', () => {
  const text = encodeLedger(whole)
  deepEqual(decodeLedger(text, 'here'), whole)
  const { tiered, blocks: written } = inputIn(text)
  deepEqual([tiered, written], ['1796133720000', [65_536, '0123456789abcdef']])
})

test('a ledger without times and blocks is read, and written without blocks where there is no room', () => {
  const short = encodeLedger(whole, { blocks: false })
  equal(short.includes('blocks'), false)
  const input = decodeLedger(short, 'here').inputs.get('sha256:aa')
  equal(input?.tieredAt, 1_796_133_720_000)
  equal(input.ahead?.blocks, undefined)
  const old = short.replaceAll(/"tiered":"\d+",?/g, '').replaceAll(',}', '}')
  const before = decodeLedger(old, 'here').inputs.get('sha256:aa')
  ok(before)
  deepEqual(Object.keys(before), ['name', 'position', 'records', 'digest', 'extra', 'ahead'])
  deepEqual(before.ahead, { position: '150000', digest: 'cd'.repeat(32) })
})

test('what makes no sense in it is damage', () => {
  const text = encodeLedger(whole)
  for (const [from, to] of [
    ['[65536,', '[0,'],
    ['"0123456789abcdef"', '"0123456789abcde"'],
    ['"0123456789abcdef"', '7'],
    ['"1796133720000"', '"8640000000000001"'],
    ['"1796133720000"', '1796133720000'],
  ] as const) {
    ok(text.includes(from), from)
    throws(
      () => decodeLedger(text.replace(from, to), 'here'),
      (error) => isSluiceError(error, 'DATA_CORRUPT'),
      to,
    )
  }
})
