import { didYouMean } from '../../core/suggest.ts'
import { type JsonCursor, words } from './json-cursor.ts'
import { RecordFault, shown } from './record-fault.ts'
import { appendNumber, appendPlain, appendString, type Refusal } from './scalar-values.ts'
import type { ObjectNode, ScalarNode, ValueNode } from './value-node.ts'

/** Reads the value at the cursor into a node. */
export type ReadNode = (cursor: JsonCursor, node: ValueNode, table: string) => void

/**
 * Reads the object at the cursor into the builders of `object`, each field once. A field that is not
 * there becomes null. Throws a `RecordFault` and leaves builders half filled: the caller truncates.
 */
export function readObject(
  cursor: JsonCursor,
  object: ObjectNode,
  table: string,
  read: ReadNode = readValue,
): void {
  if (cursor.skipSpace() !== 123) throw cursor.unexpected('an object')
  const start = cursor.at
  cursor.enter()
  object.stamp += 1
  const { seen, stamp, fields } = object
  let expected = 0
  let count = 0
  if (cursor.skipSpace() !== 125) {
    for (;;) {
      if (cursor.skipSpace() !== 34) throw cursor.unexpected('a field name in quotes')
      const at = cursor.at
      const index = fieldAt(cursor, object, expected)
      const field = fields[index]
      cursor.expect(58, '":"')
      if (field === undefined) passUnknown(cursor, object, at, table)
      else {
        if (seen[index] === stamp) throw new RecordFault(at, `field "${field.path}" appears twice`)
        seen[index] = stamp
        count += 1
        expected = index + 1
        read(cursor, field, table)
      }
      const byte = cursor.skipSpace()
      if (byte === 125) break
      if (byte !== 44) throw cursor.unexpected('"," or "}"')
      cursor.at += 1
    }
  }
  cursor.leave()
  if (count < fields.length) appendMissing(object, start, table)
}

/** Reads one value of any type into its node; see `readObject`. */
export function readValue(cursor: JsonCursor, node: ValueNode, table: string): void {
  const byte = cursor.skipSpace()
  if (byte === 110) {
    const at = cursor.at
    cursor.scanWord(words.null)
    if (!node.nullable) throw new RecordFault(at, nullReason(node, 'is null', table))
    node.builder.appendNull()
    return
  }
  if (node.kind === 'array') readArray(cursor, node, table)
  else if (node.kind === 'map') readMap(cursor, node, table)
  else if (node.kind === 'row') {
    if (byte !== 123) throw refusal(cursor, node, cursor.at, '', table)
    readObject(cursor, node.object, table)
    node.builder.close()
  } else readScalar(cursor, node, byte, table)
}

function readScalar(cursor: JsonCursor, node: ScalarNode, byte: number, table: string): void {
  const at = cursor.at
  let why: Refusal
  if (byte === 34) {
    cursor.scanString()
    if (node.isKey && cursor.textFrom === cursor.textTo) {
      throw new RecordFault(at, nullReason(node, 'is empty', table))
    }
    why = appendString(node, cursor.text, cursor.textFrom, cursor.textTo, cursor)
  } else if (byte === 45 || (byte >= 48 && byte <= 57)) {
    cursor.scanNumber()
    why = appendNumber(node, cursor.data, at, cursor.at)
  } else {
    cursor.skipValue()
    if (node.kind === 'boolean' && (byte === 116 || byte === 102)) {
      node.builder.append(byte === 116)
    } else if (node.kind === 'string') {
      // Any other value is kept as its JSON text.
      node.builder.append(cursor.data, at, cursor.at)
    } else why = ''
  }
  if (why !== undefined) throw refusal(cursor, node, at, why, table)
}

export function readArray(
  cursor: JsonCursor,
  node: ValueNode & { readonly kind: 'array' },
  table: string,
  read: ReadNode = readValue,
): void {
  if (cursor.skipSpace() !== 91) throw refusal(cursor, node, cursor.at, '', table)
  cursor.enter()
  if (cursor.skipSpace() !== 93) {
    for (;;) {
      read(cursor, node.element, table)
      const byte = cursor.skipSpace()
      if (byte === 93) break
      if (byte !== 44) throw cursor.unexpected('"," or "]"')
      cursor.at += 1
    }
  }
  cursor.leave()
  node.builder.close()
}

export function readMap(
  cursor: JsonCursor,
  node: ValueNode & { readonly kind: 'map' },
  table: string,
  read: ReadNode = readValue,
): void {
  if (cursor.skipSpace() !== 123) throw refusal(cursor, node, cursor.at, '', table)
  cursor.enter()
  const keys = new Set<string>()
  if (cursor.skipSpace() !== 125) {
    for (;;) {
      if (cursor.skipSpace() !== 34) throw cursor.unexpected('a key in quotes')
      const at = cursor.at
      cursor.scanString()
      const key = cursor.text.toString('latin1', cursor.textFrom, cursor.textTo)
      if (keys.has(key)) {
        throw new RecordFault(at, `key ${shownValue(cursor, at)} appears twice in ${node.path}`)
      }
      keys.add(key)
      const why = appendPlain(node.key, cursor.text, cursor.textFrom, cursor.textTo, cursor)
      if (why !== undefined) throw refusal(cursor, node.key, at, why, table)
      cursor.expect(58, '":"')
      read(cursor, node.value, table)
      const byte = cursor.skipSpace()
      if (byte === 125) break
      if (byte !== 44) throw cursor.unexpected('"," or "}"')
      cursor.at += 1
    }
  }
  cursor.leave()
  node.builder.close()
}

/** Scans the name at the cursor; which field it is, or -1. Mostly the one after the last one. */
export function fieldAt(cursor: JsonCursor, object: ObjectNode, expected: number): number {
  const quoted = object.quoted[expected]
  if (quoted !== undefined) {
    const { data } = cursor
    const from = cursor.at + 1
    let index = 0
    while (index < quoted.length && data[from + index] === quoted[index]) index += 1
    if (index === quoted.length) {
      cursor.at = from + index
      return expected
    }
  }
  cursor.scanString()
  return object.byName.get(cursor.text.toString('utf8', cursor.textFrom, cursor.textTo)) ?? -1
}

/**
 * Goes past the value of a field that the table does not have, if it holds nothing: inference leaves
 * such columns out, so their records must stay readable.
 */
export function passUnknown(
  cursor: JsonCursor,
  object: ObjectNode,
  nameAt: number,
  table: string,
): void {
  cursor.skipSpace()
  const from = cursor.at
  cursor.skipValue()
  const text = cursor.data.toString('utf8', from, cursor.at)
  if (text === 'null' || holdsNothing(JSON.parse(text))) return
  cursor.at = nameAt
  cursor.scanString()
  const name = cursor.text.toString('utf8', cursor.textFrom, cursor.textTo)
  throw new RecordFault(nameAt, unknownField(object, name, table), 'unknown-field')
}

function holdsNothing(value: unknown): boolean {
  if (value === null) return true
  return typeof value === 'object' && Object.values(value).every(holdsNothing)
}

/** `field "gate" is not a column of demo.flights`, with the nearest name. */
export function unknownField(object: ObjectNode, name: string, table: string): string {
  const path = object.path === '' ? name : `${object.path}.${name}`
  return `field "${shown(path)}" is not a column of ${table}${didYouMean(name, object.names)}`
}

function appendMissing(object: ObjectNode, at: number, table: string): void {
  object.fields.forEach((field, index) => {
    if (object.seen[index] === object.stamp) return
    if (!field.nullable) throw new RecordFault(at, nullReason(field, 'is missing', table))
    field.builder.appendNull()
  })
}

/** `id is missing, column id of demo.flights is BIGINT NOT NULL`, or `is the bucket key`. */
export function nullReason(
  node: ValueNode,
  what: 'is null' | 'is missing' | 'is empty',
  table: string,
): string {
  const is = what === 'is empty' || node.role === undefined ? bucketKeyOr(node) : node.role
  return `${node.path} ${what}, column ${node.path} of ${table} is ${is}`
}

function bucketKeyOr(node: ValueNode): string {
  return node.isKey ? 'the bucket key' : node.typeText
}

/** `delay is "n/a", column delay of demo.flights is BIGINT`. */
export function valueReason(node: ValueNode, value: string, why: string, table: string): string {
  const detail = why === '' ? '' : ` (${why})`
  return `${node.path} is ${value}, column ${node.path} of ${table} is ${node.typeText}${detail}`
}

export function refusal(
  cursor: JsonCursor,
  node: ValueNode,
  at: number,
  why: string,
  table: string,
): RecordFault {
  return new RecordFault(at, valueReason(node, shownValue(cursor, at), why, table))
}

/** The JSON text of the value at `at`, as far as it is JSON. */
function shownValue(cursor: JsonCursor, at: number): string {
  cursor.at = at
  // A value that is not JSON itself throws here, and that is then what is wrong with the record.
  cursor.skipValue()
  return shown(cursor.data.toString('utf8', at, Math.min(cursor.at, at + 400)))
}
