/**
 * A growing buffer that one key after the other is encoded into. Reused for a whole column, so that
 * no object is made per row.
 */
export class KeyWriter {
  bytes = new Uint8Array(64)
  length = 0

  clear(): void {
    this.length = 0
  }

  byte(value: number): void {
    this.#room(1)
    this.bytes[this.length++] = value
  }

  /** The low `size` bytes of a 32-bit word, least significant first. */
  word(value: number, size: 1 | 2 | 4): void {
    for (let shift = 0; shift < 8 * size; shift += 8) this.byte((value >>> shift) & 255)
  }

  /** Eight bytes, least significant first, from the halves of an int64. */
  long(low: number, high: number): void {
    this.word(low, 4)
    this.word(high, 4)
  }

  /** Unsigned LEB128 of a 32-bit pattern: a negative number takes five bytes. */
  varInt(value: number): void {
    let rest = value >>> 0
    for (; rest > 127; rest >>>= 7) this.byte((rest & 127) | 128)
    this.byte(rest)
  }

  /** Unsigned LEB128 of a 64-bit pattern: a negative number takes ten bytes. */
  varLong(value: bigint): void {
    let rest = BigInt.asUintN(64, value)
    for (; rest > 127n; rest >>= 7n) this.byte(Number(rest & 127n) | 128)
    this.byte(Number(rest))
  }

  slice(source: Uint8Array, from: number, to: number): void {
    this.#room(to - from)
    for (let at = from; at < to; at += 1) this.bytes[this.length++] = source[at] ?? 0
  }

  zeros(count: number): void {
    this.#room(count)
    this.bytes.fill(0, this.length, this.length + count)
    this.length += count
  }

  /** Big-endian two's complement of a signed integer, in as few bytes as hold it. */
  minimal(value: bigint): void {
    let size = 1
    while (BigInt.asIntN(8 * size, value) !== value) size += 1
    for (let shift = 8 * (size - 1); shift >= 0; shift -= 8) {
      this.byte(Number((value >> BigInt(shift)) & 255n))
    }
  }

  /** Overwrites eight bytes that are already there. */
  setLong(at: number, low: number, high: number): void {
    for (let i = 0; i < 4; i += 1) {
      this.bytes[at + i] = (low >>> (8 * i)) & 255
      this.bytes[at + 4 + i] = (high >>> (8 * i)) & 255
    }
  }

  #room(size: number): void {
    if (this.length + size <= this.bytes.length) return
    const grown = new Uint8Array(Math.max(2 * this.bytes.length, this.length + size))
    grown.set(this.bytes)
    this.bytes = grown
  }
}
