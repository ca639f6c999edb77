import { isUtf8 } from 'node:buffer'
import { isSluiceError, type SluiceError } from '../../core/errors.ts'
import { type InputBytes, idle } from './input-bytes.ts'

/**
 * The part of a text that is in memory: bytes `[from, to)` of `data`, behind which there is room for
 * one sentinel byte.
 */
export class TextWindow {
  data: Buffer
  from = 0
  to: number
  /**
   * Whether more may come: `whole` ends the last record although it has no newline, `open` does not,
   * since the text ends before its end.
   */
  end: 'none' | 'whole' | 'open' = 'none'
  /** Nothing more was there when it was last asked for. */
  isIdle = false
  /** Why the text ended before its end. */
  failure: SluiceError | undefined
  /** Some whole line has bytes that are not UTF-8. */
  isDoubtful = false
  readonly #bytes: InputBytes
  readonly #follow: boolean
  #checkedTo = 0

  /** @param rest Bytes that were read already. */
  constructor(bytes: InputBytes, rest: Uint8Array, follow: boolean) {
    this.#bytes = bytes
    this.#follow = follow
    this.data = Buffer.allocUnsafeSlow(Math.max(rest.length + 1, 1024 * 1024))
    this.data.set(rest)
    this.to = rest.length
  }

  get size(): number {
    return this.to - this.from
  }

  /** Takes the next bytes in, or learns that there are none. */
  async fill(): Promise<void> {
    let chunk: Uint8Array | undefined
    try {
      chunk = await this.#bytes.read()
    } catch (error) {
      if (!isSluiceError(error)) throw error
      this.failure = error
      this.end = 'open'
      return
    }
    this.isIdle = chunk === idle
    if (chunk === undefined) {
      // What was cut off under `follow` stays for the next run.
      this.end = this.#follow ? 'open' : 'whole'
      return
    }
    this.#makeRoom(chunk.length)
    this.data.set(chunk, this.to)
    this.to += chunk.length
  }

  /** Looks once at all whole lines for bytes that are not UTF-8. */
  checkText(): void {
    if (this.from >= this.#checkedTo) this.isDoubtful = false
    const from = Math.max(this.from, this.#checkedTo)
    const last = this.to > from ? this.data.lastIndexOf(10, this.to - 1) + 1 : from
    const to = this.end === 'whole' ? this.to : Math.max(from, last)
    if (to > from && !isUtf8(this.data.subarray(from, to))) this.isDoubtful = true
    this.#checkedTo = to
  }

  #makeRoom(size: number): void {
    if (this.to + size + 1 <= this.data.length) return
    const kept = this.size
    const need = kept + size + 1
    const target =
      need <= this.data.length
        ? this.data
        : Buffer.allocUnsafeSlow(Math.max(need, 2 * this.data.length))
    target.set(this.data.subarray(this.from, this.to))
    this.data = target
    this.#checkedTo = Math.max(0, this.#checkedTo - this.from)
    this.from = 0
    this.to = kept
  }
}
