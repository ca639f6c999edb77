import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { FieldMetrics } from '../../../src/catalog/ports.ts'
import type { DataType, IdField } from '../../../src/core/schema/types.ts'
import { loadZstd } from '../../../src/sink/parquet/codec.ts'
import { columnarEncoder } from '../../../src/sink/parquet/columnar.ts'
import { metadataOf, usualOptions, writeFile } from './files.ts'
import { anyType, batchOf, type Cell, cellOf, withIds } from './rows.ts'

type Leaf = { readonly field: IdField; readonly isRepeated: boolean; readonly slots: Cell[] }

/** The slots of every leaf, in file order; a null or empty list above a leaf is a null slot of it. */
function leavesOf(field: IdField, cells: readonly Cell[], isRepeated: boolean): Leaf[] {
  const [first, second] = field.children
  switch (field.type.kind) {
    case 'row':
      return field.children.flatMap((child, at) =>
        leavesOf(
          child,
          cells.map((cell) => (cell === null ? null : rowOf(cell)[at]!)),
          isRepeated,
        ),
      )
    case 'array':
      return leavesOf(
        first!,
        cells.flatMap((cell) =>
          cell === null || listOf(cell).length === 0 ? [null] : listOf(cell),
        ),
        true,
      )
    case 'map': {
      const pairs = cells.flatMap((cell): (readonly [Cell, Cell])[] =>
        cell === null || pairsOf(cell).length === 0 ? [[null, null]] : [...pairsOf(cell)],
      )
      return [
        ...leavesOf(
          first!,
          pairs.map(([key]) => key),
          true,
        ),
        ...leavesOf(
          second!,
          pairs.map(([, value]) => value),
          true,
        ),
      ]
    }
    default:
      return [{ field, isRepeated, slots: [...cells] }]
  }
}

function rowOf(cell: Cell): readonly Cell[] {
  if (cell === null || typeof cell !== 'object' || !('row' in cell)) throw new TypeError('row')
  return cell.row
}

function pairsOf(cell: Cell): readonly (readonly [Cell, Cell])[] {
  if (cell === null || typeof cell !== 'object' || !('pairs' in cell)) throw new TypeError('pairs')
  return cell.pairs
}

function listOf(cell: Cell): readonly Cell[] {
  if (!Array.isArray(cell)) throw new TypeError('list')
  return cell as readonly Cell[]
}

/** Everything but the size, straight from the definitions of the Iceberg specification. */
function expected({ field, isRepeated, slots }: Leaf): Omit<FieldMetrics, 'columnBytes'> {
  const values = slots.filter((cell) => cell !== null)
  const isFloat = field.type.kind === 'float' || field.type.kind === 'double'
  const known = values.filter((cell) => !Number.isNaN(cell))
  const sorted = known.toSorted((a, b) => compare(a, b))
  const counts = {
    fieldId: field.id,
    valueCount: slots.length,
    nullCount: slots.length - values.length,
    ...(isFloat && { nanCount: values.length - known.length }),
  }
  if (isRepeated || sorted.length === 0) return counts
  const lower = lowerBound(field.type, sorted[0]!)
  const upper = upperBound(field.type, sorted.at(-1)!)
  return { ...counts, lower, ...(upper && { upper }) }
}

function compare(a: Cell, b: Cell): number {
  if (typeof a === 'string' && typeof b === 'string') {
    return Buffer.compare(Buffer.from(a), Buffer.from(b))
  }
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b)
  return a! < b! ? -1 : a! > b! ? 1 : 0
}

function lowerBound(type: DataType, cell: Cell): Uint8Array {
  if (typeof cell === 'string') return utf8(Array.from(cell).slice(0, 16).join(''))
  if (cell instanceof Uint8Array) return cell.slice(0, 16)
  return single(type, cell === 0 && isFloating(type) ? -0 : cell)
}

function upperBound(type: DataType, cell: Cell): Uint8Array | undefined {
  if (typeof cell === 'string') {
    const points = Array.from(cell, (each) => each.codePointAt(0)!)
    if (points.length <= 16) return utf8(cell)
    const cut = points.slice(0, 16)
    while (cut.length > 0 && cut.at(-1) === 0x10ffff) cut.pop()
    if (cut.length === 0) return undefined
    const last = cut.pop()! + 1
    return utf8(String.fromCodePoint(...cut, last === 0xd800 ? 0xe000 : last))
  }
  if (cell instanceof Uint8Array) {
    if (cell.length <= 16) return cell
    const cut = [...cell.slice(0, 16)]
    while (cut.at(-1) === 255) cut.pop()
    if (cut.length === 0) return undefined
    return Uint8Array.from([...cut.slice(0, -1), cut.at(-1)! + 1])
  }
  return single(type, cell === 0 && isFloating(type) ? 0 : cell)
}

function isFloating(type: DataType): boolean {
  return type.kind === 'float' || type.kind === 'double'
}

function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

/** Iceberg, appendix D: binary single-value serialization. */
function single(type: DataType, cell: Cell): Uint8Array {
  const view = new DataView(new ArrayBuffer(8))
  const bytes = (size: number): Uint8Array => new Uint8Array(view.buffer, 0, size)
  if (typeof cell === 'boolean') return Uint8Array.of(cell ? 1 : 0)
  if (typeof cell === 'bigint' && type.kind === 'decimal') return minimal(cell)
  if (typeof cell === 'bigint') {
    view.setBigInt64(0, cell, true)
    return bytes(8)
  }
  const value = Number(cell)
  if (type.kind === 'float') view.setFloat32(0, value, true)
  else if (type.kind === 'double') view.setFloat64(0, value, true)
  else view.setInt32(0, value, true)
  return bytes(type.kind === 'double' ? 8 : 4)
}

function minimal(value: bigint): Uint8Array {
  let size = 1
  while (BigInt.asIntN(8 * size, value) !== value) size += 1
  const hex = BigInt.asUintN(8 * size, value)
    .toString(16)
    .padStart(2 * size, '0')
  return Uint8Array.from(Buffer.from(hex, 'hex'))
}

const tables = fc.array(anyType, { minLength: 1, maxLength: 3 }).chain((types) =>
  fc.record({
    types: fc.constant(types),
    batches: fc.array(fc.array(fc.tuple(...types.map(cellOf)), { maxLength: 30 }), {
      maxLength: 3,
    }),
    rowGroupBytes: fc.constantFrom(1, 400, 1 << 27),
  }),
)

test('metrics are those a naive count over the rows gives', async () => {
  await fc.assert(
    fc.asyncProperty(tables, async ({ types, batches, rowGroupBytes }) => {
      const fields = withIds(types)
      const { bytes, summary } = await writeFile(
        columnarEncoder(loadZstd),
        fields,
        batches.map((rows) => batchOf(types, rows, 3)),
        { ...usualOptions, rowGroupBytes },
      )
      const rows: (readonly Cell[])[] = batches.flat()
      const leaves = fields.flatMap((field, at) =>
        leavesOf(
          field,
          rows.map((row) => row[at] ?? null),
          false,
        ),
      )
      assert.deepEqual(
        summary.metrics.map(({ fieldId, valueCount, nullCount, nanCount, lower, upper }) => ({
          fieldId,
          valueCount,
          nullCount,
          ...(nanCount !== undefined && { nanCount }),
          ...(lower && { lower: new Uint8Array(lower) }),
          ...(upper && { upper: new Uint8Array(upper) }),
        })),
        leaves.map(expected),
      )

      const groups = (await metadataOf(bytes)).row_groups
      assert.deepEqual(
        summary.splitOffsets,
        groups.map(({ columns: [first] }) =>
          Number(first!.meta_data!.dictionary_page_offset ?? first!.meta_data!.data_page_offset),
        ),
      )
      summary.metrics.forEach(({ columnBytes }, at) => {
        const sizes = groups.map(({ columns }) =>
          Number(columns[at]!.meta_data!.total_compressed_size),
        )
        assert.equal(
          columnBytes,
          sizes.reduce((sum, size) => sum + size, 0),
        )
      })
    }),
    { numRuns: 300 },
  )
})
