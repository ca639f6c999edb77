import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import {
  Data,
  type DataType as ArrowType,
  DateMillisecond,
  Field,
  Int32,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Table,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from 'apache-arrow'
import { batchToRows, type Row, rowsToBatch } from '../../../src/core/columns/rows.ts'
import { type Details, isSluiceError } from '../../../src/core/errors.ts'
import type { BadRow, InputReader } from '../../../src/source/ingest/input.ts'
import { InputBytes } from '../../../src/source/ingest/input-bytes.ts'
import { type InputSpec, openInput } from '../../../src/source/ingest/open-input.ts'
import { rowJson } from '../../../src/source/ingest/row-json.ts'
import { drain, fieldsOf, read } from './support.ts'

let folder = ''
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-rows-'))
})
after(async () => {
  await rm(folder, { recursive: true })
})

type Options = Partial<Omit<InputSpec, 'bytes' | 'target'>> & { readonly bucketKey?: string }

async function open(
  ipc: Uint8Array,
  columns: Readonly<Record<string, string>>,
  { bucketKey, ...options }: Options = {},
): Promise<InputReader> {
  const path = join(folder, 'a.arrow')
  await writeFile(path, ipc)
  const bytes = await InputBytes.open({ name: 'a.arrow', location: { kind: 'file', path } })
  const target = { table: 'demo.t', fields: fieldsOf(columns) }
  return await openInput({
    ...options,
    bytes,
    target: bucketKey === undefined ? target : { ...target, bucketKey },
  })
}

/** A table of one column `a` made of such memory. */
function tableOf(data: Data, nullable = true): Uint8Array {
  const fields = [new Field<ArrowType>('a', data.type, nullable)]
  const batch = new RecordBatch(
    new Schema(fields),
    new Data(new Struct(fields), 0, data.length, 0, undefined, [data]),
  )
  return tableToIPC(new Table([batch]), 'stream')
}

const aside = { onBadRecord: 'quarantine' } as const

/** What was set aside: place, reason and record. */
async function badOf(
  ipc: Uint8Array,
  columns: Readonly<Record<string, string>>,
  options: Options = aside,
): Promise<readonly (readonly [bigint, string, unknown])[]> {
  const batches = await drain(await open(ipc, columns, options))
  return batches
    .flatMap((batch) => batch.bad)
    .filter((bad): bad is BadRow => bad.kind === 'row')
    .map(({ row, reason, raw }) => [row, reason, JSON.parse(Buffer.from(raw).toString())])
}

const seven = new Table({
  id: vectorFromArray([0, null, 2, 3, null, 5, 6], new Int32()),
  name: vectorFromArray(['a', 'b', null, '', 'e', 'f', 'g'], new Utf8()),
})
const sevenIpc = tableToIPC(seven, 'file')
const columns = { id: 'INT NOT NULL', name: 'STRING' }

describe('rows that do not fit', () => {
  test('are set aside, and take no place among the records', async () => {
    for (const batchRecordsMax of [2, 3, 100]) {
      const batches = await drain(
        await open(sevenIpc, columns, { ...aside, limits: { batchRecordsMax } }),
      )
      const rows = batches.flatMap((each) => batchToRows(fieldsOf(columns), each.records))
      assert.deepEqual(
        rows.map((row) => row['id']),
        [0, 2, 3, 5, 6],
      )
      assert.deepEqual(
        batches.flatMap((each) => each.bad.map((bad) => bad.kind === 'row' && bad.row)),
        [1n, 4n],
      )
      let record = 0n
      let row = 0n
      for (const batch of batches) {
        assert.deepEqual([batch.startRecord, batch.startPosition], [record, row])
        record += BigInt(batch.records.length)
        row = batch.endPosition
      }
      assert.deepEqual([record, row], [5n, 7n])
    }
    assert.deepEqual(await badOf(sevenIpc, columns), [
      [1n, 'id is null, column id of demo.t is INT NOT NULL', { id: null, name: 'b' }],
      [4n, 'id is null, column id of demo.t is INT NOT NULL', { id: null, name: 'e' }],
    ])
  })

  test('stop the run behind what is before them, with what that is', async () => {
    const reader = await open(sevenIpc, columns)
    const first = await reader.next()
    assert.deepEqual([first?.records.length, first?.endPosition], [1, 1n])
    for (let again = 0; again < 2; again += 1) {
      await assert.rejects(reader.next(), {
        code: 'RECORD_REFUSED',
        message: 'a.arrow row 1: id is null, column id of demo.t is INT NOT NULL',
        fix: 'set such records aside: --on-bad-record quarantine',
      })
    }
    await reader.close()
  })

  test('are gone behind at a resume point, which knows rows and records', async () => {
    const digest = createHash('sha256').update(sevenIpc).digest('hex')
    const resume = { position: 4n, records: 3n, digest }
    const batches = await drain(await open(sevenIpc, columns, { ...aside, resume }))
    assert.deepEqual(
      batches.map(({ startRecord, startPosition, endPosition, bad }) => [
        ...[startRecord, startPosition, endPosition],
        bad.length,
      ]),
      [
        [3n, 4n, 7n, 1],
        [5n, 7n, 7n, 0],
      ],
    )
  })

  test('stop the run when they are too many', async () => {
    const reader = await open(sevenIpc, columns, { ...aside, badRecordsMax: 1 })
    const batch = await reader.next()
    assert.deepEqual([batch?.records.length, batch?.bad.length, batch?.endPosition], [3, 1, 4n])
    await assert.rejects(reader.next(), (error) => {
      assert.ok(isSluiceError(error, 'LIMIT_EXCEEDED'))
      assert.match(error.message, /^a\.arrow row 4: over 1 bad records, the last: id is null/)
      const expected: Details = { input: 'a.arrow', row: 4n, recordsBefore: 3n }
      assert.deepEqual(error.details, expected)
      return true
    })
    await reader.close()
  })

  test('are those without a bucket key, too', async () => {
    const bad = await badOf(
      sevenIpc,
      { id: 'INT', name: 'STRING' },
      { ...aside, bucketKey: 'name' },
    )
    assert.deepEqual(
      bad.map(([row, reason]) => [row, reason]),
      [
        [2n, 'name is null, column name of demo.t is the bucket key'],
        [3n, 'name is empty, column name of demo.t is the bucket key'],
      ],
    )
  })

  test('are those with a value in a column the table does not have, if that may be', async () => {
    await assert.rejects(
      open(sevenIpc, { id: 'INT' }).then((reader) => reader.next()),
      {
        code: 'RECORD_REFUSED',
        message: 'a.arrow: field "name" is not a column of demo.t',
        fix: 'take the column out of the file, or set rows with a value there aside: --on-unknown-field quarantine',
      },
    )
    const bad = await badOf(sevenIpc, { id: 'INT' }, { onUnknownField: 'quarantine' })
    assert.deepEqual(
      bad.map(([row]) => row),
      [0n, 1n, 3n, 4n, 5n, 6n],
    )
    assert.deepEqual(bad[2], [3n, 'field "name" is not a column of demo.t', { id: 3, name: '' }])
  })
})

describe('values that a column cannot hold', () => {
  test('are told with what they are: text that is not UTF-8', async () => {
    const values = Uint8Array.of(0x61, 0xc3, 0x28, 0xc3, 0xa9)
    const data = makeData({
      type: new Utf8(),
      valueOffsets: Int32Array.of(0, 1, 3, 5),
      data: values,
    })
    assert.deepEqual(await badOf(tableOf(data), { a: 'STRING' }), [
      [1n, 'text in the column a is not UTF-8', { a: 'wyg=' }],
    ])
  })

  test('are told with what they are: a part of a day', async () => {
    const day = 86_400_000n
    const data = makeData({ type: new DateMillisecond(), data: BigInt64Array.of(day, day + 1n) })
    assert.deepEqual(await badOf(tableOf(data), { a: 'DATE' }), [
      [1n, 'a date in the column a is not a whole day: 86400001 ms', { a: null }],
    ])
  })

  test('stop the run in their row, as they do in text', async () => {
    const data = makeData({
      type: new DateMillisecond(),
      data: BigInt64Array.of(0n, 0n, 5n),
    })
    const reader = await open(tableOf(data), { a: 'DATE' })
    assert.equal((await reader.next())?.records.length, 2)
    await assert.rejects(reader.next(), {
      code: 'RECORD_REFUSED',
      message: 'a.arrow row 2: a date in the column a is not a whole day: 5 ms',
    })
    await reader.close()
  })

  test('may lie below a null, where they are no values', async () => {
    const text = makeData({
      type: new Utf8(),
      valueOffsets: Int32Array.of(0, 1, 2),
      data: Uint8Array.of(0xff, 0x61),
    })
    const type = new Struct([new Field<ArrowType>('x', text.type, true)])
    const nullBitmap = Uint8Array.of(0b10)
    const rows = makeData({ type, length: 2, nullCount: 1, nullBitmap, children: [text] })
    assert.deepEqual(await badOf(tableOf(rows), { a: 'ROW<x STRING>' }), [])
  })
})

test('a bad row is kept as NDJSON would have it', async () => {
  const types = {
    b: 'BOOLEAN',
    i: 'INT',
    l: 'BIGINT',
    f: 'FLOAT',
    d: 'DOUBLE',
    m: 'DECIMAL(38, 2)',
    s: 'STRING',
    x: 'BYTES',
    day: 'DATE',
    t: 'TIME(6)',
    at: 'TIMESTAMP(6)',
    z: 'TIMESTAMP_LTZ(6)',
    a: 'ARRAY<TIMESTAMP(6)>',
    o: 'MAP<BIGINT, STRING>',
    r: 'ROW<x DATE, y ROW<z BYTES>>',
    ['__proto__']: 'INT',
  }
  const fields = fieldsOf(types)
  const full: Row = {
    b: true,
    i: -5,
    l: 9_007_199_254_740_993n,
    f: 0.5,
    d: -0.0,
    m: '-123456789012345678901234567890123456.78',
    s: 'é"\n\u0000',
    x: Uint8Array.of(0, 255),
    day: -719_162,
    t: 86_399_999_999n,
    at: -1n,
    z: 253_402_300_799_999_999n,
    a: [0n, null, 1_500_000n],
    o: new Map([[9_007_199_254_740_993n, 'v']]),
    r: { x: 1, y: { z: Uint8Array.of(7) } },
    ['__proto__']: 1,
  }
  const odd: Row = { ...full, f: NaN, d: -Infinity, s: '', a: null, r: { x: null, y: null } }
  const none: Row = Object.fromEntries(fields.map(({ name }) => [name, null]))
  const batch = rowsToBatch(fields, [full, odd, none])
  const text = [0, 1, 2].map((row) => `${Buffer.from(rowJson(fields, batch, row)).toString()}\n`)
  const again = await read(text.join(''), { fields })
  assert.deepEqual(again.rows, batchToRows(fields, batch))
  assert.match(text[0] ?? '', /"l":9007199254740993,/)
  assert.match(text[0] ?? '', /"at":"1969-12-31T23:59:59\.999999"/)
})
