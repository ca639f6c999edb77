import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { isSluiceError } from '../../../src/core/errors.ts'
import { drain, fieldsOf, openText, read } from './support.ts'

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
const day = 86_400_000_000n

/** Type, JSON text, and the value a row has. */
const taken: readonly (readonly [string, string, unknown])[] = [
  ['BIGINT', '9223372036854775807', 9223372036854775807n],
  ['BIGINT', '-9223372036854775808', -9223372036854775808n],
  ['BIGINT', '9007199254740993', 9007199254740993n],
  ['BIGINT', '-0', 0n],
  ['BIGINT', '14.0', 14n],
  ['BIGINT', '1e3', 1000n],
  ['BIGINT', '-999999999999999', -999999999999999n],
  ['TINYINT', '-128', -128],
  ['SMALLINT', '32767', 32767],
  ['INT', '-2147483648', -2147483648],
  ['BOOLEAN', 'true', true],
  ['DOUBLE', '0.1', 0.1],
  ['DOUBLE', '5e-324', 5e-324],
  ['DOUBLE', '123456789.123456789', 123456789.123456789],
  ['DOUBLE', '9007199254740992', 2 ** 53],
  ['DOUBLE', '1e300', 1e300],
  ['DOUBLE', '"-Infinity"', -Infinity],
  ['DOUBLE', '"NaN"', NaN],
  // Halfway between two floats by way of a double, above it by its text.
  ['FLOAT', '1.00000017881393432617187500000000001', 1.0000002384185791],
  ['FLOAT', '1.000000178813934326171875', 1.0000002384185791],
  ['FLOAT', '1.000000059604644775390625', 1],
  ['FLOAT', '1.00000005960464477539062500000000001', 1.0000001192092896],
  ['DECIMAL(12, 2)', '1.10', '1.10'],
  ['DECIMAL(12, 2)', '"-1234567890.1"', '-1234567890.10'],
  ['DECIMAL(12, 2)', '1.1000', '1.10'],
  ['DECIMAL(38, 0)', '99999999999999999999999999999999999999', '9'.repeat(38)],
  ['DECIMAL(38, 38)', '-0.00000000000000000000000000000000000001', `-0.${'0'.repeat(37)}1`],
  ['DECIMAL(5, 1)', '1e3', '1000.0'],
  ['STRING', '"a\\u00e9\\ud83d\\ude00\\n\\"\\/"', 'aé😀\n"/'],
  ['STRING', '"é😀"', 'é😀'],
  ['STRING', '12.50', '12.50'],
  ['STRING', 'false', 'false'],
  ['STRING', '{"a": [1, "x\\ty"]}', '{"a": [1, "x\\ty"]}'],
  ['CHAR(3)', '"äb"', 'äb'],
  ['BYTES', '"AP9hYg=="', new Uint8Array([0, 255, 97, 98])],
  ['BYTES', '""', new Uint8Array(0)],
  ['BINARY(2)', '"AP8="', new Uint8Array([0, 255])],
  ['DATE', '"1970-01-02"', 1],
  ['DATE', '"1969-12-31"', -1],
  ['DATE', '"2000-02-29"', 11016],
  ['DATE', '"0001-01-01"', -719162],
  ['TIME', '"23:59:59"', day - 1_000_000n],
  ['TIME(3)', '"00:00:00.120"', 120_000n],
  ['TIMESTAMP', '"1970-01-01T00:00:00"', 0n],
  ['TIMESTAMP', '"1970-01-02 01:02:03.000004"', day + 3_723_000_004n],
  ['TIMESTAMP', '"1969-12-31T23:59:59.999999"', -1n],
  ['TIMESTAMP', '"9999-12-31T23:59:59.999999"', 253402300799999999n],
  ['TIMESTAMP(3)', '"1970-01-01T00:00:00.120000"', 120_000n],
  ['TIMESTAMP_LTZ', '"1970-01-01T00:00:00Z"', 0n],
  ['TIMESTAMP_LTZ', '"1970-01-01T01:00+01:00"', 0n],
  ['TIMESTAMP_LTZ', '"1969-12-31T19:00:00.5-05:00"', 500_000n],
  ['ARRAY<BIGINT>', '[1, null, 3]', [1n, null, 3n]],
  ['ARRAY<ARRAY<STRING>>', '[[], ["a"]]', [[], ['a']]],
  [
    'MAP<STRING, INT>',
    '{"a": 1, "b": null}',
    new Map([
      ['a', 1],
      ['b', null],
    ]),
  ],
  ['MAP<INT, BOOLEAN>', '{"7": true}', new Map([[7, true]])],
  ['ROW<a INT, b ROW<c STRING>>', '{"b": {"c": "x"}}', { a: null, b: { c: 'x' } }],
  ['BIGINT', 'null', null],
]

/** Type, JSON text, and the reason. */
const refused: readonly (readonly [string, string, string])[] = [
  ['BIGINT', '"n/a"', 'v is "n/a", column v of demo.t is BIGINT'],
  ['BIGINT', '"5"', 'v is "5", column v of demo.t is BIGINT'],
  [
    'BIGINT',
    '9223372036854775808',
    'v is 9223372036854775808, column v of demo.t is BIGINT (beyond 64 bits)',
  ],
  ['BIGINT', '1.5', 'v is 1.5, column v of demo.t is BIGINT (it has a fraction)'],
  ['BIGINT', '1e999999999', 'v is 1e999999999, column v of demo.t is BIGINT (too many digits)'],
  ['TINYINT', '128', 'v is 128, column v of demo.t is TINYINT (outside -128 to 127)'],
  ['SMALLINT', '-32769', 'v is -32769, column v of demo.t is SMALLINT (outside -32768 to 32767)'],
  [
    'INT',
    '2147483648',
    'v is 2147483648, column v of demo.t is INT (outside -2147483648 to 2147483647)',
  ],
  ['BOOLEAN', '1', 'v is 1, column v of demo.t is BOOLEAN'],
  ['BOOLEAN', '"true"', 'v is "true", column v of demo.t is BOOLEAN'],
  ['DOUBLE', '1e400', 'v is 1e400, column v of demo.t is DOUBLE (beyond the range of DOUBLE)'],
  [
    'DOUBLE',
    '9007199254740993',
    'v is 9007199254740993, column v of demo.t is DOUBLE (an integer beyond 2^53 would lose digits)',
  ],
  ['DOUBLE', '"nan"', 'v is "nan", column v of demo.t is DOUBLE'],
  [
    'DECIMAL(4, 2)',
    '1.234',
    'v is 1.234, column v of demo.t is DECIMAL(4, 2) (more than 2 fraction digits)',
  ],
  ['DECIMAL(4, 2)', '100', 'v is 100, column v of demo.t is DECIMAL(4, 2) (too many digits)'],
  ['CHAR(2)', '"abc"', 'v is "abc", column v of demo.t is CHAR(2) (3 characters)'],
  ['BYTES', '"AP9"', 'v is "AP9", column v of demo.t is BYTES (not base64)'],
  ['BYTES', '"AP9="', 'v is "AP9=", column v of demo.t is BYTES (not base64)'],
  ['BINARY(2)', '"AA=="', 'v is "AA==", column v of demo.t is BINARY(2) (1 bytes)'],
  ['DATE', '"2001-02-29"', 'v is "2001-02-29", column v of demo.t is DATE (not YYYY-MM-DD)'],
  ['DATE', '"2001/01/01"', 'v is "2001/01/01", column v of demo.t is DATE (not YYYY-MM-DD)'],
  ['TIME', '"24:00:00"', 'v is "24:00:00", column v of demo.t is TIME(0) (not hh:mm:ss)'],
  [
    'TIMESTAMP',
    '"2001/01/01 01:10"',
    'v is "2001/01/01 01:10", column v of demo.t is TIMESTAMP(6) (not ISO 8601)',
  ],
  [
    'TIMESTAMP',
    '"2001-01-01T01:10Z"',
    'v is "2001-01-01T01:10Z", column v of demo.t is TIMESTAMP(6) (it has a zone)',
  ],
  [
    'TIMESTAMP_LTZ',
    '"2001-01-01T01:10"',
    'v is "2001-01-01T01:10", column v of demo.t is TIMESTAMP_LTZ(6) (it has no zone)',
  ],
  [
    'TIMESTAMP(3)',
    '"2001-01-01T01:10:00.1234"',
    'v is "2001-01-01T01:10:00.1234", column v of demo.t is TIMESTAMP(3) (more than 3 fraction digits)',
  ],
  ['TIMESTAMP_LTZ', '978311400', 'v is 978311400, column v of demo.t is TIMESTAMP_LTZ(6)'],
  ['ARRAY<INT NOT NULL>', '[1, null]', 'v[] is null, column v[] of demo.t is INT NOT NULL'],
  ['ARRAY<INT>', '{"a":1}', 'v is {"a":1}, column v of demo.t is ARRAY<INT>'],
  ['ROW<a INT>', '{"b":1}', 'field "v.b" is not a column of demo.t. Did you mean a?'],
  ['ROW<abc INT>', '{"abd":1}', 'field "v.abd" is not a column of demo.t. Did you mean abc?'],
  ['ROW<a INT>', '{"a":1,"a":2}', 'field "v.a" appears twice'],
  ['MAP<STRING, INT>', '{"a":1,"a":2}', 'key "a" appears twice in v'],
  ['BIGINT NOT NULL', 'null', 'v is null, column v of demo.t is BIGINT NOT NULL'],
  ['STRING', '"\\ud83d"', 'an escape in a string is half of a surrogate pair'],
  ['STRING', '"\\ud83dx"', 'an escape in a string is half of a surrogate pair'],
  ['STRING', '"\\x"', 'not JSON: unknown escape in a string'],
  ['STRING', '"\t"', 'not JSON: a control character inside a string'],
  ['STRING', '"abc', 'not JSON: the line ends inside a string'],
  ['BIGINT', '01', 'not JSON: "," or "}" expected, "1" found'],
  ['BIGINT', '+1', 'not JSON: a value expected, "+" found'],
  ['BIGINT', 'NaN', 'not JSON: a value expected, "N" found'],
  ['BIGINT', '1.', 'not JSON: a value expected, "1" found'],
  ['STRING', '['.repeat(40), 'nested deeper than 32'],
]

describe('NDJSON values', () => {
  for (const [type, text, value] of taken) {
    test(`${type} takes ${text}`, async () => {
      const { rows } = await read(`{"v":${text}}\n`, { columns: { v: type } })
      assert.deepEqual(rows, [{ v: value }])
    })
  }

  for (const [type, text, reason] of refused) {
    test(`${type} refuses ${text.slice(0, 40)}`, async () => {
      const { rows, bad } = await read(`{"v":${text}}\n{"v":null}\n`, {
        columns: { v: type },
        onBadRecord: 'quarantine',
        onUnknownField: 'quarantine',
      })
      assert.equal(bad[0]?.reason, reason)
      if (!type.includes('NOT NULL')) assert.deepEqual(rows, [{ v: null }])
    })
  }

  test('cuts nanoseconds toward the past and counts them where the column allows it', async () => {
    const [field] = fieldsOf({ v: 'TIMESTAMP(9)' })
    assert.ok(field)
    const text = '{"v":"1969-12-31T23:59:59.999999999"}\n{"v":"1970-01-01T00:00:00.000001000"}\n'
    const { rows, batches } = await read(text, { fields: [{ ...field, allowPrecisionLoss: true }] })
    assert.deepEqual(rows, [{ v: -1n }, { v: 1n }])
    assert.equal(batches[0]?.precisionLosses, 1)
  })
})

describe('NDJSON records', () => {
  const columns = { id: 'BIGINT NOT NULL', name: 'STRING', delay: 'BIGINT' }

  test('takes fields in any order, absent ones as null, and passes over blank lines', async () => {
    const text =
      '\ufeff{"delay":1,"id":2}\n\n  \r\n { "name" : "x" , "id":3 } \r\n{"id":4,"delay":null}'
    const { rows, batches } = await read(text, { columns })
    assert.deepEqual(rows, [
      { id: 2n, name: null, delay: 1n },
      { id: 3n, name: 'x', delay: null },
      { id: 4n, name: null, delay: null },
    ])
    assert.equal(batches.length, 1)
    assert.equal(batches[0]?.endPosition, BigInt(Buffer.byteLength(text)))
    assert.equal(batches[0].digest(), sha256(text))
    assert.equal(batches[0].endedWithoutNewline, true)
  })

  test('tiers what is before a bad record, then names line, character and byte', async () => {
    const good = '{"id":1,"delay":5}\n'
    const reader = await openText(`${good}{"id":2,"name":"é","delay":"n/a"}\n{"id":3}\n`, {
      columns,
    })
    const first = await reader.next()
    assert.equal(first?.records.length, 1)
    assert.equal(first.endPosition, BigInt(good.length))
    assert.equal(first.digest(), sha256(good))
    await assert.rejects(reader.next(), (error) => {
      assert.ok(isSluiceError(error, 'RECORD_REFUSED'))
      assert.equal(
        error.message,
        'a.ndjson line 2: delay is "n/a", column delay of demo.t is BIGINT',
      )
      assert.equal(error.where, 'a.ndjson:2:28 (byte 47)')
      assert.match(error.fix ?? '', /--on-bad-record quarantine/)
      return true
    })
    await assert.rejects(reader.next(), { code: 'RECORD_REFUSED' })
  })

  test('sets bad records aside and leaves no trace of them in the columns', async () => {
    const wide = { a: 'BIGINT', l: 'ARRAY<STRING>', b: 'BOOLEAN', r: 'ROW<x STRING>', z: 'INT' }
    const text = [
      '{"a":1,"l":["p"],"b":true,"r":{"x":"1"},"z":1}',
      '{"a":null,"l":["q",null],"b":true,"r":{"x":"2"},"z":"bad"}',
      '{"a":3,"l":null,"b":false,"r":null,"z":3}',
      'nonsense',
      '{"a":4,"l":["r"],"b":true,"r":{"x":"4"},"z":4}',
    ].join('\n')
    const { rows, bad, batches } = await read(text, { columns: wide, onBadRecord: 'quarantine' })
    assert.deepEqual(rows, [
      { a: 1n, l: ['p'], b: true, r: { x: '1' }, z: 1 },
      { a: 3n, l: null, b: false, r: null, z: 3 },
      { a: 4n, l: ['r'], b: true, r: { x: '4' }, z: 4 },
    ])
    assert.deepEqual(
      bad.map(({ line, byte, raw }) => [line, byte, Buffer.from(raw).toString()]),
      [
        [2n, 47n, text.split('\n')[1]],
        [4n, 148n, 'nonsense'],
      ],
    )
    assert.equal(batches[0]?.endPosition, BigInt(text.length))
  })

  test('stops after too many bad records although they are set aside', async () => {
    const options = { columns, onBadRecord: 'quarantine', badRecordsMax: 2 } as const
    const reader = await openText('x\nx\nx\n', options)
    assert.equal((await reader.next())?.bad.length, 2)
    await assert.rejects(reader.next(), { code: 'LIMIT_EXCEEDED', message: /line 3: over 2 bad/ })
  })

  test('refuses an unknown field unless told to set it aside', async () => {
    await assert.rejects(read('{"id":1,"dellay":1}\n', { columns }), {
      code: 'RECORD_REFUSED',
      message: 'a.ndjson line 1: field "dellay" is not a column of demo.t. Did you mean delay?',
    })
    const options = { columns, onUnknownField: 'quarantine' } as const
    const { bad, rows } = await read('{"id":1,"x":1}\n{"id":2}\n', options)
    assert.equal(bad.length, 1)
    assert.equal(rows.length, 1)
    const nothing = await read('{"id":1,"x":null,"y":[],"z":{"a":[null]}}\n', { columns })
    assert.equal(nothing.rows.length, 1)
  })

  test('refuses what is missing, twice there, not an object, or followed by more', async () => {
    const reasons = await read(
      '{"delay":1}\n{"id":1,"id":2}\n[1]\n{"id":1}{}\n{"id":1\n{"id":1,}\n',
      {
        columns,
        onBadRecord: 'quarantine',
      },
    )
    assert.deepEqual(
      reasons.bad.map(({ reason }) => reason),
      [
        'id is missing, column id of demo.t is BIGINT NOT NULL',
        'field "id" appears twice',
        'not JSON: an object expected, "[" found',
        'not JSON: the end of the line expected, "{" found',
        'not JSON: "," or "}" expected, the line ends',
        'not JSON: a field name in quotes expected, "}" found',
      ],
    )
  })

  test('refuses bytes that are not UTF-8, and only that record', async () => {
    const text = Buffer.concat([
      Buffer.from('{"id":1,"name":"é"}\n{"id":2,"name":"'),
      Buffer.from([0xc3, 0x28]),
      Buffer.from('"}\n{"id":3,"name":"ü"}\n'),
    ])
    const { bad, rows } = await read(text, { columns, onBadRecord: 'quarantine' })
    assert.equal(bad[0]?.reason, 'not UTF-8')
    assert.deepEqual(rows, [
      { id: 1n, name: 'é', delay: null },
      { id: 3n, name: 'ü', delay: null },
    ])
  })

  test('a column may be called __proto__ or hold a quote', async () => {
    const columns = { ['__proto__']: 'INT', 'a"b': 'INT', 'c\\d': 'INT' }
    const fields = fieldsOf(Object.fromEntries(Object.entries(columns)))
    const named = [
      { name: '__proto__', type: fields[0]!.type },
      ...fields.filter((f) => f.name !== '__proto__'),
    ]
    const { rows } = await read('{"__proto__":1,"a\\"b":2,"c\\\\d":3}\n', { fields: named })
    assert.deepEqual(Object.entries(rows[0] as object), [
      ['__proto__', 1],
      ['a"b', 2],
      ['c\\d', 3],
    ])
  })

  test('gives the same batches however the bytes arrive', async () => {
    const text =
      '\ufeff{"id":1,"name":"aé"}\n\n{"id":2,"delay":7}\r\nbad\n{"id":3,"name":"\\u00fc"}'
    const options = { columns, onBadRecord: 'quarantine', limits: { batchRecordsMax: 2 } } as const
    const whole = await read(text, options)
    for (let chunk = 1; chunk < text.length; chunk += 1) {
      const cut = await read(text, { ...options, chunk })
      assert.deepEqual(cut.rows, whole.rows)
      assert.deepEqual(cut.bad, whole.bad)
      const shape = ({ batches }: typeof whole): unknown =>
        batches.map((b) => [b.startRecord, b.startPosition, b.endPosition, b.digest(), b.ended])
      assert.deepEqual(shape(cut), shape(whole))
    }
  })

  test('ends batches by records and by bytes', async () => {
    const text = Array.from({ length: 10 }, (_, id) => `{"id":${id}}\n`).join('')
    const byRecords = await read(text, { columns, limits: { batchRecordsMax: 4 } })
    assert.deepEqual(
      byRecords.batches.map((b) => b.records.length),
      [4, 4, 2],
    )
    assert.deepEqual(
      byRecords.batches.map((b) => b.startRecord),
      [0n, 4n, 8n],
    )
    const byBytes = await read(text, { columns, limits: { batchBytesMax: 20 } })
    assert.deepEqual(
      byBytes.batches.map((b) => b.records.length),
      [3, 3, 3, 1],
    )
  })

  test('refuses a record beyond its limit', async () => {
    const limits = { recordBytesMax: 1000 }
    const text = `{"id":1}\n{"id":2,"name":"${'x'.repeat(5000)}"}\n`
    const reader = await openText(text, { columns, limits, chunk: 500 })
    await assert.rejects(drain(reader), {
      code: 'RECORD_REFUSED',
      message: /line 2: a record of more/,
    })
  })

  test('refuses a file that is one JSON array, with the way out', async () => {
    await assert.rejects(openText(' [{"a":1}]', { columns, name: 'movies.json' }), {
      code: 'INPUT_UNREADABLE',
      message: 'movies.json is one JSON array; tier wants one record per line',
      fix: "jq -c '.[]' movies.json | npx sluice tier - --input-id movies …",
    })
  })

  test('an empty input has no records and no unended line', async () => {
    const { batches } = await read('', { columns })
    assert.deepEqual(
      batches.map((b) => [b.records.length, b.ended, b.endedWithoutNewline]),
      [[0, true, false]],
    )
  })
})

describe('resuming NDJSON', () => {
  const columns = { id: 'BIGINT' }
  const prefix = '{"id":0}\n{"id":1}\n'
  const resume = { position: 18n, records: 2n, digest: sha256(prefix) }

  test('goes on at the position with the ordinal and line that follow', async () => {
    for (const chunk of [1, 5, 18, 100]) {
      const text = `${prefix}{"id":2}\nbad\n`
      const { rows, batches, bad } = await read(text, {
        columns,
        resume,
        chunk,
        onBadRecord: 'quarantine',
      })
      assert.deepEqual(rows, [{ id: 2n }])
      assert.equal(batches[0]?.startRecord, 2n)
      assert.equal(batches[0].startPosition, 18n)
      assert.equal(batches[0].digest(), sha256(text))
      assert.equal(bad[0]?.line, 4n)
      assert.equal(bad[0].byte, 27n)
    }
  })

  test('refuses another prefix, says when it was tiered, and what is left of it', async () => {
    const text = '{"id":0}\n{"id":9}\n'
    await assert.rejects(read(text, { columns, resume }), {
      code: 'INPUT_CHANGED',
      message: 'a.ndjson: its first 18 bytes are not the ones tiered',
    })
    const tieredAt = Date.UTC(2026, 10, 30, 14, 2, 59)
    await assert.rejects(read(text, { columns, resume: { ...resume, tieredAt }, chunk: 4 }), {
      code: 'INPUT_CHANGED',
      message: 'a.ndjson: its first 18 bytes are not the ones tiered on 2026-11-30 14:02 UTC',
    })
    await assert.rejects(read('{"id":0}\n', { columns, resume: { ...resume, tieredAt } }), {
      code: 'INPUT_CHANGED',
      message:
        'a.ndjson: is shorter than what was tiered on 2026-11-30 14:02 UTC ' +
        '(9 bytes, 18 are in the lake)',
    })
  })

  test('wants a newline after an unended record', async () => {
    const unended = '{"id":0}\n{"id":1}'
    const point = { position: 17n, records: 2n, digest: sha256(unended), endedWithoutNewline: true }
    const grown = await read(`${unended}\r\n{"id":2}\n`, { columns, resume: point })
    assert.deepEqual(grown.rows, [{ id: 2n }])
    const same = await read(unended, { columns, resume: point })
    assert.equal(same.batches[0]?.endedWithoutNewline, true)
    assert.equal(same.batches[0].endPosition, 17n)
    await assert.rejects(read(`${unended}7}\n`, { columns, resume: point }), {
      code: 'INPUT_CHANGED',
      message: /the last record was still being written/,
    })
  })
})

describe('a record over the limit', () => {
  const columns = { id: 'BIGINT', t: 'STRING' }
  const limits = { recordBytesMax: 100_000 }
  const long = `{"id":3,"t":"${'é'.repeat(1_000_000)}"}`
  const text = `{"id":1}\n{"id":2}\n${long}\n{"id":4}\n`
  const beyond = BigInt(18 + Buffer.byteLength(long) + 1)

  test('is refused with its place, behind everything before it', async () => {
    const reader = await openText(text, { columns, chunk: 50_000, limits })
    const first = await reader.next()
    assert.equal(first?.records.length, 2)
    assert.equal(first.endPosition, 18n)
    await assert.rejects(reader.next(), {
      code: 'RECORD_REFUSED',
      message: 'a.ndjson line 3: a record of more than 100,000 bytes',
      where: 'a.ndjson:3:1 (byte 18)',
    })
  })

  test('is set aside with its beginning, however the bytes arrive', async () => {
    for (const chunk of [977, 50_000, 4_000_000]) {
      const options = { columns, chunk, limits, onBadRecord: 'quarantine' } as const
      const { rows, bad, batches } = await read(text, options)
      assert.deepEqual(
        rows.map((row) => (row as { id: unknown }).id),
        [1n, 2n, 4n],
      )
      assert.deepEqual(
        bad.map(({ line, byte, reason }) => [line, byte, reason]),
        [[3n, 18n, 'a record of more than 100,000 bytes, of which the first 4,095 are kept']],
      )
      // 13 bytes and whole characters of two.
      assert.equal(Buffer.from(bad[0]?.raw ?? []).toString(), long.slice(0, 13 + 2041))
      assert.equal(batches.at(-1)?.digest(), sha256(text))
      const resume = { position: beyond, records: 2n, digest: sha256(text.slice(0, -9)) }
      const rest = await read(text, { ...options, resume })
      assert.deepEqual(rest.rows, [{ id: 4n, t: null }])
      assert.equal(rest.batches[0]?.startRecord, 2n)
    }
  })

  test('counts its lines, is met up to the last byte, and ends with the text', async () => {
    const options = { limits: { recordBytesMax: 8 }, onBadRecord: 'quarantine' } as const
    const exact = await read('{"id":1}\n{"id":10}\n{"id":2}', { ...options, columns })
    assert.deepEqual(
      exact.rows.map((row) => (row as { id: unknown }).id),
      [1n, 2n],
    )
    const last = await read('{"id":1}\n{"id":1234}', { ...options, columns })
    assert.deepEqual(
      last.bad.map(({ line, raw }) => [line, Buffer.from(raw).toString()]),
      [[2n, '{"id":12']],
    )
    assert.equal(last.batches.at(-1)?.endedWithoutNewline, true)
    // A quote that is not closed: the record ends with the line that the limit is in.
    const csv = await read('id,t\n1,"a\nbcdefgh\n2,b\n', { ...options, columns, name: 'a.csv' })
    assert.deepEqual(csv.rows, [{ id: 2n, t: 'b' }])
    assert.deepEqual(
      csv.bad.map(({ line, byte }) => [line, byte]),
      [[2n, 5n]],
    )
    const after = await read('id,t\n1,"a\nbcdefgh\nx,b\n', { ...options, columns, name: 'a.csv' })
    assert.equal(after.bad[1]?.line, 4n)
  })

  test('counts as a bad record, and one too many stops the run', async () => {
    const options = { columns, limits, onBadRecord: 'quarantine', badRecordsMax: 1 } as const
    const reader = await openText(`${long}\n{"id":1}\n${long}\n`, options)
    assert.equal((await reader.next())?.bad.length, 1)
    await assert.rejects(
      async () => {
        while ((await reader.next()) !== undefined);
      },
      { code: 'LIMIT_EXCEEDED', message: /line 3: over 1 bad records, the last: a record of more/ },
    )
  })
})
