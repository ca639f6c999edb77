import type { Column } from '../../core/columns/column.ts'
import { check } from '../../core/never.ts'
import type { Part } from './plain.ts'
import type { Extremes, Range } from './range.ts'

export class BitRange implements Range {
  readonly nanCount = 0
  #hasFalse = false
  #hasTrue = false

  add(column: Column, part: Part): void {
    check(column.layout === 'bit', 'a BOOLEAN column holds bits')
    const { indices, first } = part.values
    for (let i = part.from; i < part.to && !(this.#hasFalse && this.#hasTrue); i += 1) {
      const bit = column.bitOffset + (indices === undefined ? first + i : (indices[i] ?? 0))
      if ((((column.values[bit >> 3] ?? 0) >> (bit & 7)) & 1) === 1) this.#hasTrue = true
      else this.#hasFalse = true
    }
  }

  extremes(): Extremes | undefined {
    if (!this.#hasFalse && !this.#hasTrue) return undefined
    return { min: Uint8Array.of(this.#hasFalse ? 0 : 1), max: Uint8Array.of(this.#hasTrue ? 1 : 0) }
  }

  merge(other: Range): void {
    check(other instanceof BitRange, 'ranges of one leaf are alike')
    this.#hasFalse ||= other.#hasFalse
    this.#hasTrue ||= other.#hasTrue
  }
}

export class FloatRange implements Range {
  nanCount = 0
  readonly #size: 4 | 8
  #min = Infinity
  #max = -Infinity
  #isEmpty = true

  constructor(size: 4 | 8) {
    this.#size = size
  }

  add(column: Column, part: Part): void {
    check(column.layout === 'float32' || column.layout === 'float64', 'a float column holds floats')
    const { values } = column
    const { indices, first } = part.values
    let min = this.#min
    let max = this.#max
    let numbers = 0
    for (let i = part.from; i < part.to; i += 1) {
      const value = values[indices === undefined ? first + i : (indices[i] ?? 0)] ?? 0
      if (value < min) min = value
      if (value > max) max = value
      if (value === value) numbers += 1
    }
    this.#min = min
    this.#max = max
    this.nanCount += part.to - part.from - numbers
    if (numbers > 0) this.#isEmpty = false
  }

  /** A zero is -0 as the least and +0 as the greatest: readers order the two in either way. */
  extremes(): Extremes | undefined {
    if (this.#isEmpty) return undefined
    return {
      min: this.#bytes(this.#min === 0 ? -0 : this.#min),
      max: this.#bytes(this.#max === 0 ? 0 : this.#max),
    }
  }

  merge(other: Range): void {
    check(other instanceof FloatRange, 'ranges of one leaf are alike')
    this.nanCount += other.nanCount
    this.#isEmpty &&= other.#isEmpty
    this.#min = Math.min(this.#min, other.#min)
    this.#max = Math.max(this.#max, other.#max)
  }

  #bytes(value: number): Uint8Array {
    const view = new DataView(new ArrayBuffer(this.#size))
    if (this.#size === 4) view.setFloat32(0, value, true)
    else view.setFloat64(0, value, true)
    return new Uint8Array(view.buffer)
  }
}
