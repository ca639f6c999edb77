import { type Column, isNull } from '../core/columns/column.ts'

/**
 * Iceberg's bucket transform (spec, appendix B), written from Appleby's MurmurHash3_x86_32 a second
 * time, so that a mistake in the writer's hash does not judge itself.
 * @returns the bucket of one value; null for null; undefined where the column has no bucket hash
 */
export function bucketOf(column: Column, row: number, count: number): number | null | undefined {
  if (isNull(column, row)) return null
  const bytes = hashedBytes(column, row)
  return bytes === undefined ? undefined : (hash(bytes) & 0x7fffffff) % count
}

/** The bytes that are hashed: integers and times as 8 bytes, decimals in as few as they need. */
function hashedBytes(column: Column, row: number): Uint8Array | undefined {
  switch (column.layout) {
    case 'int32':
      return eight(BigInt(column.values[row] ?? 0))
    case 'int64':
      return eight(column.values[row] ?? 0n)
    case 'bytes':
      return column.values.subarray(column.offsets[row], column.offsets[row + 1])
    case 'int128': {
      const low = BigInt.asUintN(64, column.values[2 * row] ?? 0n)
      return fewest(((column.values[2 * row + 1] ?? 0n) << 64n) | low)
    }
    default:
      return undefined
  }
}

function eight(value: bigint): Uint8Array {
  const bytes = new DataView(new ArrayBuffer(8))
  bytes.setBigInt64(0, value, true)
  return new Uint8Array(bytes.buffer)
}

function fewest(value: bigint): Uint8Array {
  const bytes: number[] = []
  let rest = value
  for (;;) {
    const byte = Number(rest & 0xffn)
    bytes.unshift(byte)
    rest >>= 8n
    const isPositive = rest === 0n && byte < 0x80
    const isNegative = rest === -1n && byte >= 0x80
    if (isPositive || isNegative) return Uint8Array.from(bytes)
  }
}

function hash(bytes: Uint8Array): number {
  const words = bytes.length >>> 2
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  let state = 0
  for (let word = 0; word < words; word += 1) {
    state = rotate(state ^ scramble(view.getInt32(4 * word, true)), 13)
    state = (Math.imul(state, 5) + 0xe6546b64) | 0
  }
  let tail = 0
  for (let at = bytes.length - 1; at >= 4 * words; at -= 1) tail = (tail << 8) | (bytes[at] ?? 0)
  state ^= scramble(tail) ^ bytes.length
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b)
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35)
  return state ^ (state >>> 16)
}

function scramble(word: number): number {
  return Math.imul(rotate(Math.imul(word, 0xcc9e2d51), 15), 0x1b873593)
}

function rotate(word: number, by: number): number {
  return (word << by) | (word >>> (32 - by))
}
