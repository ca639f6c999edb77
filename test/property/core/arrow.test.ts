import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RecordBatchReader, RecordBatchStreamWriter } from 'apache-arrow'
import fc from 'fast-check'
import { fromArrow, toArrow } from '../../../src/core/columns/arrow.ts'
import type { DataType } from '../../../src/core/schema/types.ts'
import { anyType, batchOf, cellOf, hasTime, rowsOf, withIds } from '../parquet/rows.ts'

const tables = fc.array(anyType, { minLength: 1, maxLength: 4 }).chain((types) =>
  fc.record({
    types: fc.constant(types),
    before: fc.integer({ min: 0, max: 17 }),
    rows: fc.array(fc.tuple(...types.map(cellOf)), { minLength: 1, maxLength: 40 }),
  }),
)

/** What Arrow does not tell apart. */
function inArrow(type: DataType): DataType {
  const { nullable } = type
  switch (type.kind) {
    case 'char':
      return { kind: 'string', nullable }
    case 'binary':
      return { kind: 'bytes', nullable }
    case 'time':
    case 'timestamp':
    case 'timestamp_ltz':
      return { kind: type.kind, precision: 6, nullable }
    case 'array':
      return { kind: 'array', element: inArrow(type.element), nullable }
    case 'map':
      return { kind: 'map', key: inArrow(type.key), value: inArrow(type.value), nullable }
    case 'row':
      return {
        kind: 'row',
        fields: type.fields.map(({ name, type: each }) => ({ name, type: inArrow(each) })),
        nullable,
      }
    default:
      return type
  }
}

test('a batch comes back equal from Arrow, and from the bytes of an Arrow stream', () => {
  fc.assert(
    fc.property(tables, ({ types, before, rows }) => {
      fc.pre(!types.some(hasTime))
      const fields = withIds(types)
      const arrow = toArrow(fields, batchOf(types, rows, before))
      assert.deepEqual(rowsOf(fromArrow(arrow).batch), rows)

      const writer = new RecordBatchStreamWriter()
      writer.write(arrow)
      writer.finish()
      const [read] = [...RecordBatchReader.from(writer.toUint8Array(true))]
      assert.ok(read)
      const back = fromArrow(read)
      assert.deepEqual(rowsOf(back.batch), rows)
      assert.deepEqual(
        back.fields.map((field) => field.type),
        types.map(inArrow),
      )
    }),
    { numRuns: 200 },
  )
})

test('a slice made by Arrow is taken as the rows it shows', () => {
  fc.assert(
    fc.property(tables, fc.nat(), fc.nat(), ({ types, before, rows }, a, b) => {
      fc.pre(!types.some(hasTime))
      const arrow = toArrow(withIds(types), batchOf(types, rows, before))
      const from = a % rows.length
      const to = from + 1 + (b % (rows.length - from))
      assert.deepEqual(rowsOf(fromArrow(arrow.slice(from, to)).batch), rows.slice(from, to))
    }),
    { numRuns: 200 },
  )
})
