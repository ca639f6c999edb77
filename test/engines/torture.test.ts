import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { skipWithout } from './engines.ts'
import { beyondEngines, tortureColumns } from '../support/torture-columns.ts'
import { assertEnginesRead, tableIn, temporaryFolder, tier } from '../support/torture-lake.ts'
import { tortureTable, writeTable } from '../support/torture-table.ts'

const rows = 61

describe('a table of every type', { skip: skipWithout() }, async () => {
  const folder = await temporaryFolder('torture')
  const warehouse = `${folder}/lake`
  const table = tortureTable(tortureColumns, rows)
  const limits = {
    columns: table.columns.map(({ name }) => name),
    without: beyondEngines,
  }
  const into = (name: string): string[] => ['--warehouse', warehouse, '--table', name]

  test('every engine reads every value of every type as it is in the input', async () => {
    const { schema, input } = await writeTable(folder, 'every', table)
    const receipt = await tier([input, ...into('demo.every'), '--schema', schema])
    assert.equal(receipt.rows, rows)
    await assertEnginesRead({ files: [input], table: tableIn(warehouse, 'demo.every') }, limits)
  })
})
