import { inflateRawSync } from 'node:zlib'

/*
 * A reader of Avro object files of its own, from the Avro specification: the oracle shares no code
 * with the writer. Longs are bigints.
 */

export type AvroValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | readonly AvroValue[]
  | AvroObject
export type AvroObject = { readonly [field: string]: AvroValue }

/** Reads one value of one type. */
type Read = (reader: Reader) => AvroValue

class Reader {
  readonly #bytes: Uint8Array
  at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.at >= this.#bytes.length
  }

  byte(): number {
    const byte = this.#bytes[this.at]
    if (byte === undefined) throw new Error('the file ends too early')
    this.at += 1
    return byte
  }

  long(): bigint {
    let low = 0
    let shift = 0
    for (; shift < 28; shift += 7) {
      const byte = this.byte()
      low |= (byte & 0x7f) << shift
      if (byte < 0x80) return BigInt((low >>> 1) ^ -(low & 1))
    }
    let value = BigInt(low)
    for (;;) {
      const byte = this.byte()
      value |= BigInt(byte & 0x7f) << BigInt(shift)
      if (byte < 0x80) return (value >> 1n) ^ -(value & 1n)
      shift += 7
    }
  }

  count(): number {
    const byte = this.#bytes[this.at]
    if (byte === undefined || byte >= 0x80) return Number(this.long())
    this.at += 1
    return (byte >>> 1) ^ -(byte & 1)
  }

  take(length: number): Uint8Array {
    if (length < 0 || this.at + length > this.#bytes.length) throw new Error('the file is cut')
    this.at += length
    return this.#bytes.subarray(this.at - length, this.at)
  }

  text(): string {
    const { buffer, byteOffset, length } = this.take(this.count())
    return Buffer.from(buffer, byteOffset, length).toString('utf8')
  }
}

/** @throws Error when anything about the file is wrong */
export function readAvroFile(bytes: Uint8Array): {
  readonly header: ReadonlyMap<string, string>
  readonly records: readonly AvroObject[]
} {
  const reader = new Reader(bytes)
  if (Buffer.from(reader.take(4)).toString('latin1') !== 'Obj\u0001') throw new Error('not Avro')
  const header = new Map<string, string>()
  for (let count = reader.count(); count !== 0; count = reader.count()) {
    if (count < 0) reader.long()
    for (let each = 0; each < Math.abs(count); each += 1) header.set(reader.text(), reader.text())
  }
  const sync = Buffer.from(reader.take(16))
  const read = readerOf(header.get('avro.schema') ?? 'null')
  const isDeflated = header.get('avro.codec') === 'deflate'
  const records: AvroObject[] = []
  while (!reader.isAtEnd) {
    const count = reader.count()
    const packed = reader.take(reader.count())
    if (sync.compare(reader.take(16)) !== 0) throw new Error('a wrong sync marker')
    const block = new Reader(isDeflated ? inflateRawSync(packed) : packed)
    for (let each = 0; each < count; each += 1) {
      const record = read(block)
      if (!isObject(record)) throw new Error('a record is no record')
      records.push(record)
    }
    if (!block.isAtEnd) throw new Error('a block has bytes left over')
  }
  return { header, records }
}

export function isObject(value: AvroValue | undefined): value is AvroObject {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Uint8Array)
  )
}

/** By the text of their schemas, of which a world has three. */
const readers = new Map<string, Read>()

function readerOf(text: string): Read {
  const known = readers.get(text)
  if (known !== undefined) return known
  const read = compiled(JSON.parse(text))
  readers.set(text, read)
  return read
}

function compiled(schema: unknown): Read {
  if (Array.isArray(schema)) {
    const branches = schema.map(compiled)
    return (reader) => {
      const branch = branches[reader.count()]
      if (branch === undefined) throw new Error('a union has no such branch')
      return branch(reader)
    }
  }
  if (typeof schema === 'object' && schema !== null && 'type' in schema) {
    if (schema.type === 'record' && 'fields' in schema && Array.isArray(schema.fields)) {
      return compiledRecord(schema.fields)
    }
    if (schema.type === 'array' && 'items' in schema) return compiledArray(schema.items)
    if (schema.type === 'fixed' && 'size' in schema) {
      const size = Number(schema.size)
      return (reader) => reader.take(size)
    }
    return compiled(schema.type)
  }
  switch (schema) {
    case 'null':
      return () => null
    case 'boolean':
      return (reader) => reader.byte() === 1
    case 'int':
      return (reader) => reader.count()
    case 'long':
      return (reader) => reader.long()
    case 'string':
      return (reader) => reader.text()
    case 'bytes':
      return (reader) => reader.take(reader.count())
    default:
      throw new Error(`type ${JSON.stringify(schema)} is not known here`)
  }
}

function compiledRecord(fields: readonly unknown[]): Read {
  const members = fields.map((field): readonly [string, Read] => {
    if (typeof field !== 'object' || field === null) throw new Error('a field is no object')
    if (!('name' in field) || !('type' in field)) throw new Error('a field has no name or type')
    return [String(field.name), compiled(field.type)]
  })
  return (reader) => {
    const record: Record<string, AvroValue> = {}
    for (const [name, read] of members) record[name] = read(reader)
    return record
  }
}

function compiledArray(of: unknown): Read {
  const read = compiled(of)
  return (reader) => {
    const items: AvroValue[] = []
    for (let count = reader.count(); count !== 0; count = reader.count()) {
      if (count < 0) reader.long()
      for (let each = 0; each < Math.abs(count); each += 1) items.push(read(reader))
    }
    return items
  }
}
