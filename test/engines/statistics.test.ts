import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import path from 'node:path'
import { before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { engineScript, skipWithout } from './engines.ts'
import { beyondEngines, tortureColumns } from '../support/torture-columns.ts'
import { assertEnginesRead, tableIn, temporaryFolder, tier } from '../support/torture-lake.ts'
import { type TortureTable, tortureTable, writeTable } from '../support/torture-table.ts'

const rows = 300

type Statistics = {
  readonly files: number
  readonly rowGroups: number
  readonly fields: number
  readonly bounds: number
  readonly problems: readonly string[]
}

/** What the manifests of a table say, compared with what pyarrow finds in its files. */
async function statisticsOf(table: string): Promise<Statistics> {
  const { python, script } = engineScript('fast', 'torture_statistics.py')
  const { stdout } = await promisify(execFile)(python, [script, table])
  const report: unknown = JSON.parse(stdout)
  assert.ok(isStatistics(report))
  return report
}

function isStatistics(value: unknown): value is Statistics {
  return typeof value === 'object' && value !== null && 'problems' in value
}

/** Rows with texts of about 1 MB that do not compress away: ASCII, CJK and astral characters. */
function largeTexts(count: number): TortureTable {
  const lines = Array.from({ length: count }, (_, row) => {
    let state = row + 1
    const letters = Array.from({ length: 250_000 }, () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      return String.fromCodePoint((row % 2 === 0 ? 0x20000 : 0x1f300) + (state >>> 20))
    })
    const ascii = Buffer.from(letters.join('')).toString('base64').slice(0, 1_000_000)
    const text = letters.join('')
    return JSON.stringify({ id: row, ascii, text: row % 5 === 4 ? null : text, note: 'x' })
  })
  const columns = [
    { name: 'id', type: 'BIGINT NOT NULL' },
    { name: 'ascii', type: 'STRING NOT NULL' },
    { name: 'text', type: 'STRING' },
    { name: 'note', type: 'STRING' },
  ]
  return { columns, lines }
}

describe('what manifests say about files', { skip: skipWithout() }, async () => {
  const folder = await temporaryFolder('statistics')
  const warehouse = path.join(folder, 'lake')
  const whole = tortureTable(tortureColumns, rows)
  const limits = { columns: whole.columns.map(({ name }) => name), without: beyondEngines }
  let files: { readonly schema: string; readonly input: string } = { schema: '', input: '' }
  const write = (table: string, ...properties: readonly string[]): Promise<{ files: number }> =>
    tier([
      ...[files.input, '--schema', files.schema, '--warehouse', warehouse, '--table', table],
      ...['--bucket-key', 'id', '--buckets', '3'],
      ...properties.flatMap((property) => ['--table-property', `iceberg.write.${property}`]),
    ])

  before(async () => {
    files = await writeTable(folder, 'whole', whole)
  })

  test('counts, sizes, bounds and offsets are those that pyarrow finds in the files', async () => {
    await write('demo.whole')
    const found = await statisticsOf(tableIn(warehouse, 'demo.whole'))
    assert.deepEqual(found.problems, [])
    assert.equal(found.files, 3)
    assert.ok(found.bounds > 3 * 2 * tortureColumns.length, String(found.bounds))
  })

  test('tiny row groups and pages hold the same rows, and offsets name each row group', async () => {
    await write('demo.groups', 'parquet.row-group-size-bytes=40000', 'parquet.page-size-bytes=100')
    const table = tableIn(warehouse, 'demo.groups')
    const found = await statisticsOf(table)
    assert.deepEqual(found.problems, [])
    assert.equal(found.files, 3)
    assert.ok(found.rowGroups >= 9, `${String(found.rowGroups)} row groups`)
    await assertEnginesRead({ files: [files.input], table }, limits)
  })

  test('texts of 1 MB over a tiny target size are cut into files and read as they are', async () => {
    const large = largeTexts(14)
    const { schema, input } = await writeTable(folder, 'large', large)
    const table = tableIn(warehouse, 'demo.large')
    const into = ['--warehouse', warehouse, '--table', 'demo.large', '--schema', schema]
    await tier([input, ...into, '--buckets', '1', '--target-file-size', '1MiB'])
    const found = await statisticsOf(table)
    assert.deepEqual(found.problems, [])
    assert.ok(found.files >= 3, `${String(found.files)} files`)
    await assertEnginesRead({ files: [input], table })
  })

  for (const encoder of ['parquet-wasm', 'parquetjs-lite']) {
    test(`counts, bounds and offsets of ${encoder} are those that pyarrow finds`, async () => {
      const columns = tortureColumns.filter(
        ({ type }) => encoder !== 'parquetjs-lite' || !/^(ARRAY|MAP|ROW)/.test(type),
      )
      const { schema, input } = await writeTable(folder, encoder, tortureTable(columns, rows))
      const name = `demo."${encoder}"`
      const into = ['--warehouse', warehouse, '--table', name, '--schema', schema]
      await tier([input, ...into, '--bucket-key', 'id', '--encoder', encoder])
      const found = await statisticsOf(tableIn(warehouse, name))
      assert.deepEqual(found.problems, [])
    })
  }
})
