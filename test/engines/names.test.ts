import assert from 'node:assert/strict'
import path from 'node:path'
import { describe, test } from 'node:test'
import { parseTableName } from '../../src/core/table-name.ts'
import { compareTables, fastEngines, skipWithout } from './engines.ts'
import {
  assertEnginesRead,
  sluice,
  tableIn,
  temporaryFolder,
  tier,
} from '../support/torture-lake.ts'
import { writeTable } from '../support/torture-table.ts'

const columnNames = [
  'plain',
  'UPPER',
  'camelCase',
  'dotted.name',
  '.',
  'quo"ted',
  "apo'strophe",
  '`tick`',
  'two words',
  ' around ',
  'emoji 😀',
  'ümläut',
  'select',
  '1st',
  'a-b',
  'a/b\\c',
  '%41',
  'comma,semi;colon',
  '__proto__',
  'constructor',
  '{t}',
  'x'.repeat(255),
]

const tableNames = [
  'Upper.Flights',
  'demo."Flight.Data"',
  '"name.space"."say ""hi"""',
  'demo."two words"',
  '"é"."😀"',
  'a.b.c.d',
  'demo."100%25"',
  'demo."~2E"',
  'demo.":*?<>|"',
  'demo."data"',
  'demo."metadata"',
  'default.select',
]

describe('names', { skip: skipWithout() }, async () => {
  const folder = await temporaryFolder('names')
  const warehouse = path.join(folder, 'lake')

  test('columns with dots, quotes, spaces and emoji are read by every engine', async () => {
    const columns = columnNames.map((name) => ({ name, type: 'BIGINT' }))
    const lines = [1, 2, 3].map((row) => {
      const cells = columnNames.map(
        (name, at) => `${JSON.stringify(name)}:${String(row * 100 + at)}`,
      )
      return `{${cells.join(',')}}`
    })
    const { schema, input } = await writeTable(folder, 'columns', { columns, lines })
    const into = ['--warehouse', warehouse, '--table', 'demo.columns', '--schema', schema]
    const receipt = await tier([input, ...into])
    assert.equal(receipt.rows, 3)
    await assertEnginesRead({ files: [input], table: tableIn(warehouse, 'demo.columns') })
    const sql = 'select "dotted.name" + "quo""ted" + "emoji 😀" as n from demo.columns order by 1'
    const { out, err } = await sluice(['query', warehouse, sql, '--csv'])
    assert.match(out, /^318$/m, err)
  })

  test('a bucket key with a dot and an upper-case letter names its partition field', async () => {
    const columns = [{ name: 'Key.of "it"', type: 'STRING' }]
    const lines = ['a', 'b', 'c', '😀'].map((key) => JSON.stringify({ 'Key.of "it"': key }))
    const { schema, input } = await writeTable(folder, 'key', { columns, lines })
    const into = ['--warehouse', warehouse, '--table', 'demo.keyed', '--schema', schema]
    await tier([input, ...into, '--bucket-key', 'Key.of "it"', '--buckets', '3'])
    await assertEnginesRead({ files: [input], table: tableIn(warehouse, 'demo.keyed') })
  })

  test('fields of rows with dots, quotes, spaces and emoji are read by every engine', async () => {
    const members = columnNames.map((name) => `\`${name.replaceAll('`', '``')}\` BIGINT`).join(', ')
    const columns = [
      { name: 'Row.of "it"', type: `ROW<${members}>` },
      { name: 'rows', type: `ARRAY<ROW<${members}>>` },
    ]
    const lines = [1, 2, 3].map((row) => {
      const cells = columnNames.map(
        (name, at) => `${JSON.stringify(name)}:${String(row * 100 + at)}`,
      )
      return `{"Row.of \\"it\\"":{${cells.join(',')}},"rows":[{${cells.join(',')}}]}`
    })
    const { schema, input } = await writeTable(folder, 'fields', { columns, lines })
    await tier([input, '--warehouse', warehouse, '--table', 'demo.fields', '--schema', schema])
    await assertEnginesRead({ files: [input], table: tableIn(warehouse, 'demo.fields') })
  })

  const table = writeTable(folder, 'table', {
    columns: [{ name: 'id', type: 'BIGINT' }],
    lines: ['{"id":7}'],
  })

  for (const name of tableNames) {
    test(`table ${name} is made, and read by query under its name`, async () => {
      const { schema, input } = await table
      await tier([input, '--warehouse', warehouse, '--table', name, '--schema', schema])
      const { out, err } = await sluice([
        ...['query', warehouse, `select id + 1 as n from ${sqlName(name)}`, '--csv'],
      ])
      assert.match(out, /^8$/m, err)
    })
  }

  for (const engine of fastEngines) {
    test(`${engine} reads the tables of all these names`, async () => {
      const tables = tableNames.map((name) => tableIn(warehouse, name))
      assert.deepEqual(
        await compareTables({ engine, file: (await table).input, tables }),
        tables.map((each) => ({ table: each, rows: 1, differences: [] })),
      )
    })
  }

  test('names that are paths or hold control characters are refused and write nothing', async () => {
    const { input } = await writeTable(folder, 'refused', {
      columns: [{ name: 'id', type: 'BIGINT' }],
      lines: ['{"id":7}'],
    })
    for (const name of ['../../etc', 'demo."a/b"', 'demo."a\\b"', 'demo."a\nb"', 'demo.""', '.']) {
      const { status, err } = await sluice([
        ...['tier', input, '--warehouse', path.join(folder, 'untouched'), '--table', name],
      ])
      assert.equal(status, 2, `${name}: ${err}`)
      assert.match(err, /NAME_INVALID/)
    }
    const { status } = await sluice(['query', path.join(folder, 'untouched'), 'select 1'])
    assert.notEqual(status, 0)
  })
})

/** Every part quoted, since words of SQL are names as well; a namespace is one name to DuckDB. */
function sqlName(name: string): string {
  const parts = parseTableName(name)
  return [parts.slice(0, -1).join('.'), parts.at(-1) ?? '']
    .map((part) => `"${part.replaceAll('"', '""')}"`)
    .join('.')
}
