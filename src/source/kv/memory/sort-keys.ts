import { compareRanges, keyLengthAt, keyStartAt } from './records.ts'

const digits = 1 << 16

/** Below this many, comparing is cheaper than counting digits. */
const countingMin = 2_048

/**
 * Sorts positions of entries by their keys, in place. By the eight bytes after what all keys have
 * in common, digit by digit; only keys that are equal in those are compared.
 */
export function sortByKey(arena: Uint8Array, positions: Uint32Array): void {
  const common = commonPrefix(arena, positions)
  const compare = (first: number, second: number): number =>
    compareRanges(arena, first, arena, second, common)
  if (positions.length < countingMin) {
    positions.sort(compare)
    return
  }
  const high = new Uint32Array(positions.length)
  const low = new Uint32Array(positions.length)
  positions.forEach((position, at) => {
    high[at] = prefixWord(arena, position, common)
    low[at] = prefixWord(arena, position, common + 4)
  })
  const order = countingSort(high, low)
  const sorted = order.map((at) => positions[at] ?? 0)
  positions.set(sorted)
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
function commonPrefix(arena: Uint8Array, positions: Uint32Array): number {
  const first = positions[0]
  if (first === undefined) return 0
  let common = keyLengthAt(arena, first)
  const start = keyStartAt(first)
  for (const position of positions) {
    const other = keyStartAt(position)
    common = Math.min(common, keyLengthAt(arena, position))
    let at = 0
    while (at < common && arena[start + at] === arena[other + at]) at += 1
    common = at
    if (common === 0) break
  }
  return common
}

/** Four bytes of a key as one number whose order is theirs; 0 stands for bytes that are not there. */
function prefixWord(arena: Uint8Array, position: number, skip: number): number {
  const start = keyStartAt(position) + skip
  const length = keyLengthAt(arena, position) - skip
  let value = 0
  for (let at = 0; at < 4; at += 1) {
    value = (value << 8) | (at < length ? (arena[start + at] ?? 0) : 0)
  }
  return value >>> 0
}

/** Indexes in the order of (high, low), by counting from the last digit to the first. */
function countingSort(high: Uint32Array, low: Uint32Array): Uint32Array {
  let from = Uint32Array.from(high.keys())
  let to = new Uint32Array(high.length)
  for (const [words, shift] of [
    [low, 0],
    [low, 16],
    [high, 0],
    [high, 16],
  ] as const) {
    const starts = new Uint32Array(digits + 1)
    for (const value of words) {
      const digit = ((value >>> shift) & (digits - 1)) + 1
      starts[digit] = (starts[digit] ?? 0) + 1
    }
    for (let digit = 1; digit <= digits; digit += 1) {
      starts[digit] = (starts[digit] ?? 0) + (starts[digit - 1] ?? 0)
    }
    for (const index of from) {
      const digit = ((words[index] ?? 0) >>> shift) & (digits - 1)
      const place = starts[digit] ?? 0
      to[place] = index
      starts[digit] = place + 1
    }
    ;[from, to] = [to, from]
  }
  return from
}
