import type { ColumnBatch } from '../../core/columns/column.ts'
import { check } from '../../core/never.ts'
import { codecIds, plainCodec, type Zstd, zstdCodec } from './codec.ts'
import { type ColumnChunk, ColumnChunkEncoder } from './column-chunk.ts'
import type { EncoderOptions, ParquetEncoder } from './encoder.ts'
import { type GroupEncoder, ParquetFile } from './file.ts'
import { type FileSchema, refusalOf } from './file-schema.ts'
import { runsByLeaf } from './shred.ts'

/**
 * The encoder of this project: typed arrays in, pages out, all types, ids on every level.
 *
 * @param zstd Asked for when the first row group is written, unless nothing is to be compressed.
 */
export function columnarEncoder(zstd: () => Promise<Zstd>): ParquetEncoder {
  return {
    name: 'columnar',
    needsNameMapping: false,
    refuses: refusalOf,
    open: (fields, sink, options) =>
      new ParquetFile(fields, sink, options, (schema) => groupEncoder(schema, options, zstd)),
  }
}

function groupEncoder(
  schema: FileSchema,
  options: EncoderOptions,
  zstd: () => Promise<Zstd>,
): GroupEncoder {
  const { compression, compressionLevel, pageBytes } = options
  const encoders = schema.leaves.map((leaf) => new ColumnChunkEncoder(leaf, pageBytes))
  return {
    codecId: codecIds[compression],
    async *encode(batches: readonly ColumnBatch[]): AsyncGenerator<ColumnChunk> {
      const codec = compression === 'none' ? plainCodec : zstdCodec(await zstd(), compressionLevel)
      let leaf = 0
      for (const runs of runsByLeaf(schema, batches)) {
        const encoder = encoders[leaf]
        check(encoder !== undefined, 'a batch has the leaves of the file')
        yield encoder.encode(runs, codec)
        leaf += 1
      }
    },
  }
}
