import { type ColumnBuilder, finishBatch } from '../../core/columns/builder.ts'
import type { ColumnBatch } from '../../core/columns/column.ts'
import { parseJson } from '../../core/json64.ts'
import { check } from '../../core/never.ts'
import { changeOp, type KeptColumns } from '../changelog/change-batch.ts'
import { ConnectFault, type ConnectForm, envelopeColumns } from './connect-schema.ts'
import { readConnect } from './connect-values.ts'
import { type Envelope, notAnOperation, scanEnvelope } from './envelope.ts'
import type { ChangeForm, InputTarget } from './input.ts'
import type { JsonCursor } from './json-cursor.ts'
import { fieldAt, nullReason, passUnknown } from './json-values.ts'
import { isUnavailable } from './unavailable.ts'
import type { JsonSink } from './ndjson-parser.ts'
import { RecordFault, shown } from './record-fault.ts'
import type { ParsedChanges } from './record-parser.ts'
import { type ObjectNode, tableNode, type ValueNode } from './value-node.ts'

/** What the record of a plain input may say that it does. */
const plainOps: ReadonlyMap<string, number> = new Map([
  ['+I', changeOp.upsert],
  ['I', changeOp.upsert],
  ['+U', changeOp.upsert],
  ['U', changeOp.upsert],
  ['-U', changeOp.before],
  ['-D', changeOp.delete],
  ['D', changeOp.delete],
])

/** Which values of a row may be left out. */
type Image = 'row' | 'update'

/** JSON records that are changes, straight into the columns of a primary-key table. */
export class ChangeColumns implements JsonSink {
  readonly #table: string
  readonly #form: ChangeForm
  readonly #node: ObjectNode
  readonly #builders: readonly ColumnBuilder[]
  /** Places of the key's columns, and of others that a row must have. */
  readonly #key: readonly number[]
  readonly #required: ReadonlySet<number>
  readonly #opIndex: number
  /** Changes up to and with each record since the last `take`. */
  #ends: number[] = []
  #ops: number[] = []
  #lines: number[] = []
  /** Changes that keep the old value, by column. */
  readonly #kept: number[][]
  #lacks: number[] = []
  #opText = ''
  #opAt = -1
  #schema: Buffer | undefined
  #forms: ReadonlyMap<string, ConnectForm> = new Map()

  constructor(target: InputTarget, form: ChangeForm) {
    const { fields, primaryKey = [] } = target
    const { node, builders } = tableNode(fields, target.bucketKey)
    const role = primaryKey.length === 1 ? 'the primary key' : 'part of the primary key'
    this.#table = target.table
    this.#form = form
    this.#builders = builders
    this.#key = primaryKey.map((name) => fields.findIndex((field) => field.name === name))
    this.#required = new Set(
      fields.flatMap(({ type }, at) => (type.nullable || this.#key.includes(at) ? [] : [at])),
    )
    this.#opIndex = form.kind === 'op-column' ? fields.length : -2
    this.#kept = fields.map(() => [])
    this.#node = {
      ...node,
      fields: node.fields.map((field, at) =>
        this.#key.includes(at)
          ? { ...field, nullable: false, role }
          : // What a row must have is looked at once it is known to be one.
            { ...field, nullable: true },
      ),
      ...(form.kind === 'op-column'
        ? {
            byName: new Map([...node.byName, [form.column, fields.length]]),
            names: [...node.names, form.column],
          }
        : {}),
    }
  }

  get isOpen(): boolean {
    return this.#form.kind === 'op-column' && this.#ops.at(-1) === changeOp.before
  }

  read(cursor: JsonCursor, line: number): void {
    switch (this.#form.kind) {
      case 'debezium':
        this.#readEnvelope(cursor)
        break
      case 'op-column':
        this.#readPlain(cursor, this.#form.column)
        break
      case 'upserts':
        this.#readImage(cursor, 'row')
        this.#requireAll(cursor.at)
        this.#ops.push(changeOp.upsert)
        break
      default:
    }
    while (this.#lines.length < this.#ops.length) this.#lines.push(line)
    this.#ends.push(this.#ops.length)
  }

  truncate(records: number): void {
    const length = records === 0 ? 0 : (this.#ends[records - 1] ?? 0)
    for (const builder of this.#builders) builder.truncate(length)
    this.#ends.length = records
    this.#ops.length = length
    this.#lines.length = Math.min(this.#lines.length, length)
    for (const rows of this.#kept) while ((rows.at(-1) ?? -1) >= length) rows.pop()
  }

  take(records: number): ColumnBatch {
    check(records === this.#ends.length, 'each record was counted')
    return { ...finishBatch(this.#builders), length: this.#ops.length }
  }

  takeChanges(): ParsedChanges {
    const ops = Uint8Array.from(this.#ops)
    const lines = Uint32Array.from(this.#lines)
    let tombstones = 0
    let before = 0
    for (const end of this.#ends) {
      if (end === before) tombstones += 1
      before = end
    }
    const kept = this.#takeKept(ops.length)
    this.#ends = []
    this.#ops = []
    this.#lines = []
    return { ops, lines, tombstones, ...(kept === undefined ? {} : { kept }) }
  }

  #takeKept(length: number): KeptColumns | undefined {
    if (this.#kept.every((rows) => rows.length === 0)) return undefined
    const columns = this.#kept.map((rows) => {
      if (rows.length === 0) return undefined
      const bits = new Uint8Array((length + 7) >> 3)
      for (const row of rows) bits[row >> 3] = (bits[row >> 3] ?? 0) | (1 << (row & 7))
      rows.length = 0
      return bits
    })
    return { columns, without: 'refuse' }
  }

  #readPlain(cursor: JsonCursor, column: string): void {
    const start = cursor.at
    this.#opAt = -1
    this.#readImage(cursor, 'row')
    if (this.#opAt === -1) {
      throw new RecordFault(start, `${column} is missing, so what the record does is not known`)
    }
    const op = plainOps.get(this.#opText)
    if (op === undefined) {
      throw notAnOperation(this.#opAt, JSON.stringify(shown(this.#opText)), column)
    }
    if (op === changeOp.upsert) this.#requireAll(start)
    this.#ops.push(op)
  }

  #readEnvelope(cursor: JsonCursor): void {
    const envelope = scanEnvelope(cursor)
    if (envelope === undefined) return
    this.#learn(cursor, envelope)
    const { op, opAt, before, after, end } = envelope
    switch (op) {
      case 'c':
      case 'r':
      case 'u': {
        if (after === -1) throw new RecordFault(opAt, `op "${op}" without a row in "after"`)
        if (op === 'u' && before !== -1 && this.#hasOtherKey(cursor, before, after)) {
          cursor.at = before
          this.#readKey(cursor)
          // With the very same key, only written in another way, the two are one update.
          this.#ops.push(changeOp.before)
        }
        cursor.at = after
        this.#readImage(cursor, op === 'u' ? 'update' : 'row')
        this.#requireAll(after)
        this.#ops.push(changeOp.upsert)
        break
      }
      case 'd':
        if (before === -1) {
          throw new RecordFault(
            opAt,
            'op "d" without a row in "before", so its key is not known',
            'value',
            'let the database log the key of deleted rows (PostgreSQL: REPLICA IDENTITY)',
          )
        }
        cursor.at = before
        this.#readKey(cursor)
        this.#ops.push(changeOp.delete)
        break
      default:
        throw notAnOperation(opAt, JSON.stringify(shown(op)))
    }
    cursor.at = end
  }

  /** Reads the schema beside the payload, once for all records that have the same. */
  #learn(cursor: JsonCursor, { schemaFrom, schemaTo }: Envelope): void {
    if (schemaFrom === -1) {
      this.#schema = undefined
      this.#forms = new Map()
      return
    }
    const text = cursor.data.subarray(schemaFrom, schemaTo)
    if (this.#schema?.equals(text) === true) return
    try {
      this.#forms = envelopeColumns(parseJson(text, { name: 'schema' })).forms
    } catch (error) {
      if (!(error instanceof ConnectFault)) throw error
      throw new RecordFault(schemaFrom, error.message, 'value', error.fix)
    }
    this.#schema = Buffer.from(text)
  }

  /** Reads the object at the cursor as one row. Where a value is not given, the old one is kept. */
  #readImage(cursor: JsonCursor, image: Image): void {
    const node = this.#node
    if (cursor.skipSpace() !== 123) throw cursor.unexpected('an object')
    const start = cursor.at
    cursor.enter()
    node.stamp += 1
    this.#lacks = []
    let expected = 0
    if (cursor.skipSpace() !== 125) {
      for (;;) {
        expected = this.#readMember(cursor, expected)
        const byte = cursor.skipSpace()
        if (byte === 125) break
        if (byte !== 44) throw cursor.unexpected('"," or "}"')
        cursor.at += 1
      }
    }
    cursor.leave()
    node.fields.forEach((field, at) => {
      if (node.seen[at] === node.stamp) return
      if (!field.nullable)
        throw new RecordFault(start, nullReason(field, 'is missing', this.#table))
      if (image === 'update') this.#keep(at, field)
      else this.#lack(at, field)
    })
  }

  /** @returns the place of the column that mostly comes next */
  #readMember(cursor: JsonCursor, expected: number): number {
    const { fields, seen, stamp } = this.#node
    if (cursor.skipSpace() !== 34) throw cursor.unexpected('a field name in quotes')
    const at = cursor.at
    const index = fieldAt(cursor, this.#node, expected)
    if (index === -1 && this.#form.kind !== 'debezium') this.#refuseEnvelope(cursor, at)
    cursor.expect(58, '":"')
    if (index === this.#opIndex) {
      if (this.#opAt !== -1) throw new RecordFault(at, 'the operation appears twice')
      this.#readOp(cursor)
      return expected
    }
    const field = fields[index]
    if (field === undefined) {
      passUnknown(cursor, this.#node, at, this.#table)
      return expected
    }
    if (seen[index] === stamp) throw new RecordFault(at, `field "${field.path}" appears twice`)
    seen[index] = stamp
    const byte = cursor.skipSpace()
    if (byte === 110 && field.nullable) {
      cursor.skipValue()
      this.#lack(index, field)
    } else if (this.#form.kind === 'debezium' && isUnavailable(cursor, field)) {
      if (!field.nullable)
        throw new RecordFault(
          cursor.at,
          `${field.path} has no value, and is ${field.role ?? 'a key'}`,
        )
      cursor.skipValue()
      this.#keep(index, field)
    } else readConnect(cursor, field, this.#forms.get(field.path), this.#table)
    return index + 1
  }

  #readOp(cursor: JsonCursor): void {
    const column = this.#form.kind === 'op-column' ? this.#form.column : ''
    cursor.skipSpace()
    this.#opAt = cursor.at
    if (cursor.data[cursor.at] === 34) {
      cursor.scanString()
      this.#opText = cursor.text.toString('utf8', cursor.textFrom, cursor.textTo)
      return
    }
    cursor.skipValue()
    const text = cursor.data.toString('utf8', this.#opAt, Math.min(cursor.at, this.#opAt + 400))
    throw notAnOperation(this.#opAt, shown(text), column)
  }

  /** Reads the key's columns of the object at the cursor as a row without any other value. */
  #readKey(cursor: JsonCursor): void {
    const node = this.#node
    const start = cursor.at
    node.stamp += 1
    cursor.enter()
    if (cursor.skipSpace() !== 125) {
      for (;;) {
        if (cursor.skipSpace() !== 34) throw cursor.unexpected('a field name in quotes')
        const at = cursor.at
        const index = fieldAt(cursor, node, -1)
        cursor.expect(58, '":"')
        const field = node.fields[index]
        if (field === undefined || !this.#key.includes(index)) cursor.skipValue()
        else {
          if (node.seen[index] === node.stamp) {
            throw new RecordFault(at, `field "${field.path}" appears twice`)
          }
          node.seen[index] = node.stamp
          readConnect(cursor, field, this.#forms.get(field.path), this.#table)
        }
        const byte = cursor.skipSpace()
        if (byte === 125) break
        if (byte !== 44) throw cursor.unexpected('"," or "}"')
        cursor.at += 1
      }
    }
    cursor.leave()
    node.fields.forEach((field, at) => {
      if (!this.#key.includes(at)) field.builder.appendNull()
      else if (node.seen[at] !== node.stamp) {
        throw new RecordFault(start, nullReason(field, 'is missing', this.#table))
      }
    })
  }

  /** Whether two rows name their keys with other texts. A key that is not there is the same. */
  #hasOtherKey(cursor: JsonCursor, before: number, after: number): boolean {
    const { data } = cursor
    const spans = this.#keySpans(cursor, before)
    const others = this.#keySpans(cursor, after)
    return this.#key.some((_, at) => {
      const [from = -1, to = -1] = [spans[2 * at], spans[2 * at + 1]]
      const [otherFrom = -1, otherTo = -1] = [others[2 * at], others[2 * at + 1]]
      if (from === -1 || otherFrom === -1) return false
      return data.compare(data, from, to, otherFrom, otherTo) !== 0
    })
  }

  /** Where the values of the key's columns lie, from and to of each, in the object at `at`. */
  #keySpans(cursor: JsonCursor, at: number): Int32Array {
    const spans = new Int32Array(2 * this.#key.length).fill(-1)
    let left = this.#key.length
    cursor.at = at + 1
    if (cursor.skipSpace() === 125) return spans
    while (left > 0) {
      cursor.skipSpace()
      const column = this.#key.indexOf(fieldAt(cursor, this.#node, -1))
      cursor.expect(58, '":"')
      cursor.skipSpace()
      const from = cursor.at
      cursor.skipValue()
      if (column !== -1) {
        spans[2 * column] = from
        spans[2 * column + 1] = cursor.at
        left -= 1
      }
      if (cursor.skipSpace() === 125) break
      cursor.at += 1
    }
    return spans
  }

  #keep(at: number, field: ValueNode): void {
    field.builder.appendNull()
    this.#kept[at]?.push(this.#ops.length)
  }

  #lack(at: number, field: ValueNode): void {
    field.builder.appendNull()
    if (this.#required.has(at)) this.#lacks.push(at)
  }

  /** A row has a value in every column that is NOT NULL; what is deleted need not. */
  #requireAll(at: number): void {
    const field = this.#node.fields[this.#lacks[0] ?? -1]
    if (field === undefined) return
    throw new RecordFault(at, nullReason(field, 'is null', this.#table))
  }

  /** Says what helps when whole envelopes are read as if they were rows. */
  #refuseEnvelope(cursor: JsonCursor, at: number): void {
    const name = cursor.text.toString('utf8', cursor.textFrom, cursor.textTo)
    refuseEnvelope(cursor, name, at)
  }
}

/**
 * Refuses a member that makes a record an envelope. The cursor is behind its name.
 * @throws RecordFault
 */
export function refuseEnvelope(cursor: JsonCursor, name: string, at: number): void {
  const isAround = name === 'payload' || name === 'schema'
  if (name !== 'before' && name !== 'after' && !isAround) return
  const { at: behind } = cursor
  cursor.expect(58, '":"')
  const isObject = cursor.skipSpace() === 123
  const from = cursor.at
  if (isObject) cursor.skipValue()
  const text = cursor.data.toString('latin1', from, cursor.at)
  cursor.at = behind
  if (!isObject || (isAround && !/"(before|after)"/.test(text))) return
  throw new RecordFault(
    at,
    `"${name}" makes it a Debezium envelope, not a flat record`,
    'value',
    '--cdc debezium',
  )
}
