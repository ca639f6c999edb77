import { footerBoundLength, truncatedBounds } from './bounds.ts'
import {
  type FileSchema,
  type Leaf,
  type Logical,
  physicalIds,
  type SchemaElement,
} from './file-schema.ts'
import type { Extremes } from './range.ts'
import { ThriftWriter } from './thrift.ts'

const createdBy = 'sluice version 0.1.0'

const repetitionIds = { required: 0, optional: 1, repeated: 2 } as const

/** Numbers of `ConvertedType`, the older form of a logical type; 9 and 10 mean UTC. */
const convertedTypes = {
  string: 0,
  map: 1,
  list: 3,
  decimal: 5,
  date: 6,
  timestampMicros: 10,
} as const

export type ChunkInFile = {
  readonly leaf: Leaf
  /** Where the chunk begins in the file. */
  readonly offset: number
  readonly bytes: number
  readonly uncompressedBytes: number
  readonly dictionaryBytes: number | undefined
  readonly encodings: readonly number[]
  readonly entries: number
  readonly nulls: number
  readonly extremes: Extremes | undefined
}

export type RowGroupInFile = {
  readonly rows: number
  readonly offset: number
  readonly chunks: readonly ChunkInFile[]
}

export type Footer = {
  readonly schema: FileSchema
  readonly rows: number
  readonly groups: readonly RowGroupInFile[]
  readonly codecId: number
  readonly metadata: ReadonlyMap<string, string>
}

/** `FileMetaData` with its length and the magic behind it: the end of the file. */
export function footerBytes(footer: Footer): Uint8Array {
  const thrift = new ThriftWriter()
  const { schema, groups, metadata } = footer
  thrift.int32(1, 2)
  writeSchema(thrift, schema)
  thrift.int64(3, footer.rows)
  let ordinal = 0
  thrift.structs(4, groups, (group) => {
    writeRowGroup(thrift, group, footer.codecId, ordinal)
    ordinal += 1
  })
  if (metadata.size > 0) {
    thrift.structs(5, [...metadata], ([key, value]) => {
      thrift.text(1, key)
      thrift.text(2, value)
    })
  }
  thrift.text(6, createdBy)
  // Without column orders readers must not use the statistics.
  thrift.structs(7, schema.leaves, () => {
    thrift.struct(1, () => undefined)
  })
  const body = thrift.finish()
  const bytes = new Uint8Array(body.length + 8)
  bytes.set(body)
  new DataView(bytes.buffer).setUint32(body.length, body.length, true)
  bytes.set(magic, body.length + 4)
  return bytes
}

/** `PAR1`, the first and the last bytes of a file. */
export const magic: Uint8Array = Uint8Array.of(0x50, 0x41, 0x52, 0x31)

function writeSchema(thrift: ThriftWriter, schema: FileSchema): void {
  const root = { name: 'table', childCount: schema.roots.length }
  thrift.structs(2, [root, ...schema.elements], (element) => {
    if ('repetition' in element) writeElement(thrift, element)
    else {
      thrift.text(4, element.name)
      thrift.int32(5, element.childCount)
    }
  })
}

function writeElement(thrift: ThriftWriter, element: SchemaElement): void {
  const { physical, fixedLength, childCount, logical } = element
  if (physical !== undefined) thrift.int32(1, physicalIds[physical])
  if (fixedLength !== undefined) thrift.int32(2, fixedLength)
  thrift.int32(3, repetitionIds[element.repetition])
  thrift.text(4, element.name)
  if (childCount !== undefined) thrift.int32(5, childCount)
  const converted = logical === undefined ? undefined : convertedType(logical)
  if (converted !== undefined) thrift.int32(6, converted)
  if (logical?.kind === 'decimal') {
    thrift.int32(7, logical.scale)
    thrift.int32(8, logical.precision)
  }
  if (element.fieldId !== undefined) thrift.int32(9, element.fieldId)
  if (logical !== undefined) {
    thrift.struct(10, () => {
      writeLogical(thrift, logical)
    })
  }
}

/** A local time or timestamp has none: the older form would declare it to be UTC. */
function convertedType(logical: Logical): number | undefined {
  if (logical.kind === 'time') return undefined
  if (logical.kind !== 'timestamp') return convertedTypes[logical.kind]
  return logical.utc ? convertedTypes.timestampMicros : undefined
}

function writeLogical(thrift: ThriftWriter, logical: Logical): void {
  const nothing = (): void => undefined
  switch (logical.kind) {
    case 'string':
      thrift.struct(1, nothing)
      return
    case 'map':
      thrift.struct(2, nothing)
      return
    case 'list':
      thrift.struct(3, nothing)
      return
    case 'decimal':
      thrift.struct(5, () => {
        thrift.int32(1, logical.scale)
        thrift.int32(2, logical.precision)
      })
      return
    case 'date':
      thrift.struct(6, nothing)
      return
    case 'time':
      thrift.struct(7, () => {
        writeMicros(thrift, false)
      })
      return
    case 'timestamp':
      thrift.struct(8, () => {
        writeMicros(thrift, logical.utc)
      })
      return
    default:
      logical satisfies never
  }
}

function writeMicros(thrift: ThriftWriter, isAdjustedToUtc: boolean): void {
  thrift.boolean(1, isAdjustedToUtc)
  thrift.struct(2, () => {
    thrift.struct(2, () => undefined)
  })
}

function writeRowGroup(
  thrift: ThriftWriter,
  group: RowGroupInFile,
  codecId: number,
  ordinal: number,
): void {
  thrift.structs(1, group.chunks, (chunk) => {
    thrift.int64(2, 0)
    thrift.struct(3, () => {
      writeChunk(thrift, chunk, codecId)
    })
  })
  thrift.int64(
    2,
    sum(group.chunks, (chunk) => chunk.uncompressedBytes),
  )
  thrift.int64(3, group.rows)
  thrift.int64(5, group.offset)
  thrift.int64(
    6,
    sum(group.chunks, (chunk) => chunk.bytes),
  )
  if (ordinal < 2 ** 15) thrift.int16(7, ordinal)
}

function writeChunk(thrift: ThriftWriter, chunk: ChunkInFile, codecId: number): void {
  const { leaf, dictionaryBytes, offset } = chunk
  thrift.int32(1, physicalIds[leaf.physical])
  thrift.int32s(2, chunk.encodings)
  thrift.texts(3, leaf.path)
  thrift.int32(4, codecId)
  thrift.int64(5, chunk.entries)
  thrift.int64(6, chunk.uncompressedBytes)
  thrift.int64(7, chunk.bytes)
  thrift.int64(9, offset + (dictionaryBytes ?? 0))
  if (dictionaryBytes !== undefined) thrift.int64(11, offset)
  thrift.struct(12, () => {
    writeStatistics(thrift, chunk)
  })
}

function writeStatistics(thrift: ThriftWriter, chunk: ChunkInFile): void {
  const { extremes, leaf } = chunk
  thrift.int64(3, chunk.nulls)
  if (extremes === undefined) return
  const { lower, upper } = truncatedBounds(leaf.type, extremes, footerBoundLength)
  if (upper !== undefined) thrift.binary(5, upper)
  if (lower !== undefined) thrift.binary(6, lower)
  if (upper !== undefined) thrift.boolean(7, upper === extremes.max)
  if (lower !== undefined) thrift.boolean(8, lower.length === extremes.min.length)
}

function sum<Item>(items: readonly Item[], value: (item: Item) => number): number {
  return items.reduce((total, item) => total + value(item), 0)
}
