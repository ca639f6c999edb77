import { SluiceError } from '../../core/errors.ts'
import { check } from '../../core/never.ts'
import type { ColumnChunk } from './column-chunk.ts'
import type { Leaf } from './file-schema.ts'
import { encodings } from './page.ts'
import { rangeFor } from './ranges.ts'
import type { Run } from './shred.ts'
import { listIn, numberIn, structIn, ThriftReader, type ThriftStruct } from './thrift-reader.ts'

/** Fields of `ColumnMetaData` in parquet.thrift. */
const columnMetaData = {
  encodings: 2,
  uncompressed: 6,
  compressed: 7,
  data: 9,
  dictionary: 11,
} as const

/**
 * The column chunks of the only row group of a whole Parquet file that another library wrote, to be
 * put into a file of ours. Levels, counts and ranges come from our own runs.
 */
export function chunksOfFile(
  file: Uint8Array,
  leaves: readonly Leaf[],
  runsOfLeaves: Iterable<readonly Run[]>,
): ColumnChunk[] {
  const [group, ...others] = listIn(footerOf(file), 4)
  check(group instanceof Map && others.length === 0, 'a file of one row group was written')
  const columns = listIn(group, 1)
  let at = 0
  const chunks: ColumnChunk[] = []
  for (const runs of runsOfLeaves) {
    const leaf = leaves[at]
    const column = columns[at]
    check(leaf !== undefined && column instanceof Map, 'the file has the leaves it was given')
    chunks.push({ ...chunkOf(file, structIn(column, 3)), ...countsOf(leaf, runs) })
    at += 1
  }
  return chunks
}

/** Where a column chunk without a dictionary lies. */
export type Place = { readonly offset: number; readonly bytes: number }

/** The column chunks of pages that another library wrote in PLAIN encoding. */
export function chunksOfPages(
  pages: Uint8Array,
  places: readonly Place[],
  leaves: readonly Leaf[],
  runsOfLeaves: readonly (readonly Run[])[],
): ColumnChunk[] {
  return leaves.map((leaf, at) => {
    const place = places[at]
    check(place !== undefined, 'the pages are those of the leaves')
    const bytes = pages.slice(place.offset, place.offset + place.bytes)
    return {
      bytes,
      uncompressedBytes: uncompressedBytes(bytes),
      dictionaryBytes: undefined,
      encodings: [encodings.plain, encodings.rle],
      ...countsOf(leaf, runsOfLeaves[at] ?? []),
    }
  })
}

/** Sizes of `PageHeader` in parquet.thrift, added up with the headers themselves. */
function uncompressedBytes(chunk: Uint8Array): number {
  let sum = 0
  for (let at = 0; at < chunk.length; ) {
    const reader = new ThriftReader(chunk, at)
    const header = reader.struct()
    sum += reader.position - at + needed(header, 2)
    at = reader.position + needed(header, 3)
  }
  return sum
}

type Pages = Pick<ColumnChunk, 'bytes' | 'uncompressedBytes' | 'dictionaryBytes' | 'encodings'>

function chunkOf(file: Uint8Array, metadata: ThriftStruct): Pages {
  const data = needed(metadata, columnMetaData.data)
  const dictionary = numberIn(metadata, columnMetaData.dictionary)
  const start = dictionary ?? data
  return {
    bytes: file.slice(start, start + needed(metadata, columnMetaData.compressed)),
    uncompressedBytes: needed(metadata, columnMetaData.uncompressed),
    dictionaryBytes: dictionary === undefined ? undefined : data - dictionary,
    encodings: listIn(metadata, columnMetaData.encodings).map(Number),
  }
}

/** Counts and range of a leaf, by a pass over its values that encodes nothing. */
export function countsOf(
  leaf: Leaf,
  runs: readonly Run[],
): Pick<ColumnChunk, 'entries' | 'nulls' | 'range'> {
  const range = rangeFor(leaf)
  let entries = 0
  let present = 0
  for (const { column, values, entries: count } of runs) {
    range.add(column, { values, from: 0, to: values.count })
    entries += count
    present += values.count
  }
  return { entries, nulls: entries - present, range }
}

function footerOf(file: Uint8Array): ThriftStruct {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength)
  const size = view.getUint32(file.length - 8, true)
  return new ThriftReader(file, file.length - 8 - size).struct()
}

function needed(struct: ThriftStruct, id: number): number {
  const value = numberIn(struct, id)
  if (value === undefined) throw new SluiceError('DATA_CORRUPT', `a column chunk lacks field ${id}`)
  return value
}
