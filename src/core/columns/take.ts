import { unreachable } from '../never.ts'
import { type Column, type ColumnBatch, isNull } from './column.ts'

/**
 * Copies the rows named by the first `count` entries of `indices`, in that order, into buffers of
 * exactly their size. An index may come more than once.
 */
export function takeBatch(batch: ColumnBatch, indices: Int32Array, count: number): ColumnBatch {
  return { length: count, columns: batch.columns.map((column) => take(column, indices, count)) }
}

/** As `takeBatch`, for one column. */
export function take(column: Column, indices: Int32Array, count: number): Column {
  const base = { type: column.type, length: count, ...takeValidity(column, indices, count) }
  switch (column.layout) {
    case 'bit':
      return { ...base, layout: 'bit', values: takeBits(column, indices, count) }
    case 'int32': {
      const values = new Int32Array(count)
      for (let i = 0; i < count; i += 1) values[i] = column.values[indices[i] ?? 0] ?? 0
      return { ...base, layout: 'int32', values }
    }
    case 'int64':
      return { ...base, layout: 'int64', values: takeWords(column.values, indices, count) }
    case 'int128': {
      const values = new BigInt64Array(2 * count)
      const from = halvesOf(column.values)
      const to = halvesOf(values)
      for (let i = 0; i < count; i += 1) {
        const at = 4 * (indices[i] ?? 0)
        for (let half = 0; half < 4; half += 1) to[4 * i + half] = from[at + half] ?? 0
      }
      return { ...base, layout: 'int128', values }
    }
    case 'float32': {
      const values = new Float32Array(count)
      for (let i = 0; i < count; i += 1) values[i] = column.values[indices[i] ?? 0] ?? 0
      return { ...base, layout: 'float32', values }
    }
    case 'float64': {
      const values = new Float64Array(count)
      for (let i = 0; i < count; i += 1) values[i] = column.values[indices[i] ?? 0] ?? 0
      return { ...base, layout: 'float64', values }
    }
    case 'bytes':
      return { ...base, layout: 'bytes', ...takeBytes(column, indices, count) }
    case 'list': {
      const { offsets, children } = takeRanges(column.offsets, indices, count)
      const element = take(column.element, children, children.length)
      return { ...base, layout: 'list', offsets, element }
    }
    case 'map': {
      const { offsets, children } = takeRanges(column.offsets, indices, count)
      const key = take(column.key, children, children.length)
      const value = take(column.value, children, children.length)
      return { ...base, layout: 'map', offsets, key, value }
    }
    case 'struct': {
      const fields = column.fields.map((field) => take(field, indices, count))
      return { ...base, layout: 'struct', fields }
    }
    default:
      return unreachable(column)
  }
}

function takeValidity(
  column: Column,
  indices: Int32Array,
  count: number,
): { nullCount: number; validity: Uint8Array | undefined; bitOffset: 0 } {
  if (column.nullCount === 0) return { nullCount: 0, validity: undefined, bitOffset: 0 }
  const validity = new Uint8Array((count + 7) >> 3)
  let nullCount = 0
  for (let i = 0; i < count; i += 1) {
    if (isNull(column, indices[i] ?? 0)) nullCount += 1
    else validity[i >> 3] = (validity[i >> 3] ?? 0) | (1 << (i & 7))
  }
  return { nullCount, validity: nullCount === 0 ? undefined : validity, bitOffset: 0 }
}

function takeBits(
  column: Column & { readonly layout: 'bit' },
  indices: Int32Array,
  count: number,
): Uint8Array {
  const values = new Uint8Array((count + 7) >> 3)
  for (let i = 0; i < count; i += 1) {
    const bit = column.bitOffset + (indices[i] ?? 0)
    const one = ((column.values[bit >> 3] ?? 0) >> (bit & 7)) & 1
    values[i >> 3] = (values[i >> 3] ?? 0) | (one << (i & 7))
  }
  return values
}

/** Copies by halves: reading an element of a BigInt64Array may allocate. */
function takeWords(source: BigInt64Array, indices: Int32Array, count: number): BigInt64Array {
  const values = new BigInt64Array(count)
  const from = halvesOf(source)
  const to = halvesOf(values)
  for (let i = 0; i < count; i += 1) {
    const at = 2 * (indices[i] ?? 0)
    to[2 * i] = from[at] ?? 0
    to[2 * i + 1] = from[at + 1] ?? 0
  }
  return values
}

function halvesOf(words: BigInt64Array): Int32Array {
  return new Int32Array(words.buffer, words.byteOffset, 2 * words.length)
}

function takeBytes(
  column: Column & { readonly layout: 'bytes' },
  indices: Int32Array,
  count: number,
): { offsets: Int32Array; values: Uint8Array } {
  const offsets = new Int32Array(count + 1)
  let end = 0
  for (let i = 0; i < count; i += 1) {
    const index = indices[i] ?? 0
    end += (column.offsets[index + 1] ?? 0) - (column.offsets[index] ?? 0)
    offsets[i + 1] = end
  }
  const values = new Uint8Array(end)
  for (let i = 0; i < count; i += 1) {
    const index = indices[i] ?? 0
    const from = column.offsets[index] ?? 0
    const to = column.offsets[index + 1] ?? 0
    const at = offsets[i] ?? 0
    if (to - from < 48) {
      for (let byte = from; byte < to; byte += 1)
        values[at + byte - from] = column.values[byte] ?? 0
    } else {
      values.set(column.values.subarray(from, to), at)
    }
  }
  return { offsets, values }
}

/** Offsets of the taken elements, and the indices of all their children in order. */
function takeRanges(
  source: Int32Array,
  indices: Int32Array,
  count: number,
): { offsets: Int32Array; children: Int32Array } {
  const offsets = new Int32Array(count + 1)
  let end = 0
  for (let i = 0; i < count; i += 1) {
    const index = indices[i] ?? 0
    end += (source[index + 1] ?? 0) - (source[index] ?? 0)
    offsets[i + 1] = end
  }
  const children = new Int32Array(end)
  let at = 0
  for (let i = 0; i < count; i += 1) {
    const index = indices[i] ?? 0
    const to = source[index + 1] ?? 0
    for (let child = source[index] ?? 0; child < to; child += 1) children[at++] = child
  }
  return { offsets, children }
}
