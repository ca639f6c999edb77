import avro from 'avsc'
import { Decompress } from 'fzstd'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { SluiceError } from '../../../core/errors.ts'

/** An Avro schema as JSON. Attributes Avro does not know, such as `field-id`, are kept. */
export type AvroSchema = string | readonly AvroSchema[] | { readonly [key: string]: unknown }

export type AvroFile = {
  readonly schema: unknown
  /** All of the header's metadata, `avro.schema` and `avro.codec` included. */
  readonly metadata: ReadonlyMap<string, Uint8Array>
  /** Records by field name; a long is a bigint, bytes and fixed are byte arrays. */
  readonly records: readonly AvroRecord[]
}

export type AvroRecord = { readonly [field: string]: unknown }

const magic = Buffer.from('Obj\u0001', 'latin1')
const syncBytes = 16
/** A block of a manifest is a few MiB at most; this only stops a bomb. */
const blockBytesMax = 1 << 28

const longType = avro.types.LongType.__with({
  fromBuffer: (bytes: Buffer) => bytes.readBigInt64LE(),
  toBuffer: (value: bigint) => {
    const bytes = Buffer.allocUnsafe(8)
    bytes.writeBigInt64LE(value)
    return bytes
  },
  fromJSON: BigInt,
  toJSON: String,
  isValid: (value: unknown) => typeof value === 'bigint' && BigInt.asIntN(64, value) === value,
  compare: (left: bigint, right: bigint) => (left < right ? -1 : left > right ? 1 : 0),
})

/** Reads and writes the records of one schema. */
export type AvroCodec = {
  /** The schema as JSON, which begins each file. */
  readonly schema: Uint8Array
  readonly encode: (record: unknown) => Uint8Array
}

/** Compiles a schema once for many files. Longs are bigints. */
export function avroCodec(schema: AvroSchema): AvroCodec {
  const type = typeOf(schema)
  return { schema: Buffer.from(JSON.stringify(schema)), encode: (record) => type.toBuffer(record) }
}

/** How a file's block is packed; `null` is Avro's word for not at all. */
export type AvroCompression = 'deflate' | 'null'

export type AvroFileOptions = {
  readonly metadata: ReadonlyMap<string, string>
  /** 16 bytes as 32 hexadecimal digits, drawn for this file alone. */
  readonly sync: string
  /** `deflate` if left out. */
  readonly compression?: AvroCompression | undefined
}

/** Writes an object container file in one block (Avro 1.11, "Object container files"). */
export function writeAvro(
  codec: AvroCodec,
  records: readonly unknown[],
  options: AvroFileOptions,
): Uint8Array {
  const { compression = 'deflate' } = options
  const sync = Buffer.from(options.sync, 'hex')
  if (sync.length !== syncBytes) {
    throw new SluiceError('INVARIANT_BROKEN', 'an Avro sync marker has 16 bytes')
  }
  const metadata = new Map<string, string | Uint8Array>([
    ['avro.schema', codec.schema],
    ['avro.codec', compression],
    ...options.metadata,
  ])
  const parts: Uint8Array[] = [magic, writeLong(metadata.size)]
  for (const [key, value] of metadata) parts.push(...writeBytes(key), ...writeBytes(value))
  parts.push(writeLong(0), sync)
  if (records.length > 0) {
    const plain = Buffer.concat(records.map((record) => codec.encode(record)))
    const block = compression === 'deflate' ? deflateRawSync(plain) : plain
    parts.push(writeLong(records.length), writeLong(block.length), block, sync)
  }
  return Buffer.concat(parts)
}

/** @param name The file, for messages. @throws SluiceError DATA_CORRUPT */
export function readAvro(bytes: Uint8Array, name: string): AvroFile {
  const header = readHeader(bytes, name)
  if (header === undefined) throw corrupt(name, bytes.length, 'it is cut')
  const { schema, type } = schemaIn(header.metadata, name)
  const codec = Buffer.from(header.metadata.get('avro.codec') ?? []).toString('utf8')
  const cursor = new Cursor(bytes, header.end)
  const records: AvroRecord[] = []
  while (cursor.at < bytes.length) {
    const start = cursor.at
    const count = cursor.length()
    const block = cursor.block()
    const sync = cursor.take(syncBytes)
    if (count === undefined || block === undefined || sync === undefined) {
      throw corrupt(name, start, 'it is cut')
    }
    if (Buffer.compare(sync, header.sync) !== 0) throw corrupt(name, start, 'a wrong sync marker')
    const plain = corruptOnError(name, start, () => decompressed(block, codec))
    if (count > plain.length) throw corrupt(name, start, 'more records than bytes')
    let at = 0
    for (let index = 0; index < count; index += 1) {
      const decoded = corruptOnError(name, start, () => type.decode(plain, at))
      if (decoded.offset <= at) throw corrupt(name, start, 'it is cut')
      records.push(decoded.value as AvroRecord)
      at = decoded.offset
    }
    if (at !== plain.length) throw corrupt(name, start, 'bytes left over in a block')
  }
  return { schema, metadata: header.metadata, records }
}

/** The header's metadata, or undefined when the bytes end before it does. @throws SluiceError */
export function readAvroMetadata(
  bytes: Uint8Array,
  name: string,
): ReadonlyMap<string, Uint8Array> | undefined {
  return readHeader(bytes, name)?.metadata
}

type Header = {
  readonly metadata: ReadonlyMap<string, Uint8Array>
  readonly sync: Uint8Array
  readonly end: number
}

function readHeader(bytes: Uint8Array, name: string): Header | undefined {
  if (Buffer.compare(bytes.subarray(0, magic.length), magic) !== 0) {
    throw corrupt(name, 0, 'not an Avro file')
  }
  const cursor = new Cursor(bytes, magic.length)
  const metadata = new Map<string, Uint8Array>()
  for (;;) {
    let count = cursor.long()
    if (count === undefined) return undefined
    if (count === 0n) break
    if (count < 0n) {
      // A negative count is followed by the size of the block in bytes.
      count = -count
      if (cursor.long() === undefined) return undefined
    }
    for (; count > 0n; count -= 1n) {
      const key = cursor.block()
      const value = cursor.block()
      if (key === undefined || value === undefined) return undefined
      metadata.set(Buffer.from(key).toString('utf8'), value)
    }
  }
  const sync = cursor.take(syncBytes)
  return sync === undefined ? undefined : { metadata, sync, end: cursor.at }
}

function schemaIn(
  metadata: ReadonlyMap<string, Uint8Array>,
  name: string,
): ReturnType<typeof compiledFrom> {
  const text = metadata.get('avro.schema')
  if (text === undefined) throw corrupt(name, 0, 'no schema in the header')
  return corruptOnError(name, 0, () => compiledFrom(Buffer.from(text).toString('utf8')))
}

/** Compiling a schema takes longer than reading a small manifest, and tables have few of them. */
const compiledMax = 64
const compiled = new Map<string, { readonly schema: AvroSchema; readonly type: avro.Type }>()

function compiledFrom(text: string): { readonly schema: AvroSchema; readonly type: avro.Type } {
  const known = compiled.get(text)
  if (known !== undefined) return known
  const schema = JSON.parse(text) as AvroSchema
  const fresh = { schema, type: typeOf(schema) }
  if (compiled.size >= compiledMax) compiled.clear()
  compiled.set(text, fresh)
  return fresh
}

function typeOf(schema: AvroSchema): avro.Type {
  // The registry maps the primitive's name to a type without loss; avsc's own goes through numbers.
  return avro.Type.forSchema(schema as avro.Schema, { registry: { long: longType } })
}

function decompressed(block: Uint8Array, codec: string): Buffer {
  switch (codec) {
    case '':
    case 'null':
      return Buffer.from(block)
    case 'deflate':
      return inflateRawSync(block, { maxOutputLength: blockBytesMax })
    case 'zstandard':
      return unzstd(block)
    default:
      throw new Error(`codec ${codec} is not known`)
  }
}

/** A few bytes may stand for a block of 128 KiB, so how much comes is counted while it comes. */
function unzstd(block: Uint8Array): Buffer {
  const chunks: Uint8Array[] = []
  let length = 0
  const stream = new Decompress((chunk) => {
    length += chunk.length
    if (length > blockBytesMax) throw new Error(`more than ${blockBytesMax} bytes when unpacked`)
    chunks.push(chunk)
  })
  stream.push(block, true)
  return Buffer.concat(chunks)
}

/** Reads without going past the end: undefined means that the bytes are cut. */
class Cursor {
  readonly #bytes: Uint8Array
  at: number

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes
    this.at = at
  }

  long(): bigint | undefined {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#bytes[this.at]
      if (byte === undefined) return undefined
      this.at += 1
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return (value >> 1n) ^ -(value & 1n)
    }
    return undefined
  }

  /** A count or length: not negative, and no larger than any file. */
  length(): number | undefined {
    const value = this.long()
    if (value === undefined || value < 0n || value > BigInt(blockBytesMax)) return undefined
    return Number(value)
  }

  block(): Uint8Array | undefined {
    const length = this.length()
    return length === undefined ? undefined : this.take(length)
  }

  take(length: number): Uint8Array | undefined {
    if (this.at + length > this.#bytes.length) return undefined
    this.at += length
    return this.#bytes.subarray(this.at - length, this.at)
  }
}

function writeBytes(value: string | Uint8Array): readonly Uint8Array[] {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value
  return [writeLong(bytes.length), bytes]
}

function writeLong(value: number): Uint8Array {
  const bytes: number[] = []
  let rest = BigInt(value) << 1n
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
  bytes.push(Number(rest))
  return Uint8Array.from(bytes)
}

function corruptOnError<T>(name: string, byte: number, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    throw corrupt(name, byte, cause instanceof Error ? cause.message : 'unreadable', cause)
  }
}

function corrupt(name: string, byte: number, reason: string, cause?: unknown): SluiceError {
  return new SluiceError('DATA_CORRUPT', `${name}: not readable from byte ${byte} on (${reason})`, {
    details: { file: name, byte, reason },
    cause,
  })
}
