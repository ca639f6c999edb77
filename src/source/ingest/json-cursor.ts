import { RecordFault } from './record-fault.ts'
import { scanNumber } from './scalar-values.ts'

/** Nesting of a record: the record itself is level 1. */
export const depthMax = 32

/**
 * A place in UTF-8 JSON text that is read in one pass, without an object per value. The text must
 * end in a newline: it belongs to no token, so every scan stops there and none checks for the end.
 * Each method throws a `RecordFault` at what is not JSON.
 */
export class JsonCursor {
  data: Buffer = Buffer.alloc(0)
  at = 0
  depth = 0
  /** Where the last scanned string lies, escapes undone. */
  text: Buffer = this.data
  textFrom = 0
  textTo = 0
  /** Digits cut from values whose column allows it; see `LossCount`. */
  losses = 0
  #unescaped = Buffer.allocUnsafeSlow(4096)

  start(data: Buffer, at: number): void {
    this.data = data
    this.at = at
    this.depth = 0
  }

  /** Goes past spaces and returns the byte found. */
  skipSpace(): number {
    const data = this.data
    let at = this.at
    let byte = data[at] ?? 0
    while (byte === 32 || byte === 9 || byte === 13) byte = data[++at] ?? 0
    this.at = at
    return byte
  }

  expect(byte: number, what: string): void {
    if (this.skipSpace() !== byte) throw this.unexpected(what)
    this.at += 1
  }

  enter(): void {
    this.depth += 1
    if (this.depth > depthMax) throw new RecordFault(this.at, `nested deeper than ${depthMax}`)
    this.at += 1
  }

  leave(): void {
    this.depth -= 1
    this.at += 1
  }

  /** Scans the string whose opening quote is at `at`, into `text`, and goes past it. */
  scanString(): void {
    const data = this.data
    const first = this.at + 1
    let at = first
    for (;;) {
      const byte = data[at] ?? 0
      if (byte === 34) break
      if (byte === 92) {
        this.#scanEscaped(first, at)
        return
      }
      if (byte < 32) throw this.#controlIn(at, byte)
      at += 1
    }
    this.text = data
    this.textFrom = first
    this.textTo = at
    this.at = at + 1
  }

  /** Checks the number at `at`, goes past it, and returns where it began. */
  scanNumber(): number {
    const from = this.at
    const to = scanNumber(this.data, from)
    if (to === -1) throw this.unexpected('a value')
    this.at = to
    return from
  }

  scanWord(word: Uint8Array): void {
    const data = this.data
    for (let index = 0; index < word.length; index += 1) {
      if (data[this.at + index] !== word[index]) throw this.unexpected('a value')
    }
    this.at += word.length
  }

  /** Goes past one value of any type. */
  skipValue(): void {
    const byte = this.skipSpace()
    if (byte === 34) this.scanString()
    else if (byte === 123) this.#skipMembers(125)
    else if (byte === 91) this.#skipMembers(93)
    else if (byte === 116) this.scanWord(words.true)
    else if (byte === 102) this.scanWord(words.false)
    else if (byte === 110) this.scanWord(words.null)
    else this.scanNumber()
  }

  unexpected(what: string): RecordFault {
    const byte = this.data[this.at] ?? 10
    if (byte === 10) return new RecordFault(this.at, `not JSON: ${what} expected, the line ends`)
    const found = byte < 128 ? JSON.stringify(String.fromCharCode(byte)) : 'another sign'
    return new RecordFault(this.at, `not JSON: ${what} expected, ${found} found`)
  }

  #skipMembers(close: number): void {
    this.enter()
    if (this.skipSpace() === close) {
      this.leave()
      return
    }
    for (;;) {
      if (close === 125) {
        if (this.skipSpace() !== 34) throw this.unexpected('a field name in quotes')
        this.scanString()
        this.expect(58, '":"')
      }
      this.skipValue()
      const byte = this.skipSpace()
      if (byte === close) break
      if (byte !== 44) throw this.unexpected(close === 125 ? '"," or "}"' : '"," or "]"')
      this.at += 1
    }
    this.leave()
  }

  #scanEscaped(first: number, backslash: number): void {
    const data = this.data
    let end = this.#keep(0, first, backslash)
    let at = backslash
    for (;;) {
      const byte = data[at] ?? 0
      if (byte === 34) break
      if (byte < 32) throw this.#controlIn(at, byte)
      if (byte !== 92) {
        let plain = at + 1
        for (;;) {
          const next = data[plain] ?? 0
          if (next === 34 || next === 92 || next < 32) break
          plain += 1
        }
        end = this.#keep(end, at, plain)
        at = plain
        continue
      }
      const letter = data[at + 1] ?? 0
      if (letter === 117) {
        const { point, next } = this.#codePoint(at)
        end = this.#keepPoint(end, point)
        at = next
        continue
      }
      const plain = escapes.get(letter)
      if (plain === undefined) throw new RecordFault(at, 'not JSON: unknown escape in a string')
      end = this.#keepPoint(end, plain)
      at += 2
    }
    this.text = this.#unescaped
    this.textFrom = 0
    this.textTo = end
    this.at = at + 1
  }

  #codePoint(at: number): { point: number; next: number } {
    const high = this.#hex(at + 2)
    if (high < 0xd800 || high > 0xdfff) return { point: high, next: at + 6 }
    const follows = this.data[at + 6] === 92 && this.data[at + 7] === 117
    const low = high < 0xdc00 && follows ? this.#hex(at + 8) : 0
    if (low < 0xdc00 || low > 0xdfff) {
      throw new RecordFault(at, 'an escape in a string is half of a surrogate pair')
    }
    return { point: 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00), next: at + 12 }
  }

  #hex(at: number): number {
    const text = this.data.toString('latin1', at, at + 4)
    if (!/^[0-9A-Fa-f]{4}$/.test(text)) {
      throw new RecordFault(at, 'not JSON: four hexadecimal digits expected')
    }
    return Number.parseInt(text, 16)
  }

  #keep(end: number, from: number, to: number): number {
    this.#room(end + to - from)
    this.data.copy(this.#unescaped, end, from, to)
    return end + to - from
  }

  #keepPoint(end: number, point: number): number {
    this.#room(end + 4)
    return end + this.#unescaped.write(String.fromCodePoint(point), end, 'utf8')
  }

  #room(size: number): void {
    if (size <= this.#unescaped.length) return
    const grown = Buffer.allocUnsafeSlow(Math.max(size, this.#unescaped.length * 2))
    this.#unescaped.copy(grown)
    this.#unescaped = grown
  }

  #controlIn(at: number, byte: number): RecordFault {
    if (byte === 10) return new RecordFault(at, 'not JSON: the line ends inside a string')
    return new RecordFault(at, 'not JSON: a control character inside a string')
  }
}

export const words = {
  true: Buffer.from('true'),
  false: Buffer.from('false'),
  null: Buffer.from('null'),
} as const

const escapes: ReadonlyMap<number, number> = new Map([
  [34, 34],
  [92, 92],
  [47, 47],
  [98, 8],
  [102, 12],
  [110, 10],
  [114, 13],
  [116, 9],
])
