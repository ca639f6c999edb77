import type { Column } from './column.ts'
import { Validity } from './validity-builder.ts'

export class BitBuilder extends Validity {
  readonly layout = 'bit'
  #values = new Uint8Array(128)

  append(value: boolean): void {
    const index = this.#room()
    if (value) this.#values[index >> 3] = (this.#values[index >> 3] ?? 0) | (1 << (index & 7))
    this.length += 1
  }

  appendNull(): void {
    this.#room()
    this.markNull()
  }

  truncate(length: number): void {
    for (let index = length; index < this.length; index += 1) {
      this.#values[index >> 3] = (this.#values[index >> 3] ?? 0) & ~(1 << (index & 7))
    }
    this.cut(length)
  }

  finish(): Column {
    const values = this.#values.subarray(0, (this.length + 7) >> 3)
    this.#values = new Uint8Array(128)
    return { ...this.base(), layout: 'bit', values }
  }

  #room(): number {
    if (this.length >= this.#values.length * 8) {
      const grown = new Uint8Array(this.#values.length * 2)
      grown.set(this.#values)
      this.#values = grown
    }
    return this.length
  }
}

export class Int32Builder extends Validity {
  readonly layout = 'int32'
  #values = new Int32Array(256)

  append(value: number): void {
    if (this.length === this.#values.length) this.#grow()
    this.#values[this.length] = value
    this.length += 1
  }

  appendNull(): void {
    if (this.length === this.#values.length) this.#grow()
    this.markNull()
  }

  truncate(length: number): void {
    this.cut(length)
  }

  finish(): Column {
    const values = this.#values.subarray(0, this.length)
    this.#values = new Int32Array(Math.max(256, this.length))
    return { ...this.base(), layout: 'int32', values }
  }

  #grow(): void {
    const grown = new Int32Array(this.#values.length * 2)
    grown.set(this.#values)
    this.#values = grown
  }
}

export class Int64Builder extends Validity {
  readonly layout = 'int64'
  #values = new BigInt64Array(256)
  #halves = new Int32Array(this.#values.buffer)

  append(value: bigint): void {
    if (this.length === this.#values.length) this.#grow()
    this.#values[this.length] = value
    this.length += 1
  }

  /** A safe integer, without making a bigint: the two halves are stored directly. */
  appendSafe(value: number): void {
    if (this.length === this.#values.length) this.#grow()
    const high = Math.floor(value / 2 ** 32)
    this.#halves[2 * this.length + 1] = high
    this.#halves[2 * this.length] = value - high * 2 ** 32
    this.length += 1
  }

  appendNull(): void {
    if (this.length === this.#values.length) this.#grow()
    this.markNull()
  }

  truncate(length: number): void {
    this.cut(length)
  }

  finish(): Column {
    const values = this.#values.subarray(0, this.length)
    this.#values = new BigInt64Array(Math.max(256, this.length))
    this.#halves = new Int32Array(this.#values.buffer)
    return { ...this.base(), layout: 'int64', values }
  }

  #grow(): void {
    const grown = new BigInt64Array(this.#values.length * 2)
    grown.set(this.#values)
    this.#values = grown
    this.#halves = new Int32Array(grown.buffer)
  }
}

export class Int128Builder extends Validity {
  readonly layout = 'int128'
  #words = new BigInt64Array(512)

  /** The unscaled value, within 128 bits. */
  append(value: bigint): void {
    if (2 * this.length === this.#words.length) this.#grow()
    this.#words[2 * this.length] = BigInt.asIntN(64, value)
    this.#words[2 * this.length + 1] = value >> 64n
    this.length += 1
  }

  appendNull(): void {
    if (2 * this.length === this.#words.length) this.#grow()
    this.markNull()
  }

  truncate(length: number): void {
    this.cut(length)
  }

  finish(): Column {
    const values = this.#words.subarray(0, 2 * this.length)
    this.#words = new BigInt64Array(Math.max(512, 2 * this.length))
    return { ...this.base(), layout: 'int128', values }
  }

  #grow(): void {
    const grown = new BigInt64Array(this.#words.length * 2)
    grown.set(this.#words)
    this.#words = grown
  }
}

export class Float32Builder extends Validity {
  readonly layout = 'float32'
  #values = new Float32Array(256)

  append(value: number): void {
    if (this.length === this.#values.length) this.#grow()
    this.#values[this.length] = value
    this.length += 1
  }

  appendNull(): void {
    if (this.length === this.#values.length) this.#grow()
    this.markNull()
  }

  truncate(length: number): void {
    this.cut(length)
  }

  finish(): Column {
    const values = this.#values.subarray(0, this.length)
    this.#values = new Float32Array(Math.max(256, this.length))
    return { ...this.base(), layout: 'float32', values }
  }

  #grow(): void {
    const grown = new Float32Array(this.#values.length * 2)
    grown.set(this.#values)
    this.#values = grown
  }
}

export class Float64Builder extends Validity {
  readonly layout = 'float64'
  #values = new Float64Array(256)

  append(value: number): void {
    if (this.length === this.#values.length) this.#grow()
    this.#values[this.length] = value
    this.length += 1
  }

  appendNull(): void {
    if (this.length === this.#values.length) this.#grow()
    this.markNull()
  }

  truncate(length: number): void {
    this.cut(length)
  }

  finish(): Column {
    const values = this.#values.subarray(0, this.length)
    this.#values = new Float64Array(Math.max(256, this.length))
    return { ...this.base(), layout: 'float64', values }
  }

  #grow(): void {
    const grown = new Float64Array(this.#values.length * 2)
    grown.set(this.#values)
    this.#values = grown
  }
}
