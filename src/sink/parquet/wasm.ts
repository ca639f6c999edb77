import type { ColumnBatch } from '../../core/columns/column.ts'
import { SluiceError } from '../../core/errors.ts'
import type { DataType, IdField } from '../../core/schema/types.ts'
import { codecIds } from './codec.ts'
import type { ColumnChunk } from './column-chunk.ts'
import type { EncoderOptions, ParquetEncoder } from './encoder.ts'
import { type GroupEncoder, ParquetFile } from './file.ts'
import { type FileSchema, refusalOf } from './file-schema.ts'
import { chunksOfFile } from './foreign-chunks.ts'
import { runsByLeaf } from './shred.ts'
import type * as Writer from './wasm-group.ts'

/**
 * Pages by parquet-wasm, the Rust encoder in WebAssembly: each row group is written as a file of its
 * own, whose column chunks are then put into ours. The level of zstd is always its default, 1.
 */
export const wasmEncoder: ParquetEncoder = {
  name: 'parquet-wasm',
  needsNameMapping: false,
  refuses: refusalOf,
  open: (fields, sink, options) =>
    new ParquetFile(fields, sink, options, (schema) => groupEncoder(fields, schema, options)),
}

function groupEncoder(
  fields: readonly IdField[],
  schema: FileSchema,
  options: EncoderOptions,
): GroupEncoder {
  const handedOver = fields.map(({ name, type }) => ({ name, type: widened(type) }))
  return {
    codecId: codecIds[options.compression],
    async *encode(batches: readonly ColumnBatch[]): AsyncGenerator<ColumnChunk> {
      const { writeGroup } = await loadWriter()
      const file = writeGroup(handedOver, batches, options)
      yield* chunksOfFile(file, schema.leaves, runsByLeaf(schema, batches))
    },
  }
}

/**
 * parquet-wasm 0.8.0 writes wrong values for decimals of one digit. The type of the column stands in
 * our footer, so the pages may be made for two digits: both are INT32.
 */
function widened(type: DataType): DataType {
  switch (type.kind) {
    case 'decimal':
      return { ...type, precision: Math.max(2, type.precision) }
    case 'array':
      return { ...type, element: widened(type.element) }
    case 'map':
      return { ...type, key: widened(type.key), value: widened(type.value) }
    case 'row':
      return {
        ...type,
        fields: type.fields.map((field) => ({ ...field, type: widened(field.type) })),
      }
    default:
      return type
  }
}

/** Late, since both Arrow and parquet-wasm are large and most never need them. */
async function loadWriter(): Promise<typeof Writer> {
  try {
    return await import('./wasm-group.ts')
  } catch (cause) {
    throw new SluiceError('DEPENDENCY_MISSING', 'the encoder parquet-wasm cannot be loaded', {
      fix: 'npm install parquet-wasm',
      cause,
    })
  }
}
