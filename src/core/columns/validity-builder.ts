import type { DataType } from '../schema/types.ts'

/** Validity shared by all builders. The bitmap exists only from the first null on. */
export abstract class Validity {
  readonly type: DataType
  length = 0
  protected nullCount = 0
  #bitmap: Uint8Array | undefined

  constructor(type: DataType) {
    this.type = type
  }

  /** Marks element `length` as null and counts it. */
  protected markNull(): void {
    const index = this.length
    let bitmap = this.#bitmap
    if (bitmap === undefined || index >= bitmap.length * 8) {
      const grown = new Uint8Array(Math.max(128, (bitmap?.length ?? 0) * 2, (index >> 3) + 1)).fill(
        255,
      )
      if (bitmap !== undefined) grown.set(bitmap)
      bitmap = grown
      this.#bitmap = grown
    }
    bitmap[index >> 3] = (bitmap[index >> 3] ?? 0) & ~(1 << (index & 7))
    this.nullCount += 1
    this.length += 1
  }

  /** Forgets the elements from `length` on; the bitmap says "not null" again for what may follow. */
  protected cut(length: number): void {
    const bitmap = this.#bitmap
    for (let index = length; bitmap !== undefined && index < this.length; index += 1) {
      const byte = bitmap[index >> 3] ?? 255
      const bit = 1 << (index & 7)
      if (index >> 3 >= bitmap.length || (byte & bit) !== 0) continue
      bitmap[index >> 3] = byte | bit
      this.nullCount -= 1
    }
    this.length = Math.min(this.length, length)
  }

  /** Ends the column: its base, with the bitmap covering exactly its elements. */
  protected base(): {
    type: DataType
    length: number
    nullCount: number
    validity: Uint8Array | undefined
    bitOffset: number
  } {
    const bytes = (this.length + 7) >> 3
    let validity = this.nullCount === 0 ? undefined : this.#bitmap
    if (validity !== undefined && validity.length < bytes) {
      const grown = new Uint8Array(bytes).fill(255)
      grown.set(validity)
      validity = grown
    }
    const base = {
      type: this.type,
      length: this.length,
      nullCount: this.nullCount,
      validity: validity?.subarray(0, bytes),
      bitOffset: 0,
    }
    this.length = 0
    this.nullCount = 0
    this.#bitmap = undefined
    return base
  }
}
