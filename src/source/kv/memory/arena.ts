const chunkBits = 20
export const chunkBytes = 1 << chunkBits
const chunkBytesMin = 1_024
const chunksMax = 2 ** (32 - chunkBits) - 1

/** Where in its chunk a position lies. */
export function offsetOf(position: number): number {
  return position & (chunkBytes - 1)
}

/**
 * Bytes that are only ever added to, in chunks, so that growing copies nothing and a view of a few
 * bytes keeps one chunk alive and not all. A position is the number of a chunk and an offset in it,
 * as one unsigned 32-bit number; what is taken at once lies in one chunk.
 */
export class Arena {
  readonly #chunks: Uint8Array[] = []
  #current = -1
  #end = 0
  #room = 0
  #bytes = 0

  /** Bytes of all chunks, free room included. */
  get bytes(): number {
    return this.#bytes
  }

  chunkAt(position: number): Uint8Array {
    return this.#chunks[position >>> chunkBits] ?? nothing
  }

  /** Takes room and answers its position. */
  take(bytes: number): number {
    const start = this.#end
    if (start + bytes > this.#room) return this.#takeMore(bytes)
    this.#end = start + bytes
    return ((this.#current << chunkBits) | start) >>> 0
  }

  /** Gives free room of the last chunk back, where that is worth a copy. */
  trim(): void {
    const chunk = this.#chunks[this.#current]
    if (chunk === undefined || this.#end > chunk.length * slackShare) return
    this.#replace(this.#current, chunk.slice(0, this.#end))
    this.#room = this.#end
  }

  #takeMore(bytes: number): number {
    if (bytes > chunkBytes) return (this.#add(bytes) << chunkBits) >>> 0
    const chunk = this.#chunks[this.#current]
    if (chunk !== undefined && this.#end + bytes <= chunkBytes) {
      const length = Math.min(chunkBytes, Math.max(2 * chunk.length, this.#end + bytes))
      const grown = new Uint8Array(length)
      grown.set(chunk)
      this.#replace(this.#current, grown)
    } else {
      const length = this.#current < 0 ? Math.max(chunkBytesMin, bytes) : chunkBytes
      this.#current = this.#add(length)
      this.#end = 0
    }
    this.#room = this.chunkAt(this.#current << chunkBits).length
    return this.take(bytes)
  }

  #add(bytes: number): number {
    const number = this.#chunks.length
    if (number >= chunksMax) throw new RangeError('a table in memory has no more positions')
    this.#chunks.push(new Uint8Array(bytes))
    this.#bytes += bytes
    return number
  }

  #replace(number: number, chunk: Uint8Array): void {
    this.#bytes += chunk.length - (this.#chunks[number]?.length ?? 0)
    this.#chunks[number] = chunk
  }
}

const nothing = new Uint8Array(0)
const slackShare = 0.8
