import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Inferred } from '../../../src/core/schema/infer.ts'
import { formatType } from '../../../src/core/schema/format-type.ts'
import { inferInput, type InferOptions } from '../../../src/source/ingest/infer-input.ts'
import { InputBytes } from '../../../src/source/ingest/input-bytes.ts'
import { openInput } from '../../../src/source/ingest/open-input.ts'
import { chunksOf, drain } from './support.ts'

type Options = Partial<Omit<InferOptions, 'bytes'>>

const open = (text: string, format: 'ndjson' | 'csv'): Promise<InputBytes> =>
  InputBytes.open({
    name: `a.${format}`,
    location: { kind: 'stream', bytes: chunksOf(Buffer.from(text), 50) },
  })

async function infer(text: string, options: Options = {}): Promise<Inferred> {
  const format = options.format === 'csv' ? 'csv' : 'ndjson'
  return await inferInput({ ...options, format, bytes: await open(text, format) })
}

const typesOf = ({ fields }: Inferred): Record<string, string> =>
  Object.fromEntries(fields.map((field) => [field.name, formatType(field.type)]))

const lines = (...values: string[]): string => values.map((value) => `{"v":${value}}\n`).join('')

describe('inference from NDJSON', () => {
  const unreadable: readonly (readonly [string, 'csv' | 'ndjson', Buffer, object])[] = [
    [
      'bytes of another encoding',
      'csv',
      Buffer.from('a,b\n1,\xe9\n', 'latin1'),
      {
        message: 'a.csv line 2: not UTF-8; no record can be read, so no column types',
        where: 'a.csv:2:3 (byte 6)',
      },
    ],
    [
      'a quote that never ends',
      'csv',
      Buffer.from('a,b\n1,"2\n'),
      { message: /^a\.csv line 2: .*quote.*; no record can be read, so no column types$/ },
    ],
    [
      'values nested too deep',
      'ndjson',
      Buffer.from(`{"a":${'['.repeat(200)}${']'.repeat(200)}}\n`),
      { message: /^a\.ndjson line 1: .*; no record can be read, so no column types$/ },
    ],
    [
      'an object over several lines',
      'ndjson',
      Buffer.from('{\n  "a": 1\n}\n'),
      {
        message: 'a.ndjson has objects over several lines; tier wants one record per line',
        fix: 'jq -c . a.ndjson | npx sluice tier - --input-id a …',
      },
    ],
  ]
  for (const [what, format, bytes, error] of unreadable) {
    test(`says what is wrong when no record can be read: ${what}`, async () => {
      const location = { kind: 'stream', bytes: chunksOf(bytes, 50) } as const
      const input = await InputBytes.open({ name: `a.${format}`, location })
      await assert.rejects(inferInput({ format, bytes: input }), {
        code: 'INPUT_UNREADABLE',
        ...error,
      })
    })
  }

  const inferred: readonly (readonly [string, readonly string[], string])[] = [
    [
      'integers within int64',
      ['1', '9223372036854775807', '-9223372036854775808', 'null'],
      'BIGINT',
    ],
    ['a fraction', ['1', '1.0'], 'DOUBLE'],
    ['an exponent', ['5e-324'], 'DOUBLE'],
    ['integers to 2^53 and a fraction', ['9007199254740992', '0.5'], 'DOUBLE'],
    ['booleans', ['true', 'false'], 'BOOLEAN'],
    ['days', ['"2001-01-01"', '"1969-12-31"'], 'DATE'],
    [
      'instants',
      ['"2001-01-01T00:00:00Z"', '"2001-01-01T00:00:00.123456+02:00"'],
      'TIMESTAMP_LTZ(6)',
    ],
    ['times without zone', ['"2001-01-01T00:00:00"', '"2001-01-01 00:00"'], 'TIMESTAMP(6)'],
    ['times with and without zone', ['"2001-01-01T00:00:00Z"', '"2001-01-01T00:00:00"'], 'STRING'],
    ['nanoseconds', ['"2001-01-01T00:00:00.1234567Z"'], 'STRING'],
    ['text', ['"a"', '"2001-01-01"'], 'STRING'],
    ['objects', ['{"a":1}', '{"b":"x","a":2}', 'null'], 'ROW<a BIGINT, b STRING>'],
    ['arrays', ['[1]', '[]', '[null,2.5]'], 'ARRAY<DOUBLE>'],
    ['arrays of objects', ['[{"a":[true]}]'], 'ARRAY<ROW<a ARRAY<BOOLEAN>>>'],
  ]
  for (const [what, values, type] of inferred) {
    test(`${what}: ${type}`, async () => {
      assert.deepEqual(typesOf(await infer(lines(...values))), { v: type })
    })
  }

  const noted: readonly (readonly [readonly string[], string])[] = [
    [
      ['"2001/01/01 01:10"'],
      'v stays STRING: "2001/01/01 01:10" is not ISO 8601; declare a type with --schema',
    ],
    [
      ['"2001-01-01T00:00:00.1234567Z"'],
      'v stays STRING: "2001-01-01T00:00:00.1234567Z" has more than 6 fraction digits; declare a type with --schema',
    ],
    [
      ['"2001-01-01T00:00:00Z"', '"2001-01-01T00:00:00"'],
      'v stays STRING: some values have a zone and some have none; declare a type with --schema',
    ],
  ]
  for (const [values, note] of noted) {
    test(`notes that ${note.slice(0, 60)}`, async () => {
      assert.deepEqual((await infer(lines(...values))).notes, [note])
    })
  }

  test('leaves out what holds nothing, says so, and its records stay readable', async () => {
    const text = '{"a":1,"n":null,"l":[],"o":{},"p":{"q":null}}\n'
    const bytes = await open(text, 'ndjson')
    const { fields, notes } = await inferInput({ bytes, format: 'ndjson' })
    assert.deepEqual(
      fields.map((field) => field.name),
      ['a'],
    )
    assert.deepEqual(
      notes.map((note) => note.split(';')[0]),
      [
        'n is left out: only null in the sample',
        'l is left out: only [] in the sample',
        'o is left out: only {} in the sample',
        'p.q is left out: only null in the sample',
      ],
    )
    const reader = await openInput({ bytes, target: { table: 't', fields } })
    assert.equal((await drain(reader))[0]?.records.length, 1)
  })

  const refused: readonly (readonly [readonly string[], string])[] = [
    [['5', 'null', '"x"'], 'a.ndjson: column v is a number in line 1 and a string in line 3'],
    [['{"a":1}', '1'], 'a.ndjson: column v is an object in line 1 and a number in line 2'],
    [['true', '0'], 'a.ndjson: column v is a boolean in line 1 and a number in line 2'],
    [['[1]', '["x"]'], 'a.ndjson: column v[] is a number in line 1 and a string in line 2'],
    [
      ['99999999999999999999'],
      'a.ndjson: column v is 99999999999999999999 in line 1, beyond BIGINT',
    ],
    [
      ['0.5', '9007199254740993'],
      'a.ndjson: column v is 0.5 in line 1 and 9007199254740993 in line 2; neither BIGINT nor DOUBLE holds both exactly',
    ],
    [['{"a":1,"A":1}'], 'a.ndjson: column v has fields "a" and "A", which differ only by case'],
    [
      [`{${Array.from({ length: 201 }, (_, k) => `"k${k}":1`).join(',')}}`],
      'a.ndjson: column v has 201 different fields',
    ],
  ]
  for (const [values, message] of refused) {
    test(`refuses: ${message.slice(0, 70)}`, async () => {
      await assert.rejects(infer(lines(...values)), { code: 'SCHEMA_UNSUPPORTED', message })
    })
  }

  test('refuses names that are kept or differ only by case, and an empty input', async () => {
    await assert.rejects(infer('{"__offset":1}\n'), { message: /name "__offset" is kept/ })
    await assert.rejects(infer('{"a":1,"A":2}\n'), { message: /"a" and "A" differ only by case/ })
    await assert.rejects(infer('\n'), { code: 'INPUT_UNREADABLE', message: /no records/ })
  })

  test('keeps the order of first appearance, and keys NOT NULL', async () => {
    const result = await infer('{"b":1}\n{"a":2,"b":3}', { primaryKey: ['a'] })
    assert.deepEqual(Object.entries(typesOf(result)), [
      ['b', 'BIGINT'],
      ['a', 'BIGINT NOT NULL'],
    ])
  })

  test('looks at the sample only, and a bad record leaves no trace', async () => {
    const text = '{"a":1}\n{"b":"x",}\n{"a":2}\n{"c":1}\n'
    assert.deepEqual(typesOf(await infer(text, { sampleRecords: 2 })), { a: 'BIGINT' })
  })
})

describe('a first record that is larger than the sample', () => {
  const long = 'x'.repeat(20 * 1024 * 1024)
  const openLarge = (text: string, name: string): Promise<InputBytes> =>
    InputBytes.open({
      name,
      location: { kind: 'stream', bytes: chunksOf(Buffer.from(text), 4 * 1024 * 1024) },
    })

  test('is read whole, and nothing of the input is taken', async () => {
    const bytes = await openLarge(`{"v":"${long}"}\n{"v":"a"}\n`, 'a.ndjson')
    const { fields } = await inferInput({ bytes, format: 'ndjson' })
    assert.deepEqual(typesOf({ fields, notes: [] }), { v: 'STRING' })
    const batches = await drain(await openInput({ bytes, target: { table: 't', fields } }))
    assert.equal(
      batches.reduce((sum, { records }) => sum + records.length, 0),
      2,
    )
  })

  test('is read whole also from CSV, with many line breaks inside', async () => {
    const lines = 'x\n'.repeat(9 * 1024 * 1024)
    const text = `n,v\n1,"${lines}"\n`
    const result = await inferInput({ bytes: await openLarge(text, 'a.csv'), format: 'csv' })
    assert.deepEqual(typesOf(result), { n: 'BIGINT', v: 'STRING' })
  })

  test('is refused over 64 MiB, as its reader does', async () => {
    const bytes = await openLarge(`{"v":"${'x'.repeat(80 * 1024 * 1024)}"}\n`, 'a.ndjson')
    await assert.rejects(inferInput({ bytes, format: 'ndjson' }), {
      code: 'RECORD_REFUSED',
      message: /a\.ndjson line 1: a record of more than 67,108,864 bytes/,
    })
  })
})

describe('inference from CSV', () => {
  test('takes the first type that fits every text', async () => {
    const text = `b,i,d,day,at,z,s,plus,mixed,none
true,1,1,2001-01-01,2001-01-01 00:00:00,2001-01-01T00:00:00Z,007,+1,true,
false,-5,2.5,,2001-01-02T00:00,2001-01-01T00:00:00+01:00,"",x,1,
`
    const result = await infer(text, { format: 'csv' })
    assert.deepEqual(typesOf(result), {
      b: 'BOOLEAN',
      i: 'BIGINT',
      d: 'DOUBLE',
      day: 'DATE',
      at: 'TIMESTAMP(6)',
      z: 'TIMESTAMP_LTZ(6)',
      s: 'STRING',
      plus: 'STRING',
      mixed: 'STRING',
    })
    assert.match(result.notes[0] ?? '', /^none is left out/)
  })

  test('takes fractions without a zero before or after the point as DOUBLE', async () => {
    const text = `a,b,c,s,plus,zeros,dot,words
.097,5.,1e5,007,+1,00.5,.,1.2.
-.5,0.,-.5E-3,1,1,1,1,1
,7,1,1,1,1,1,1
`
    const { fields } = await infer(text, { format: 'csv' })
    assert.deepEqual(typesOf({ fields, notes: [] }), {
      a: 'DOUBLE',
      b: 'DOUBLE',
      c: 'DOUBLE',
      s: 'STRING',
      plus: 'STRING',
      zeros: 'STRING',
      dot: 'STRING',
      words: 'STRING',
    })
  })

  test('keeps numbers that no number type holds as text, with a note', async () => {
    const result = await infer('v\n99999999999999999999\n', { format: 'csv' })
    assert.deepEqual(typesOf(result), { v: 'STRING' })
    assert.match(result.notes[0] ?? '', /^v stays STRING: 99999999999999999999/)
  })

  test('refuses a header without records', async () => {
    await assert.rejects(infer('a,b\n', { format: 'csv' }), {
      code: 'INPUT_UNREADABLE',
      message: 'a.csv: a header without records, so no column types',
      fix: 'declare the columns with --schema',
    })
  })
})
