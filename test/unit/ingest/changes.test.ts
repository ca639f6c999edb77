import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { batchToRows } from '../../../src/core/columns/rows.ts'
import { formatType } from '../../../src/core/schema/format-type.ts'
import { inferInput } from '../../../src/source/ingest/infer-input.ts'
import type { ChangeForm, InputReader, RecordPolicy } from '../../../src/source/ingest/input.ts'
import { InputBytes } from '../../../src/source/ingest/input-bytes.ts'
import { openInput } from '../../../src/source/ingest/open-input.ts'
import { chunksOf, drain, fieldsOf } from './support.ts'

const columns = { id: 'BIGINT NOT NULL', name: 'STRING', n: 'INT' }
const opNames = ['upsert', 'delete', 'before', 'none']

type Given = {
  readonly form?: ChangeForm
  readonly columns?: Readonly<Record<string, string>>
  readonly key?: readonly string[]
  readonly policy?: RecordPolicy
  readonly records?: number
  readonly chunk?: number
}

async function bytesOf(text: string, chunk = text.length + 1): Promise<InputBytes> {
  const bytes = chunksOf(Buffer.from(text), chunk)
  return await InputBytes.open({ name: 'c.ndjson', location: { kind: 'stream', bytes } })
}

async function open(lines: readonly string[], given: Given = {}): Promise<InputReader> {
  const { form = { kind: 'debezium' }, key = ['id'], policy = 'fail', records = 100 } = given
  return openInput({
    bytes: await bytesOf(lines.map((line) => `${line}\n`).join(''), given.chunk),
    format: 'ndjson',
    target: {
      table: 'demo.c',
      fields: fieldsOf(given.columns ?? columns),
      bucketKey: key[0]!,
      primaryKey: key,
      changes: form,
    },
    onBadRecord: policy,
    limits: { batchRecordsMax: records },
  })
}

/** Each change as its operation and its values, those that are kept as `=`. */
async function changesOf(
  lines: readonly string[],
  given: Given = {},
): Promise<readonly (readonly unknown[])[]> {
  const fields = fieldsOf(given.columns ?? columns)
  const batches = await drain(await open(lines, given))
  return batches.flatMap(({ records, changes }) =>
    batchToRows(fields, records).map((row, at) => [
      opNames[changes?.ops[at] ?? 3],
      ...Object.values(row).map((value, column) => {
        const bits = changes?.kept?.columns[column]
        return ((bits?.[at >> 3] ?? 0) >> (at & 7)) & 1 ? '=' : value
      }),
    ]),
  )
}

async function reasonOf(line: string, given: Given = {}): Promise<readonly [string, string?]> {
  const reader = await open([line], { ...given, policy: 'quarantine' })
  const [batch] = await drain(reader)
  const bad = batch?.bad[0]
  assert.ok(bad !== undefined && batch?.records.length === 0, line)
  return bad.fix === undefined ? [bad.reason] : [bad.reason, bad.fix]
}

const envelope = (op: string, before: unknown, after: unknown): string =>
  JSON.stringify({ before, after, source: { db: 'x' }, op, ts_ms: 1 })

describe('Debezium envelopes', () => {
  test('are read bare and under payload, with their members in any order', async () => {
    assert.deepEqual(
      await changesOf([
        envelope('c', null, { id: 1, name: 'a', n: 1 }),
        '{"op":"r","after":{"n":2,"id":2,"name":"b"},"before":null}',
        '{"payload":{"ts_ms":5,"after":{"id":3,"name":null,"n":null},"op":"c"},"schema":null}',
        envelope('u', { id: 1, name: 'a', n: 1 }, { id: 1, name: 'A', n: 1 }),
        envelope('d', { id: 2, name: 'b', n: 2 }, null),
      ]),
      [
        ['upsert', 1n, 'a', 1],
        ['upsert', 2n, 'b', 2],
        ['upsert', 3n, null, null],
        ['upsert', 1n, 'A', 1],
        ['delete', 2n, null, null],
      ],
    )
  })

  test('an update with another key before it deletes that one first', async () => {
    assert.deepEqual(
      await changesOf([
        envelope('u', { id: 1, name: 'a', n: 1 }, { id: 2, name: 'a', n: 1 }),
        envelope('u', { id: 2 }, { id: 2, name: 'b', n: 1 }),
        envelope('u', { name: 'no key' }, { id: 2, name: 'c', n: 1 }),
      ]),
      [
        ['before', 1n, null, null],
        ['upsert', 2n, 'a', 1],
        ['upsert', 2n, 'b', 1],
        ['upsert', 2n, 'c', 1],
      ],
    )
  })

  test('tombstones are nothing, and counted', async () => {
    const lines = [
      'null',
      envelope('d', { id: 1 }, null),
      '{"payload":null,"schema":null}',
      ' null ',
    ]
    const [batch] = await drain(await open(lines))
    assert.equal(batch?.changes?.tombstones, 3)
    assert.equal(batch.records.length, 1)
  })

  test('a value that is not there, or not in the image of an update, is kept', async () => {
    const marker = '__debezium_unavailable_value'
    const given = { columns: { ...columns, raw: 'BYTES', tags: 'ARRAY<STRING>' } }
    const after = {
      id: 1,
      name: marker,
      n: null,
      raw: Buffer.from(marker).toString('base64'),
      tags: [marker],
    }
    assert.deepEqual(
      await changesOf(
        [
          envelope('u', null, after),
          envelope('u', null, { id: 1, n: 7 }),
          envelope('c', null, { id: 2 }),
        ],
        given,
      ),
      [
        ['upsert', 1n, '=', null, '=', '='],
        ['upsert', 1n, '=', 7, '=', '='],
        ['upsert', 2n, null, null, null, null],
      ],
    )
  })

  test('what cannot be a change is refused with the reason', async () => {
    const ops = 'c r u d, +I -U +U -D, I U D'
    for (const [line, ...expected] of [
      [envelope('x', null, { id: 1 }), 'op "x" is not an operation', ops],
      [envelope('t', null, null), 'op "t" is not an operation', ops],
      ['{"op":5,"after":{"id":1}}', 'op 5 is not an operation', ops],
      [envelope('c', null, null), 'op "c" without a row in "after"'],
      [
        '{"id":1,"name":"a"}',
        'no Debezium envelope: "op" is missing',
        'flat records have their operation in a column: --op-column NAME',
      ],
      ['{"op":"c","after":[1]}', 'no Debezium envelope: "after" is no object'],
      [envelope('c', null, { name: 'a' }), 'id is missing, column id of demo.c is the primary key'],
      [envelope('c', null, { id: null }), 'id is null, column id of demo.c is the primary key'],
      [envelope('d', { name: 'a' }, null), 'id is missing, column id of demo.c is the primary key'],
      [
        envelope('c', null, { id: 1.5 }),
        'id is 1.5, column id of demo.c is BIGINT NOT NULL (it has a fraction)',
      ],
      [
        envelope('c', null, { id: { a: 1 } }),
        'id is {"a":1}, column id of demo.c is BIGINT NOT NULL',
      ],
    ] as const) {
      assert.deepEqual(await reasonOf(line), expected, line)
    }
    const [reason] = await reasonOf(envelope('d', null, null))
    assert.equal(reason, 'op "d" without a row in "before", so its key is not known')
  })

  test('a column that is NOT NULL is asked of rows, and not of what is deleted', async () => {
    const given = { columns: { id: 'BIGINT NOT NULL', name: 'STRING NOT NULL' } }
    assert.deepEqual(
      await changesOf(
        [envelope('d', { id: 1, name: null }, null), envelope('u', null, { id: 1 })],
        given,
      ),
      [
        ['delete', 1n, null],
        ['upsert', 1n, '='],
      ],
    )
    assert.deepEqual(await reasonOf(envelope('c', null, { id: 1, name: null }), given), [
      'name is null, column name of demo.c is STRING NOT NULL',
    ])
  })
})

describe('flat records with an op column', () => {
  const form = { kind: 'op-column', column: 'op' } as const

  test('do what it says, and it is no column', async () => {
    assert.deepEqual(
      await changesOf(
        ['+I', 'I', '+U', 'U', '-U', '-D', 'D'].flatMap((op) => [`{"op":"${op}","id":1,"n":2}`]),
        { form },
      ),
      ['upsert', 'upsert', 'upsert', 'upsert', 'before', 'delete', 'delete'].map((op) => [
        op,
        1n,
        null,
        2,
      ]),
    )
  })

  test('no batch ends between the row before an update and the one after it', async () => {
    const lines = Array.from({ length: 9 }, (_, at) => [
      `{"id":${at},"n":1,"op":"-U"}`,
      `{"id":${at},"n":2,"op":"+U"}`,
    ]).flat()
    for (const [records, chunk] of [
      [1, 1000],
      [3, 7],
      [5, 33],
    ] as const) {
      const batches = await drain(await open(lines, { form, records, chunk }))
      assert.ok(batches.length > 2)
      for (const { changes } of batches) assert.equal(changes?.ops.at(-1) ?? 0, 0)
      assert.equal(
        batches.reduce((sum, batch) => sum + batch.records.length, 0),
        18,
      )
    }
  })

  test('are refused where they say nothing, something else, or are envelopes', async () => {
    const ops = 'c r u d, +I -U +U -D, I U D'
    for (const [line, ...expected] of [
      ['{"op":"+A","id":1}', 'op "+A" is not an operation', ops],
      ['{"op":"c","id":1}', 'op "c" is not an operation', ops],
      ['{"op":null,"id":1}', 'op null is not an operation', ops],
      ['{"id":1}', 'op is missing, so what the record does is not known'],
      [
        envelope('c', null, { id: 1 }),
        '"after" makes it a Debezium envelope, not a flat record',
        '--cdc debezium',
      ],
      [
        `{"schema":{"fields":[{"field":"after"}]},"payload":${envelope('c', null, { id: 1 })}}`,
        '"schema" makes it a Debezium envelope, not a flat record',
        '--cdc debezium',
      ],
    ] as const) {
      assert.deepEqual(await reasonOf(line, { form }), expected, line)
    }
  })
})

test('without an operation each record is the row of its key', async () => {
  const form = { kind: 'upserts' } as const
  assert.deepEqual(await changesOf(['{"id":1,"n":1}', '{"id":1,"name":"b"}'], { form }), [
    ['upsert', 1n, null, 1],
    ['upsert', 1n, 'b', null],
  ])
})

test('a change that cannot be made is told by its line, and what is before it can be marked', async () => {
  const lines = ['null', envelope('c', null, { id: 1 }), '', envelope('u', { id: 1 }, { id: 2 })]
  const [batch] = await drain(await open(lines))
  const refused = batch?.changes?.refuse(2, 'there is no row')
  assert.ok(refused !== undefined)
  assert.deepEqual([refused.first, refused.end, refused.bad.line], [1, 3, 4n])
  assert.equal(Buffer.from(refused.bad.raw).toString(), lines[3])
  assert.equal(refused.error?.message, 'c.ndjson line 4: there is no row')
  const before = `${lines.slice(0, 3).join('\n')}\n`
  assert.equal(refused.before.endPosition, BigInt(before.length))
  const [upTo] = await drain(await open(lines.slice(0, 3)))
  assert.equal(refused.before.digest(), upTo?.digest())
})

describe('a Connect schema beside the payload', () => {
  const field = (name: string, type: string, more: object = {}): object => ({
    field: name,
    type,
    optional: true,
    ...more,
  })
  const time = (name: string): object => ({ name: `io.debezium.time.${name}` })
  const row = [
    field('id', 'int32', { optional: false }),
    field('day', 'int32', time('Date')),
    field('ms', 'int64', time('Timestamp')),
    field('us', 'int64', time('MicroTimestamp')),
    field('zoned', 'string', time('ZonedTimestamp')),
    field('clock', 'int64', time('MicroTime')),
    field('price', 'bytes', {
      name: 'org.apache.kafka.connect.data.Decimal',
      parameters: { scale: '2', 'connect.decimal.precision': '10' },
    }),
    field('small', 'int16'),
    field('raw', 'bytes'),
    field('days', 'array', { items: { type: 'int32', ...time('Date') } }),
    field('inner', 'struct', { fields: [field('at', 'int64', time('Timestamp'))] }),
    field('uuid', 'string', { name: 'io.debezium.data.Uuid' }),
  ]
  const withSchema = (rows: readonly object[], payload: object): string =>
    JSON.stringify({
      schema: {
        type: 'struct',
        fields: [
          field('before', 'struct', { fields: rows }),
          field('after', 'struct', { fields: rows }),
        ],
      },
      payload,
    })
  const after = {
    id: 7,
    day: 19_000,
    ms: -1,
    us: 1_700_000_000_123_456,
    zoned: '2024-01-02T03:04:05.5Z',
    clock: 3_600_000_001,
    // -1.23 is the unscaled -123, in two's complement 0x85.
    price: Buffer.from([0x85]).toString('base64'),
    small: -3,
    raw: Buffer.from('hi').toString('base64'),
    days: [1, null],
    inner: { at: 1500 },
    uuid: 'u',
  }
  const line = withSchema(row, { op: 'c', before: null, after })

  test('decides the columns', async () => {
    const { fields } = await inferInput({
      bytes: await bytesOf(`null\n${line}\n`),
      format: 'ndjson',
      primaryKey: ['id'],
      changes: { kind: 'debezium' },
    })
    assert.deepEqual(Object.fromEntries(fields.map(({ name, type }) => [name, formatType(type)])), {
      id: 'INT NOT NULL',
      day: 'DATE',
      ms: 'TIMESTAMP(3)',
      us: 'TIMESTAMP(6)',
      zoned: 'TIMESTAMP_LTZ(6)',
      clock: 'TIME(6)',
      price: 'DECIMAL(10, 2)',
      small: 'SMALLINT',
      raw: 'BYTES',
      days: 'ARRAY<DATE>',
      inner: 'ROW<at TIMESTAMP(3)>',
      uuid: 'STRING',
    })
  })

  test('decides how values are written', async () => {
    const types = {
      id: 'INT NOT NULL',
      day: 'DATE',
      ms: 'TIMESTAMP(3)',
      us: 'TIMESTAMP(6)',
      zoned: 'TIMESTAMP_LTZ(6)',
      clock: 'TIME(6)',
      price: 'DECIMAL(10, 2)',
      small: 'SMALLINT',
      raw: 'BYTES',
      days: 'ARRAY<DATE>',
      inner: 'ROW<at TIMESTAMP(3)>',
      uuid: 'STRING',
    }
    const [change] = await changesOf([line], { columns: types })
    assert.deepEqual(change, [
      'upsert',
      7,
      19_000,
      -1000n,
      1_700_000_000_123_456n,
      1_704_164_645_500_000n,
      3_600_000_001n,
      '-1.23',
      -3,
      new Uint8Array(Buffer.from('hi')),
      [1, null],
      { at: 1_500_000n },
      'u',
    ])
    assert.deepEqual(await reasonOf(line, { columns: { ...types, day: 'STRING' } }), [
      'day is 19000 (io.debezium.time.Date), column day of demo.c is STRING',
    ])
  })

  test('refuses decimals whose scale differs from value to value', async () => {
    const loose = [
      ...row.slice(0, 1),
      field('price', 'struct', { name: 'io.debezium.data.VariableScaleDecimal', fields: [] }),
    ]
    await assert.rejects(
      inferInput({
        bytes: await bytesOf(`${withSchema(loose, { op: 'c', after: { id: 1 } })}\n`),
        format: 'ndjson',
        changes: { kind: 'debezium' },
      }),
      { code: 'INPUT_UNREADABLE', fix: /^decimal\.handling\.mode=string/ },
    )
  })
})

test('columns are learned from the rows before and after, without what is not there', async () => {
  const lines = [
    envelope('d', { id: 1, gone: true }, null),
    envelope('u', { id: 1 }, { id: 1, n: '__debezium_unavailable_value', name: 'a' }),
    envelope('c', null, { id: 2, n: 5 }),
  ]
  const { fields } = await inferInput({
    bytes: await bytesOf(`${lines.join('\n')}\n`),
    format: 'ndjson',
    primaryKey: ['id'],
    changes: { kind: 'debezium' },
  })
  assert.deepEqual(
    fields.map(({ name, type }) => `${name} ${formatType(type)}`),
    ['id BIGINT NOT NULL', 'gone BOOLEAN', 'n BIGINT', 'name STRING'],
  )
})
