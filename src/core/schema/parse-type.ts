import { SluiceError } from '../errors.ts'
import { didYouMean } from '../suggest.ts'
import type { DataType, Field } from './types.ts'

/** Types nested deeper than this are refused, as records are. */
const depthMax = 32

const typeNames = [
  'BOOLEAN',
  'TINYINT',
  'SMALLINT',
  'INT',
  'BIGINT',
  'FLOAT',
  'DOUBLE',
  'DECIMAL',
  'CHAR',
  'STRING',
  'BINARY',
  'BYTES',
  'DATE',
  'TIME',
  'TIMESTAMP',
  'TIMESTAMP_LTZ',
  'ARRAY',
  'MAP',
  'ROW',
] as const

/** What other systems call a type, and what Fluss calls it. */
const foreignNames: ReadonlyMap<string, string> = new Map([
  ['INTEGER', 'INT'],
  ['LONG', 'BIGINT'],
  ['VARCHAR', 'STRING'],
  ['TEXT', 'STRING'],
  ['VARBINARY', 'BYTES'],
  ['BLOB', 'BYTES'],
  ['BOOL', 'BOOLEAN'],
  ['REAL', 'FLOAT'],
  ['NUMERIC', 'DECIMAL'],
  ['DATETIME', 'TIMESTAMP'],
  ['TIMESTAMPTZ', 'TIMESTAMP_LTZ'],
  ['STRUCT', 'ROW'],
])

/**
 * Reads a Fluss type string such as `MAP<STRING, DECIMAL(12, 2) NOT NULL>`; words in any case,
 * without `NOT NULL` nullable. `details.at` of an error is the index in `text` of what is wrong.
 * @throws SluiceError SCHEMA_UNSUPPORTED
 */
export function parseType(text: string): DataType {
  const reader: Reader = { text, at: 0, depth: 0 }
  const type = readType(reader)
  skipSpace(reader)
  if (reader.at < text.length) {
    throw problem(reader.at, `type "${text}" goes on with "${text.slice(reader.at)}" after its end`)
  }
  return type
}

type Reader = { readonly text: string; at: number; depth: number }

function readType(reader: Reader): DataType {
  skipSpace(reader)
  const at = reader.at
  const word = /[A-Za-z_][A-Za-z_0-9]*/y
  word.lastIndex = at
  const match = word.exec(reader.text)
  if (match === null) {
    const found = reader.text.slice(at, at + 1)
    throw problem(
      at,
      `type expected in "${reader.text}", ${found === '' ? 'its end' : `"${found}"`} found`,
    )
  }
  reader.at = word.lastIndex
  reader.depth += 1
  if (reader.depth > depthMax) throw problem(at, `type is nested deeper than ${depthMax}`)
  const shape = readShape(reader, match[0], at)
  reader.depth -= 1
  return { ...shape, nullable: !readNotNull(reader) }
}

function readShape(reader: Reader, word: string, at: number): DataType {
  const nullable = true
  const name = word.toUpperCase()
  switch (name) {
    case 'BOOLEAN':
      return { kind: 'boolean', nullable }
    case 'TINYINT':
      return { kind: 'tinyint', nullable }
    case 'SMALLINT':
      return { kind: 'smallint', nullable }
    case 'INT':
      return { kind: 'int', nullable }
    case 'BIGINT':
      return { kind: 'bigint', nullable }
    case 'FLOAT':
      return { kind: 'float', nullable }
    case 'DOUBLE':
      return { kind: 'double', nullable }
    case 'STRING':
      return { kind: 'string', nullable }
    case 'BYTES':
      return { kind: 'bytes', nullable }
    case 'DATE':
      return { kind: 'date', nullable }
    case 'DECIMAL': {
      const [precision = 10, scale = 0] = readNumbers(reader, 2)
      within(at, `precision of ${name}`, precision, 1, 38)
      within(at, `scale of ${name}`, scale, 0, precision)
      return { kind: 'decimal', precision, scale, nullable }
    }
    case 'CHAR': {
      const [length = 1] = readNumbers(reader, 1)
      within(at, `length of ${name}`, length, 1, 2 ** 31 - 1)
      return { kind: 'char', length, nullable }
    }
    case 'BINARY': {
      const [length = 1] = readNumbers(reader, 1)
      within(at, `length of ${name}`, length, 1, 2 ** 31 - 1)
      return { kind: 'binary', length, nullable }
    }
    case 'TIME':
      return { kind: 'time', precision: readPrecision(reader, name, at, 0), nullable }
    case 'TIMESTAMP':
      return { kind: 'timestamp', precision: readPrecision(reader, name, at, 6), nullable }
    case 'TIMESTAMP_LTZ':
      return { kind: 'timestamp_ltz', precision: readPrecision(reader, name, at, 6), nullable }
    case 'ARRAY': {
      expect(reader, '<')
      const element = readType(reader)
      expect(reader, '>')
      return { kind: 'array', element, nullable }
    }
    case 'MAP': {
      expect(reader, '<')
      const key = readType(reader)
      expect(reader, ',')
      const value = readType(reader)
      expect(reader, '>')
      return { kind: 'map', key, value, nullable }
    }
    case 'ROW':
      return { kind: 'row', fields: readFields(reader), nullable }
    default: {
      const fluss = foreignNames.get(name)
      if (fluss !== undefined) throw problem(at, `type "${word}" is called ${fluss} in Fluss`)
      throw problem(
        at,
        `type "${word}" is not known${didYouMean(word, typeNames) || `; types are ${typeNames.join(' ')}`}`,
      )
    }
  }
}

function readFields(reader: Reader): readonly Field[] {
  expect(reader, '<')
  const fields: Field[] = []
  const names = new Set<string>()
  do {
    skipSpace(reader)
    const at = reader.at
    const name = readName(reader)
    if (names.has(name.toLowerCase())) throw problem(at, `field "${name}" appears twice in ROW`)
    names.add(name.toLowerCase())
    fields.push({ name, type: readType(reader) })
  } while (accept(reader, ','))
  expect(reader, '>')
  return fields
}

function readName(reader: Reader): string {
  const name = /`((?:[^`]|``)+)`|([\p{L}_][\p{L}\p{N}_$-]*)/uy
  name.lastIndex = reader.at
  const match = name.exec(reader.text)
  if (match === null) throw problem(reader.at, `field name expected in "${reader.text}"`)
  reader.at = name.lastIndex
  return match[1]?.replaceAll('``', '`') ?? match[2] ?? ''
}

function readPrecision(reader: Reader, name: string, at: number, byDefault: number): number {
  const [precision = byDefault] = readNumbers(reader, 1)
  within(at, `precision of ${name}`, precision, 0, 9)
  return precision
}

/** Up to `count` numbers in parentheses; none when there are no parentheses. */
function readNumbers(reader: Reader, count: number): readonly number[] {
  if (!accept(reader, '(')) return []
  const numbers: number[] = []
  do {
    skipSpace(reader)
    const digits = /\d{1,10}/y
    digits.lastIndex = reader.at
    const match = digits.exec(reader.text)
    if (match === null || numbers.length === count) {
      throw problem(
        reader.at,
        `${count === 1 ? 'one number' : `at most ${count} numbers`} expected in the parentheses of "${reader.text}"`,
      )
    }
    reader.at = digits.lastIndex
    numbers.push(Number(match[0]))
  } while (accept(reader, ','))
  expect(reader, ')')
  return numbers
}

function readNotNull(reader: Reader): boolean {
  const words = /\s+NOT\s+NULL\b/iy
  words.lastIndex = reader.at
  if (!words.test(reader.text)) return false
  reader.at = words.lastIndex
  return true
}

function accept(reader: Reader, sign: string): boolean {
  skipSpace(reader)
  if (!reader.text.startsWith(sign, reader.at)) return false
  reader.at += sign.length
  return true
}

function expect(reader: Reader, sign: string): void {
  if (accept(reader, sign)) return
  const found = reader.text.slice(reader.at, reader.at + 1)
  throw problem(
    reader.at,
    `"${sign}" expected in "${reader.text}", ${found === '' ? 'its end' : `"${found}"`} found`,
  )
}

function skipSpace(reader: Reader): void {
  while (/\s/.test(reader.text.charAt(reader.at))) reader.at += 1
}

function within(at: number, what: string, value: number, from: number, to: number): void {
  if (value < from || value > to)
    throw problem(at, `${what} is ${value}, allowed are ${from} to ${to}`)
}

function problem(at: number, message: string): SluiceError {
  return new SluiceError('SCHEMA_UNSUPPORTED', message, { details: { at } })
}
