import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { describe, test } from 'node:test'
import { compareTables, fastEngines, skipWithout } from './engines.ts'
import {
  assertEnginesRead,
  repository,
  tableIn,
  temporaryFolder,
  tier,
} from '../support/torture-lake.ts'

const publicData = path.join(repository, 'node_modules', 'vega-datasets', 'data')
const flights = path.join(repository, 'examples', 'data', 'flights.ndjson')

describe('public data', { skip: skipWithout() }, async () => {
  const folder = await temporaryFolder('real-data')
  const warehouse = path.join(folder, 'lake')
  const table = 'demo.flights'
  const into = (name: string): string[] => ['--warehouse', warehouse, '--table', name]

  test('flights without a bucket key are read by every engine as they are in the file', async () => {
    const receipt = await tier([flights, ...into(table), '--buckets', '4'])
    assert.equal(receipt.rows, 5000)
    await assertEnginesRead({ files: [flights], table: tableIn(warehouse, table) })
  })

  test('the same command again adds nothing', async () => {
    const receipt = await tier([flights, ...into(table), '--buckets', '4'])
    assert.equal(receipt.rows, 0)
    await assertEnginesRead({ files: [flights], table: tableIn(warehouse, table) })
  })

  test('flights by the hash of their origin are read by every engine as they are', async () => {
    await tier([flights, ...into('demo.by_origin'), '--buckets', '7', '--bucket-key', 'origin'])
    await assertEnginesRead({ files: [flights], table: tableIn(warehouse, 'demo.by_origin') })
  })

  test('three files in three runs make one table, and each of them is in it once', async () => {
    const lines = (await readFile(flights, 'utf8')).trimEnd().split('\n')
    const parts = [lines.slice(0, 1), lines.slice(1, 3000), lines.slice(3000)]
    const files = await Promise.all(
      parts.map(async (part, at) => {
        const file = path.join(folder, `part-${String(at)}.ndjson`)
        await writeFile(file, part.join('\n'))
        return file
      }),
    )
    for (const file of files) {
      await tier([file, ...into('demo.parts'), '--bucket-key', 'destination'])
    }
    const again = await tier([...files, ...into('demo.parts')])
    assert.equal(again.rows, 0)
    await assertEnginesRead({ files, table: tableIn(warehouse, 'demo.parts') })
  })

  test('a file of 100,000 flights that grows to 200,000 is read by every engine as it is', async () => {
    const text = await readFile(path.join(publicData, 'flights-200k.json'), 'utf8')
    const file = path.join(folder, 'flights-200k.ndjson')
    const lines = text.trim().slice(1, -1).replaceAll('},{', '}\n{').split('\n')
    for (const end of [100_000, lines.length]) {
      await writeFile(file, `${lines.slice(0, end).join('\n')}\n`)
      const receipt = await tier([file, ...into('demo.flights_200k'), '--buckets', '3'])
      assert.equal(receipt.rows, 100_000)
    }
    await assertEnginesRead({ files: [file], table: tableIn(warehouse, 'demo.flights_200k') })
  })

  const textFiles: readonly [string, number][] = [
    ['flights-airport.csv', 5366],
    ['seattle-weather.csv', 1461],
    ['seattle-weather-hourly-normals.csv', 8759],
    ['github.csv', 955],
  ]
  for (const [name, rows] of textFiles) {
    test(`${name} is read by every engine as it is in the file`, async () => {
      const file = path.join(publicData, name)
      const table = `demo."${name}"`
      const receipt = await tier([file, ...into(table)])
      assert.equal(receipt.rows, rows)
      await assertEnginesRead({ files: [file], table: tableIn(warehouse, table) })
    })
  }

  test('a tab-separated file by a schema and a bucket key is read as it is in the file', async () => {
    const file = path.join(publicData, 'unemployment.tsv')
    const schema = path.join(folder, 'unemployment.json')
    const columns = [
      { name: 'id', type: 'INT NOT NULL' },
      { name: 'rate', type: 'STRING' },
    ]
    await writeFile(schema, JSON.stringify({ columns, bucket_key: ['id'], bucket_count: 5 }))
    const receipt = await tier([file, ...into('demo.unemployment'), '--schema', schema])
    assert.equal(receipt.rows, 3218)
    await assertEnginesRead({
      files: [file],
      table: tableIn(warehouse, 'demo.unemployment'),
      format: 'csv',
      delimiter: '\t',
    })
  })

  test('an Arrow file of 200,000 flights is read by every engine as it is', async () => {
    const file = path.join(publicData, 'flights-200k.arrow')
    const receipt = await tier([file, ...into('demo.arrow'), '--buckets', '3'])
    assert.equal(receipt.rows, 200_000)
    await assertEnginesRead({ files: [file], table: tableIn(warehouse, 'demo.arrow') })
  })

  test('a Parquet file of 3,000,000 flights is read by every engine as it is', async () => {
    const file = path.join(publicData, 'flights-3m.parquet')
    const receipt = await tier([file, ...into('demo.parquet'), '--buckets', '3'])
    assert.equal(receipt.rows, 3_000_000)
    const tables = [tableIn(warehouse, 'demo.parquet')]
    // One after another: each holds both sides in memory.
    for (const engine of fastEngines) {
      const [found] = await compareTables({ engine, file, tables })
      assert.deepEqual([found?.rows, found?.differences], [3_000_000, []], engine)
    }
  })
})
