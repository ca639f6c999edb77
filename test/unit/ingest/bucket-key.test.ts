import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { Binary, Table, tableToIPC, Utf8, vectorFromArray } from 'apache-arrow'
import { batchToRows } from '../../../src/core/columns/rows.ts'
import { InputBytes } from '../../../src/source/ingest/input-bytes.ts'
import { openInput } from '../../../src/source/ingest/open-input.ts'
import { fieldsOf, openText, read, type ReadOptions } from './support.ts'

const columns = { n: 'BIGINT', user: 'STRING' }
const is = 'column user of demo.t is the bucket key'

describe('a record without a bucket key', () => {
  const ndjson: readonly (readonly [string, string, number])[] = [
    ['{"n":2,"user":null}', `user is null, ${is}`, 15],
    ['{"n":2,"user":""}', `user is empty, ${is}`, 15],
    ['{"n":2}', `user is missing, ${is}`, 1],
  ]
  const csv: readonly (readonly [string, string, number])[] = [
    ['2,', `user is null, ${is}`, 3],
    // The place of a quoted field is that of its text.
    ['2,""', `user is empty, ${is}`, 4],
  ]
  const cases = [
    ...ndjson.map((each) => ['a.ndjson', '{"n":1,"user":"a"}\n', ...each] as const),
    ...csv.map((each) => ['a.csv', 'n,user\n1,a\n', ...each] as const),
  ]
  for (const [name, before, record, reason, column] of cases) {
    const after = name === 'a.csv' ? '3,c' : '{"n":3,"user":"c"}'
    const text = `${before}${record}\n${after}\n`
    const line = BigInt(before.split('\n').length)

    test(`is bad with its place, and everything before it is read: ${record}`, async () => {
      const reader = await openText(text, { name, columns, bucketKey: 'user' })
      assert.equal((await reader.next())?.records.length, 1)
      const byte = before.length + column - 1
      await assert.rejects(reader.next(), {
        code: 'RECORD_REFUSED',
        message: `${name} line ${String(line)}: ${reason}`,
        where: `${name}:${String(line)}:${String(column)} (byte ${String(byte)})`,
      })
    })

    test(`is set aside like any other: ${record}`, async () => {
      const options: ReadOptions = {
        name,
        columns,
        bucketKey: 'user',
        onBadRecord: 'quarantine',
      }
      const { rows, bad } = await read(text, options)
      assert.deepEqual(rows, [
        { n: 1n, user: 'a' },
        { n: 3n, user: 'c' },
      ])
      assert.deepEqual(
        bad.map((each) => [each.reason, Buffer.from(each.raw).toString()]),
        [[reason, record]],
      )
    })
  }

  test('is bad when its bytes are empty or the text for null is another', async () => {
    const bytes = await read('{"k":"AA=="}\n{"k":""}\n', {
      columns: { k: 'BYTES' },
      bucketKey: 'k',
      onBadRecord: 'quarantine',
    })
    assert.equal(bytes.bad[0]?.reason, 'k is empty, column k of demo.t is the bucket key')
    const text = await read('user\n""\n\nNA\na\n', {
      name: 'a.csv',
      columns: { user: 'STRING' },
      bucketKey: 'user',
      csv: { nullText: 'NA' },
      onBadRecord: 'quarantine',
    })
    assert.deepEqual(
      text.bad.map((each) => each.reason),
      [`user is empty, ${is}`, `user is null, ${is}`],
    )
  })

  test('a name inside a ROW is no key', async () => {
    const { rows } = await read('{"user":"a","r":{"user":""}}\n', {
      columns: { user: 'STRING', r: 'ROW<user STRING>' },
      bucketKey: 'user',
    })
    assert.deepEqual(rows, [{ user: 'a', r: { user: '' } }])
  })

  test('a CSV header without the key is refused', async () => {
    await assert.rejects(openText('n\n1\n', { name: 'a.csv', columns, bucketKey: 'user' }), {
      message: `a.csv line 1: user is missing, ${is}`,
    })
  })

  const arrow: readonly (readonly [string, Table, string])[] = [
    ['null', new Table({ user: vectorFromArray(['a', 'b', null, 'd'], new Utf8()) }), 'is null'],
    ['empty', new Table({ user: vectorFromArray(['a', 'b', '', 'd'], new Utf8()) }), 'is empty'],
    [
      'empty bytes',
      new Table({
        user: vectorFromArray(
          [Uint8Array.of(1), Uint8Array.of(2), new Uint8Array(0), null],
          new Binary(),
        ),
      }),
      'is empty',
    ],
  ]
  for (const [what, table, is] of arrow) {
    test(`of an Arrow file is named by its row, behind everything before it: ${what}`, async () => {
      const folder = await mkdtemp(join(tmpdir(), 'sluice-key-'))
      try {
        const path = join(folder, 'a.arrow')
        await writeFile(path, tableToIPC(table, 'file'))
        const type = what === 'empty bytes' ? 'BYTES' : 'STRING'
        const fields = fieldsOf({ user: type })
        const reader = await openInput({
          bytes: await InputBytes.open({ name: 'a.arrow', location: { kind: 'file', path } }),
          target: { table: 'demo.t', fields, bucketKey: 'user' },
        })
        const batch = await reader.next()
        assert.equal(batch === undefined ? 0 : batchToRows(fields, batch.records).length, 2)
        await assert.rejects(reader.next(), {
          code: 'RECORD_REFUSED',
          message: `a.arrow row 2: user ${is}, column user of demo.t is the bucket key`,
        })
        await reader.close()
      } finally {
        await rm(folder, { recursive: true })
      }
    })
  }
})
