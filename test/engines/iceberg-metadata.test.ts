import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileCatalog } from '../../src/catalog/iceberg/file-catalog.ts'
import { int64Value } from '../../src/catalog/iceberg/format/single-value.ts'
import { scanTable } from '../../src/catalog/iceberg/scan.ts'
import type { DataFile, LakeTable, LoadedTable, TableDefinition } from '../../src/catalog/ports.ts'
import { localStore, locationOf, pathOf } from '../../src/catalog/store/local-store.ts'
import { bucket, snapshotId } from '../../src/core/ids.ts'
import { isJsonArray, isJsonObject, type JsonObject, parseJson } from '../../src/core/json64.ts'
import type { IdField } from '../../src/core/schema/types.ts'
import { systemClock, systemIds } from '../../src/core/system.ts'
import { engineScript, fastEngines, readRows, readTable, skipWithout } from './engines.ts'

const store = localStore(systemIds)
const nullable = true
const schema: TableDefinition['schema'] = {
  fields: [
    { name: 'id', type: { kind: 'bigint', nullable: false }, comment: 'above 2^53' },
    { name: 'user.name', type: { kind: 'string', nullable } },
    { name: 'price', type: { kind: 'decimal', precision: 20, scale: 4, nullable } },
    { name: 'tags', type: { kind: 'array', element: { kind: 'string', nullable }, nullable } },
    {
      name: 'props',
      type: {
        kind: 'map',
        key: { kind: 'string', nullable: false },
        value: { kind: 'bigint', nullable },
        nullable,
      },
    },
    {
      name: 'place',
      type: {
        kind: 'row',
        fields: [{ name: 'lat', type: { kind: 'bigint', nullable } }],
        nullable,
      },
    },
  ],
}

/** Our metadata over Parquet files of another writer, and the metadata of other writers. */
describe('Iceberg metadata', { skip: skipWithout() }, () => {
  const root = mkdtempSync(path.join(tmpdir(), 'sluice-metadata-'))
  after(() => {
    rmSync(root, { recursive: true })
  })

  describe('of ours over files by pyarrow', () => {
    // A warehouse whose path has what URLs would escape.
    const catalog = catalogAt(path.join(root, 'our lake é'))
    const keys = [undefined, 'id', 'user.name'] as const
    const tables = new Map<string | undefined, LoadedTable>()

    before(async () => {
      for (const key of keys) {
        const { table } = await catalog.create({
          name: ['demo', key === undefined ? 'By "place"' : `by.${key}`],
          schema,
          bucketCount: 3,
          ...(key === undefined ? {} : { bucketKey: key }),
          properties: new Map(),
        })
        tables.set(key, await filled(table, key ?? '__bucket'))
      }
    })

    for (const engine of fastEngines) {
      test(`${engine} reads every row of tables bucketed by place and by key`, async () => {
        const digests = new Set<string>()
        for (const table of tables.values()) {
          const found = await readTable({ engine, table: table.location, columns: columns() })
          assert.equal(found.rows, 40)
          digests.add(found.looseDigest)
        }
        assert.equal(digests.size, 1)
      })

      test(`${engine} finds each row by filters that prune by bucket and by bounds`, async () => {
        for (const table of tables.values()) {
          for (const at of [0n, 39n]) {
            const where = `id = ${String(2n ** 60n + at)}`
            const found = await readRows({ engine, table: table.location, where, columns: ['id'] })
            assert.deepEqual(found.lines, [`{"id":"${String(2n ** 60n + at)}"}`])
          }
        }
        // pyiceberg's filters have no way to write a name with a dot.
        if (engine !== 'pyiceberg') {
          const byName = tables.get('user.name')?.location ?? ''
          const where = `"user.name" = 'name 17 é'`
          assert.equal((await readTable({ engine, table: byName, where })).rows, 1)
        }
        const byPlace = tables.get(undefined)?.location ?? ''
        assert.equal((await readTable({ engine, table: byPlace, where: '__bucket = 1' })).rows, 13)
      })
    }
  })

  test('a table that pyiceberg wrote is scanned, with the ids that we would give', async () => {
    const other = otherTable(path.join(root, 'other'))
    const scan = await scanTable(store, textIn(other, 'metadata'))
    assert.equal(scan.files.length, 3)
    assert.equal(
      scan.files.reduce((sum, file) => sum + file.rows, 0),
      40,
    )
    assert.deepEqual(scan.files.map(({ partition }) => partition.get(1000)).sort(), [0, 1, 2])
    const { table } = await catalogAt(path.join(root, 'twin')).create({
      name: ['demo', 'rows'],
      schema,
      bucketCount: 3,
      properties: new Map(),
    })
    const { fields } = await table.load()
    assert.deepEqual(fieldsOf(fields), fieldsOf(scan.fields))
  })

  test('our snapshot on top of one by pyiceberg keeps its rows for every engine', async () => {
    const lake = path.join(root, 'shared')
    const other = otherTable(lake)
    const folder = path.join(lake, 'demo', 'rows')
    copyFileSync(
      pathOf(textIn(other, 'metadata')),
      path.join(folder, 'metadata', 'v1.metadata.json'),
    )
    const table = await catalogAt(lake).open(['demo', 'rows'])
    assert.ok(table !== undefined)
    const loaded = await filled(table, '__bucket')
    assert.equal(loaded.snapshots.size, 2)
    for (const engine of fastEngines) {
      assert.equal((await readTable({ engine, table: folder })).rows, 80)
    }
  })
})

/** Fields without their comments, which pyiceberg's schema does not have. */
function fieldsOf(fields: readonly IdField[]): unknown {
  return fields.map(({ id, name, type, children }) => [id, name, type, children])
}

function catalogAt(warehouse: string): ReturnType<typeof fileCatalog> {
  mkdirSync(warehouse, { recursive: true })
  return fileCatalog({
    store,
    warehouse: locationOf(warehouse),
    clock: systemClock,
    ids: systemIds,
  })
}

/** Commits the forty rows, a file for each bucket, with a fence before and after. */
async function filled(table: LakeTable, column: string): Promise<LoadedTable> {
  let loaded = await table.load()
  const folder = path.join(pathOf(loaded.location), 'data')
  mkdirSync(folder, { recursive: true })
  const made = runScript(['data', folder, column, String(loaded.bucketCount)])
  assert.ok(isJsonArray(made))
  const files = made.map((file): DataFile => {
    assert.ok(isJsonObject(file))
    const rows = Number(file['rows'])
    return {
      location: `${loaded.location}/data/${textIn(file, 'name')}`,
      bucket: bucket(Number(file['bucket'])),
      rows,
      bytes: Number(file['bytes']),
      metrics: [
        {
          fieldId: 1,
          columnBytes: 100,
          valueCount: rows,
          nullCount: 0,
          lower: int64Value(BigInt(textIn(file, 'first'))),
          upper: int64Value(BigInt(textIn(file, 'last'))),
        },
      ],
      splitOffsets: [4],
    }
  })
  const id = snapshotId(2n ** 62n + 12_345n)
  const outcome = await table.swap(loaded, {
    snapshot: {
      id,
      operation: 'append',
      summary: new Map([['sluice.round', '1']]),
      files,
      headerLedger: JSON.stringify({ v: 1, ends: Array.from({ length: 100_000 }, (_, at) => at) }),
    },
    setProperties: new Map([['sluice.token', '0.1.1']]),
  })
  assert.ok(outcome.kind === 'applied')
  loaded = outcome.table
  const fence = await table.swap(loaded, { setProperties: new Map([['sluice.token', '0.2.1']]) })
  assert.ok(fence.kind === 'applied')
  return fence.table
}

/** The bucket differs with the key, so tables are compared without it. */
function columns(): readonly string[] {
  return [...schema.fields.map(({ name }) => name), '__offset', '__timestamp']
}

function otherTable(folder: string): JsonObject {
  mkdirSync(folder, { recursive: true })
  const made = runScript(['table', folder, '3'])
  assert.ok(isJsonObject(made))
  return made
}

function runScript(args: readonly string[]): ReturnType<typeof parseJson> {
  const { python, script } = engineScript('fast', 'iceberg_files.py')
  return parseJson(execFileSync(python, [script, ...args]), { name: 'iceberg_files.py' })
}

function textIn(object: JsonObject, key: string): string {
  const value = object[key]
  assert.ok(typeof value === 'string', key)
  return value
}
