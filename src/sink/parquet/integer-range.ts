import type { Column } from '../../core/columns/column.ts'
import { check } from '../../core/never.ts'
import { type Part, wordsOf } from './plain.ts'
import type { Extremes, Range } from './range.ts'

/** Words of a column whose values are whole numbers. */
function integerWords(column: Column): Int32Array {
  check(
    column.layout === 'int32' || column.layout === 'int64' || column.layout === 'int128',
    'an integer column holds integers',
  )
  return wordsOf(column.values)
}

export class Int32Range implements Range {
  readonly nanCount = 0
  readonly #stride: 1 | 4
  #min = Infinity
  #max = -Infinity

  constructor(stride: 1 | 4) {
    this.#stride = stride
  }

  add(column: Column, part: Part): void {
    const words = integerWords(column)
    const stride = this.#stride
    const { indices, first } = part.values
    let min = this.#min
    let max = this.#max
    for (let i = part.from; i < part.to; i += 1) {
      const value = words[stride * (indices === undefined ? first + i : (indices[i] ?? 0))] ?? 0
      if (value < min) min = value
      if (value > max) max = value
    }
    this.#min = min
    this.#max = max
  }

  extremes(): Extremes | undefined {
    if (this.#min > this.#max) return undefined
    return { min: littleEndian([this.#min]), max: littleEndian([this.#max]) }
  }

  merge(other: Range): void {
    check(other instanceof Int32Range, 'ranges of one leaf are alike')
    this.#min = Math.min(this.#min, other.#min)
    this.#max = Math.max(this.#max, other.#max)
  }
}

/** Compares signed high and unsigned low halves, so that no bigint is made. */
export class Int64Range implements Range {
  readonly nanCount = 0
  readonly #stride: 2 | 4
  #isEmpty = true
  #minHigh = 0x7fffffff
  #minLow = 0xffffffff
  #maxHigh = -0x80000000
  #maxLow = 0

  constructor(stride: 2 | 4) {
    this.#stride = stride
  }

  add(column: Column, part: Part): void {
    if (part.from === part.to) return
    const words = integerWords(column)
    const stride = this.#stride
    const { indices, first } = part.values
    let minHigh = this.#minHigh
    let minLow = this.#minLow
    let maxHigh = this.#maxHigh
    let maxLow = this.#maxLow
    for (let i = part.from; i < part.to; i += 1) {
      const at = stride * (indices === undefined ? first + i : (indices[i] ?? 0))
      const low = (words[at] ?? 0) >>> 0
      const high = words[at + 1] ?? 0
      if (high < minHigh || (high === minHigh && low < minLow)) {
        minHigh = high
        minLow = low
      }
      if (high > maxHigh || (high === maxHigh && low > maxLow)) {
        maxHigh = high
        maxLow = low
      }
    }
    this.#isEmpty = false
    this.#minHigh = minHigh
    this.#minLow = minLow
    this.#maxHigh = maxHigh
    this.#maxLow = maxLow
  }

  extremes(): Extremes | undefined {
    if (this.#isEmpty) return undefined
    return {
      min: littleEndian([this.#minLow, this.#minHigh]),
      max: littleEndian([this.#maxLow, this.#maxHigh]),
    }
  }

  merge(other: Range): void {
    check(other instanceof Int64Range, 'ranges of one leaf are alike')
    if (other.#isEmpty) return
    this.#isEmpty = false
    const { minHigh, minLow, maxHigh, maxLow } = other.#halves()
    if (minHigh < this.#minHigh || (minHigh === this.#minHigh && minLow < this.#minLow)) {
      this.#minHigh = minHigh
      this.#minLow = minLow
    }
    if (maxHigh > this.#maxHigh || (maxHigh === this.#maxHigh && maxLow > this.#maxLow)) {
      this.#maxHigh = maxHigh
      this.#maxLow = maxLow
    }
  }

  #halves(): { minHigh: number; minLow: number; maxHigh: number; maxLow: number } {
    return {
      minHigh: this.#minHigh,
      minLow: this.#minLow,
      maxHigh: this.#maxHigh,
      maxLow: this.#maxLow,
    }
  }
}

/** DECIMAL of more than 18 digits. */
export class Int128Range implements Range {
  readonly nanCount = 0
  readonly #size: number
  #min: Int32Array | undefined
  #max: Int32Array | undefined

  constructor(size: number) {
    this.#size = size
  }

  add(column: Column, part: Part): void {
    const words = integerWords(column)
    const { indices, first } = part.values
    for (let i = part.from; i < part.to; i += 1) {
      const at = 4 * (indices === undefined ? first + i : (indices[i] ?? 0))
      this.#take(words, at)
    }
  }

  extremes(): Extremes | undefined {
    if (this.#min === undefined || this.#max === undefined) return undefined
    return { min: this.#bigEndian(this.#min), max: this.#bigEndian(this.#max) }
  }

  merge(other: Range): void {
    check(other instanceof Int128Range, 'ranges of one leaf are alike')
    if (other.#min !== undefined) this.#take(other.#min, 0)
    if (other.#max !== undefined) this.#take(other.#max, 0)
  }

  #take(words: Int32Array, at: number): void {
    if (this.#min === undefined || compare128(words, at, this.#min) < 0) {
      this.#min = words.slice(at, at + 4)
    }
    if (this.#max === undefined || compare128(words, at, this.#max) > 0) {
      this.#max = words.slice(at, at + 4)
    }
  }

  #bigEndian(words: Int32Array): Uint8Array {
    return littleEndian(words).subarray(0, this.#size).reverse()
  }
}

function compare128(words: Int32Array, at: number, other: Int32Array): number {
  const top = (words[at + 3] ?? 0) - (other[3] ?? 0)
  if (top !== 0) return top
  for (let word = 2; word >= 0; word -= 1) {
    const difference = ((words[at + word] ?? 0) >>> 0) - ((other[word] ?? 0) >>> 0)
    if (difference !== 0) return difference
  }
  return 0
}

function littleEndian(words: ArrayLike<number>): Uint8Array {
  return new Uint8Array(Int32Array.from(words).buffer)
}
