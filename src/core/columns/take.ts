import { check, unreachable } from '../never.ts'
import { bitAt, type Column, type ColumnBatch, isNull } from './column.ts'

/** The elements at `indices[0, count)`, in that order, in buffers of their own. */
export function takeBatch(batch: ColumnBatch, indices: Int32Array, count: number): ColumnBatch {
  check(count >= 0 && count <= indices.length, 'there are as many indices as are taken')
  return {
    length: count,
    columns: batch.columns.map((column) => takeColumn(column, indices, count)),
  }
}

export function takeColumn(column: Column, indices: Int32Array, count: number): Column {
  const base = {
    type: column.type,
    length: count,
    bitOffset: 0,
    ...takeValidity(column, indices, count),
  }
  switch (column.layout) {
    case 'bit': {
      const values = new Uint8Array((count + 7) >> 3)
      for (let at = 0; at < count; at += 1) {
        if (bitAt(column, indices[at] ?? 0))
          values[at >> 3] = (values[at >> 3] ?? 0) | (1 << (at & 7))
      }
      return { ...base, layout: 'bit', values }
    }
    case 'int32': {
      const values = new Int32Array(count)
      for (let at = 0; at < count; at += 1) values[at] = column.values[indices[at] ?? 0] ?? 0
      return { ...base, layout: 'int32', values }
    }
    case 'int64': {
      const values = new BigInt64Array(count)

      copyWords(column.values, values, indices, count, 1)
      return { ...base, layout: 'int64', values }
    }
    case 'int128': {
      const values = new BigInt64Array(2 * count)
      copyWords(column.values, values, indices, count, 2)
      return { ...base, layout: 'int128', values }
    }
    case 'float32': {
      const values = new Float32Array(count)
      for (let at = 0; at < count; at += 1) values[at] = column.values[indices[at] ?? 0] ?? 0
      return { ...base, layout: 'float32', values }
    }
    case 'float64': {
      const values = new Float64Array(count)
      for (let at = 0; at < count; at += 1) values[at] = column.values[indices[at] ?? 0] ?? 0
      return { ...base, layout: 'float64', values }
    }
    case 'bytes':
      return { ...base, layout: 'bytes', ...takeBytes(column, indices, count) }
    case 'list': {
      const { offsets, children } = takeRanges(column, indices, count)
      const element = takeColumn(column.element, children, children.length)
      return { ...base, layout: 'list', offsets, element }
    }
    case 'map': {
      const { offsets, children } = takeRanges(column, indices, count)
      const key = takeColumn(column.key, children, children.length)
      const value = takeColumn(column.value, children, children.length)
      return { ...base, layout: 'map', offsets, key, value }
    }
    case 'struct':
      return {
        ...base,
        layout: 'struct',
        fields: column.fields.map((field) => takeColumn(field, indices, count)),
      }
    default:
      return unreachable(column)
  }
}

function takeValidity(
  column: Column,
  indices: Int32Array,
  count: number,
): { nullCount: number; validity: Uint8Array | undefined } {
  if (column.validity === undefined || column.nullCount === 0) {
    return { nullCount: 0, validity: undefined }
  }
  const validity = new Uint8Array((count + 7) >> 3).fill(255)
  let nullCount = 0
  for (let at = 0; at < count; at += 1) {
    if (!isNull(column, indices[at] ?? 0)) continue
    validity[at >> 3] = (validity[at >> 3] ?? 0) & ~(1 << (at & 7))
    nullCount += 1
  }
  return { nullCount, validity: nullCount === 0 ? undefined : validity }
}

/** Moves 64-bit words by their halves, so that no bigint is made. */
function copyWords(
  source: BigInt64Array,
  target: BigInt64Array,
  indices: Int32Array,
  count: number,
  words: 1 | 2,
): void {
  const from = new Int32Array(source.buffer, source.byteOffset, source.length * 2)
  const to = new Int32Array(target.buffer)
  const size = 2 * words
  for (let at = 0; at < count; at += 1) {
    const first = (indices[at] ?? 0) * size
    for (let half = 0; half < size; half += 1) to[at * size + half] = from[first + half] ?? 0
  }
}

function takeBytes(
  column: Column & { readonly layout: 'bytes' },
  indices: Int32Array,
  count: number,
): { offsets: Int32Array; values: Uint8Array } {
  const offsets = new Int32Array(count + 1)
  let end = 0
  for (let at = 0; at < count; at += 1) {
    const index = indices[at] ?? 0
    end += (column.offsets[index + 1] ?? 0) - (column.offsets[index] ?? 0)
    check(end <= 2 ** 31 - 1, 'a batch holds less than 2 GiB in a column')
    offsets[at + 1] = end
  }
  const values = new Uint8Array(end)
  for (let at = 0; at < count; at += 1) {
    const index = indices[at] ?? 0
    const from = column.offsets[index] ?? 0
    const to = column.offsets[index + 1] ?? 0
    let target = offsets[at] ?? 0
    if (to - from >= 48) values.set(column.values.subarray(from, to), target)
    else for (let byte = from; byte < to; byte += 1) values[target++] = column.values[byte] ?? 0
  }
  return { offsets, values }
}

/** New offsets of nested elements, and which children they hold. */
function takeRanges(
  column: Column & { readonly layout: 'list' | 'map' },
  indices: Int32Array,
  count: number,
): { offsets: Int32Array; children: Int32Array } {
  const offsets = new Int32Array(count + 1)
  let end = 0
  for (let at = 0; at < count; at += 1) {
    const index = indices[at] ?? 0
    end += (column.offsets[index + 1] ?? 0) - (column.offsets[index] ?? 0)
    offsets[at + 1] = end
  }
  const children = new Int32Array(end)
  for (let at = 0; at < count; at += 1) {
    const from = column.offsets[indices[at] ?? 0] ?? 0
    const first = offsets[at] ?? 0
    const last = offsets[at + 1] ?? 0
    for (let child = first; child < last; child += 1) children[child] = from + child - first
  }
  return { offsets, children }
}
