import { SluiceError } from '../errors.ts'
import { formatCount } from '../text.ts'

/**
 * A row group of a Parquet file, and where its bytes lie. The decoder we have reports damage only when
 * it is handed a whole file at once; with `cutGroup` each row group becomes such a file, so that one
 * of them is in memory and not all.
 */
export type RowGroup = {
  readonly rows: bigint
  readonly start: number
  readonly end: number
  /** Its struct in the footer. */
  readonly fields: Struct
}

export type ParquetFooter = {
  readonly rows: bigint
  readonly groups: readonly RowGroup[]
  readonly fields: Struct
}

/** Fields of a struct of Thrift's compact protocol by their ids, each as its bytes. */
export type Struct = ReadonlyMap<number, Field>
type Field = { readonly type: number; readonly bytes: Buffer }

const magic = Buffer.from('PAR1', 'latin1')
const footerBytesMax = 256 * 1024 * 1024
const groupBytesMax = 2 ** 31 - 1

/**
 * Reads the footer of a Parquet file (parquet.thrift, `FileMetaData`).
 * @throws SluiceError DATA_CORRUPT when it is damaged or says what cannot be
 */
export async function readFooter(file: Blob): Promise<ParquetFooter> {
  const tail = await bytesOf(file, Math.max(0, file.size - 8), file.size)
  if (file.size < 12 || !tail.subarray(4).equals(magic)) {
    throw damaged('it does not end like a Parquet file')
  }
  const length = tail.readUInt32LE(0)
  if (length > file.size - 12 || length > footerBytesMax) {
    throw damaged(`its footer would have ${formatCount(length)} bytes`)
  }
  const at = file.size - 8 - length
  const cursor = { bytes: await bytesOf(file, at, at + length), at: 0 }
  const fields = readStruct(cursor, 0)
  const groups = structsOf(fields, 4).map((group) => rowGroup(group, at))
  return { rows: longOf(fields, 3), groups, fields }
}

/** A file of that row group alone, made of its bytes and of a footer that says where they are now. */
export async function cutGroup(
  file: Blob,
  footer: ParquetFooter,
  group: RowGroup,
): Promise<Uint8Array> {
  const shift = BigInt(group.start - magic.length)
  const columns = structsOf(group.fields, 1).map((chunk) => movedChunk(chunk, shift))
  const moved = changed(
    group.fields,
    new Map([
      [1, list(columns)],
      [5, undefined],
    ]),
  )
  const metadata = changed(
    footer.fields,
    new Map([
      [3, longField(group.rows)],
      [4, list([moved])],
    ]),
  )
  const length = Buffer.alloc(4)
  length.writeUInt32LE(metadata.length)
  const body = await bytesOf(file, group.start, group.end)
  return Buffer.concat([magic, body, metadata, length, magic])
}

function rowGroup(fields: Struct, footerAt: number): RowGroup {
  let start = Number.MAX_SAFE_INTEGER
  let end = magic.length
  for (const chunk of structsOf(fields, 1)) {
    if (chunk.has(1)) throw damaged('a column lies in another file')
    const metadata = structOf(chunk, 3)
    const size = longOf(metadata, 7)
    const pages = [longOf(metadata, 9), ...(metadata.has(11) ? [longOf(metadata, 11)] : [])]
    // Some writers say 0 where there is no dictionary.
    const from = pages.filter((page) => page > 0n).reduce((a, b) => (b < a ? b : a), pages[0] ?? 0n)
    if (size < 0n || from < 4n || from + size > BigInt(footerAt)) {
      throw damaged('a column chunk lies outside of the file')
    }
    start = Math.min(start, Number(from))
    end = Math.max(end, Number(from + size))
  }
  start = Math.min(start, end)
  if (end - start > groupBytesMax) {
    throw damaged(`a row group has ${formatCount(end - start)} bytes`)
  }
  const rows = longOf(fields, 3)
  if (rows < 0n) throw damaged('a row group has a negative number of rows')
  return { rows, start, end, fields }
}

/** A column chunk whose pages begin `shift` bytes earlier; indexes and filters stay behind. */
function movedChunk(chunk: Struct, shift: bigint): Buffer {
  const metadata = structOf(chunk, 3)
  const offsets = new Map<number, Field | undefined>([
    [10, undefined],
    [14, undefined],
    [15, undefined],
  ])
  for (const id of [9, 11]) {
    if (!metadata.has(id)) continue
    const from = longOf(metadata, id)
    offsets.set(id, from === 0n ? undefined : longField(from - shift))
  }
  const moved = { type: 12, bytes: changed(metadata, offsets) }
  return changed(
    chunk,
    new Map<number, Field | undefined>([
      [2, longField(0n)],
      [3, moved],
      [4, undefined],
      [5, undefined],
      [6, undefined],
      [7, undefined],
    ]),
  )
}

type Cursor = { readonly bytes: Buffer; at: number }

function readStruct(cursor: Cursor, depth: number): Struct {
  const fields = new Map<number, Field>()
  let id = 0
  for (;;) {
    const header = byteAt(cursor)
    const type = header & 0x0f
    if (header === 0) return fields
    id = header >> 4 === 0 ? Number(zigzag(cursor)) : id + (header >> 4)
    const from = cursor.at
    skip(cursor, type, depth + 1)
    fields.set(id, { type, bytes: cursor.bytes.subarray(from, cursor.at) })
  }
}

function skip(cursor: Cursor, type: number, depth: number): void {
  if (depth > 32) throw damaged('its footer is nested too deep')
  switch (type) {
    case 1:
    case 2:
      return
    case 3:
      cursor.at += 1
      break
    case 4:
    case 5:
    case 6:
      varint(cursor)
      return
    case 7:
      cursor.at += 8
      break
    case 8: {
      const length = Number(varint(cursor))
      cursor.at += length
      break
    }
    case 9:
    case 10: {
      const { count, element } = listHeader(cursor)
      // A boolean in a list takes a byte of its own.
      if (element <= 2) cursor.at += count
      else for (let left = count; left > 0; left -= 1) skip(cursor, element, depth + 1)
      break
    }
    case 12:
      readStruct(cursor, depth)
      return
    default:
      throw damaged(`its footer has a value of type ${type}`)
  }
  if (cursor.at > cursor.bytes.length) throw damaged('its footer is cut')
}

function listHeader(cursor: Cursor): { readonly count: number; readonly element: number } {
  const header = byteAt(cursor)
  const short = header >> 4
  const count = short === 15 ? Number(varint(cursor)) : short
  if (count > cursor.bytes.length) throw damaged('its footer has a list longer than itself')
  return { count, element: header & 0x0f }
}

function structsOf(struct: Struct, id: number): readonly Struct[] {
  const field = struct.get(id)
  if (field?.type !== 9) throw damaged(`its footer has no list ${id}`)
  const cursor = { bytes: field.bytes, at: 0 }
  const { count, element } = listHeader(cursor)
  if (count > 0 && element !== 12) throw damaged(`list ${id} of its footer has no structs`)
  return Array.from({ length: count }, () => readStruct(cursor, 0))
}

function structOf(struct: Struct, id: number): Struct {
  const field = struct.get(id)
  if (field?.type !== 12) throw damaged(`its footer has no struct ${id}`)
  return readStruct({ bytes: field.bytes, at: 0 }, 0)
}

function longOf(struct: Struct, id: number): bigint {
  const field = struct.get(id)
  if (field?.type !== 6) throw damaged(`its footer has no number ${id}`)
  return zigzag({ bytes: field.bytes, at: 0 })
}

/** The struct with some fields replaced, others (`undefined`) left out. */
function changed(struct: Struct, changes: ReadonlyMap<number, Field | undefined>): Buffer {
  const all = new Map<number, Field | undefined>([...struct, ...changes])
  const parts: Buffer[] = []
  let before = 0
  for (const [id, field] of [...all].sort(([a], [b]) => a - b)) {
    if (field === undefined) continue
    const delta = id - before
    parts.push(
      delta > 0 && delta <= 15
        ? Buffer.of((delta << 4) | field.type)
        : Buffer.concat([Buffer.of(field.type), longField(BigInt(id)).bytes]),
      field.bytes,
    )
    before = id
  }
  return Buffer.concat([...parts, Buffer.of(0)])
}

function list(structs: readonly Buffer[]): Field {
  const header =
    structs.length < 15
      ? Buffer.of((structs.length << 4) | 12)
      : Buffer.concat([Buffer.of(0xfc), writeVarint(BigInt(structs.length))])
  return { type: 9, bytes: Buffer.concat([header, ...structs]) }
}

function longField(value: bigint): Field {
  return { type: 6, bytes: writeVarint(value < 0n ? -value * 2n - 1n : value * 2n) }
}

function writeVarint(value: bigint): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
  return Buffer.from([...bytes, Number(rest)])
}

function zigzag(cursor: Cursor): bigint {
  const value = varint(cursor)
  return value & 1n ? -(value >> 1n) - 1n : value >> 1n
}

function varint(cursor: Cursor): bigint {
  let value = 0n
  for (let shift = 0n; shift < 70n; shift += 7n) {
    const byte = byteAt(cursor)
    value |= BigInt(byte & 0x7f) << shift
    if (byte < 0x80) return value
  }
  throw damaged('its footer has a number of more than 64 bits')
}

function byteAt(cursor: Cursor): number {
  const byte = cursor.bytes[cursor.at]
  if (byte === undefined) throw damaged('its footer is cut')
  cursor.at += 1
  return byte
}

async function bytesOf(file: Blob, start: number, end: number): Promise<Buffer> {
  const bytes = Buffer.from(await file.slice(start, end).arrayBuffer())
  if (bytes.length !== end - start) throw damaged('it became shorter while it was read')
  return bytes
}

function damaged(reason: string): SluiceError {
  return new SluiceError('DATA_CORRUPT', reason)
}
