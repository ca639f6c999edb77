import { type Arena, offsetOf } from './arena.ts'
import { compareRanges, keyLengthAt, keyStartAt } from './records.ts'

/** Below this many, comparing is cheaper than counting digits. */
const countingMin = 2_048

/**
 * Sorts positions of entries by their keys, in place. By the eight bytes after what all keys have
 * in common, digit by digit; only keys that are equal in those are compared.
 */
export function sortByKey(arena: Arena, positions: Uint32Array): void {
  // Memory is read from one end to the other then, which is several times faster.
  positions.sort()
  const common = commonPrefix(arena, positions)
  const compare = (first: number, second: number): number =>
    compareRanges(
      arena.chunkAt(first),
      offsetOf(first),
      arena.chunkAt(second),
      offsetOf(second),
      common,
    )
  if (positions.length < countingMin) {
    positions.sort(compare)
    return
  }
  const high = new Uint32Array(positions.length)
  const low = new Uint32Array(positions.length)
  for (let at = 0; at < positions.length; at += 1) {
    const position = positions[at] ?? 0
    high[at] = prefixWord(arena, position, common)
    low[at] = prefixWord(arena, position, common + 4)
  }
  const order = countingSort(high, low)
  const unsorted = positions.slice()
  for (let at = 0; at < order.length; at += 1) positions[at] = unsorted[order[at] ?? 0] ?? 0
  sortTies(positions, { order, high, low, compare })
}

type Ties = {
  readonly order: Uint32Array
  readonly high: Uint32Array
  readonly low: Uint32Array
  readonly compare: (first: number, second: number) => number
}

function sortTies(positions: Uint32Array, { order, high, low, compare }: Ties): void {
  let start = 0
  for (let at = 1; at <= order.length; at += 1) {
    const here = order[at] ?? -1
    const first = order[start] ?? 0
    if (here >= 0 && high[here] === high[first] && low[here] === low[first]) continue
    if (at - start > 1) positions.subarray(start, at).sort(compare)
    start = at
  }
}

/** How many bytes at their beginning all keys share. */
function commonPrefix(arena: Arena, positions: Uint32Array): number {
  const first = positions[0]
  if (first === undefined) return 0
  const model = arena.chunkAt(first)
  const modelStart = keyStartAt(offsetOf(first))
  let common = keyLengthAt(model, offsetOf(first))
  for (const position of positions) {
    const chunk = arena.chunkAt(position)
    const start = keyStartAt(offsetOf(position))
    common = Math.min(common, keyLengthAt(chunk, offsetOf(position)))
    let at = 0
    while (at < common && model[modelStart + at] === chunk[start + at]) at += 1
    common = at
    if (common === 0) break
  }
  return common
}

/** Four bytes of a key as one number whose order is theirs; 0 stands for bytes that are not there. */
function prefixWord(arena: Arena, position: number, skip: number): number {
  const chunk = arena.chunkAt(position)
  const start = keyStartAt(offsetOf(position)) + skip
  const length = keyLengthAt(chunk, offsetOf(position)) - skip
  let value = 0
  for (let at = 0; at < 4; at += 1) {
    value = (value << 8) | (at < length ? (chunk[start + at] ?? 0) : 0)
  }
  return value >>> 0
}

/** Indexes in the order of (high, low), by counting from the last digit to the first. */
function countingSort(high: Uint32Array, low: Uint32Array): Uint32Array {
  let from: Uint32Array = new Uint32Array(high.length)
  for (let at = 0; at < from.length; at += 1) from[at] = at
  let to: Uint32Array = new Uint32Array(high.length)
  for (const words of [low, high]) {
    for (let shift = 0; shift < 32; shift += digitBits) {
      if (sortDigit({ words, shift, from, to })) [from, to] = [to, from]
    }
  }
  return from
}

type Digit = {
  readonly words: Uint32Array
  readonly shift: number
  readonly from: Uint32Array
  readonly to: Uint32Array
}

/** Sorts by one digit, keeping the order of equal ones; false where all are equal. */
function sortDigit({ words, shift, from, to }: Digit): boolean {
  const starts = new Uint32Array(digits + 1)
  for (let at = 0; at < words.length; at += 1) {
    const next = (((words[at] ?? 0) >>> shift) & (digits - 1)) + 1
    starts[next] = (starts[next] ?? 0) + 1
  }
  if (starts[(((words[0] ?? 0) >>> shift) & (digits - 1)) + 1] === words.length) return false
  for (let digit = 1; digit <= digits; digit += 1) {
    starts[digit] = (starts[digit] ?? 0) + (starts[digit - 1] ?? 0)
  }
  for (let at = 0; at < from.length; at += 1) {
    const index = from[at] ?? 0
    const digit = ((words[index] ?? 0) >>> shift) & (digits - 1)
    const place = starts[digit] ?? 0
    to[place] = index
    starts[digit] = place + 1
  }
  return true
}

const digitBits = 11
const digits = 1 << digitBits
