/**
 * Two hashes of the murmur3 family over bytes, as signed 32-bit integers. They agree only for
 * lengths divisible by 4.
 */

const flussSeed = 42

/** MurmurHash3_x86_32 as published (Appleby 2011); with seed 0 the hash of Iceberg's bucket transform. */
export function murmur3(bytes: Uint8Array, from: number, to: number, seed: number): number {
  let hash = mixWords(bytes, from, to, seed)
  const length = to - from
  const tail = to - (length & 3)
  let rest = 0
  if (to - tail >= 3) rest ^= (bytes[tail + 2] ?? 0) << 16
  if (to - tail >= 2) rest ^= (bytes[tail + 1] ?? 0) << 8
  if (to - tail >= 1) hash ^= mixKey(rest ^ (bytes[tail] ?? 0))
  return finish(hash ^ length)
}

/** `murmur3` of the 8 little-endian bytes of an int64 given by its two halves. */
export function murmur3Long(low: number, high: number, seed: number): number {
  return finish(mixHash(mixHash(seed, mixKey(low)), mixKey(high)) ^ 8)
}

/**
 * The variant Fluss and Paimon hash keys with (seed 42): each byte after the last whole word is
 * sign-extended and mixed as a word of its own.
 */
export function flussHash(bytes: Uint8Array, from: number, to: number): number {
  let hash = mixWords(bytes, from, to, flussSeed)
  const length = to - from
  for (let at = to - (length & 3); at < to; at += 1) {
    hash = mixHash(hash, mixKey(((bytes[at] ?? 0) << 24) >> 24))
  }
  return finish(hash ^ length)
}

/** Spreads a hash once more, as Fluss does before it takes the remainder; never negative. */
export function flussFold(hash: number): number {
  const folded = finish(mixHash(0, mixKey(hash)) ^ 4)
  // The least int32 has no counterpart above zero.
  return folded === -0x8000_0000 ? 0 : Math.abs(folded)
}

function mixWords(bytes: Uint8Array, from: number, to: number, seed: number): number {
  let hash = seed
  const end = to - ((to - from) & 3)
  for (let at = from; at < end; at += 4) {
    const word =
      (bytes[at] ?? 0) |
      ((bytes[at + 1] ?? 0) << 8) |
      ((bytes[at + 2] ?? 0) << 16) |
      ((bytes[at + 3] ?? 0) << 24)
    hash = mixHash(hash, mixKey(word))
  }
  return hash
}

function mixKey(word: number): number {
  const key = Math.imul(word, 0xcc9e2d51)
  return Math.imul((key << 15) | (key >>> 17), 0x1b873593)
}

function mixHash(hash: number, key: number): number {
  const mixed = hash ^ key
  return (Math.imul((mixed << 13) | (mixed >>> 19), 5) + 0xe6546b64) | 0
}

function finish(hash: number): number {
  let mixed = hash
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return mixed ^ (mixed >>> 16)
}
