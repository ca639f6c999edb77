import type { Column } from '../core/columns/column.ts'
import { isNull } from '../core/columns/column.ts'

/** A value in the form in which values of its column are compared. */
export type Comparable = number | bigint | Uint8Array

/** What the values of one leaf column of a file come to. */
export class LeafTally {
  readonly name: string
  /** Below a list or map, so that a row may have many values or none. */
  readonly isRepeated: boolean
  /** Entries: values, nulls and empty lists. */
  entries = 0n
  nulls = 0n
  nans = 0n
  layout: Column['layout'] | undefined
  min: Comparable | undefined
  max: Comparable | undefined

  constructor(name: string, isRepeated: boolean) {
    this.name = name
    this.isRepeated = isRepeated
  }

  /**
   * @param rows The elements of the column that rows reach; all of them when undefined.
   * @param ended Entries that end above this column, in a null or an empty list.
   */
  add(column: Column, rows: Int32Array | undefined, ended: number): void {
    this.layout = column.layout
    const count = rows === undefined ? column.length : rows.length
    this.entries += BigInt(count + ended)
    this.nulls += BigInt(ended)
    for (let at = 0; at < count; at += 1) {
      const row = rows === undefined ? at : (rows[at] ?? 0)
      if (column.nullCount > 0 && isNull(column, row)) this.nulls += 1n
      else this.#take(column, row)
    }
  }

  #take(column: Column, row: number): void {
    switch (column.layout) {
      case 'bytes':
        this.#takeBytes(column.values, column.offsets[row] ?? 0, column.offsets[row + 1] ?? 0)
        return
      case 'float32':
      case 'float64': {
        const value = column.values[row] ?? 0
        if (Number.isNaN(value)) this.nans += 1n
        else this.#takeValue(value)
        return
      }
      case 'int32':
        this.#takeValue(column.values[row] ?? 0)
        return
      case 'int64':
        this.#takeValue(column.values[row] ?? 0n)
        return
      case 'int128': {
        const low = BigInt.asUintN(64, column.values[2 * row] ?? 0n)
        this.#takeValue(((column.values[2 * row + 1] ?? 0n) << 64n) | low)
        return
      }
      case 'bit': {
        const bit = column.bitOffset + row
        this.#takeValue(((column.values[bit >> 3] ?? 0) >> (bit & 7)) & 1)
        return
      }
      default:
        return
    }
  }

  #takeValue(value: number | bigint): void {
    if (this.min === undefined || compare(value, this.min) < 0) this.min = value
    if (this.max === undefined || compare(value, this.max) > 0) this.max = value
  }

  /** Bytes are copied only when they are a new extreme. */
  #takeBytes(values: Uint8Array, from: number, to: number): void {
    const { min, max } = this
    if (!(min instanceof Uint8Array) || compareBytes(values, from, to, min) < 0) {
      this.min = values.slice(from, to)
    }
    if (!(max instanceof Uint8Array) || compareBytes(values, from, to, max) > 0) {
      this.max = values.slice(from, to)
    }
  }
}

/** Order of Iceberg's bounds: numbers by value with -0 below 0, text and bytes by unsigned bytes. */
export function compare(a: Comparable, b: Comparable): number {
  if (a instanceof Uint8Array) {
    return b instanceof Uint8Array ? compareBytes(a, 0, a.length, b) : 1
  }
  if (b instanceof Uint8Array) return -1
  if (a < b) return -1
  if (a > b) return 1
  if (a === 0 && b === 0) return Number(Object.is(b, -0)) - Number(Object.is(a, -0))
  return 0
}

function compareBytes(source: Uint8Array, from: number, to: number, other: Uint8Array): number {
  const shared = Math.min(to - from, other.length)
  for (let at = 0; at < shared; at += 1) {
    const difference = (source[from + at] ?? 0) - (other[at] ?? 0)
    if (difference !== 0) return difference
  }
  return to - from - other.length
}

/**
 * A bound of a manifest (spec, appendix D), for a column of that layout. Shorter integers and floats
 * are from before the column was widened.
 * @returns undefined when it has a length that no value has
 */
export function readBound(layout: Column['layout'], bytes: Uint8Array): Comparable | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  switch (layout) {
    case 'bit':
      return bytes.length === 1 ? view.getUint8(0) : undefined
    case 'int32':
    case 'int64': {
      if (bytes.length !== 4 && bytes.length !== 8) return undefined
      const value = bytes.length === 4 ? BigInt(view.getInt32(0, true)) : view.getBigInt64(0, true)
      return layout === 'int32' ? Number(value) : value
    }
    case 'float32':
    case 'float64':
      if (bytes.length === 4) return view.getFloat32(0, true)
      return bytes.length === 8 ? view.getFloat64(0, true) : undefined
    case 'int128': {
      if (bytes.length === 0 || bytes.length > 16) return undefined
      let value = BigInt(view.getInt8(0))
      for (const byte of bytes.subarray(1)) value = (value << 8n) | BigInt(byte)
      return value
    }
    case 'bytes':
      return bytes
    default:
      return undefined
  }
}
