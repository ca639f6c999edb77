import assert from 'node:assert/strict'
import path from 'node:path'
import { describe, test } from 'node:test'
import { skipWithout } from './engines.ts'
import { beyondEngines, tortureColumns } from '../support/torture-columns.ts'
import {
  assertEnginesRead,
  sluice,
  tableIn,
  temporaryFolder,
  tier,
} from '../support/torture-lake.ts'
import { tortureTable, writeTable } from '../support/torture-table.ts'

const rows = 61

describe('encoders', { skip: skipWithout() }, async () => {
  const folder = await temporaryFolder('encoders')
  const warehouse = path.join(folder, 'lake')
  const flat = tortureColumns.filter(({ type }) => !/^(ARRAY|MAP|ROW)/.test(type))

  for (const encoder of ['columnar', 'parquet-wasm', 'parquetjs-lite']) {
    test(`every engine reads what ${encoder} writes as it is in the input`, async () => {
      const table = tortureTable(encoder === 'parquetjs-lite' ? flat : tortureColumns, rows)
      const { schema, input } = await writeTable(folder, encoder, table)
      const name = `demo."${encoder}"`
      const into = ['--warehouse', warehouse, '--table', name, '--schema', schema]
      const receipt = await tier([input, ...into, '--encoder', encoder])
      assert.equal(receipt.rows, rows)
      await assertEnginesRead(
        { files: [input], table: tableIn(warehouse, name) },
        { columns: table.columns.map((column) => column.name), without: beyondEngines },
      )
    })
  }

  test('parquetjs-lite refuses nested columns by name and writes nothing', async () => {
    const { schema, input } = await writeTable(folder, 'nested', tortureTable(tortureColumns, 3))
    const into = ['--warehouse', warehouse, '--table', 'demo.nested', '--schema', schema]
    const { status, err } = await sluice(['tier', input, ...into, '--encoder', 'parquetjs-lite'])
    assert.notEqual(status, 0)
    assert.match(err, /parquetjs-lite cannot write these columns: list is nested/)
  })
})
