import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { columnBuilder } from '../../../src/core/columns/builder.ts'
import type { Column, ColumnBatch } from '../../../src/core/columns/column.ts'
import { bucketsOf } from '../../../src/source/bucketing/buckets.ts'
import { splitByKey, splitByPlace } from '../../../src/source/bucketing/split.ts'

function numbers(from: number, count: number): ColumnBatch {
  const builder = columnBuilder({ kind: 'bigint', nullable: false })
  assert.ok(builder.layout === 'int64')
  for (let i = 0; i < count; i += 1) builder.appendSafe(from + i)
  return { length: count, columns: [builder.finish()] }
}

function valuesOf(batch: ColumnBatch): readonly bigint[] {
  const column = batch.columns[0]
  assert.ok(column?.layout === 'int64')
  return [...column.values]
}

describe('splitByPlace', () => {
  test('gives blocks of 1,024 records in turn', () => {
    const parts = splitByPlace(0n, numbers(0, 5000), 4)
    assert.deepEqual(
      parts.map(({ bucket, records }) => [bucket, records.length, valuesOf(records)[0]]),
      [
        [0, 1024, 0n],
        [1, 1024, 1024n],
        [2, 1024, 2048n],
        [3, 1024, 3072n],
        [0, 904, 4096n],
      ],
    )
  })

  test('goes on inside a block at a later record', () => {
    const parts = splitByPlace(2047n, numbers(2047, 3), 2)
    assert.deepEqual(
      parts.map(({ bucket, records }) => [bucket, valuesOf(records)]),
      [
        [1, [2047n]],
        [0, [2048n, 2049n]],
      ],
    )
  })

  test('counts past 2^53', () => {
    const parts = splitByPlace(2n ** 60n + 1024n, numbers(0, 1), 4)
    assert.deepEqual(
      parts.map(({ bucket }) => bucket),
      [1],
    )
  })

  test('copies no value', () => {
    const batch = numbers(0, 3000)
    const buffers = splitByPlace(0n, batch, 3).map(({ records }) => bufferOf(records.columns[0]))
    assert.ok(buffers.every((each) => each === bufferOf(batch.columns[0])))
  })

  test('gives nothing for nothing and everything to an only bucket', () => {
    assert.deepEqual(splitByPlace(7n, numbers(0, 0), 3), [])
    const batch = numbers(0, 5000)
    assert.deepEqual(splitByPlace(7n, batch, 1), [{ bucket: 0, records: batch }])
  })
})

describe('splitByKey', () => {
  test('gathers each bucket in the order given', () => {
    const batch = numbers(0, 1000)
    const key = batch.columns[0]
    assert.ok(key !== undefined)
    const over = { count: 7, format: 'iceberg' } as const
    const expected = new Map<number, bigint[]>()
    bucketsOf(key, 7, 'iceberg').forEach((bucket, row) => {
      expected.set(bucket, [...(expected.get(bucket) ?? []), BigInt(row)])
    })
    const parts = splitByKey(key, batch, over)
    assert.deepEqual(
      new Map(parts.map(({ bucket, records }) => [Number(bucket), valuesOf(records)])),
      new Map([...expected].sort(([a], [b]) => a - b)),
    )
  })
})

function bufferOf(column: Column | undefined): ArrayBufferLike {
  assert.ok(column?.layout === 'int64')
  return column.values.buffer
}
