import { ByteBuffer } from './byte-buffer.ts'

const compactType = {
  true: 1,
  false: 2,
  int16: 4,
  int32: 5,
  int64: 6,
  binary: 8,
  list: 9,
  struct: 12,
} as const

type ElementType = 'int32' | 'binary' | 'struct'

const encoder = new TextEncoder()

/**
 * Writes the Thrift compact protocol, as far as Parquet's structures need it. Fields of a struct are
 * written in ascending order of their ids.
 */
export class ThriftWriter {
  readonly #out = new ByteBuffer(1024)
  /** Last field id of each open struct; ids are written as differences. */
  readonly #lastIds: number[] = [0]

  int32(id: number, value: number): void {
    this.#field(id, compactType.int32)
    this.#zigzag(value)
  }

  int16(id: number, value: number): void {
    this.#field(id, compactType.int16)
    this.#zigzag(value)
  }

  /** A safe integer in an i64 field. */
  int64(id: number, value: number): void {
    this.#field(id, compactType.int64)
    this.#zigzag(value)
  }

  boolean(id: number, value: boolean): void {
    this.#field(id, value ? compactType.true : compactType.false)
  }

  text(id: number, value: string): void {
    this.binary(id, encoder.encode(value))
  }

  binary(id: number, value: Uint8Array): void {
    this.#field(id, compactType.binary)
    this.#binaryValue(value)
  }

  struct(id: number, write: () => void): void {
    this.#field(id, compactType.struct)
    this.#structValue(write)
  }

  int32s(id: number, values: readonly number[]): void {
    this.#list(id, 'int32', values.length)
    for (const value of values) this.#zigzag(value)
  }

  texts(id: number, values: readonly string[]): void {
    this.#list(id, 'binary', values.length)
    for (const value of values) this.#binaryValue(encoder.encode(value))
  }

  structs<Item>(id: number, items: readonly Item[], write: (item: Item) => void): void {
    this.#list(id, 'struct', items.length)
    for (const item of items) {
      this.#structValue(() => {
        write(item)
      })
    }
  }

  /** Ends the outermost struct and returns its bytes; the writer can then be used again. */
  finish(): Uint8Array {
    this.#out.byte(0)
    const bytes = this.#out.written().slice()
    this.#out.clear()
    this.#lastIds[0] = 0
    return bytes
  }

  #field(id: number, type: number): void {
    const depth = this.#lastIds.length - 1
    const delta = id - (this.#lastIds[depth] ?? 0)
    this.#lastIds[depth] = id
    if (delta > 0 && delta <= 15) {
      this.#out.byte((delta << 4) | type)
      return
    }
    this.#out.byte(type)
    this.#zigzag(id)
  }

  #list(id: number, type: ElementType, size: number): void {
    this.#field(id, compactType.list)
    if (size < 15) {
      this.#out.byte((size << 4) | compactType[type])
      return
    }
    this.#out.byte(0xf0 | compactType[type])
    this.#out.varint(size)
  }

  #structValue(write: () => void): void {
    this.#lastIds.push(0)
    write()
    this.#out.byte(0)
    this.#lastIds.pop()
  }

  #binaryValue(value: Uint8Array): void {
    this.#out.varint(value.length)
    this.#out.append(value)
  }

  #zigzag(value: number): void {
    this.#out.varint(value < 0 ? -2 * value - 1 : 2 * value)
  }
}
