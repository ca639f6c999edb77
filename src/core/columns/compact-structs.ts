import { SluiceError } from '../errors.ts'

/** Fields of a struct of Thrift's compact protocol by their ids, each as its bytes. */
export type Struct = ReadonlyMap<number, Field>
export type Field = { readonly type: number; readonly bytes: Buffer }

/** Where the next byte is read; moves on with it. */
export type Cursor = { readonly bytes: Buffer; at: number }

/**
 * The metadata of Parquet files is made of such structs: the footer, and a header before each page.
 * @throws SluiceError DATA_CORRUPT
 */
export function readStruct(cursor: Cursor, depth = 0): Struct {
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
  if (depth > 32) throw damaged('its metadata is nested too deep')
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
      throw damaged(`its metadata has a value of type ${type}`)
  }
  if (cursor.at > cursor.bytes.length) throw damaged('its metadata is cut')
}

function listHeader(cursor: Cursor): { readonly count: number; readonly element: number } {
  const header = byteAt(cursor)
  const short = header >> 4
  const count = short === 15 ? Number(varint(cursor)) : short
  if (count > cursor.bytes.length) throw damaged('its metadata has a list longer than itself')
  return { count, element: header & 0x0f }
}

export function structsOf(struct: Struct, id: number): readonly Struct[] {
  const field = struct.get(id)
  if (field?.type !== 9) throw damaged(`its metadata has no list ${id}`)
  const cursor = { bytes: field.bytes, at: 0 }
  const { count, element } = listHeader(cursor)
  if (count > 0 && element !== 12) throw damaged(`list ${id} of its metadata has no structs`)
  return Array.from({ length: count }, () => readStruct(cursor))
}

export function textsOf(struct: Struct, id: number): readonly string[] {
  const field = struct.get(id)
  if (field?.type !== 9) throw damaged(`its metadata has no list ${id}`)
  const cursor = { bytes: field.bytes, at: 0 }
  const { count, element } = listHeader(cursor)
  if (count > 0 && element !== 8) throw damaged(`list ${id} of its metadata has no texts`)
  return Array.from({ length: count }, () => {
    const length = Number(varint(cursor))
    cursor.at += length
    return field.bytes.toString('utf8', cursor.at - length, cursor.at)
  })
}

export function structOf(struct: Struct, id: number): Struct {
  const field = struct.get(id)
  if (field?.type !== 12) throw damaged(`its metadata has no struct ${id}`)
  return readStruct({ bytes: field.bytes, at: 0 })
}

/** A number of 32 bits. */
export function intIn(struct: Struct, id: number): number | undefined {
  const field = struct.get(id)
  return field?.type === 5 ? Number(zigzag({ bytes: field.bytes, at: 0 })) : undefined
}

export function longOf(struct: Struct, id: number): bigint {
  const field = struct.get(id)
  if (field?.type !== 6) throw damaged(`its metadata has no number ${id}`)
  return zigzag({ bytes: field.bytes, at: 0 })
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
  throw damaged('its metadata has a number of more than 64 bits')
}

function byteAt(cursor: Cursor): number {
  const byte = cursor.bytes[cursor.at]
  if (byte === undefined) throw damaged('its metadata is cut')
  cursor.at += 1
  return byte
}

function damaged(reason: string): SluiceError {
  return new SluiceError('DATA_CORRUPT', reason)
}
