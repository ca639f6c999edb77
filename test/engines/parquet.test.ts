import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile as writeToDisk } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { RecordBatchStreamWriter } from 'apache-arrow'
import fc from 'fast-check'
import { toArrow } from '../../src/core/columns/arrow.ts'
import type { DataType, Field, IdField } from '../../src/core/schema/types.ts'
import { loadZstd } from '../../src/sink/parquet/codec.ts'
import { columnarEncoder } from '../../src/sink/parquet/columnar.ts'
import { parquetjsEncoder } from '../../src/sink/parquet/parquetjs.ts'
import { wasmEncoder } from '../../src/sink/parquet/wasm.ts'
import { usualOptions, writeFile } from '../property/parquet/files.ts'
import { batchOf, type Cell, cellOf, withIds } from '../property/parquet/rows.ts'
import { engineScript, skipWithout } from './engines.ts'

const nullable = true
const flat: readonly DataType[] = [
  { kind: 'boolean', nullable },
  { kind: 'tinyint', nullable },
  { kind: 'smallint', nullable: false },
  { kind: 'int', nullable },
  { kind: 'bigint', nullable: false },
  { kind: 'bigint', nullable },
  { kind: 'float', nullable },
  { kind: 'double', nullable },
  { kind: 'decimal', precision: 1, scale: 0, nullable },
  { kind: 'decimal', precision: 9, scale: 2, nullable },
  { kind: 'decimal', precision: 18, scale: 18, nullable: false },
  { kind: 'decimal', precision: 38, scale: 10, nullable },
  { kind: 'string', nullable },
  { kind: 'char', length: 3, nullable: false },
  { kind: 'bytes', nullable },
  { kind: 'date', nullable },
  { kind: 'time', precision: 6, nullable },
  { kind: 'timestamp', precision: 6, nullable },
  { kind: 'timestamp_ltz', precision: 6, nullable: false },
]

function members(...types: readonly DataType[]): Field[] {
  return types.map((type, at) => ({ name: `f${String(at)}`, type }))
}

const text: DataType = { kind: 'string', nullable }
const count: DataType = { kind: 'int', nullable: false }
const nested: readonly DataType[] = [
  { kind: 'array', element: text, nullable },
  { kind: 'array', element: { kind: 'array', element: count, nullable: false }, nullable: false },
  { kind: 'map', key: { kind: 'string', nullable: false }, value: text, nullable: false },
  { kind: 'row', fields: members(count, text), nullable },
  {
    kind: 'row',
    fields: members(text, { kind: 'row', fields: members(text, count), nullable }),
    nullable,
  },
  {
    kind: 'array',
    element: { kind: 'row', fields: members(count, text), nullable: false },
    nullable,
  },
]

/** Days, micros of a day and instants that every engine can show. */
function knownCell(type: DataType): fc.Arbitrary<Cell> {
  const within = (arbitrary: fc.Arbitrary<Cell>): fc.Arbitrary<Cell> =>
    type.nullable ? fc.option(arbitrary, { nil: null }) : arbitrary
  switch (type.kind) {
    case 'date':
      return within(fc.integer({ min: -7000, max: 47_000 }))
    case 'time':
      return within(fc.bigInt({ min: 0n, max: 86_399_999_999n }))
    case 'timestamp':
    case 'timestamp_ltz':
      return within(fc.bigInt({ min: -600_000_000_000_000n, max: 4_000_000_000_000_000n }))
    default:
      return cellOf(type)
  }
}

function icebergType(type: DataType): unknown {
  switch (type.kind) {
    case 'tinyint':
    case 'smallint':
    case 'int':
      return 'int'
    case 'bigint':
      return 'long'
    case 'decimal':
      return `decimal(${String(type.precision)}, ${String(type.scale)})`
    case 'char':
    case 'string':
      return 'string'
    case 'binary':
    case 'bytes':
      return 'binary'
    case 'timestamp_ltz':
      return 'timestamptz'
    case 'array':
      return { type: 'list', element: icebergType(type.element) }
    case 'map':
      return { type: 'map', key: icebergType(type.key), value: icebergType(type.value) }
    case 'row': {
      const fields = type.fields.map((field) => ({
        name: field.name,
        // Without an Iceberg schema ClickHouse shows the members of a null row as nulls.
        required: false,
        type: icebergType(field.type),
      }))
      return { type: 'struct', fields }
    }
    default:
      return type.kind
  }
}

function idsByPath(fields: readonly IdField[], prefix = ''): [string, number][] {
  return fields.flatMap((field) => [
    [`${prefix}${field.name}`, field.id] as [string, number],
    ...idsByPath(field.children, `${prefix}${field.name}.`),
  ])
}

const run = promisify(execFile)

for (const encoder of [columnarEncoder(loadZstd), wasmEncoder, parquetjsEncoder]) {
  test(`pyarrow, DuckDB and ClickHouse read what ${encoder.name} writes`, {
    skip: skipWithout('duckdb'),
  }, async () => {
    const all = [...flat, ...nested]
    const types = encoder.refuses(withIds(all)) === undefined ? all : flat
    const fields = withIds(types)
    const rows = fc.sample(fc.tuple(...types.map(knownCell)), { numRuns: 2500, seed: 7 })
    const batches = [0, 1, 2, 3, 4].map((part) =>
      batchOf(types, rows.slice(500 * part, 500 * part + 500), part),
    )
    const { bytes } = await writeFile(encoder, fields, batches, {
      ...usualOptions,
      rowGroupBytes: 600_000,
      pageBytes: 4000,
    })
    const expected = new RecordBatchStreamWriter()
    for (const batch of batches) expected.write(toArrow(fields, batch))
    expected.finish()
    const folder = await mkdtemp(path.join(tmpdir(), 'sluice-parquet-'))
    try {
      const files = ['rows.parquet', 'rows.arrow', 'types.json'].map((name) =>
        path.join(folder, name),
      )
      await writeToDisk(files[0]!, bytes)
      await writeToDisk(files[1]!, expected.toUint8Array(true))
      const named = Object.fromEntries(fields.map((each) => [each.name, icebergType(each.type)]))
      const ids = Object.fromEntries(idsByPath(fields))
      await writeToDisk(files[2]!, JSON.stringify({ types: named, ids }))
      const { python, script } = engineScript('fast', 'parquet_file.py')
      const { stdout } = await run(python, [script, ...files])
      const { unchecked, ...read } = JSON.parse(stdout) as { readonly unchecked: unknown[] }
      assert.deepEqual(read, { rows: rows.length, differences: [] })
      // The other two write no checksums.
      if (encoder.name === 'columnar') assert.deepEqual(unchecked, [])
      else assert.ok(unchecked.length >= types.length)
    } finally {
      await rm(folder, { recursive: true })
    }
  })
}
