import type { ByteBuffer } from './byte-buffer.ts'

/** Runs shorter than this stay in the bit-packed part: a run costs two bytes or more. */
const runMin = 16

/** Bits needed for values from 0 to `max`; at least 1, since not every reader takes 0. */
export function bitWidth(max: number): number {
  return Math.max(1, 32 - Math.clz32(max))
}

/**
 * Writes `values[from, to)` as Parquet's hybrid of run-length and bit-packed runs, without a length
 * before it. Bit-packed runs hold whole groups of eight; only the last may be padded.
 */
export function appendHybrid(
  out: ByteBuffer,
  values: Uint8Array | Int32Array,
  from: number,
  to: number,
  width: number,
): void {
  let packedFrom = from
  let at = from
  while (at < to) {
    const value = values[at] ?? 0
    let end = at + 1
    while (end < to && values[end] === value) end += 1
    const missing = (packedFrom - at) & 7
    if (end - at - missing >= runMin) {
      at += missing
      if (at > packedFrom) appendPacked(out, values, packedFrom, at, width)
      appendRun(out, value, end - at, width)
      packedFrom = end
    }
    at = end
  }
  if (to > packedFrom) appendPacked(out, values, packedFrom, to, width)
}

/** One value repeated. */
export function appendRun(out: ByteBuffer, value: number, count: number, width: number): void {
  out.varint(count * 2)
  for (let shift = 0; shift < width; shift += 8) out.byte((value >>> shift) & 0xff)
}

function appendPacked(
  out: ByteBuffer,
  values: Uint8Array | Int32Array,
  from: number,
  to: number,
  width: number,
): void {
  const groups = (to - from + 7) >> 3
  out.varint(groups * 2 + 1)
  const size = groups * width
  out.reserve(size)
  const { bytes } = out
  let at = out.length
  let held = 0
  let heldBits = 0
  for (let i = from; i < to; i += 1) {
    held |= (values[i] ?? 0) << heldBits
    heldBits += width
    while (heldBits >= 8) {
      bytes[at++] = held
      held >>>= 8
      heldBits -= 8
    }
  }
  const end = out.length + size
  // The rest of the last group, which may still hold bits of an older use of this memory.
  if (at < end) {
    bytes[at++] = held
    bytes.fill(0, at, end)
  }
  out.length = end
}
