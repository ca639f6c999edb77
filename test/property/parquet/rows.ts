import fc from 'fast-check'
import {
  type ColumnBuilder,
  columnBuilder,
  finishBatch,
} from '../../../src/core/columns/builder.ts'
import { bitAt, type Column, type ColumnBatch, isNull } from '../../../src/core/columns/column.ts'
import { sliceBatch } from '../../../src/core/columns/column.ts'
import type { DataType, IdField } from '../../../src/core/schema/types.ts'

/** A cell: number, bigint, boolean, text, bytes, array, entries of a map, fields of a row, or null. */
export type Cell =
  | null
  | number
  | bigint
  | boolean
  | string
  | Uint8Array
  | readonly Cell[]
  | { readonly pairs: readonly (readonly [Cell, Cell])[] }
  | { readonly row: readonly Cell[] }

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
const fewInt64 = fc.constantFrom(0n, -1n, 1n, 2n ** 32n, -(2n ** 31n), 2n ** 63n - 1n, -(2n ** 63n))
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.constantFrom('', 'a', 'https://example.com/a/', 'Grüße, Jürgen ❤', '\u{10ffff}'.repeat(20)),
)

export function cellOf(type: DataType): fc.Arbitrary<Cell> {
  const value = presentCellOf(type)
  return type.nullable ? fc.option(value, { nil: null, freq: 3 }) : value
}

function presentCellOf(type: DataType): fc.Arbitrary<Cell> {
  switch (type.kind) {
    case 'boolean':
      return fc.boolean()
    case 'tinyint':
      return fc.integer({ min: -128, max: 127 })
    case 'smallint':
      return fc.integer({ min: -(2 ** 15), max: 2 ** 15 - 1 })
    case 'int':
    case 'date':
      return fc.oneof(fc.integer(), fc.integer({ min: 0, max: 3 }))
    case 'bigint':
    case 'time':
    case 'timestamp':
    case 'timestamp_ltz':
      return fc.oneof(int64, fewInt64)
    case 'float':
      return fc.oneof(fc.float(), fc.constantFrom(0, -0, NaN))
    case 'double':
      return fc.oneof(fc.double(), fc.constantFrom(0, -0, NaN, 1e300))
    case 'decimal': {
      const max = 10n ** BigInt(type.precision) - 1n
      return fc.oneof(fc.bigInt({ min: -max, max }), fc.constantFrom(0n, -1n, 1n, -max, max))
    }
    case 'char':
    case 'string':
      return text
    case 'binary':
    case 'bytes':
      return fc.oneof(
        fc.uint8Array({ maxLength: 24 }),
        fc.constantFrom(new Uint8Array(20).fill(255), new Uint8Array(0)),
      )
    case 'array':
      return fc.array(cellOf(type.element), { maxLength: 5 })
    case 'map':
      return fc
        .array(fc.tuple(cellOf({ ...type.key, nullable: false }), cellOf(type.value)), {
          maxLength: 4,
        })
        .map((pairs) => ({ pairs }))
    case 'row':
      return fc
        .tuple(...type.fields.map((field) => cellOf(field.type)))
        .map((cells) => ({ row: cells }))
    default:
      return type satisfies never
  }
}

const leafType: fc.Arbitrary<DataType> = fc
  .tuple(
    fc.boolean(),
    fc.oneof(
      fc.constantFrom(
        { kind: 'boolean' } as const,
        { kind: 'tinyint' } as const,
        { kind: 'smallint' } as const,
        { kind: 'int' } as const,
        { kind: 'bigint' } as const,
        { kind: 'float' } as const,
        { kind: 'double' } as const,
        { kind: 'char', length: 4 } as const,
        { kind: 'string' } as const,
        { kind: 'binary', length: 4 } as const,
        { kind: 'bytes' } as const,
        { kind: 'date' } as const,
        { kind: 'time', precision: 6 } as const,
        { kind: 'timestamp', precision: 6 } as const,
        { kind: 'timestamp_ltz', precision: 3 } as const,
      ),
      fc
        .integer({ min: 1, max: 38 })
        .map((precision) => ({ kind: 'decimal', precision, scale: precision >> 1 }) as const),
    ),
  )
  .map(([nullable, type]) => ({ ...type, nullable }))

/** Types up to a few levels deep. */
export const anyType: fc.Arbitrary<DataType> = fc.letrec<{ type: DataType }>((tie) => ({
  type: fc.oneof(
    { maxDepth: 3, depthSize: 'small', withCrossShrink: true },
    { weight: 3, arbitrary: leafType },
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.boolean(), tie('type'))
        .map(([nullable, element]) => ({ kind: 'array', nullable, element }) as const),
    },
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.boolean(), leafType, tie('type'))
        .map(
          ([nullable, key, value]) =>
            ({ kind: 'map', nullable, key: { ...key, nullable: false }, value }) as const,
        ),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(fc.boolean(), fc.array(tie('type'), { minLength: 1, maxLength: 3 })).map(
        ([nullable, types]) =>
          ({
            kind: 'row',
            nullable,
            fields: types.map((type, at) => ({ name: `f${String(at)}`, type })),
          }) as const,
      ),
    },
  ),
})).type

/** Fields named `c0`, `c1` …, with ids given in pre-order from 1. */
export function withIds(types: readonly DataType[]): IdField[] {
  let last = 0
  function withId(name: string, type: DataType): IdField {
    last += 1
    const id = last
    switch (type.kind) {
      case 'array':
        return { id, name, type, children: [withId('element', type.element)] }
      case 'map':
        return {
          id,
          name,
          type,
          children: [withId('key', type.key), withId('value', type.value)],
        }
      case 'row':
        return { id, name, type, children: type.fields.map((f) => withId(f.name, f.type)) }
      default:
        return { id, name, type, children: [] }
    }
  }
  return types.map((type, at) => withId(`c${String(at)}`, type))
}

/** Rows as a batch that is a slice: `before` rows in front of it and one behind belong to others. */
export function batchOf(
  types: readonly DataType[],
  rows: readonly (readonly Cell[])[],
  before = 0,
): ColumnBatch {
  const builders = types.map((type) => columnBuilder(type))
  const other = rows[0] ?? types.map(() => null)
  const surrounded =
    rows.length === 0 ? [] : [...Array<typeof other>(before).fill(other), ...rows, other]
  for (const row of surrounded) {
    builders.forEach((builder, at) => {
      append(builder, row[at] ?? null)
    })
  }
  const batch = finishBatch(builders)
  return rows.length === 0 ? batch : sliceBatch(batch, before, before + rows.length)
}

export function append(builder: ColumnBuilder, cell: Cell): void {
  if (cell === null) {
    builder.appendNull()
    return
  }
  switch (builder.layout) {
    case 'bit':
      builder.append(cell === true)
      return
    case 'int32':
    case 'float32':
    case 'float64':
      builder.append(Number(cell))
      return
    case 'int64':
    case 'int128':
      if (typeof cell !== 'bigint') throw new TypeError('bigint expected')
      builder.append(cell)
      return
    case 'bytes':
      if (typeof cell === 'string') builder.appendText(cell)
      else if (cell instanceof Uint8Array) builder.append(cell)
      else throw new TypeError('text or bytes expected')
      return
    case 'list':
      if (!Array.isArray(cell)) throw new TypeError('array expected')
      for (const element of cell as readonly Cell[]) append(builder.element, element)
      builder.close()
      return
    case 'map':
      if (typeof cell !== 'object' || !('pairs' in cell)) {
        throw new TypeError('pairs expected')
      }
      for (const [key, value] of cell.pairs) {
        append(builder.key, key)
        append(builder.value, value)
      }
      builder.close()
      return
    case 'struct':
      if (typeof cell !== 'object' || !('row' in cell)) throw new TypeError('row expected')
      builder.fields.forEach((field, at) => {
        append(field, cell.row[at] ?? null)
      })
      builder.close()
      return
    default:
      builder satisfies never
  }
}

/** Element `at` of a column as a cell. */
export function cellAt(column: Column, at: number): Cell {
  if (isNull(column, at)) return null
  switch (column.layout) {
    case 'bit':
      return bitAt(column, at)
    case 'int32':
    case 'float32':
    case 'float64':
    case 'int64':
      return column.values[at]!
    case 'int128':
      return (column.values[2 * at + 1]! << 64n) | BigInt.asUintN(64, column.values[2 * at]!)
    case 'bytes': {
      const bytes = column.values.slice(column.offsets[at], column.offsets[at + 1])
      const isText = column.type.kind === 'string' || column.type.kind === 'char'
      return isText ? Buffer.from(bytes).toString('utf8') : new Uint8Array(bytes)
    }
    case 'list':
      return cellsBetween(column.element, column.offsets[at]!, column.offsets[at + 1]!)
    case 'map': {
      const keys = cellsBetween(column.key, column.offsets[at]!, column.offsets[at + 1]!)
      const values = cellsBetween(column.value, column.offsets[at]!, column.offsets[at + 1]!)
      return { pairs: keys.map((key, pair) => [key, values[pair]!] as const) }
    }
    case 'struct':
      return { row: column.fields.map((field) => cellAt(field, at)) }
    default:
      return column satisfies never
  }
}

function cellsBetween(column: Column, from: number, to: number): Cell[] {
  return Array.from({ length: to - from }, (_, at) => cellAt(column, from + at))
}

/** The rows of a batch as cells. */
export function rowsOf(batch: ColumnBatch): Cell[][] {
  return Array.from({ length: batch.length }, (_, at) =>
    batch.columns.map((column) => cellAt(column, at)),
  )
}

/** Whether TIME is in the type: random ones lie outside a day, which `fromArrow` refuses. */
export function hasTime(type: DataType): boolean {
  switch (type.kind) {
    case 'time':
      return true
    case 'array':
      return hasTime(type.element)
    case 'map':
      return hasTime(type.key) || hasTime(type.value)
    case 'row':
      return type.fields.some((field) => hasTime(field.type))
    default:
      return false
  }
}
