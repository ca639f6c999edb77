/**
 * Bytes that grow at the end. `bytes`, `words` and `view` are the same memory and are replaced when
 * it grows, so take them anew after `reserve`.
 */
export class ByteBuffer {
  bytes: Uint8Array
  words: Int32Array
  view: DataView
  length = 0

  constructor(capacity = 4096) {
    this.bytes = new Uint8Array(capacity)
    this.words = new Int32Array(this.bytes.buffer)
    this.view = new DataView(this.bytes.buffer)
  }

  /** Makes room for `more` bytes behind `length`. */
  reserve(more: number): void {
    const need = this.length + more
    if (need <= this.bytes.length) return
    const grown = new Uint8Array((Math.max(this.bytes.length * 2, need) + 7) & ~7)
    grown.set(this.bytes.subarray(0, this.length))
    this.bytes = grown
    this.words = new Int32Array(grown.buffer)
    this.view = new DataView(grown.buffer)
  }

  append(source: Uint8Array): void {
    this.reserve(source.length)
    this.bytes.set(source, this.length)
    this.length += source.length
  }

  byte(value: number): void {
    this.reserve(1)
    this.bytes[this.length++] = value
  }

  /** Unsigned LEB128 of an integer from 0 to 2^53. */
  varint(value: number): void {
    this.reserve(8)
    let rest = value
    while (rest > 0x7f) {
      this.bytes[this.length++] = (rest % 128) | 0x80
      rest = Math.floor(rest / 128)
    }
    this.bytes[this.length++] = rest
  }

  /** `count` times the same byte. */
  fill(value: number, count: number): void {
    this.reserve(count)
    this.bytes.fill(value, this.length, this.length + count)
    this.length += count
  }

  /** What was written, as a view that the next write may change. */
  written(): Uint8Array {
    return this.bytes.subarray(0, this.length)
  }

  clear(): void {
    this.length = 0
  }
}
