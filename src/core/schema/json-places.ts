/** A JSON value with where it begins, for messages about a file that people write. */
export type PlacedJson = { readonly at: number } & (
  | { readonly kind: 'object'; readonly members: readonly PlacedMember[] }
  | { readonly kind: 'array'; readonly elements: readonly PlacedJson[] }
  | { readonly kind: 'string'; readonly text: string }
  /** The number as written. */
  | { readonly kind: 'number'; readonly text: string }
  | { readonly kind: 'boolean'; readonly value: boolean }
  | { readonly kind: 'null' }
)

export type PlacedMember = {
  readonly name: string
  readonly at: number
  readonly value: PlacedJson
}

/** JSON that is none, or an object with a key twice. */
export class JsonFault extends Error {
  override readonly name = 'JsonFault'
  readonly at: number

  constructor(at: number, message: string) {
    super(message)
    this.at = at
  }
}

/** Nesting of a value, 1 for a scalar. */
const depthMax = 64

/**
 * Reads one JSON document and keeps each value's index in `text`.
 * @throws JsonFault
 */
export function parsePlacedJson(text: string): PlacedJson {
  const reader = { text, at: 0 }
  const value = readValue(reader, 1)
  skipSpace(reader)
  if (reader.at < text.length) throw unexpected(reader, 'the end')
  return value
}

/** Line and column, from 1, of an index in a text. */
export function placeOf(text: string, at: number): { line: number; column: number } {
  const before = text.slice(0, at)
  const line = before.split('\n').length
  return { line, column: Array.from(before.slice(before.lastIndexOf('\n') + 1)).length + 1 }
}

type Reader = { readonly text: string; at: number }

function readValue(reader: Reader, depth: number): PlacedJson {
  skipSpace(reader)
  const at = reader.at
  if (depth > depthMax) throw new JsonFault(at, `nested deeper than ${depthMax}`)
  const first = reader.text.charAt(at)
  if (first === '{') return { at, kind: 'object', members: readMembers(reader, depth) }
  if (first === '[') return { at, kind: 'array', elements: readElements(reader, depth) }
  if (first === '"') return { at, kind: 'string', text: readString(reader) }
  const word = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
  word.lastIndex = at
  const match = word.exec(reader.text)
  if (match === null) throw unexpected(reader, 'a value')
  reader.at = word.lastIndex
  const [found] = match
  if (found === 'null') return { at, kind: 'null' }
  if (found === 'true' || found === 'false') return { at, kind: 'boolean', value: found === 'true' }
  return { at, kind: 'number', text: found }
}

function readMembers(reader: Reader, depth: number): readonly PlacedMember[] {
  const members: PlacedMember[] = []
  const names = new Set<string>()
  reader.at += 1
  if (accept(reader, '}')) return members
  do {
    skipSpace(reader)
    const at = reader.at
    if (reader.text.charAt(at) !== '"') throw unexpected(reader, 'a name in quotes')
    const name = readString(reader)
    if (names.has(name)) throw new JsonFault(at, `"${name}" appears twice`)
    names.add(name)
    if (!accept(reader, ':')) throw unexpected(reader, '":"')
    members.push({ name, at, value: readValue(reader, depth + 1) })
  } while (accept(reader, ','))
  if (!accept(reader, '}')) throw unexpected(reader, '"," or "}"')
  return members
}

function readElements(reader: Reader, depth: number): readonly PlacedJson[] {
  const elements: PlacedJson[] = []
  reader.at += 1
  if (accept(reader, ']')) return elements
  do elements.push(readValue(reader, depth + 1))
  while (accept(reader, ','))
  if (!accept(reader, ']')) throw unexpected(reader, '"," or "]"')
  return elements
}

function readString(reader: Reader): string {
  const string = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y
  string.lastIndex = reader.at
  const match = string.exec(reader.text)
  if (match === null) throw new JsonFault(reader.at, 'not JSON: a string that is not closed')
  reader.at = string.lastIndex
  const text: unknown = JSON.parse(match[0])
  return String(text)
}

function accept(reader: Reader, sign: string): boolean {
  skipSpace(reader)
  if (reader.text.charAt(reader.at) !== sign) return false
  reader.at += 1
  return true
}

function skipSpace(reader: Reader): void {
  while (/[ \t\r\n]/.test(reader.text.charAt(reader.at))) reader.at += 1
}

function unexpected(reader: Reader, what: string): JsonFault {
  const found = reader.text.charAt(reader.at)
  const shown = found === '' ? 'the file ends' : `${JSON.stringify(found)} found`
  return new JsonFault(reader.at, `not JSON: ${what} expected, ${shown}`)
}
