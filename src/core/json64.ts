import { type ErrorCode, SluiceError } from './errors.ts'
import { formatCount } from './text.ts'

/**
 * JSON without loss. Integers that a number holds exactly are numbers, all others are bigints.
 * Parsed objects have no prototype, so `__proto__` is a key like any other; their keys come in the
 * order of the text, except that keys which look like array indexes come first.
 */
export type JsonValue = null | boolean | number | bigint | string | JsonArray | JsonObject
export type JsonArray = readonly JsonValue[]
/** `undefined` members are left out when written. */
export type JsonObject = { readonly [key: string]: JsonValue | undefined }

export type JsonLimits = {
  /** What the text is, for messages: a file, or `ledger of snapshot 17`. */
  readonly name: string
  /** Code of the error; `DATA_CORRUPT` if left out. */
  readonly code?: ErrorCode
  /** Longest text in bytes; 256 MiB if left out. */
  readonly bytesMax?: number
}

/** Deeper nesting than any table has; a bound because the parser recurses. */
const depthMax = 200
/** Digits of one integer: converting is quadratic, and no field of ours has more than 20. */
const digitsMax = 1000
const bytesMaxDefault = 256 * 1024 * 1024

/**
 * Reads one JSON text (RFC 8259), UTF-8 if it comes as bytes. A key that appears twice in an object
 * is refused, since readers differ in which one they take.
 * @throws SluiceError of the given code; `details.byte` is where the text stops being JSON.
 */
export function parseJson(input: string | Uint8Array, limits: JsonLimits): JsonValue {
  const bytes = typeof input === 'string' ? Buffer.byteLength(input) : input.length
  const bytesMax = limits.bytesMax ?? bytesMaxDefault
  if (bytes > bytesMax) {
    throw new SluiceError(
      limits.code ?? 'DATA_CORRUPT',
      `${limits.name}: ${formatCount(bytes)} bytes of JSON, at most ${formatCount(bytesMax)}`,
      { details: { file: limits.name, bytes, bytesMax } },
    )
  }
  const text = typeof input === 'string' ? input : decodeUtf8(input, limits)
  return new Parser(text, limits).document()
}

/** Writes compact JSON. Bigints are written as digits, never as strings. */
export function stringifyJson(value: JsonValue): string {
  return write(value)
}

/** True for what `parseJson` returns for `{…}`. */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !isJsonArray(value)
}

/** True for what `parseJson` returns for `[…]`. */
export function isJsonArray(value: JsonValue | undefined): value is JsonArray {
  return Array.isArray(value)
}

function write(value: JsonValue): string {
  switch (typeof value) {
    case 'string':
      return quoted(value)
    case 'bigint':
      return value.toString()
    case 'number':
      return writeNumber(value)
    case 'boolean':
      return value ? 'true' : 'false'
    case 'object':
      break
    default:
      throw new SluiceError('INVARIANT_BROKEN', `${typeof value} has no JSON form`)
  }
  if (value === null) return 'null'
  let text = ''
  if (isJsonArray(value)) {
    for (const element of value) text += text === '' ? write(element) : `,${write(element)}`
    return `[${text}]`
  }
  for (const key of Object.keys(value)) {
    const member = value[key]
    if (member === undefined) continue
    text += `${text === '' ? '' : ','}${quoted(key)}:${write(member)}`
  }
  return `{${text}}`
}

/** What JSON cannot hold as it is, and halves of surrogate pairs, which need their other half. */
const escaped = /["\\\u0000-\u001f\ud800-\udfff]/

function quoted(text: string): string {
  return escaped.test(text) ? JSON.stringify(text) : `"${text}"`
}

function writeNumber(value: number): string {
  if (!Number.isFinite(value)) {
    throw new SluiceError('INVARIANT_BROKEN', `${String(value)} has no JSON form`)
  }
  if (Object.is(value, -0)) return '-0'
  // With an exponent it is read back as the same number and not as a bigint.
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) return value.toExponential()
  return String(value)
}

function decodeUtf8(bytes: Uint8Array, limits: JsonLimits): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
  if (!text.includes('\ufffd')) return text
  // Bytes that are not UTF-8 became U+FFFD; the first difference is where that began.
  const again = Buffer.from(text)
  const end = Math.min(again.length, bytes.length)
  let at = 0
  while (at < end && again[at] === bytes[at]) at += 1
  if (at === again.length && at === bytes.length) return text
  throw syntaxError(limits, at, 'not UTF-8')
}

function syntaxError(limits: JsonLimits, byte: number, reason: string): SluiceError {
  return new SluiceError(
    limits.code ?? 'DATA_CORRUPT',
    `${limits.name}: not JSON from byte ${formatCount(byte)} on (${reason})`,
    { details: { file: limits.name, byte, reason } },
  )
}

/**
 * An object without members and without a prototype, to be filled. The engine keeps what
 * `Object.create(null)` gives as a hash table, several times slower to fill and to walk.
 */
export function bareObject(): Record<string, JsonValue> {
  return Object.setPrototypeOf({}, null) as Record<string, JsonValue>
}

const numberPattern = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y

const quote = 0x22
const comma = 0x2c
const colon = 0x3a
const openBracket = 0x5b
const backslash = 0x5c
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

class Parser {
  readonly #text: string
  readonly #limits: JsonLimits
  #at = 0

  constructor(text: string, limits: JsonLimits) {
    this.#text = text
    this.#limits = limits
  }

  document(): JsonValue {
    const value = this.#value(0)
    this.#look()
    if (this.#at < this.#text.length) throw this.#error('more text after the value')
    return value
  }

  /** Goes on to what is no space. @returns its code, NaN at the end */
  #look(): number {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return code
      this.#at += 1
    }
  }

  #value(depth: number): JsonValue {
    if (depth > depthMax) throw this.#error(`nested more than ${depthMax} deep`)
    switch (this.#look()) {
      case openBrace:
        return this.#object(depth)
      case openBracket:
        return this.#array(depth)
      case quote:
        return this.#string()
      case 0x74:
        return this.#word('true', true)
      case 0x66:
        return this.#word('false', false)
      case 0x6e:
        return this.#word('null', null)
      default:
        return this.#number()
    }
  }

  #object(depth: number): JsonObject {
    const object = bareObject()
    this.#at += 1
    if (this.#look() === closeBrace) {
      this.#at += 1
      return object
    }
    for (;;) {
      if (this.#look() !== quote) throw this.#error('a key in quotes should be here')
      const start = this.#at
      const key = this.#string()
      if (object[key] !== undefined) {
        this.#at = start
        throw this.#error(`key ${JSON.stringify(key)} is there twice`)
      }
      if (this.#look() !== colon) throw this.#error('":" should be here')
      this.#at += 1
      object[key] = this.#value(depth + 1)
      if (this.#ends(closeBrace, '"," or "}" should be here')) return object
    }
  }

  #array(depth: number): JsonArray {
    const array: JsonValue[] = []
    this.#at += 1
    if (this.#look() === closeBracket) {
      this.#at += 1
      return array
    }
    for (;;) {
      array.push(this.#value(depth + 1))
      if (this.#ends(closeBracket, '"," or "]" should be here')) return array
    }
  }

  /** Takes a comma, after which there is more, or what closes an object or array. */
  #ends(close: number, expected: string): boolean {
    const code = this.#look()
    if (code !== comma && code !== close) throw this.#error(expected)
    this.#at += 1
    return code === close
  }

  #string(): string {
    const text = this.#text
    const start = this.#at
    let isPlain = true
    for (let at = start + 1; at < text.length; at += 1) {
      const code = text.charCodeAt(at)
      if (code === quote) {
        this.#at = at + 1
        return isPlain ? text.slice(start + 1, at) : this.#unescape(start, at + 1)
      }
      if (code < 0x20) {
        this.#at = at
        throw this.#error('a control character inside a string')
      }
      if (code === backslash) {
        isPlain = false
        at += 1
      }
    }
    this.#at = text.length
    throw this.#error('file is cut')
  }

  #unescape(start: number, end: number): string {
    const source = this.#text.slice(start, end)
    try {
      return String(JSON.parse(source))
    } catch {
      // JSON.parse of one string is exact; only its error lacks the place.
      const bad = /\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})/.exec(source.replaceAll('\\\\', '__'))
      this.#at = start + (bad?.index ?? 0)
      throw this.#error('an unknown escape')
    }
  }

  #number(): number | bigint {
    numberPattern.lastIndex = this.#at
    const match = numberPattern.exec(this.#text)
    if (match === null) throw this.#error('a value should be here')
    const [digits, fraction, exponent] = match
    if (fraction === undefined && exponent === undefined) {
      if (digits.length <= 15) {
        this.#at += digits.length
        return Number(digits)
      }
      if (digits.length > digitsMax) throw this.#error(`more than ${digitsMax} digits`)
      const exact = BigInt(digits)
      this.#at += digits.length
      const isSafe = exact >= Number.MIN_SAFE_INTEGER && exact <= Number.MAX_SAFE_INTEGER
      return isSafe ? Number(exact) : exact
    }
    const value = Number(digits)
    if (!Number.isFinite(value)) throw this.#error('a number out of range')
    this.#at += digits.length
    return value
  }

  #word<Value extends JsonValue>(word: string, value: Value): Value {
    if (!this.#text.startsWith(word, this.#at)) throw this.#error('a value should be here')
    this.#at += word.length
    return value
  }

  #error(reason: string): SluiceError {
    const isCut = this.#at >= this.#text.length
    const byte = Buffer.byteLength(this.#text.slice(0, this.#at))
    return syntaxError(this.#limits, byte, isCut ? 'file is cut' : reason)
  }
}
