import avro from 'avsc'
import { Decompress } from 'fzstd'
import { inflateRawSync } from 'node:zlib'
import { damage } from './damage.ts'

export type AvroRecord = Readonly<Record<string, unknown>>

/** An Avro object container file, opened: its header, and its records one block at a time. */
export type AvroContainer = {
  readonly schema: unknown
  readonly header: ReadonlyMap<string, Buffer>
  /** Longs are bigints. @throws SluiceError DATA_CORRUPT */
  readonly records: () => Generator<AvroRecord>
}

const blockBytesMax = 256 * 1024 * 1024
const magic = 0x4f626a01
const syncBytes = 16

const longs = avro.types.LongType.__with({
  fromBuffer: (bytes: Buffer) => bytes.readBigInt64LE(),
  toBuffer: (value: bigint) => {
    const bytes = Buffer.alloc(8)
    bytes.writeBigInt64LE(value)
    return bytes
  },
  fromJSON: BigInt,
  toJSON: String,
  isValid: (value: unknown) => typeof value === 'bigint',
  compare: (a: bigint, b: bigint) => (a === b ? 0 : a < b ? -1 : 1),
})

/** Opens a file of any writer (Avro 1.11, "Object Container Files"). @throws SluiceError DATA_CORRUPT */
export function openAvro(bytes: Uint8Array): AvroContainer {
  const input = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  if (input.length < 4 || input.readUInt32BE(0) !== magic) throw damage('not an Avro file')
  const cursor = { input, at: 4 }
  const header = readHeader(cursor)
  const sync = take(cursor, syncBytes)
  const start = cursor.at
  const schema = parsedSchema(header.get('avro.schema'))
  const codec = header.get('avro.codec')?.toString('latin1') ?? 'null'
  const type = compiled(schema)
  return {
    schema,
    header,
    *records() {
      const blocks = { input, at: start }
      while (blocks.at < input.length) {
        const at = blocks.at
        const count = readCount(blocks)
        const packed = take(blocks, readCount(blocks))
        if (!take(blocks, syncBytes).equals(sync)) throw damage(`byte ${at}: a wrong sync marker`)
        yield* recordsOf(type, unpacked(packed, codec, at), count, at)
      }
    },
  }
}

/** Whether a decoded value is a record. */
export function isRecord(value: unknown): value is AvroRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

type Cursor = { readonly input: Buffer; at: number }

function readHeader(cursor: Cursor): ReadonlyMap<string, Buffer> {
  const header = new Map<string, Buffer>()
  for (;;) {
    let pairs = readLong(cursor)
    if (pairs === 0) return header
    if (pairs < 0) {
      readLong(cursor)
      pairs = -pairs
    }
    for (; pairs > 0; pairs -= 1) {
      const key = take(cursor, readCount(cursor)).toString('utf8')
      header.set(key, take(cursor, readCount(cursor)))
    }
  }
}

function* recordsOf(
  type: avro.Type,
  block: Buffer,
  count: number,
  at: number,
): Generator<AvroRecord> {
  let offset = 0
  for (let index = 0; index < count; index += 1) {
    const { value, offset: next } = attempt(at, () => {
      const decoded: { readonly value: unknown; readonly offset: number } = type.decode(
        block,
        offset,
      )
      return decoded
    })
    // A record takes at least a byte, so that a count alone cannot keep us busy.
    if (next <= offset) throw damage(`byte ${at}: a block ends inside a record`)
    if (!isRecord(value)) throw damage(`byte ${at}: a value that is no record`)
    yield value
    offset = next
  }
  if (offset !== block.length) throw damage(`byte ${at}: a block is longer than its records`)
}

function unpacked(packed: Buffer, codec: string, at: number): Buffer {
  switch (codec) {
    case 'null':
      return packed
    case 'deflate':
      return attempt(at, () => inflateRawSync(packed, { maxOutputLength: blockBytesMax }))
    case 'zstandard':
      return attempt(at, () => unzstd(packed))
    default:
      throw damage(`its codec ${codec} is not known`)
  }
}

function unzstd(packed: Buffer): Buffer {
  const blocks: Uint8Array[] = []
  let bytes = 0
  const stream = new Decompress((block) => {
    bytes += block.length
    if (bytes > blockBytesMax) throw new Error(`it unfolds to over ${blockBytesMax} bytes`)
    blocks.push(block)
  })
  stream.push(packed, true)
  return Buffer.concat(blocks)
}

function parsedSchema(text: Buffer | undefined): unknown {
  if (text === undefined) throw damage('its header has no schema')
  const schema = attempt(0, (): unknown => JSON.parse(text.toString('utf8')))
  checkSchema(schema, 0)
  return schema
}

/** Refuses what could keep a decoder busy or confuse its objects; no manifest has any of it. */
function checkSchema(schema: unknown, depth: number): void {
  if (depth > 32) throw damage('its schema is nested too deep')
  if (Array.isArray(schema)) {
    for (const each of schema) checkSchema(each, depth + 1)
    return
  }
  if (!isRecord(schema)) return
  const { items, values, type, fields, name } = schema
  if (name === '__proto__') throw damage('its schema has a field __proto__')
  for (const repeated of [items, values]) {
    if (repeated === undefined) continue
    const isEmpty =
      isRecord(repeated) && Array.isArray(repeated['fields']) && !repeated['fields'][0]
    if (repeated === 'null' || isEmpty) throw damage('its schema has elements without bytes')
    checkSchema(repeated, depth + 1)
  }
  checkSchema(type, depth + 1)
  if (Array.isArray(fields)) checkSchema(fields, depth + 1)
}

/** Compiling takes longer than reading a small manifest, and a table has few schemas. */
const types = new Map<string, avro.Type>()

function compiled(schema: unknown): avro.Type {
  const key = JSON.stringify(schema)
  const known = types.get(key)
  if (known !== undefined) return known
  const type = attempt(0, () =>
    avro.Type.forSchema(schema as avro.Schema, { registry: { long: longs } }),
  )
  if (types.size > 50) types.clear()
  types.set(key, type)
  return type
}

function readLong(cursor: Cursor): number {
  let value = 0n
  for (let shift = 0n; shift < 64n; shift += 7n) {
    const byte = cursor.input[cursor.at]
    if (byte === undefined) throw damage(`it is cut at byte ${cursor.input.length}`)
    cursor.at += 1
    value |= BigInt(byte & 0x7f) << shift
    if (byte < 0x80) return Number(value & 1n ? -(value >> 1n) - 1n : value >> 1n)
  }
  throw damage(`byte ${cursor.at}: a number of more than 64 bits`)
}

function readCount(cursor: Cursor): number {
  const at = cursor.at
  const count = readLong(cursor)
  if (count < 0) throw damage(`byte ${at}: a negative length`)
  return count
}

function take(cursor: Cursor, bytes: number): Buffer {
  const end = cursor.at + bytes
  if (end > cursor.input.length) throw damage(`it is cut at byte ${cursor.input.length}`)
  const taken = cursor.input.subarray(cursor.at, end)
  cursor.at = end
  return taken
}

function attempt<T>(at: number, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw damage(`byte ${at}: ${error instanceof Error ? error.message : 'cannot be decoded'}`)
  }
}
