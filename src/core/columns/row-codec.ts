import { SluiceError } from '../errors.ts'
import { unreachable } from '../never.ts'
import type { Field } from '../schema/types.ts'
import type { ColumnBuilder } from './builder.ts'
import { bitAt, type Column, type ColumnBatch, isNull } from './column.ts'

/*
 * One row as bytes, as a key-value store holds it: a version, then each column: a byte that says
 * whether there is a value, and the value, exact. Numbers have their own width, little-endian; what
 * varies in length has its length in front.
 */

const version = 1

/** Rows of a batch as bytes. */
export function encodeRows(batch: ColumnBatch): readonly Uint8Array[] {
  const out = new RowWriter()
  return Array.from({ length: batch.length }, (_, row) => {
    out.clear()
    out.byte(version)
    for (const column of batch.columns) writeElement(out, column, row)
    return out.copy()
  })
}

/**
 * Appends a row to one builder for each column. Columns that were added to the table since the row was
 * written are null.
 * @throws SluiceError DATA_CORRUPT
 */
export function appendRow(
  builders: readonly ColumnBuilder[],
  row: Uint8Array,
  fields: readonly Field[],
): void {
  const input = new RowReader(row)
  try {
    if (input.byte() !== version) throw new RangeError('another version')
    for (const builder of builders) {
      if (input.isAtEnd) builder.appendNull()
      else readElement(input, builder)
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new SluiceError('DATA_CORRUPT', 'a row of the key-value store cannot be read', {
      details: { columns: fields.map(({ name }) => name), reason: error.message },
      cause: error,
    })
  }
}

/** A row whose columns come from different places, each from the given row of its column. */
export function encodeRow(
  cells: readonly { readonly column: Column; readonly row: number }[],
): Uint8Array {
  const out = new RowWriter()
  out.byte(version)
  for (const { column, row } of cells) writeElement(out, column, row)
  return out.copy()
}

function writeElement(out: RowWriter, column: Column, row: number): void {
  if (isNull(column, row)) {
    out.byte(0)
    return
  }
  out.byte(1)
  switch (column.layout) {
    case 'bit':
      out.byte(bitAt(column, row) ? 1 : 0)
      return
    case 'int32':
      out.int32(column.values[row] ?? 0)
      return
    case 'int64':
      out.int64(column.values[row] ?? 0n)
      return
    case 'int128':
      out.int64(column.values[2 * row] ?? 0n)
      out.int64(column.values[2 * row + 1] ?? 0n)
      return
    case 'float32':
      out.float32(column.values[row] ?? 0)
      return
    case 'float64':
      out.float64(column.values[row] ?? 0)
      return
    case 'bytes': {
      const [from, to] = [column.offsets[row] ?? 0, column.offsets[row + 1] ?? 0]
      out.int32(to - from)
      out.bytes(column.values, from, to)
      return
    }
    case 'list': {
      const [from, to] = [column.offsets[row] ?? 0, column.offsets[row + 1] ?? 0]
      out.int32(to - from)
      for (let at = from; at < to; at += 1) writeElement(out, column.element, at)
      return
    }
    case 'map': {
      const [from, to] = [column.offsets[row] ?? 0, column.offsets[row + 1] ?? 0]
      out.int32(to - from)
      for (let at = from; at < to; at += 1) {
        writeElement(out, column.key, at)
        writeElement(out, column.value, at)
      }
      return
    }
    case 'struct':
      for (const field of column.fields) writeElement(out, field, row)
      return
    default:
      unreachable(column)
  }
}

function readElement(input: RowReader, builder: ColumnBuilder): void {
  if (input.byte() === 0) {
    builder.appendNull()
    return
  }
  switch (builder.layout) {
    case 'bit':
      builder.append(input.byte() === 1)
      return
    case 'int32':
      builder.append(input.int32())
      return
    case 'int64':
      builder.append(input.int64())
      return
    case 'int128': {
      const low = BigInt.asUintN(64, input.int64())
      builder.append((input.int64() << 64n) | low)
      return
    }
    case 'float32':
      builder.append(input.float32())
      return
    case 'float64':
      builder.append(input.float64())
      return
    case 'bytes': {
      const size = input.int32()
      builder.append(input.source, input.skip(size), input.at)
      return
    }
    case 'list':
      for (let left = input.int32(); left > 0; left -= 1) readElement(input, builder.element)
      builder.close()
      return
    case 'map':
      for (let left = input.int32(); left > 0; left -= 1) {
        readElement(input, builder.key)
        readElement(input, builder.value)
      }
      builder.close()
      return
    case 'struct':
      for (const field of builder.fields) readElement(input, field)
      builder.close()
      return
    default:
      unreachable(builder)
  }
}

/** A growing buffer that one row after the other is written into. */
class RowWriter {
  #bytes = new Uint8Array(256)
  #view = new DataView(this.#bytes.buffer)
  #length = 0

  clear(): void {
    this.#length = 0
  }

  copy(): Uint8Array {
    return this.#bytes.slice(0, this.#length)
  }

  byte(value: number): void {
    this.#view.setUint8(this.#room(1), value)
  }

  int32(value: number): void {
    this.#view.setInt32(this.#room(4), value, true)
  }

  int64(value: bigint): void {
    this.#view.setBigInt64(this.#room(8), value, true)
  }

  float32(value: number): void {
    this.#view.setFloat32(this.#room(4), value, true)
  }

  float64(value: number): void {
    this.#view.setFloat64(this.#room(8), value, true)
  }

  bytes(source: Uint8Array, from: number, to: number): void {
    const at = this.#room(to - from)
    this.#bytes.set(source.subarray(from, to), at)
  }

  /** @returns where the room begins */
  #room(size: number): number {
    const at = this.#length
    this.#length += size
    if (this.#length > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(2 * this.#bytes.length, this.#length))
      grown.set(this.#bytes)
      this.#bytes = grown
      this.#view = new DataView(grown.buffer)
    }
    return at
  }
}

/** Throws RangeError beyond the end. */
class RowReader {
  readonly source: Uint8Array
  readonly #view: DataView
  at = 0

  constructor(source: Uint8Array) {
    this.source = source
    this.#view = new DataView(source.buffer, source.byteOffset, source.length)
  }

  get isAtEnd(): boolean {
    return this.at === this.source.length
  }

  byte(): number {
    return this.#view.getUint8(this.skip(1))
  }

  int32(): number {
    return this.#view.getInt32(this.skip(4), true)
  }

  int64(): bigint {
    return this.#view.getBigInt64(this.skip(8), true)
  }

  float32(): number {
    return this.#view.getFloat32(this.skip(4), true)
  }

  float64(): number {
    return this.#view.getFloat64(this.skip(8), true)
  }

  /** @returns where the skipped bytes begin */
  skip(size: number): number {
    const from = this.at
    if (size < 0 || from + size > this.source.length) throw new RangeError('it is cut')
    this.at += size
    return from
  }
}
