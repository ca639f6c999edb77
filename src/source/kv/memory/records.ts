/**
 * Entries as bytes, at offsets in some array:
 *
 *   key length u32 · value length + 1, or 0 for a delete u32 · key · value
 */
export const headerBytes = 8

export function keyLengthAt(bytes: Uint8Array, offset: number): number {
  return word(bytes, offset)
}

export function keyStartAt(offset: number): number {
  return offset + headerBytes
}

export function isDeleteAt(bytes: Uint8Array, offset: number): boolean {
  return word(bytes, offset + 4) === 0
}

export function keyAt(bytes: Uint8Array, offset: number): Uint8Array {
  const start = offset + headerBytes
  return bytes.subarray(start, start + word(bytes, offset))
}

/** Undefined for a delete. */
export function valueAt(bytes: Uint8Array, offset: number): Uint8Array | undefined {
  const lengthAndOne = word(bytes, offset + 4)
  if (lengthAndOne === 0) return undefined
  const start = offset + headerBytes + word(bytes, offset)
  return bytes.subarray(start, start + lengthAndOne - 1)
}

/** Bytes of key and value, without the header. */
export function payloadAt(bytes: Uint8Array, offset: number): number {
  return word(bytes, offset) + Math.max(0, word(bytes, offset + 4) - 1)
}

/** Writes an entry and answers where the next one begins. There must be room. */
export function writeRecord(
  bytes: Uint8Array,
  offset: number,
  key: Uint8Array,
  value: Uint8Array | undefined,
): number {
  putWord(bytes, offset, key.length)
  putWord(bytes, offset + 4, value === undefined ? 0 : value.length + 1)
  const valueStart = copyBytes(bytes, offset + headerBytes, key)
  return value === undefined ? valueStart : copyBytes(bytes, valueStart, value)
}

/** Copies an entry and answers where the next one begins in the bytes it came from. */
export function copyRecord(
  to: Uint8Array,
  toOffset: number,
  from: Uint8Array,
  offset: number,
): number {
  const end = offset + headerBytes + payloadAt(from, offset)
  to.set(from.subarray(offset, end), toOffset)
  return end
}

export function hasKeyAt(bytes: Uint8Array, offset: number, key: Uint8Array): boolean {
  const length = key.length
  if (word(bytes, offset) !== length) return false
  const start = offset + headerBytes
  for (let at = 0; at < length; at += 1) {
    if (bytes[start + at] !== key[at]) return false
  }
  return true
}

/** Below zero when the first key sorts before the second; the order of unsigned bytes. */
export function compareKeysAt(
  first: Uint8Array,
  firstOffset: number,
  second: Uint8Array,
  secondOffset: number,
): number {
  return compareRanges(first, firstOffset, second, secondOffset, 0)
}

/** As `compareKeysAt`, for keys whose first `skip` bytes are known to be equal. */
export function compareRanges(
  first: Uint8Array,
  firstOffset: number,
  second: Uint8Array,
  secondOffset: number,
  skip: number,
): number {
  const firstLength = word(first, firstOffset)
  const secondLength = word(second, secondOffset)
  const length = Math.min(firstLength, secondLength)
  const firstStart = firstOffset + headerBytes
  const secondStart = secondOffset + headerBytes
  for (let at = skip; at < length; at += 1) {
    const difference = (first[firstStart + at] ?? 0) - (second[secondStart + at] ?? 0)
    if (difference !== 0) return difference
  }
  return firstLength - secondLength
}

/** Compares the key of an entry with a key. */
export function compareWithKey(bytes: Uint8Array, offset: number, key: Uint8Array): number {
  const own = word(bytes, offset)
  const length = Math.min(own, key.length)
  const start = offset + headerBytes
  for (let at = 0; at < length; at += 1) {
    const difference = (bytes[start + at] ?? 0) - (key[at] ?? 0)
    if (difference !== 0) return difference
  }
  return own - key.length
}

function word(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] ?? 0) |
      ((bytes[at + 1] ?? 0) << 8) |
      ((bytes[at + 2] ?? 0) << 16) |
      ((bytes[at + 3] ?? 0) << 24)) >>>
    0
  )
}

function putWord(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value
  bytes[at + 1] = value >>> 8
  bytes[at + 2] = value >>> 16
  bytes[at + 3] = value >>> 24
}

/** Calling `set` costs more than a loop for what keys usually are. */
const loopBytesMax = 32

function copyBytes(to: Uint8Array, at: number, from: Uint8Array): number {
  const length = from.length
  if (length > loopBytesMax) to.set(from, at)
  else for (let index = 0; index < length; index += 1) to[at + index] = from[index] ?? 0
  return at + length
}
