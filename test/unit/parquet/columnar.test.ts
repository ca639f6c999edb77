import assert from 'node:assert/strict'
import { test } from 'node:test'
import { columnBuilder, finishBatch } from '../../../src/core/columns/builder.ts'
import type { ColumnBatch } from '../../../src/core/columns/column.ts'
import { isSluiceError } from '../../../src/core/errors.ts'
import type { DataType } from '../../../src/core/schema/types.ts'
import { loadZstd } from '../../../src/sink/parquet/codec.ts'
import { columnarEncoder } from '../../../src/sink/parquet/columnar.ts'
import { metadataOf, readPhysical, usualOptions, writeFile } from '../../property/parquet/files.ts'
import { batchOf, type Cell, withIds } from '../../property/parquet/rows.ts'

const encoder = columnarEncoder(loadZstd)
const bytesType: DataType = { kind: 'bytes', nullable: false }
const intType: DataType = { kind: 'int', nullable: false }

function ints(count: number, value: (at: number) => number): ColumnBatch {
  const builder = columnBuilder(intType)
  if (builder.layout !== 'int32') throw new TypeError('int32 expected')
  for (let at = 0; at < count; at += 1) builder.append(value(at))
  return finishBatch([builder])
}

test('a value of 64 MB is one page of one row', async () => {
  const large = new Uint8Array(64 << 20).fill(7)
  large[5] = 1
  const { bytes, summary } = await writeFile(
    encoder,
    withIds([bytesType]),
    [batchOf([bytesType], [[Uint8Array.of(1)]]), batchOf([bytesType], [[large]])],
    { ...usualOptions, rowGroupBytes: 1 << 20 },
  )
  const rows = await readPhysical(bytes)
  assert.equal(rows.length, 2)
  const read = rows[1]!['c0']
  assert.ok(read instanceof Uint8Array)
  assert.equal(Buffer.compare(read, large), 0)
  assert.ok(bytes.length < 1 << 20, 'the footer does not repeat the value')
  assert.deepEqual(
    summary.metrics[0]!.upper,
    Uint8Array.from([7, 7, 7, 7, 7, 1, ...Array<number>(9).fill(7), 8]),
  )
})

test('texts of a megabyte each are read back', async () => {
  const type: DataType = { kind: 'string', nullable: true }
  const rows = Array.from({ length: 12 }, (_, at): Cell[] => [
    at % 3 === 0 ? null : String.fromCharCode(97 + at).repeat(1 << 20),
  ])
  const { bytes } = await writeFile(encoder, withIds([type]), [batchOf([type], rows, 5)], {
    ...usualOptions,
    compression: 'none',
  })
  assert.deepEqual(
    (await readPhysical(bytes)).map(
      (row) => Buffer.from((row['c0'] as Uint8Array | null) ?? []).length,
    ),
    rows.map(([cell]) => (cell === null ? 0 : 1 << 20)),
  )
})

test('a file without rows is a file', async () => {
  const fields = withIds([bytesType, intType])
  const { bytes, summary } = await writeFile(encoder, fields, [], usualOptions)
  assert.deepEqual(await readPhysical(bytes), [])
  assert.deepEqual(summary.splitOffsets, [])
  assert.deepEqual(
    summary.metrics.map((each) => each.valueCount),
    [0, 0],
  )
  assert.equal((await metadataOf(bytes)).num_rows, 0n)
})

test('a row group ends at 1,048,576 rows', async () => {
  const { bytes } = await writeFile(
    encoder,
    withIds([intType]),
    [ints(700_000, (at) => at), ints(700_000, () => 5), ints(1_500_000, (at) => at & 7)],
    usualOptions,
  )
  const groups = (await metadataOf(bytes)).row_groups.map((group) => Number(group.num_rows))
  assert.ok(groups.every((rows) => rows <= 1_048_576))
  assert.equal(
    groups.reduce((sum, rows) => sum + rows, 0),
    2_900_000,
  )
  const read = await readPhysical(bytes)
  assert.equal(read[699_999]!['c0'], 699_999)
  assert.equal(read[1_400_000]!['c0'], 0)
  assert.equal(read[1_400_013]!['c0'], 5)
})

test('few distinct values go into a dictionary, many do not', async () => {
  const encodingsOf = async (batch: ColumnBatch): Promise<string[]> => {
    const { bytes } = await writeFile(encoder, withIds([intType]), [batch], usualOptions)
    return (await metadataOf(bytes)).row_groups[0]!.columns[0]!.meta_data!.encodings
  }
  assert.ok((await encodingsOf(ints(50_000, (at) => at % 900))).includes('RLE_DICTIONARY'))
  assert.ok(!(await encodingsOf(ints(50_000, (at) => at * 77_777))).includes('RLE_DICTIONARY'))
})

test('a column of one value takes some bytes, whatever its rows', async () => {
  const { summary } = await writeFile(
    encoder,
    withIds([intType]),
    [ints(500_000, () => 3)],
    usualOptions,
  )
  assert.ok(summary.bytes < 2000, `${String(summary.bytes)} bytes`)
})

test('a dictionary that grows beyond a megabyte gives way to plain values', async () => {
  const type: DataType = { kind: 'string', nullable: false }
  const rows = Array.from({ length: 60_000 }, (_, at): Cell[] => [
    `value ${String(at % 29_000)} with forty more characters of length`,
  ])
  const { bytes } = await writeFile(encoder, withIds([type]), [batchOf([type], rows)], usualOptions)
  const read = await readPhysical(bytes)
  assert.deepEqual(
    read.map((row) => Buffer.from(row['c0'] as Uint8Array).toString()),
    rows.map(([cell]) => cell),
  )
})

test('a null in a NOT NULL column is refused by the name of the column', async () => {
  const nullable: DataType = { kind: 'int', nullable: true }
  const batch = batchOf([nullable], [[1], [null]])
  await assert.rejects(writeFile(encoder, withIds([intType]), [batch], usualOptions), (error) =>
    isSluiceError(error, 'RECORD_REFUSED'),
  )
})

test('what is behind a null list is not written', async () => {
  const type: DataType = { kind: 'array', element: intType, nullable: true }
  const element = ints(4, (at) => at).columns[0]!
  const column = {
    type,
    layout: 'list',
    length: 3,
    nullCount: 1,
    validity: Uint8Array.of(0b101),
    bitOffset: 0,
    offsets: Int32Array.of(0, 1, 3, 4),
    element,
  } as const
  const batch: ColumnBatch = { length: 3, columns: [column] }
  const { bytes } = await writeFile(encoder, withIds([type]), [batch], usualOptions)
  assert.deepEqual(await readPhysical(bytes), [
    { c0: { list: [{ element: 0 }] } },
    { c0: null },
    { c0: { list: [{ element: 3 }] } },
  ])
})

test('flush ends a row group and frees what is held', async () => {
  const sink = { write: () => Promise.resolve() }
  const file = encoder.open(withIds([intType]), sink, usualOptions)
  await file.write(ints(1000, (at) => at))
  assert.equal(file.bufferedBytes, 4000)
  await file.flush()
  assert.equal(file.bufferedBytes, 0)
  assert.ok(file.writtenBytes > 0)
  await file.write(ints(10, (at) => at))
  assert.equal((await file.close()).splitOffsets.length, 2)
})

test('metadata given by the caller stands in the footer', async () => {
  const { bytes } = await writeFile(encoder, withIds([intType]), [ints(1, () => 1)], {
    ...usualOptions,
    metadata: new Map([['sluice.round', '7']]),
  })
  const { key_value_metadata: metadata, created_by: writer } = await metadataOf(bytes)
  assert.deepEqual(metadata, [{ key: 'sluice.round', value: '7' }])
  assert.match(writer ?? '', /^sluice version \d+\.\d+\.\d+$/)
})

test('a ROW without fields is refused', () => {
  const reason = encoder.refuses(withIds([{ kind: 'row', fields: [], nullable: true }]))
  assert.match(reason ?? '', /c0 is a ROW without fields/)
})
