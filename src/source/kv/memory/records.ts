/**
 * Entries as bytes, one after another in an arena:
 *
 *   key length u32 · value length + 1, or 0 for a delete u32 · key · value
 *
 * A position is where an entry begins.
 */
export const headerBytes = 8

export function keyLengthAt(arena: Uint8Array, position: number): number {
  return word(arena, position)
}

export function keyStartAt(position: number): number {
  return position + headerBytes
}

export function isDeleteAt(arena: Uint8Array, position: number): boolean {
  return word(arena, position + 4) === 0
}

export function keyAt(arena: Uint8Array, position: number): Uint8Array {
  const start = position + headerBytes
  return arena.subarray(start, start + word(arena, position))
}

/** Undefined for a delete. */
export function valueAt(arena: Uint8Array, position: number): Uint8Array | undefined {
  const lengthAndOne = word(arena, position + 4)
  if (lengthAndOne === 0) return undefined
  const start = position + headerBytes + word(arena, position)
  return arena.subarray(start, start + lengthAndOne - 1)
}

/** Bytes of key and value, without the header. */
export function payloadAt(arena: Uint8Array, position: number): number {
  return word(arena, position) + Math.max(0, word(arena, position + 4) - 1)
}

/** Writes an entry and answers where the next one begins. The arena must have room. */
export function writeRecord(
  arena: Uint8Array,
  position: number,
  key: Uint8Array,
  value: Uint8Array | undefined,
): number {
  putWord(arena, position, key.length)
  putWord(arena, position + 4, value === undefined ? 0 : value.length + 1)
  const valueStart = copyBytes(arena, position + headerBytes, key)
  return value === undefined ? valueStart : copyBytes(arena, valueStart, value)
}

/** Copies an entry and answers where the next one begins in the bytes it came from. */
export function copyRecord(
  to: Uint8Array,
  toPosition: number,
  from: Uint8Array,
  position: number,
): number {
  const end = position + headerBytes + payloadAt(from, position)
  to.set(from.subarray(position, end), toPosition)
  return end
}

export function hasKeyAt(arena: Uint8Array, position: number, key: Uint8Array): boolean {
  const length = key.length
  if (word(arena, position) !== length) return false
  const start = position + headerBytes
  for (let at = 0; at < length; at += 1) {
    if (arena[start + at] !== key[at]) return false
  }
  return true
}

/** Below zero when the first key sorts before the second; the order of unsigned bytes. */
export function compareKeysAt(
  first: Uint8Array,
  firstPosition: number,
  second: Uint8Array,
  secondPosition: number,
): number {
  return compareRanges(first, firstPosition, second, secondPosition, 0)
}

/** As `compareKeysAt`, for keys whose first `skip` bytes are known to be equal. */
export function compareRanges(
  first: Uint8Array,
  firstPosition: number,
  second: Uint8Array,
  secondPosition: number,
  skip: number,
): number {
  const firstLength = word(first, firstPosition)
  const secondLength = word(second, secondPosition)
  const length = Math.min(firstLength, secondLength)
  const firstStart = firstPosition + headerBytes
  const secondStart = secondPosition + headerBytes
  for (let at = skip; at < length; at += 1) {
    const difference = (first[firstStart + at] ?? 0) - (second[secondStart + at] ?? 0)
    if (difference !== 0) return difference
  }
  return firstLength - secondLength
}

/** Compares the key of an entry with a key. */
export function compareWithKey(arena: Uint8Array, position: number, key: Uint8Array): number {
  const own = word(arena, position)
  const length = Math.min(own, key.length)
  const start = position + headerBytes
  for (let at = 0; at < length; at += 1) {
    const difference = (arena[start + at] ?? 0) - (key[at] ?? 0)
    if (difference !== 0) return difference
  }
  return own - key.length
}

function word(arena: Uint8Array, at: number): number {
  return (
    ((arena[at] ?? 0) |
      ((arena[at + 1] ?? 0) << 8) |
      ((arena[at + 2] ?? 0) << 16) |
      ((arena[at + 3] ?? 0) << 24)) >>>
    0
  )
}

function putWord(arena: Uint8Array, at: number, value: number): void {
  arena[at] = value
  arena[at + 1] = value >>> 8
  arena[at + 2] = value >>> 16
  arena[at + 3] = value >>> 24
}

/** Calling `set` costs more than a loop for what keys usually are. */
const loopBytesMax = 32

function copyBytes(arena: Uint8Array, at: number, bytes: Uint8Array): number {
  const length = bytes.length
  if (length > loopBytesMax) arena.set(bytes, at)
  else for (let index = 0; index < length; index += 1) arena[at + index] = bytes[index] ?? 0
  return at + length
}
