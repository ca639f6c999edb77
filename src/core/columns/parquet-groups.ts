import { SluiceError } from '../errors.ts'
import { formatCount } from '../text.ts'
import {
  type Field,
  longOf,
  readStruct,
  type Struct,
  structOf,
  structsOf,
  textsOf,
} from './compact-structs.ts'

/**
 * A row group of a Parquet file, and where its bytes lie. The decoder we have reports damage only when
 * it is handed a whole file at once; with `cutGroup` each row group becomes such a file, so that one
 * of them is in memory and not all.
 */
export type RowGroup = {
  readonly rows: bigint
  readonly start: number
  readonly end: number
  readonly chunks: readonly ColumnChunk[]
  /** Its struct in the footer. */
  readonly fields: Struct
}

/** All pages of a leaf column in a row group, one after another. */
export type ColumnChunk = {
  /** Names from the top column to the leaf. */
  readonly path: readonly string[]
  readonly start: number
  readonly end: number
}

export type ParquetFooter = {
  readonly rows: bigint
  readonly groups: readonly RowGroup[]
  readonly fields: Struct
}

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
  const fields = readStruct(cursor)
  const groups = structsOf(fields, 4).map((group) => rowGroup(group, at))
  return { rows: longOf(fields, 3), groups, fields }
}

/** Sees the bytes of a row group before they are decoded; what it throws ends the reading. */
export type Inspect = (group: RowGroup, bytes: Buffer) => void

/** A file of that row group alone, made of its bytes and of a footer that says where they are now. */
export async function cutGroup(
  file: Blob,
  footer: ParquetFooter,
  group: RowGroup,
  inspect?: Inspect,
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
  inspect?.(group, body)
  return Buffer.concat([magic, body, metadata, length, magic])
}

function rowGroup(fields: Struct, footerAt: number): RowGroup {
  const chunks = structsOf(fields, 1).map((chunk) => {
    if (chunk.has(1)) throw damaged('a column lies in another file')
    const metadata = structOf(chunk, 3)
    const size = longOf(metadata, 7)
    const pages = [longOf(metadata, 9), ...(metadata.has(11) ? [longOf(metadata, 11)] : [])]
    // Some writers say 0 where there is no dictionary.
    const from = pages.filter((page) => page > 0n).reduce((a, b) => (b < a ? b : a), pages[0] ?? 0n)
    if (size < 0n || from < 4n || from + size > BigInt(footerAt)) {
      throw damaged('a column chunk lies outside of the file')
    }
    return { path: textsOf(metadata, 3), start: Number(from), end: Number(from + size) }
  })
  const end = chunks.reduce((most, chunk) => Math.max(most, chunk.end), magic.length)
  const start = chunks.reduce((least, chunk) => Math.min(least, chunk.start), end)
  if (end - start > groupBytesMax) {
    throw damaged(`a row group has ${formatCount(end - start)} bytes`)
  }
  const rows = longOf(fields, 3)
  if (rows < 0n) throw damaged('a row group has a negative number of rows')
  return { rows, start, end, chunks, fields }
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

async function bytesOf(file: Blob, start: number, end: number): Promise<Buffer> {
  const bytes = Buffer.from(await file.slice(start, end).arrayBuffer())
  if (bytes.length !== end - start) throw damaged('it became shorter while it was read')
  return bytes
}

function damaged(reason: string): SluiceError {
  return new SluiceError('DATA_CORRUPT', reason)
}
