import type { Column } from '../../core/columns/column.ts'
import { SluiceError } from '../../core/errors.ts'
import type { ByteBuffer } from './byte-buffer.ts'
import type { Leaf } from './file-schema.ts'
import type { Values } from './shred.ts'

/** Below this many bytes a loop is faster than a call that copies. */
const loopBytesMax = 96

/** Part `[from, to)` of the values. */
export type Part = { readonly values: Values; readonly from: number; readonly to: number }

/**
 * Appends values in PLAIN encoding, except that BOOLEAN takes a byte each until `packBooleans`, since
 * bits of one batch do not end where those of the next begin.
 */
export function appendPlain(out: ByteBuffer, leaf: Leaf, column: Column, part: Part): void {
  switch (column.layout) {
    case 'bit':
      appendBits(out, column.values, column.bitOffset, part)
      return
    case 'int32':
    case 'float32':
      appendWords(out, wordsOf(column.values), 1, part)
      return
    case 'int64':
    case 'float64':
      appendWords(out, wordsOf(column.values), 2, part)
      return
    case 'int128':
      appendDecimals(out, leaf, wordsOf(column.values), part)
      return
    case 'bytes':
      appendBytes(out, column.offsets, column.values, part)
      return
    case 'list':
    case 'map':
    case 'struct':
      throw new SluiceError('INVARIANT_BROKEN', `${column.layout} is not a leaf`)
    default:
      column satisfies never
  }
}

/** Bytes of a value as {@link appendPlain} writes it; 0 for text and bytes. */
export function plainBytes(leaf: Leaf): number {
  switch (leaf.physical) {
    case 'boolean':
      return 1
    case 'int32':
    case 'float':
      return 4
    case 'int64':
    case 'double':
      return 8
    case 'fixed':
      return leaf.fixedLength
    case 'bytes':
      return 0
    default:
      return leaf.physical satisfies never
  }
}

/** The same memory as 32-bit words, which keeps the bits of every NaN and makes no bigint. */
export function wordsOf(
  values: Int32Array | BigInt64Array | Float32Array | Float64Array,
): Int32Array {
  if (values instanceof Int32Array) return values
  return new Int32Array(values.buffer, values.byteOffset, values.byteLength >> 2)
}

/** Replaces the bytes 0 and 1 in `buffer` by bits, first value lowest. */
export function packBooleans(buffer: ByteBuffer): void {
  const { bytes, length } = buffer
  bytes.fill(0, length, Math.min(bytes.length, (length + 7) & ~7))
  const packed = (length + 7) >> 3
  for (let at = 0; at < packed; at += 1) {
    let byte = 0
    for (let bit = 0; bit < 8; bit += 1) byte |= (bytes[8 * at + bit] ?? 0) << bit
    bytes[at] = byte
  }
  buffer.length = packed
}

function appendBits(out: ByteBuffer, bits: Uint8Array, bitOffset: number, part: Part): void {
  const { indices, first } = part.values
  out.reserve(part.to - part.from)
  const { bytes } = out
  let to = out.length
  for (let i = part.from; i < part.to; i += 1) {
    const bit = bitOffset + (indices === undefined ? first + i : (indices[i] ?? 0))
    bytes[to++] = ((bits[bit >> 3] ?? 0) >> (bit & 7)) & 1
  }
  out.length = to
}

function appendWords(out: ByteBuffer, words: Int32Array, stride: 1 | 2, part: Part): void {
  const { indices, first } = part.values
  const count = part.to - part.from
  out.reserve(count * stride * 4)
  const target = out.words
  let to = out.length >> 2
  if (indices === undefined) {
    const begin = (first + part.from) * stride
    target.set(words.subarray(begin, begin + count * stride), to)
  } else if (stride === 1) {
    for (let i = part.from; i < part.to; i += 1) target[to++] = words[indices[i] ?? 0] ?? 0
  } else {
    for (let i = part.from; i < part.to; i += 1) {
      const at = 2 * (indices[i] ?? 0)
      target[to++] = words[at] ?? 0
      target[to++] = words[at + 1] ?? 0
    }
  }
  out.length += count * stride * 4
}

function appendDecimals(out: ByteBuffer, leaf: Leaf, words: Int32Array, part: Part): void {
  const { indices, first } = part.values
  const count = part.to - part.from
  const size = leaf.physical === 'int32' ? 4 : leaf.physical === 'int64' ? 8 : leaf.fixedLength
  out.reserve(count * size)
  const { bytes, words: target } = out
  let to = out.length
  for (let i = part.from; i < part.to; i += 1, to += size) {
    const at = 4 * (indices === undefined ? first + i : (indices[i] ?? 0))
    if (size <= 8) {
      target[to >> 2] = words[at] ?? 0
      if (size === 8) target[(to >> 2) + 1] = words[at + 1] ?? 0
    } else {
      // Big-endian: the last byte is the lowest of the first word.
      for (let byte = 0; byte < size; byte += 1) {
        bytes[to + size - 1 - byte] = (words[at + (byte >> 2)] ?? 0) >> (8 * (byte & 3))
      }
    }
  }
  out.length = to
}

function appendBytes(out: ByteBuffer, offsets: Int32Array, source: Uint8Array, part: Part): void {
  const { indices, first } = part.values
  out.reserve(4 * (part.to - part.from) + partBytes(offsets, part))
  const { bytes, view: target } = out
  const view = viewOf(source)
  let to = out.length
  for (let i = part.from; i < part.to; i += 1) {
    const at = indices === undefined ? first + i : (indices[i] ?? 0)
    let from = offsets[at] ?? 0
    const end = offsets[at + 1] ?? 0
    target.setInt32(to, end - from, true)
    to += 4
    if (end - from > loopBytesMax) {
      bytes.set(source.subarray(from, end), to)
      to += end - from
      continue
    }
    // Four bytes at a time: the fastest copy of something short.
    for (; from + 4 <= end; from += 4, to += 4) target.setInt32(to, view.getInt32(from, true), true)
    for (; from < end; from += 1) bytes[to++] = source[from] ?? 0
  }
  out.length = to
}

/** The same bytes, to be read four at a time. */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Bytes of the values of a part, without their lengths. */
function partBytes(offsets: Int32Array, part: Part): number {
  const { indices, first } = part.values
  if (indices === undefined)
    return (offsets[first + part.to] ?? 0) - (offsets[first + part.from] ?? 0)
  let sum = 0
  for (let i = part.from; i < part.to; i += 1) {
    const at = indices[i] ?? 0
    sum += (offsets[at + 1] ?? 0) - (offsets[at] ?? 0)
  }
  return sum
}
