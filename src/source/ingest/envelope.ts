import type { JsonCursor } from './json-cursor.ts'
import { RecordFault, shown } from './record-fault.ts'

/** Where the parts of a Debezium envelope lie in the text; -1 for what is not there. */
export type Envelope = {
  /** The value of `op`, and where it is. */
  readonly op: string
  readonly opAt: number
  /** Objects; -1 also for null. */
  readonly before: number
  readonly after: number
  /** The schema beside the payload. */
  readonly schemaFrom: number
  readonly schemaTo: number
  /** Behind the envelope. */
  readonly end: number
}

/**
 * Finds the parts of an envelope, bare or under `payload`, whose members may come in any order.
 * @returns nothing for a tombstone: null, or a payload that is
 * @throws RecordFault for what is no envelope
 */
export function scanEnvelope(cursor: JsonCursor): Envelope | undefined {
  const start = cursor.at
  if (cursor.skipSpace() === 110) {
    cursor.skipValue()
    return undefined
  }
  const outer = scanMembers(cursor, ['op', 'before', 'after', 'payload', 'schema'])
  const end = cursor.at
  const payload = outer.get('payload')
  const schema = outer.get('schema')
  let members = outer
  if (payload !== undefined && !outer.has('op')) {
    cursor.at = payload.from
    if (cursor.skipSpace() === 110) {
      cursor.at = end
      return undefined
    }
    members = scanMembers(cursor, ['op', 'before', 'after'])
    cursor.at = end
  }
  const op = members.get('op')
  if (op === undefined) {
    throw new RecordFault(start, 'no Debezium envelope: "op" is missing', 'value', flatFix)
  }
  const objectAt = (name: string): number => {
    const found = members.get(name)
    if (found === undefined || cursor.data[found.from] === 110) return -1
    if (cursor.data[found.from] === 123) return found.from
    throw new RecordFault(found.from, `no Debezium envelope: "${name}" is no object`)
  }
  const envelope = {
    op: opText(cursor, op.from, op.to),
    opAt: op.from,
    before: objectAt('before'),
    after: objectAt('after'),
    schemaFrom: schema?.from ?? -1,
    schemaTo: schema?.to ?? -1,
    end,
  }
  if (schema !== undefined && cursor.data[schema.from] === 110) {
    return { ...envelope, schemaFrom: -1, schemaTo: -1 }
  }
  return envelope
}

const flatFix = 'flat records have their operation in a column: --op-column NAME'

type Span = { readonly from: number; readonly to: number }

/** Goes past the object at the cursor and notes where the values of these members lie. */
function scanMembers(cursor: JsonCursor, wanted: readonly string[]): ReadonlyMap<string, Span> {
  const found = new Map<string, Span>()
  if (cursor.skipSpace() !== 123) throw cursor.unexpected('an object')
  cursor.enter()
  if (cursor.skipSpace() !== 125) {
    for (;;) {
      if (cursor.skipSpace() !== 34) throw cursor.unexpected('a field name in quotes')
      const at = cursor.at
      cursor.scanString()
      const name = cursor.text.toString('utf8', cursor.textFrom, cursor.textTo)
      cursor.expect(58, '":"')
      cursor.skipSpace()
      const from = cursor.at
      cursor.skipValue()
      if (wanted.includes(name)) {
        if (found.has(name)) throw new RecordFault(at, `field "${name}" appears twice`)
        found.set(name, { from, to: cursor.at })
      }
      const byte = cursor.skipSpace()
      if (byte === 125) break
      if (byte !== 44) throw cursor.unexpected('"," or "}"')
      cursor.at += 1
    }
  }
  cursor.leave()
  return found
}

function opText(cursor: JsonCursor, from: number, to: number): string {
  const end = cursor.at
  if (cursor.data[from] !== 34) {
    throw notAnOperation(from, shown(cursor.data.toString('utf8', from, Math.min(to, from + 400))))
  }
  cursor.at = from
  cursor.scanString()
  const text = cursor.text.toString('utf8', cursor.textFrom, cursor.textTo)
  cursor.at = end
  return text
}

/** `op "x" is not an operation`. @param value As JSON writes it. */
export function notAnOperation(at: number, value: string, column = 'op'): RecordFault {
  return new RecordFault(
    at,
    `${column} ${value} is not an operation`,
    'value',
    'c r u d, +I -U +U -D, I U D',
  )
}
