import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RecordBatchReader } from 'apache-arrow'
import fc from 'fast-check'
import { readParquet } from 'parquet-wasm'
import { fromArrow } from '../../../src/core/columns/arrow.ts'
import { loadZstd } from '../../../src/sink/parquet/codec.ts'
import { columnarEncoder } from '../../../src/sink/parquet/columnar.ts'
import { parquetjsEncoder } from '../../../src/sink/parquet/parquetjs.ts'
import { wasmEncoder } from '../../../src/sink/parquet/wasm.ts'
import { physicalOf, readPhysical, usualOptions, writeFile } from './files.ts'
import { anyType, batchOf, type Cell, cellOf, hasTime, rowsOf, withIds } from './rows.ts'

const encoders = [columnarEncoder(loadZstd), wasmEncoder, parquetjsEncoder]

const tables = fc.array(anyType, { minLength: 1, maxLength: 4 }).chain((types) =>
  fc.record({
    types: fc.constant(types),
    batches: fc.array(
      fc.record({
        before: fc.integer({ min: 0, max: 17 }),
        rows: fc.array(fc.tuple(...types.map(cellOf)), { maxLength: 40 }),
      }),
      { maxLength: 4 },
    ),
    rowGroupBytes: fc.constantFrom(1, 300, 4000, 1 << 27),
    pageBytes: fc.constantFrom(1, 40, 500, 1 << 20),
    compression: fc.constantFrom('zstd' as const, 'none' as const),
  }),
)

for (const encoder of encoders) {
  test(`what ${encoder.name} writes is what another reader reads`, async () => {
    await fc.assert(
      fc.asyncProperty(tables, async ({ types, batches, ...options }) => {
        const fields = withIds(types)
        fc.pre(encoder.refuses(fields) === undefined)
        const { bytes, summary } = await writeFile(
          encoder,
          fields,
          batches.map(({ rows, before }) => batchOf(types, rows, before)),
          { ...usualOptions, ...options },
        )
        const rows: (readonly Cell[])[] = batches.flatMap((batch) => batch.rows)
        const expected = rows.map((row) =>
          Object.fromEntries(
            types.map((type, at) => [`c${String(at)}`, physicalOf(type, row[at] ?? null)]),
          ),
        )
        assert.equal(summary.rows, rows.length)
        assert.equal(summary.bytes, bytes.length)
        assert.deepEqual(await readPhysical(bytes), expected)
      }),
      { numRuns: encoder.name === 'columnar' ? 300 : 100 },
    )
  })
}

test('what columnar writes is what parquet-wasm reads', async () => {
  await fc.assert(
    fc.asyncProperty(tables, async ({ types, batches, ...options }) => {
      fc.pre(!types.some(hasTime) && batches.some(({ rows }) => rows.length > 0))
      const { bytes } = await writeFile(
        columnarEncoder(loadZstd),
        withIds(types),
        batches.map(({ rows, before }) => batchOf(types, rows, before)),
        { ...usualOptions, ...options },
      )
      const table = readParquet(bytes)
      const arrow = RecordBatchReader.from(table.intoIPCStream())
      const read = [...arrow].flatMap((batch) => rowsOf(fromArrow(batch).batch))
      assert.deepEqual(
        read,
        batches.flatMap((batch) => batch.rows),
      )
    }),
    { numRuns: 200 },
  )
})
