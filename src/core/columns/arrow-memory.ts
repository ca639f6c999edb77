import type { Data } from 'apache-arrow'
import { SluiceError } from '../errors.ts'

/** The memory of an Arrow buffer, whatever array type it comes in. */
export function bytesOf(values: unknown, path: string): Uint8Array {
  if (values === undefined) return new Uint8Array(0)
  if (!ArrayBuffer.isView(values)) throw malformed(path, 'its values are no typed array')
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
}

/** The first `length` elements of `size` bytes, as bytes that begin at a multiple of eight. */
export function elements(values: unknown, length: number, size: number, path: string): Uint8Array {
  const bytes = bytesOf(values, path)
  if (bytes.length < length * size) throw malformed(path, 'it holds fewer values than it says')
  const wanted = bytes.subarray(0, length * size)
  return wanted.byteOffset % 8 === 0 ? wanted : wanted.slice()
}

export function int32sOf(values: unknown, length: number, path: string): Int32Array {
  const bytes = elements(values, length, 4, path)
  return new Int32Array(bytes.buffer, bytes.byteOffset, length)
}

export function int64sOf(values: unknown, length: number, path: string): BigInt64Array {
  const bytes = elements(values, length, 8, path)
  return new BigInt64Array(bytes.buffer, bytes.byteOffset, length)
}

/** Offsets of a list or of bytes, checked to ascend and to stay within `end`. */
export function offsetsOf(data: Data, end: number, path: string): Int32Array {
  const source: unknown = data.valueOffsets
  const isWide = source instanceof BigInt64Array
  const size = data.length + 1
  // An empty column may come without offsets.
  if (data.length === 0) return new Int32Array(1)
  const offsets = isWide ? new Int32Array(size) : int32sOf(source, size, path)
  if (isWide) {
    const wide = int64sOf(source, size, path)
    for (let at = 0; at < size; at += 1) {
      const offset = wide[at] ?? 0n
      if (offset > 2n ** 31n - 1n) {
        throw new SluiceError('LIMIT_EXCEEDED', `the column ${path} holds 2 GiB or more in a batch`)
      }
      offsets[at] = Number(offset)
    }
  }
  let last = 0
  for (const offset of offsets) {
    if (offset < last || offset > end) throw malformed(path, 'its offsets leave its values')
    last = offset
  }
  return offsets
}

export function childOf(data: Data, at: number, path: string): Data {
  const child = data.children[at]
  if (child === undefined) throw malformed(path, 'a child is missing')
  return child
}

export function malformed(path: string, what: string): SluiceError {
  return new SluiceError('INPUT_UNREADABLE', `the Arrow column ${path} is malformed: ${what}`)
}
