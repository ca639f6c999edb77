import { columnBuilder } from '../../core/columns/builder.ts'
import { type Column, isNull } from '../../core/columns/column.ts'
import { check } from '../../core/never.ts'
import type { DataType } from '../../core/schema/types.ts'

/** Turns a column of a file into the column of a table, without losing anything. */
export type Widening = (column: Column) => Column

const integerDigits = { tinyint: 3, smallint: 5, int: 10, bigint: 19 } as const
type IntegerKind = keyof typeof integerDigits
const integerRank: Readonly<Record<IntegerKind, number>> = {
  tinyint: 0,
  smallint: 1,
  int: 2,
  bigint: 3,
}

/** How values of `from` become values of `to`, or nothing where some would not fit. */
export function widening(from: DataType, to: DataType): Widening | undefined {
  const retype: Widening = (column) => ({ ...column, type: to })
  if (isInteger(from)) return integerWidening(from.kind, to, retype)
  switch (from.kind) {
    case 'float':
      if (to.kind === 'float') return retype
      return to.kind === 'double' ? (column) => toDouble(column, to) : undefined
    case 'char':
      if (to.kind === 'char' && to.length >= from.length) return retype
      return to.kind === 'string' ? retype : undefined
    case 'binary':
      if (to.kind === 'binary' && to.length === from.length) return retype
      return to.kind === 'bytes' ? retype : undefined
    case 'decimal': {
      if (to.kind !== 'decimal' || to.scale < from.scale) return undefined
      if (to.precision - to.scale < from.precision - from.scale) return undefined
      return to.scale === from.scale
        ? retype
        : (column) => rescale(column, to, to.scale - from.scale)
    }
    case 'time':
    case 'timestamp':
    case 'timestamp_ltz':
      return to.kind === from.kind && to.precision >= from.precision ? retype : undefined
    case 'array': {
      if (to.kind !== 'array') return undefined
      const element = widening(from.element, to.element)
      if (element === undefined) return undefined
      return (column) => {
        check(column.layout === 'list', 'an ARRAY is a list')
        return { ...column, type: to, element: element(column.element) }
      }
    }
    case 'map': {
      if (to.kind !== 'map') return undefined
      const key = widening(from.key, to.key)
      const value = widening(from.value, to.value)
      if (key === undefined || value === undefined) return undefined
      return (column) => {
        check(column.layout === 'map', 'a MAP is a map')
        return { ...column, type: to, key: key(column.key), value: value(column.value) }
      }
    }
    case 'row':
      return to.kind === 'row' ? rowWidening(from, to) : undefined
    default:
      return from.kind === to.kind ? retype : undefined
  }
}

/** A column of nothing but nulls. */
export function nullColumn(type: DataType, length: number): Column {
  const builder = columnBuilder(type)
  for (let at = 0; at < length; at += 1) builder.appendNull()
  return builder.finish()
}

/**
 * First element that is null where the type, at some level, is NOT NULL; -1 when there is none.
 * What lies below a null, or outside every list, holds nothing and may be anything.
 */
export function firstForbiddenNull(column: Column, type: DataType): number {
  let first = -1
  forbiddenNulls(column, type, (at) => {
    if (first === -1 || at < first) first = at
  })
  return first
}

/** Tells of all elements that are null where the type forbids it, some more than once. */
export function forbiddenNulls(column: Column, type: DataType, tell: (at: number) => void): void {
  forbiddenBelow(column, type, () => true, tell)
}

function forbiddenBelow(
  column: Column,
  type: DataType,
  isHeld: (at: number) => boolean,
  tell: (at: number) => void,
): void {
  if (!type.nullable && column.nullCount > 0) {
    for (let at = 0; at < column.length; at += 1) if (isHeld(at) && isNull(column, at)) tell(at)
  }
  const isValue = (at: number): boolean => isHeld(at) && !isNull(column, at)
  if (column.layout === 'struct' && type.kind === 'row') {
    for (const [index, field] of type.fields.entries()) {
      const child = column.fields[index]
      if (child !== undefined) forbiddenBelow(child, field.type, isValue, tell)
    }
  }
  if (column.layout === 'list' && type.kind === 'array') {
    forbiddenIn(column, column.element, type.element, isValue, tell)
  }
  if (column.layout === 'map' && type.kind === 'map') {
    forbiddenIn(column, column.key, { ...type.key, nullable: false }, isValue, tell)
    forbiddenIn(column, column.value, type.value, isValue, tell)
  }
}

/** Tells of lists or maps whose elements, keys or values hold a null that they may not. */
function forbiddenIn(
  owner: Column & { readonly offsets: Int32Array },
  element: Column,
  type: DataType,
  isValue: (at: number) => boolean,
  tell: (at: number) => void,
): void {
  if (!forbidsNulls(type)) return
  const owners = new Int32Array(element.length).fill(-1)
  for (let at = 0; at < owner.length; at += 1) {
    if (isValue(at)) owners.fill(at, owner.offsets[at], owner.offsets[at + 1])
  }
  forbiddenBelow(
    element,
    type,
    (at) => owners[at] !== -1,
    (at) => {
      tell(owners[at] ?? -1)
    },
  )
}

function forbidsNulls(type: DataType): boolean {
  if (!type.nullable) return true
  // A key is never null.
  if (type.kind === 'map') return true
  if (type.kind === 'array') return forbidsNulls(type.element)
  return type.kind === 'row' && type.fields.some((field) => forbidsNulls(field.type))
}

function isInteger(type: DataType): type is DataType & { readonly kind: IntegerKind } {
  return type.kind in integerDigits
}

function integerWidening(from: IntegerKind, to: DataType, retype: Widening): Widening | undefined {
  if (to.kind === 'decimal') {
    if (to.precision - to.scale < integerDigits[from]) return undefined
    return (column) => toDecimal(column, to, to.scale)
  }
  if (to.kind === 'double') return from === 'bigint' ? undefined : (column) => toDouble(column, to)
  if (!isInteger(to) || integerRank[to.kind] < integerRank[from]) return undefined
  return to.kind === 'bigint' && from !== 'bigint' ? (column) => toLong(column, to) : retype
}

function rowWidening(
  from: DataType & { readonly kind: 'row' },
  to: DataType & { readonly kind: 'row' },
): Widening | undefined {
  if (from.fields.some((field) => !to.fields.some((each) => each.name === field.name))) {
    return undefined
  }
  const parts = to.fields.map((field) => {
    const index = from.fields.findIndex((each) => each.name === field.name)
    const source = from.fields[index]
    const step = source === undefined ? undefined : widening(source.type, field.type)
    return { type: field.type, index, step }
  })
  if (parts.some(({ type, index, step }) => (index === -1 ? !type.nullable : step === undefined))) {
    return undefined
  }
  return (column) => {
    check(column.layout === 'struct', 'a ROW is a struct')
    const fields = parts.map(({ type, index, step }) => {
      const field = column.fields[index]
      return field === undefined || step === undefined
        ? nullColumn(type, column.length)
        : step(field)
    })
    return { ...column, type: to, fields }
  }
}

function toLong(column: Column, type: DataType): Column {
  check(column.layout === 'int32', 'small integers are int32')
  const values = new BigInt64Array(column.length)
  const halves = new Int32Array(values.buffer)
  for (let at = 0; at < column.length; at += 1) {
    const value = column.values[at] ?? 0
    halves[2 * at] = value
    halves[2 * at + 1] = value < 0 ? -1 : 0
  }
  return { ...baseOf(column), type, layout: 'int64', values }
}

function toDouble(column: Column, type: DataType): Column {
  check(column.layout === 'int32' || column.layout === 'float32', 'what a double holds exactly')
  return { ...baseOf(column), type, layout: 'float64', values: Float64Array.from(column.values) }
}

function toDecimal(column: Column, type: DataType, scale: number): Column {
  check(column.layout === 'int32' || column.layout === 'int64', 'integers become decimals')
  const factor = 10n ** BigInt(scale)
  const values = new BigInt64Array(2 * column.length)
  for (let at = 0; at < column.length; at += 1) {
    setWords(values, at, BigInt(column.values[at] ?? 0) * factor)
  }
  return { ...baseOf(column), type, layout: 'int128', values }
}

function rescale(column: Column, type: DataType, digits: number): Column {
  check(column.layout === 'int128', 'a DECIMAL is an int128')
  const factor = 10n ** BigInt(digits)
  const values = new BigInt64Array(2 * column.length)
  for (let at = 0; at < column.length; at += 1) {
    if (isNull(column, at)) continue
    const low = BigInt.asUintN(64, column.values[2 * at] ?? 0n)
    setWords(values, at, (((column.values[2 * at + 1] ?? 0n) << 64n) | low) * factor)
  }
  return { ...baseOf(column), type, layout: 'int128', values }
}

function setWords(words: BigInt64Array, at: number, value: bigint): void {
  words[2 * at] = BigInt.asIntN(64, value)
  words[2 * at + 1] = value >> 64n
}

function baseOf(column: Column): Pick<Column, 'length' | 'nullCount' | 'validity' | 'bitOffset'> {
  const { length, nullCount, validity, bitOffset } = column
  return { length, nullCount, validity, bitOffset }
}
