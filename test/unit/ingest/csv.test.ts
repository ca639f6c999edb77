import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { openText, read, type ReadOptions } from './support.ts'

const columns = { id: 'BIGINT NOT NULL', name: 'STRING', score: 'DOUBLE' }
const csv = (text: string, options: ReadOptions = {}): ReturnType<typeof read> =>
  read(text, { name: 'a.csv', columns, ...options })

describe('CSV', () => {
  test('reads quoted newlines, doubled quotes, CRLF and an unended last line', async () => {
    const text = '\ufeffname,id,score\r\n"a ""b""\r\nc,",1,0.5\r\n\r\n"",2,\r\nplain,3,1e3'
    const { rows, batches } = await csv(text)
    assert.deepEqual(rows, [
      { id: 1n, name: 'a "b"\r\nc,', score: 0.5 },
      { id: 2n, name: '', score: null },
      { id: 3n, name: 'plain', score: 1000 },
    ])
    assert.equal(batches[0]?.endPosition, BigInt(Buffer.byteLength(text)))
    assert.equal(batches[0].endedWithoutNewline, true)
  })

  test('an empty unquoted field is null, a quoted one is text', async () => {
    const { rows } = await csv('id,name\n1,\n2,""\n')
    assert.deepEqual(rows, [
      { id: 1n, name: null, score: null },
      { id: 2n, name: '', score: null },
    ])
  })

  test('another text for null makes the empty field text', async () => {
    const { rows } = await csv('id,name\n1,NA\n2,"NA"\n3,\n', { csv: { nullText: 'NA' } })
    assert.deepEqual(
      rows.map((row) => (row as { name: unknown }).name),
      [null, 'NA', ''],
    )
  })

  test('takes a delimiter, and the tab of .tsv', async () => {
    const semicolon = await csv('id;name\n1;a,b\n', { csv: { delimiter: ';' } })
    assert.deepEqual(semicolon.rows, [{ id: 1n, name: 'a,b', score: null }])
    const tab = await csv('id\tname\n1\ta,b\n', { name: 'a.tsv' })
    assert.deepEqual(tab.rows, semicolon.rows)
    await assert.rejects(csv('id\n1\n', { csv: { delimiter: 'ab' } }), { code: 'CONFIG_INVALID' })
  })

  test('refuses another encoding and other line ends, and says how to convert them', async () => {
    const text = 'id,name\n1,\u00e9\n'
    const utf16 = Buffer.from(`\ufeff${text}`, 'utf16le')
    const message = 'a.csv is UTF-16; tier wants UTF-8'
    const pipe = '… | iconv -f UTF-16 -t UTF-8 | npx sluice tier - …'
    const refusals: readonly (readonly [Buffer, string, string])[] = [
      [utf16, message, pipe],
      [Buffer.from(utf16).swap16(), message, pipe],
      [utf16.subarray(2), message, pipe.replace('UTF-16', 'UTF-16LE')],
      [Buffer.from(utf16.subarray(2)).swap16(), message, pipe.replace('UTF-16', 'UTF-16BE')],
      [
        Buffer.from([0xff, 0xfe, 0, 0, 0x69, 0, 0, 0]),
        'a.csv is UTF-32; tier wants UTF-8',
        pipe.replace('UTF-16', 'UTF-32'),
      ],
      [
        Buffer.from('id,name\r1,"a"\r'),
        'a.csv: its lines end in CR alone; tier wants LF or CRLF',
        String.raw`… | tr '\r' '\n' | npx sluice tier - …`,
      ],
    ]
    for (const [bytes, expected, fix] of refusals) {
      const refused = { code: 'INPUT_UNREADABLE', message: expected, fix }
      await assert.rejects(openText(bytes, { name: 'a.csv', columns }), refused)
    }
    // A quoted field may hold any line end, and a last line may end in any way.
    const quoted = await csv('id,name\n1,"a\rb"\n')
    assert.deepEqual(quoted.rows, [{ id: 1n, name: 'a\rb', score: null }])
    assert.deepEqual((await csv('id,name\r')).rows, [])
  })

  test('without a header fields are the columns in order', async () => {
    const { rows } = await csv('1,a,2\n', { csv: { header: false } })
    assert.deepEqual(rows, [{ id: 1n, name: 'a', score: 2 }])
  })

  test('refuses a header of one column that holds another delimiter', async () => {
    await assert.rejects(csv('id;name;score\n1;a;2\n'), {
      code: 'INPUT_UNREADABLE',
      message: 'a.csv: its header is one column, "id;name;score"',
      fix: "--csv-delimiter ';'",
    })
  })

  test('refuses header names twice, differing only by case, or unknown', async () => {
    await assert.rejects(csv('id,id\n1,2\n'), { message: 'a.csv: its header names "id" twice' })
    await assert.rejects(csv('id,Id\n1,2\n'), {
      message: 'a.csv: its header\'s "id" and "Id" differ only by case',
    })
    await assert.rejects(openText('id,nam\n1,\n', { name: 'a.csv', columns }), {
      code: 'RECORD_REFUSED',
      message: 'a.csv line 1: field "nam" is not a column of demo.t. Did you mean name?',
      where: 'a.csv:1:1 (byte 0)',
    })
    await assert.rejects(csv('name\n1\n'), {
      message: 'a.csv line 1: id is missing, column id of demo.t is NOT NULL',
    })
    const aside = await csv('id,x\n1,\n2,y\n', { onUnknownField: 'quarantine' })
    assert.deepEqual(aside.rows, [{ id: 1n, name: null, score: null }])
    assert.equal(aside.bad[0]?.reason, 'field "x" is not a column of demo.t')
  })

  const reasons: readonly (readonly [string, string, bigint])[] = [
    ['x,a,1', 'id is "x", column id of demo.t is BIGINT NOT NULL', 1n],
    ['007,a,1', 'id is "007", column id of demo.t is BIGINT NOT NULL', 1n],
    ['+1,a,1', 'id is "+1", column id of demo.t is BIGINT NOT NULL', 1n],
    [',a,1', 'id is null, column id of demo.t is BIGINT NOT NULL', 1n],
    ['1,a', '2 fields, the header has 3', 1n],
    ['1,a,2,3', '4 fields, the header has 3', 1n],
    ['1,a"b,2', 'a quote inside a field that does not begin with one', 1n],
    ['1,"a"b,2', 'text after a closing quote', 1n],
    ['1,"a\nb",x', 'score is "x", column score of demo.t is DOUBLE', 2n],
  ]
  for (const [line, reason, lines] of reasons) {
    test(`sets ${JSON.stringify(line)} aside`, async () => {
      const text = `id,name,score\n9,z,9\n${line}\n8,y,8\n`
      const { rows, bad } = await csv(text, { onBadRecord: 'quarantine' })
      assert.equal(bad[0]?.reason, reason)
      assert.equal(bad[0].line, 3n)
      assert.equal(bad[0].place.line, 2n + lines)
      assert.equal(Buffer.from(bad[0].raw).toString(), line)
      assert.deepEqual(
        rows.map((row) => (row as { id: unknown }).id),
        [9n, 8n],
      )
    })
  }

  test('a quoted field that is never closed is one bad record to the end', async () => {
    const text = 'id,name,score\n1,"a,2\n2,b,3\n'
    const { bad } = await csv(text, { onBadRecord: 'quarantine' })
    assert.equal(bad[0]?.reason, 'a quoted field is not closed')
    assert.equal(Buffer.from(bad[0].raw).toString(), '1,"a,2\n2,b,3\n')
  })

  test('reads every type from text', async () => {
    const types = {
      b: 'BOOLEAN',
      t: 'TINYINT',
      d: 'DECIMAL(6, 2)',
      f: 'FLOAT',
      x: 'BYTES',
      day: 'DATE',
      at: 'TIMESTAMP_LTZ(6)',
      l: 'ARRAY<INT>',
      m: 'MAP<STRING, INT>',
      r: 'ROW<a INT>',
    }
    const text = `${Object.keys(types).join(',')}\ntrue,-5,12.5,NaN,AP8=,1970-01-02,1970-01-01T00:00:01Z,"[1,\n2]","{""a"":1}","{""a"":null}"\n`
    const { rows } = await csv(text, { columns: types })
    assert.deepEqual(rows, [
      {
        b: true,
        t: -5,
        d: '12.50',
        f: NaN,
        x: new Uint8Array([0, 255]),
        day: 1,
        at: 1_000_000n,
        l: [1, 2],
        m: new Map([['a', 1]]),
        r: { a: null },
      },
    ])
  })

  test('takes fractions without a zero before or after the point', async () => {
    const types = { d: 'DOUBLE', f: 'FLOAT', e: 'DECIMAL(6, 3)', s: 'STRING' }
    const text = 'd,f,e,s\n.097,5.,-.5,.5\n-5.,.5,1.,5.\n.5e1,1.E2,.125,007\n1e5,0.,0.,+1\n'
    const { rows } = await csv(text, { columns: types })
    assert.deepEqual(rows, [
      { d: 0.097, f: 5, e: '-0.500', s: '.5' },
      { d: -5, f: 0.5, e: '1.000', s: '5.' },
      { d: 5, f: 100, e: '0.125', s: '007' },
      { d: 100_000, f: 0, e: '0.000', s: '+1' },
    ])
    for (const wrong of ['.', '-.', '.e1', '+.5', '00.5', '1..', '5.x']) {
      const { bad } = await csv(`d\n${wrong}\n`, {
        columns: { d: 'DOUBLE' },
        onBadRecord: 'quarantine',
      })
      assert.equal(bad[0]?.reason, `d is "${wrong}", column d of demo.t is DOUBLE`)
    }
  })

  test('gives the same batches however the bytes arrive', async () => {
    const text = 'id,name,score\r\n1,"a\r\n""é""",2\r\n\r\nx,"q",1\n2,"",\n3,"a"b,4\n4,"é",5'
    const options: ReadOptions = { onBadRecord: 'quarantine', limits: { batchRecordsMax: 2 } }
    const whole = await csv(text, options)
    assert.equal(whole.rows.length, 3)
    for (let chunk = 1; chunk < text.length; chunk += 1) {
      const cut = await csv(text, { ...options, chunk })
      assert.deepEqual(cut.rows, whole.rows, String(chunk))
      assert.deepEqual(cut.bad, whole.bad)
      assert.deepEqual(
        cut.batches.map((b) => [b.startPosition, b.endPosition, b.digest()]),
        whole.batches.map((b) => [b.startPosition, b.endPosition, b.digest()]),
      )
    }
  })

  test("resumes behind the header with the header's columns", async () => {
    const prefix = 'name,id\na,1\n'
    const digest = createHash('sha256').update(prefix).digest('hex')
    const resume = { position: BigInt(prefix.length), records: 1n, digest }
    const { rows, batches } = await csv(`${prefix}b,2\n`, { resume })
    assert.deepEqual(rows, [{ id: 2n, name: 'b', score: null }])
    assert.equal(batches[0]?.startRecord, 1n)
  })

  test('a header alone has no records', async () => {
    const { rows, batches } = await csv('id,name\n')
    assert.deepEqual(rows, [])
    assert.equal(batches[0]?.endPosition, 8n)
    const empty = await (await openText('', { name: 'a.csv', columns })).next()
    assert.equal(empty?.records.length, 0)
  })
})
