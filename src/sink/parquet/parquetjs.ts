import { createRequire } from 'node:module'
import type { ColumnBatch } from '../../core/columns/column.ts'
import { SluiceError } from '../../core/errors.ts'
import { check } from '../../core/never.ts'
import type { IdField } from '../../core/schema/types.ts'
import { ByteBuffer } from './byte-buffer.ts'
import type { ColumnChunk } from './column-chunk.ts'
import type { EncoderOptions, ParquetEncoder } from './encoder.ts'
import { type GroupEncoder, ParquetFile } from './file.ts'
import { type FileSchema, type Leaf, refusalOf } from './file-schema.ts'
import { chunksOfPages } from './foreign-chunks.ts'
import type { EnvelopeWriter, ParquetJs, Row } from './parquetjs-types.ts'
import { appendPlain, plainBytes } from './plain.ts'
import { type Run, runsByLeaf } from './shred.ts'

/** `CompressionCodec` of parquet.thrift. */
const codecs = { none: { id: 0, name: 'UNCOMPRESSED' }, zstd: { id: 1, name: 'SNAPPY' } } as const

/** Rows of a page: parquetjs-lite counts a page in rows, whatever its bytes. */
const pageRows = 20_000

/**
 * Pages by parquetjs-lite, from one object per row. Kept for those who want it: it is slow, knows no
 * zstd (asked for it, this writes Snappy) and no nested columns.
 *
 * Values are handed over as their bytes, for its own conversions lose int64, NaN and -0; ids, types
 * and statistics are in our footer, since it writes none that readers could use.
 */
export const parquetjsEncoder: ParquetEncoder = {
  name: 'parquetjs-lite',
  needsNameMapping: false,
  refuses,
  open(fields, sink, options) {
    const reason = refuses(fields)
    if (reason !== undefined) throw new SluiceError('SCHEMA_UNSUPPORTED', reason)
    return new ParquetFile(fields, sink, options, (schema) => groupEncoder(schema, options))
  },
}

function refuses(fields: readonly IdField[]): string | undefined {
  const nested = fields.find((field) => field.children.length > 0)
  if (nested !== undefined) return `${nested.name} is nested, which parquetjs-lite is not used for`
  return refusalOf(fields)
}

function groupEncoder(schema: FileSchema, options: EncoderOptions): GroupEncoder {
  const codec = codecs[options.compression]
  return {
    codecId: codec.id,
    async *encode(batches: readonly ColumnBatch[]): AsyncGenerator<ColumnChunk> {
      const library = loadLibrary()
      const runsOfLeaves = [...runsByLeaf(schema, batches)]
      const columns = schema.leaves.map((leaf, at) => cellsOf(leaf, runsOfLeaves[at] ?? []))
      const definition = Object.fromEntries(
        schema.leaves.map((leaf, at) => [nameOf(at), columnDefinition(leaf, codec.name)]),
      )
      const pages: Uint8Array[] = []
      const envelope = new library.ParquetEnvelopeWriter(
        new library.ParquetSchema(definition),
        (bytes: Uint8Array) => pages.push(bytes),
        () => undefined,
        0,
        { pageSize: pageRows, useDataPageV2: false, pageIndex: false },
      )
      await writeRows(library, envelope, columns)
      yield* chunksOfPages(
        Buffer.concat(pages),
        envelope.rowGroups[0]?.columns.map(({ meta_data: chunk }) => ({
          offset: Number(chunk.data_page_offset),
          bytes: Number(chunk.total_compressed_size),
        })) ?? [],
        schema.leaves,
        runsOfLeaves,
      )
    },
  }
}

async function writeRows(
  library: ParquetJs,
  envelope: EnvelopeWriter,
  columns: readonly (readonly unknown[])[],
): Promise<void> {
  const writer = new library.ParquetWriter(envelope.schema, envelope, { rowGroupSize: Infinity })
  const rows = columns[0]?.length ?? 0
  for (let at = 0; at < rows; at += 1) {
    const row: Row = {}
    columns.forEach((column, leaf) => {
      row[nameOf(leaf)] = column[at]
    })
    await writer.appendRow(row)
  }
  await writer.close()
}

/** Names are ours alone: those of the columns stand in the footer. */
function nameOf(leaf: number): string {
  return `c${leaf}`
}

function columnDefinition(leaf: Leaf, compression: string): object {
  const optional = leaf.definitionMax > 0
  const common = { optional, compression, statistics: false }
  if (leaf.physical === 'boolean') return { ...common, type: 'BOOLEAN' }
  if (leaf.physical === 'bytes') return { ...common, type: 'BYTE_ARRAY' }
  return { ...common, type: 'FIXED_LEN_BYTE_ARRAY', typeLength: plainBytes(leaf) }
}

/** For each row its value in PLAIN form, a boolean as such, and nothing for null. */
function cellsOf(leaf: Leaf, runs: readonly Run[]): unknown[] {
  const cells: unknown[] = []
  const size = plainBytes(leaf)
  for (const run of runs) {
    const { values, column, definition } = run
    const plain = new ByteBuffer()
    appendPlain(plain, leaf, column, { values, from: 0, to: values.count })
    const bytes = Buffer.from(plain.bytes.buffer, 0, plain.length)
    let at = 0
    for (let entry = 0; entry < run.entries; entry += 1) {
      if (definition !== undefined && definition[entry] !== leaf.definitionMax) {
        cells.push(undefined)
        continue
      }
      // Text and bytes have their length in front.
      const prefix = size === 0 ? 4 : 0
      const end = at + prefix + (size === 0 ? bytes.readUInt32LE(at) : size)
      const cell = bytes.subarray(at + prefix, end)
      cells.push(leaf.physical === 'boolean' ? cell[0] === 1 : cell)
      at = end
    }
    check(at === bytes.length, 'every value of a run belongs to a row')
  }
  return cells
}

function loadLibrary(): ParquetJs {
  try {
    const loaded: unknown = createRequire(import.meta.url)('parquetjs-lite')
    check(isLibrary(loaded), 'parquetjs-lite has the writers it is known for')
    return loaded
  } catch (cause) {
    throw new SluiceError('DEPENDENCY_MISSING', 'the encoder parquetjs-lite cannot be loaded', {
      fix: 'npm install parquetjs-lite',
      cause,
    })
  }
}

function isLibrary(value: unknown): value is ParquetJs {
  return typeof value === 'object' && value !== null && 'ParquetEnvelopeWriter' in value
}
