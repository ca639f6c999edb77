import type { DataType } from '../../core/schema/types.ts'
import type { Extremes } from './range.ts'

export type Bounds = { readonly lower?: Uint8Array; readonly upper?: Uint8Array }

/** Code points of text, or bytes, that a bound in a manifest keeps: Iceberg's `truncate(16)`. */
export const manifestBoundLength = 16

/** The same for the footer, where a longer bound costs nothing worth saving. */
export const footerBoundLength = 64

/** Bounds in Iceberg's single-value form (spec, appendix D), truncated outwards. */
export function icebergBounds(type: DataType, extremes: Extremes | undefined): Bounds {
  if (extremes === undefined) return {}
  const { min, max } = extremes
  if (type.kind !== 'decimal') return truncatedBounds(type, extremes, manifestBoundLength)
  const isLittleEndian = type.precision <= 18
  return {
    lower: minimalBigEndian(isLittleEndian ? min.toReversed() : min),
    upper: minimalBigEndian(isLittleEndian ? max.toReversed() : max),
  }
}

/** Cuts the bounds of text and bytes to `length` code points or bytes; others stay as they are. */
export function truncatedBounds(type: DataType, extremes: Extremes, length: number): Bounds {
  const { min, max } = extremes
  switch (type.kind) {
    case 'char':
    case 'string': {
      const upper = textUpper(max, length)
      return { lower: min.subarray(0, textEnd(min, length)), ...(upper && { upper }) }
    }
    case 'binary':
    case 'bytes': {
      const upper = bytesUpper(max, length)
      return { lower: min.subarray(0, length), ...(upper && { upper }) }
    }
    default:
      return { lower: min, upper: max }
  }
}

/** Two's complement without the leading bytes that only repeat the sign. */
export function minimalBigEndian(bytes: Uint8Array): Uint8Array {
  let from = 0
  while (from < bytes.length - 1) {
    const sign = (bytes[from + 1] ?? 0) & 0x80 ? 0xff : 0
    if (bytes[from] !== sign) break
    from += 1
  }
  return bytes.slice(from)
}

/** End in bytes of the first `length` code points. */
function textEnd(text: Uint8Array, length: number): number {
  let end = 0
  for (let points = 0; points < length && end < text.length; points += 1) {
    const begin = end
    end += 1
    // At most four bytes, so that malformed text cannot pass for short text.
    while (end < text.length && end - begin < 4 && isContinuation(text[end] ?? 0)) end += 1
  }
  return end
}

/** The text itself if it is short enough, else the least text of that length above all it begins. */
function textUpper(text: Uint8Array, length: number): Uint8Array | undefined {
  let end = textEnd(text, length)
  if (end === text.length) return text
  while (end > 0) {
    let begin = end - 1
    while (begin > 0 && isContinuation(text[begin] ?? 0)) begin -= 1
    const next = nextCodePoint(text.subarray(begin, end))
    if (next !== undefined) {
      const last = Buffer.from(String.fromCodePoint(next), 'utf8')
      const upper = new Uint8Array(begin + last.length)
      upper.set(text.subarray(0, begin))
      upper.set(last, begin)
      return upper
    }
    end = begin
  }
  return undefined
}

/** The code point after the encoded one; none after the last, and none after malformed bytes. */
function nextCodePoint(encoded: Uint8Array): number | undefined {
  const text = Buffer.from(encoded).toString('utf8')
  const point = text.codePointAt(0)
  if (point === undefined || point === 0x10ffff) return undefined
  if (!Buffer.from(text, 'utf8').equals(encoded)) return undefined
  return point === 0xd7ff ? 0xe000 : point + 1
}

function bytesUpper(bytes: Uint8Array, length: number): Uint8Array | undefined {
  if (bytes.length <= length) return bytes
  for (let end = length; end > 0; end -= 1) {
    const last = bytes[end - 1] ?? 0
    if (last < 0xff) {
      const upper = bytes.slice(0, end)
      upper[end - 1] = last + 1
      return upper
    }
  }
  return undefined
}

function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80
}
