import { SluiceError } from '../errors.ts'
import { unreachable } from '../never.ts'
import type { DataType } from '../schema/types.ts'
import { type Column, type ColumnBatch, layoutOf } from './column.ts'

/** Text and bytes of one batch are addressed by int32 offsets. */
const bytesMax = 2 ** 31 - 1

/**
 * Grows one column element by element. `truncate` forgets the elements from a length on, also half
 * appended ones, so that a record that turns out bad leaves no trace. `finish` hands the column over and starts anew, so a builder
 * can be kept for the next batch. Nothing is checked against the type's range here: parsers do that,
 * since they know the place to name.
 */
export type ColumnBuilder =
  | BitBuilder
  | Int32Builder
  | Int64Builder
  | Int128Builder
  | Float32Builder
  | Float64Builder
  | BytesBuilder
  | ListBuilder
  | MapBuilder
  | StructBuilder

export function columnBuilder(type: DataType): ColumnBuilder {
  switch (type.kind) {
    case 'array':
      return new ListBuilder(type, columnBuilder(type.element))
    case 'map':
      return new MapBuilder(type, columnBuilder(type.key), columnBuilder(type.value))
    case 'row':
      return new StructBuilder(
        type,
        type.fields.map((field) => columnBuilder(field.type)),
      )
    default:
      break
  }
  const layout = layoutOf(type)
  switch (layout) {
    case 'bit':
      return new BitBuilder(type)
    case 'int32':
      return new Int32Builder(type)
    case 'int64':
      return new Int64Builder(type)
    case 'int128':
      return new Int128Builder(type)
    case 'float32':
      return new Float32Builder(type)
    case 'float64':
      return new Float64Builder(type)
    case 'bytes':
      return new BytesBuilder(type)
    case 'list':
    case 'map':
    case 'struct':
      throw new SluiceError('INVARIANT_BROKEN', 'nested types are built above')
    default:
      return unreachable(layout)
  }
}

export function finishBatch(builders: readonly ColumnBuilder[]): ColumnBatch {
  const columns = builders.map((builder) => builder.finish())
  return { length: columns[0]?.length ?? 0, columns }
}

/** Validity shared by all builders. The bitmap exists only from the first null on. */
abstract class Validity {
  readonly type: DataType
  length = 0
  protected nullCount = 0
  #bitmap: Uint8Array | undefined

  constructor(type: DataType) {
    this.type = type
  }

  /** Marks element `length` as null and counts it. */
  protected markNull(): void {
    const index = this.length
    let bitmap = this.#bitmap
    if (bitmap === undefined || index >= bitmap.length * 8) {
      const grown = new Uint8Array(Math.max(128, (bitmap?.length ?? 0) * 2, (index >> 3) + 1)).fill(
        255,
      )
      if (bitmap !== undefined) grown.set(bitmap)
      bitmap = grown
      this.#bitmap = grown
    }
    bitmap[index >> 3] = (bitmap[index >> 3] ?? 0) & ~(1 << (index & 7))
    this.nullCount += 1
    this.length += 1
  }

  /** Forgets the elements from `length` on; the bitmap says "not null" again for what may follow. */
  protected cut(length: number): void {
    const bitmap = this.#bitmap
    for (let index = length; bitmap !== undefined && index < this.length; index += 1) {
      const byte = bitmap[index >> 3] ?? 255
      const bit = 1 << (index & 7)
      if (index >> 3 >= bitmap.length || (byte & bit) !== 0) continue
      bitmap[index >> 3] = byte | bit
      this.nullCount -= 1
    }
    this.length = Math.min(this.length, length)
  }

  /** Ends the column: its base, with the bitmap covering exactly its elements. */
  protected base(): {
    type: DataType
    length: number
    nullCount: number
    validity: Uint8Array | undefined
    bitOffset: number
  } {
    const bytes = (this.length + 7) >> 3
    let validity = this.nullCount === 0 ? undefined : this.#bitmap
    if (validity !== undefined && validity.length < bytes) {
      const grown = new Uint8Array(bytes).fill(255)
      grown.set(validity)
      validity = grown
    }
    const base = {
      type: this.type,
      length: this.length,
      nullCount: this.nullCount,
      validity: validity?.subarray(0, bytes),
      bitOffset: 0,
    }
    this.length = 0
    this.nullCount = 0
    this.#bitmap = undefined
    return base
  }
}

export class BitBuilder extends Validity {
  readonly layout = 'bit'
  #values = new Uint8Array(128)

  append(value: boolean): void {
    const index = this.#room()
    if (value) this.#values[index >> 3] = (this.#values[index >> 3] ?? 0) | (1 << (index & 7))
    this.length += 1
  }

  appendNull(): void {
    this.#room()
    this.markNull()
  }

  truncate(length: number): void {
    for (let index = length; index < this.length; index += 1) {
      this.#values[index >> 3] = (this.#values[index >> 3] ?? 0) & ~(1 << (index & 7))
    }
    this.cut(length)
  }

  finish(): Column {
    const values = this.#values.subarray(0, (this.length + 7) >> 3)
    this.#values = new Uint8Array(128)
    return { ...this.base(), layout: 'bit', values }
  }

  #room(): number {
    if (this.length >= this.#values.length * 8) {
      const grown = new Uint8Array(this.#values.length * 2)
      grown.set(this.#values)
      this.#values = grown
    }
    return this.length
  }
}

export class Int32Builder extends Validity {
  readonly layout = 'int32'
  #values = new Int32Array(256)

  append(value: number): void {
    if (this.length === this.#values.length) this.#grow()
    this.#values[this.length] = value
    this.length += 1
  }

  appendNull(): void {
    if (this.length === this.#values.length) this.#grow()
    this.markNull()
  }

  truncate(length: number): void {
    this.cut(length)
  }

  finish(): Column {
    const values = this.#values.subarray(0, this.length)
    this.#values = new Int32Array(Math.max(256, this.length))
    return { ...this.base(), layout: 'int32', values }
  }

  #grow(): void {
    const grown = new Int32Array(this.#values.length * 2)
    grown.set(this.#values)
    this.#values = grown
  }
}

export class Int64Builder extends Validity {
  readonly layout = 'int64'
  #values = new BigInt64Array(256)
  #halves = new Int32Array(this.#values.buffer)

  append(value: bigint): void {
    if (this.length === this.#values.length) this.#grow()
    this.#values[this.length] = value
    this.length += 1
  }

  /** A safe integer, without making a bigint: the two halves are stored directly. */
  appendSafe(value: number): void {
    if (this.length === this.#values.length) this.#grow()
    const high = Math.floor(value / 2 ** 32)
    this.#halves[2 * this.length + 1] = high
    this.#halves[2 * this.length] = value - high * 2 ** 32
    this.length += 1
  }

  appendNull(): void {
    if (this.length === this.#values.length) this.#grow()
    this.markNull()
  }

  truncate(length: number): void {
    this.cut(length)
  }

  finish(): Column {
    const values = this.#values.subarray(0, this.length)
    this.#values = new BigInt64Array(Math.max(256, this.length))
    this.#halves = new Int32Array(this.#values.buffer)
    return { ...this.base(), layout: 'int64', values }
  }

  #grow(): void {
    const grown = new BigInt64Array(this.#values.length * 2)
    grown.set(this.#values)
    this.#values = grown
    this.#halves = new Int32Array(grown.buffer)
  }
}

export class Int128Builder extends Validity {
  readonly layout = 'int128'
  #words = new BigInt64Array(512)

  /** The unscaled value, within 128 bits. */
  append(value: bigint): void {
    if (2 * this.length === this.#words.length) this.#grow()
    this.#words[2 * this.length] = BigInt.asIntN(64, value)
    this.#words[2 * this.length + 1] = value >> 64n
    this.length += 1
  }

  appendNull(): void {
    if (2 * this.length === this.#words.length) this.#grow()
    this.markNull()
  }

  truncate(length: number): void {
    this.cut(length)
  }

  finish(): Column {
    const values = this.#words.subarray(0, 2 * this.length)
    this.#words = new BigInt64Array(Math.max(512, 2 * this.length))
    return { ...this.base(), layout: 'int128', values }
  }

  #grow(): void {
    const grown = new BigInt64Array(this.#words.length * 2)
    grown.set(this.#words)
    this.#words = grown
  }
}

export class Float32Builder extends Validity {
  readonly layout = 'float32'
  #values = new Float32Array(256)

  append(value: number): void {
    if (this.length === this.#values.length) this.#grow()
    this.#values[this.length] = value
    this.length += 1
  }

  appendNull(): void {
    if (this.length === this.#values.length) this.#grow()
    this.markNull()
  }

  truncate(length: number): void {
    this.cut(length)
  }

  finish(): Column {
    const values = this.#values.subarray(0, this.length)
    this.#values = new Float32Array(Math.max(256, this.length))
    return { ...this.base(), layout: 'float32', values }
  }

  #grow(): void {
    const grown = new Float32Array(this.#values.length * 2)
    grown.set(this.#values)
    this.#values = grown
  }
}

export class Float64Builder extends Validity {
  readonly layout = 'float64'
  #values = new Float64Array(256)

  append(value: number): void {
    if (this.length === this.#values.length) this.#grow()
    this.#values[this.length] = value
    this.length += 1
  }

  appendNull(): void {
    if (this.length === this.#values.length) this.#grow()
    this.markNull()
  }

  truncate(length: number): void {
    this.cut(length)
  }

  finish(): Column {
    const values = this.#values.subarray(0, this.length)
    this.#values = new Float64Array(Math.max(256, this.length))
    return { ...this.base(), layout: 'float64', values }
  }

  #grow(): void {
    const grown = new Float64Array(this.#values.length * 2)
    grown.set(this.#values)
    this.#values = grown
  }
}

/** Text (UTF-8) and bytes. */
export class BytesBuilder extends Validity {
  readonly layout = 'bytes'
  #offsets = new Int32Array(257)
  #values = Buffer.allocUnsafeSlow(4096)
  #end = 0

  /** Bytes held so far; lets a parser end a batch before it grows too large. */
  get bytes(): number {
    return this.#end
  }

  append(source: Uint8Array, from = 0, to = source.length): void {
    const size = to - from
    this.#room(size)
    if (size < 48) {
      const target = this.#values
      let end = this.#end
      for (let at = from; at < to; at += 1) target[end++] = source[at] ?? 0
    } else {
      this.#values.set(source.subarray(from, to), this.#end)
    }
    this.#close(size)
  }

  appendText(text: string): void {
    this.#room(text.length * 3)
    this.#close(this.#values.write(text, this.#end, 'utf8'))
  }

  appendNull(): void {
    this.#room(0)
    this.#offsets[this.length + 1] = this.#end
    this.markNull()
  }

  truncate(length: number): void {
    this.#end = this.#offsets[Math.min(length, this.length)] ?? 0
    this.cut(length)
  }

  finish(): Column {
    const offsets = this.#offsets.subarray(0, this.length + 1)
    const values = new Uint8Array(this.#values.buffer, this.#values.byteOffset, this.#end)
    this.#offsets = new Int32Array(Math.max(257, this.length + 1))
    this.#values = Buffer.allocUnsafeSlow(Math.max(4096, this.#end))
    this.#end = 0
    return { ...this.base(), layout: 'bytes', offsets, values }
  }

  #close(size: number): void {
    this.#end += size
    this.#offsets[this.length + 1] = this.#end
    this.length += 1
  }

  #room(size: number): void {
    if (this.length + 1 >= this.#offsets.length) {
      const grown = new Int32Array(this.#offsets.length * 2)
      grown.set(this.#offsets)
      this.#offsets = grown
    }
    const need = this.#end + size
    if (need <= this.#values.length) return
    if (need > bytesMax) {
      throw new SluiceError('LIMIT_EXCEEDED', 'one batch holds more than 2 GiB in a column')
    }
    const grown = Buffer.allocUnsafeSlow(
      Math.min(bytesMax, Math.max(this.#values.length * 2, need)),
    )
    grown.set(this.#values.subarray(0, this.#end))
    this.#values = grown
  }
}

abstract class OffsetsBuilder extends Validity {
  #offsets = new Int32Array(257)

  protected closeAt(end: number): void {
    this.#room()
    this.#offsets[this.length + 1] = end
    this.length += 1
  }

  protected nullAt(end: number): void {
    this.#room()
    this.#offsets[this.length + 1] = end
    this.markNull()
  }

  protected offsetAt(index: number): number {
    return this.#offsets[Math.min(index, this.length)] ?? 0
  }

  protected takeOffsets(): Int32Array {
    const offsets = this.#offsets.subarray(0, this.length + 1)
    this.#offsets = new Int32Array(Math.max(257, this.length + 1))
    return offsets
  }

  #room(): void {
    if (this.length + 1 < this.#offsets.length) return
    const grown = new Int32Array(this.#offsets.length * 2)
    grown.set(this.#offsets)
    this.#offsets = grown
  }
}

/** Append the elements to `element`, then `close` the list. */
export class ListBuilder extends OffsetsBuilder {
  readonly layout = 'list'
  readonly element: ColumnBuilder

  constructor(type: DataType, element: ColumnBuilder) {
    super(type)
    this.element = element
  }

  close(): void {
    this.closeAt(this.element.length)
  }

  appendNull(): void {
    this.nullAt(this.element.length)
  }

  truncate(length: number): void {
    this.element.truncate(this.offsetAt(length))
    this.cut(length)
  }

  finish(): Column {
    const element = this.element.finish()
    const offsets = this.takeOffsets()
    return { ...this.base(), layout: 'list', offsets, element }
  }
}

/** Append keys and values in pairs, then `close` the map. */
export class MapBuilder extends OffsetsBuilder {
  readonly layout = 'map'
  readonly key: ColumnBuilder
  readonly value: ColumnBuilder

  constructor(type: DataType, key: ColumnBuilder, value: ColumnBuilder) {
    super(type)
    this.key = key
    this.value = value
  }

  close(): void {
    this.closeAt(this.key.length)
  }

  appendNull(): void {
    this.nullAt(this.key.length)
  }

  truncate(length: number): void {
    const end = this.offsetAt(length)
    this.key.truncate(end)
    this.value.truncate(end)
    this.cut(length)
  }

  finish(): Column {
    const key = this.key.finish()
    const value = this.value.finish()
    const offsets = this.takeOffsets()
    return { ...this.base(), layout: 'map', offsets, key, value }
  }
}

/** Append one element to each field, then `close` the row. */
export class StructBuilder extends Validity {
  readonly layout = 'struct'
  readonly fields: readonly ColumnBuilder[]

  constructor(type: DataType, fields: readonly ColumnBuilder[]) {
    super(type)
    this.fields = fields
  }

  close(): void {
    this.length += 1
  }

  appendNull(): void {
    for (const field of this.fields) field.appendNull()
    this.markNull()
  }

  truncate(length: number): void {
    for (const field of this.fields) field.truncate(length)
    this.cut(length)
  }

  finish(): Column {
    const fields = this.fields.map((field) => field.finish())
    return { ...this.base(), layout: 'struct', fields }
  }
}
