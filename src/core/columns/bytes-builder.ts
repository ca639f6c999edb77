import { SluiceError } from '../errors.ts'
import type { Column } from './column.ts'
import { Validity } from './validity-builder.ts'

/** Text and bytes of one batch are addressed by int32 offsets. */
const bytesMax = 2 ** 31 - 1

/** Text (UTF-8) and bytes. */
export class BytesBuilder extends Validity {
  readonly layout = 'bytes'
  #offsets = new Int32Array(257)
  #values = Buffer.allocUnsafeSlow(4096)
  #end = 0

  /** Bytes held so far; lets a parser end a batch before it grows too large. */
  get bytes(): number {
    return this.#end
  }

  append(source: Uint8Array, from = 0, to = source.length): void {
    const size = to - from
    this.#room(size)
    if (size < 48) {
      const target = this.#values
      let end = this.#end
      for (let at = from; at < to; at += 1) target[end++] = source[at] ?? 0
    } else {
      this.#values.set(source.subarray(from, to), this.#end)
    }
    this.#close(size)
  }

  appendText(text: string): void {
    this.#room(text.length * 3)
    this.#close(this.#values.write(text, this.#end, 'utf8'))
  }

  appendNull(): void {
    this.#room(0)
    this.#offsets[this.length + 1] = this.#end
    this.markNull()
  }

  truncate(length: number): void {
    this.#end = this.#offsets[Math.min(length, this.length)] ?? 0
    this.cut(length)
  }

  finish(): Column {
    const offsets = this.#offsets.subarray(0, this.length + 1)
    const values = new Uint8Array(this.#values.buffer, this.#values.byteOffset, this.#end)
    this.#offsets = new Int32Array(Math.max(257, this.length + 1))
    this.#values = Buffer.allocUnsafeSlow(Math.max(4096, this.#end))
    this.#end = 0
    return { ...this.base(), layout: 'bytes', offsets, values }
  }

  #close(size: number): void {
    this.#end += size
    this.#offsets[this.length + 1] = this.#end
    this.length += 1
  }

  #room(size: number): void {
    if (this.length + 1 >= this.#offsets.length) {
      const grown = new Int32Array(this.#offsets.length * 2)
      grown.set(this.#offsets)
      this.#offsets = grown
    }
    const need = this.#end + size
    if (need <= this.#values.length) return
    if (need > bytesMax) {
      throw new SluiceError('LIMIT_EXCEEDED', 'one batch holds more than 2 GiB in a column')
    }
    const grown = Buffer.allocUnsafeSlow(
      Math.min(bytesMax, Math.max(this.#values.length * 2, need)),
    )
    grown.set(this.#values.subarray(0, this.#end))
    this.#values = grown
  }
}
