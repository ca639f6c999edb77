import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import path from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { openEmbeddedSource } from '../../src/library/api/embedded-source.ts'
import { openLake } from '../../src/library/api/lake.ts'
import { startTiering } from '../../src/library/api/tiering-job.ts'
import type { LogTable } from '../../src/source/index.ts'
import { engineScript, skipWithout } from './engines.ts'
import { beyondEngines, tortureColumns } from '../support/torture-columns.ts'
import { assertEnginesRead, tableIn, temporaryFolder, tier } from '../support/torture-lake.ts'
import { libraryRows, tortureTable, writeTable } from '../support/torture-table.ts'

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

  test('rows appended by the library are read by every engine as they are', async () => {
    const { input } = await writeTable(folder, 'library', table)
    await fill('demo.by_rows', (into) => into.append(libraryRows(tortureColumns, rows)))
    await assertEnginesRead({ files: [input], table: tableIn(warehouse, 'demo.by_rows') }, limits)
  })

  describe('in files of other tools', async () => {
    // Arrow has seconds, millis and micros, and no lengths of texts.
    const columns = tortureColumns.filter(
      ({ type }) => !/\(([012345]|CHAR)\)|^CHAR|^BINARY/.test(type),
    )
    const kept = tortureTable(columns, rows)
    const { schema, input } = await writeTable(folder, 'kept', kept)

    /** Files that pyarrow wrote of the rows that DuckDB read. */
    async function exported(): Promise<void> {
      const table = tableIn(warehouse, 'demo.every')
      const casts = kept.columns.map(({ name, type }) => {
        if (type.startsWith('TINYINT')) return [name, 'int8']
        return [name, type.startsWith('SMALLINT') ? 'int16' : null]
      })
      const { python, script } = engineScript('fast', 'export_table.py')
      const types = JSON.stringify(Object.fromEntries(casts))
      await promisify(execFile)(python, [script, table, folder, types])
    }

    for (const name of ['rows.arrow', 'rows.arrows', 'rows.parquet']) {
      test(`${name} is read by every engine as it is in the file`, async () => {
        await exported()
        const as = `demo."${name}"`
        const receipt = await tier([path.join(folder, name), ...into(as), '--schema', schema])
        assert.equal(receipt.rows, rows)
        await assertEnginesRead(
          { files: [input], table: tableIn(warehouse, as) },
          { ...limits, columns: kept.columns.map((column) => column.name) },
        )
      })
    }
  })

  test('a value of 64 MB is read by every engine as it is in the input', async () => {
    const value = 'sluice 😀 '.repeat(5_340_000)
    assert.ok(Buffer.byteLength(value) > 64_000_000)
    const large = {
      columns: [
        { name: 'id', type: 'INT' },
        { name: 'value', type: 'STRING' },
      ],
      lines: ['{"id":1,"value":""}', JSON.stringify({ id: 2, value }), '{"id":3}'],
    }
    const { schema, input } = await writeTable(folder, 'large', large)
    const receipt = await tier([input, ...into('demo.large'), '--schema', schema])
    assert.equal(receipt.rows, 3)
    await assertEnginesRead({ files: [input], table: tableIn(warehouse, 'demo.large') })
  })

  test('a table without rows has its columns and no rows, and takes rows later', async () => {
    const { schema, input } = await writeTable(folder, 'empty', { ...table, lines: [] })
    const at = tableIn(warehouse, 'demo.empty')
    const receipt = await tier([input, ...into('demo.empty'), '--schema', schema])
    assert.equal(receipt.rows, 0)
    await assertEnginesRead({ files: [input], table: at }, limits)
    const { input: later } = await writeTable(folder, 'later', table)
    await tier([later, ...into('demo.empty')])
    await assertEnginesRead({ files: [later], table: at }, limits)
  })

  test('one bucket gets all rows and fifteen stay empty', async () => {
    const lines = Array.from({ length: 3000 }, (_, row) => `{"key":"hot","row":${String(row)}}`)
    const hot = {
      columns: [
        { name: 'key', type: 'STRING' },
        { name: 'row', type: 'BIGINT' },
      ],
      lines,
    }
    const { schema, input } = await writeTable(folder, 'hot', hot)
    const keyed = ['--schema', schema, '--bucket-key', 'key', '--buckets', '16']
    const receipt = await tier([input, ...into('demo.hot'), ...keyed])
    assert.equal(receipt.files, 1)
    await assertEnginesRead({ files: [input], table: tableIn(warehouse, 'demo.hot') })
  })

  /** Makes a table by the library, appends to it, and waits until all of that is in the lake. */
  async function fill(name: string, append: (into: LogTable) => Promise<unknown>): Promise<void> {
    const lake = await openLake({ warehouse })
    const source = await openEmbeddedSource({ resumeFrom: lake })
    const columns = Object.fromEntries(table.columns.map((column) => [column.name, column.type]))
    const into = await source.createTable(name, { columns, buckets: 3, bucketKey: 'id' })
    const job = startTiering({ source, lake })
    try {
      await append(into)
      const receipt = await job.drain()
      assert.equal(receipt.rows, BigInt(rows))
    } finally {
      await job.close()
      await source.close()
      await lake.close()
    }
  }
})
