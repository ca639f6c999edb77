import { SluiceError } from '../../core/errors.ts'

/** A value of the Thrift compact protocol; a struct is its fields by id. */
export type ThriftValue =
  | number
  | bigint
  | boolean
  | Uint8Array
  | readonly ThriftValue[]
  | ThriftStruct
export type ThriftStruct = ReadonlyMap<number, ThriftValue>

/** Reads structs of the compact protocol one after another. Meant for what our own process wrote. */
export class ThriftReader {
  readonly #bytes: Uint8Array
  #at: number

  constructor(bytes: Uint8Array, at = 0) {
    this.#bytes = bytes
    this.#at = at
  }

  /** Where the next byte is read. */
  get position(): number {
    return this.#at
  }

  struct(): ThriftStruct {
    const fields = new Map<number, ThriftValue>()
    let id = 0
    for (let head = this.#byte(); head !== 0; head = this.#byte()) {
      const delta = head >> 4
      id = delta === 0 ? Number(this.#zigzag()) : id + delta
      fields.set(id, this.#value(head & 0x0f))
    }
    return fields
  }

  #value(type: number): ThriftValue {
    switch (type) {
      case 1:
        return true
      case 2:
        return false
      case 3:
        return (this.#byte() << 24) >> 24
      case 4:
      case 5:
        return Number(this.#zigzag())
      case 6:
        return this.#zigzag()
      case 7: {
        this.#at += 8
        return new DataView(this.#bytes.buffer, this.#bytes.byteOffset + this.#at - 8).getFloat64(
          0,
          true,
        )
      }
      case 8: {
        const size = Number(this.#varint())
        this.#at += size
        return this.#bytes.subarray(this.#at - size, this.#at)
      }
      case 9:
      case 10:
        return this.#list()
      case 12:
        return this.struct()
      default:
        throw new SluiceError('DATA_CORRUPT', `Thrift type ${type} is not one Parquet uses`)
    }
  }

  #list(): ThriftValue[] {
    const head = this.#byte()
    const size = head >> 4 === 15 ? Number(this.#varint()) : head >> 4
    const type = head & 0x0f
    return Array.from({ length: size }, () =>
      // In a list a boolean is a byte of its own.
      type === 1 || type === 2 ? this.#byte() === 1 : this.#value(type),
    )
  }

  #zigzag(): bigint {
    const value = this.#varint()
    return value & 1n ? -((value + 1n) >> 1n) : value >> 1n
  }

  #varint(): bigint {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.#byte()
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }

  #byte(): number {
    const byte = this.#bytes[this.#at]
    if (byte === undefined) throw new SluiceError('DATA_CORRUPT', 'a Thrift struct is cut off')
    this.#at += 1
    return byte
  }
}

/** A number among the fields of a struct. */
export function numberIn(struct: ThriftStruct, id: number): number | undefined {
  const value = struct.get(id)
  return typeof value === 'number' || typeof value === 'bigint' ? Number(value) : undefined
}

export function structIn(struct: ThriftStruct, id: number): ThriftStruct {
  const value = struct.get(id)
  if (value instanceof Map) return value
  throw new SluiceError('DATA_CORRUPT', `a Thrift struct lacks its field ${id}`)
}

export function listIn(struct: ThriftStruct, id: number): readonly ThriftValue[] {
  const value = struct.get(id)
  if (isList(value)) return value
  throw new SluiceError('DATA_CORRUPT', `a Thrift struct lacks its list ${id}`)
}

function isList(value: ThriftValue | undefined): value is readonly ThriftValue[] {
  return Array.isArray(value)
}
