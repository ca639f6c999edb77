import { parquetMetadataAsync, parquetReadObjects } from 'hyparquet'
import type { FileMetaData } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
import type { ColumnBatch } from '../../../src/core/columns/column.ts'
import type { DataType, IdField } from '../../../src/core/schema/types.ts'
import type {
  EncoderOptions,
  FileSummary,
  ParquetEncoder,
} from '../../../src/sink/parquet/encoder.ts'
import type { Cell } from './rows.ts'

export const usualOptions: EncoderOptions = {
  rowGroupBytes: 128 << 20,
  pageBytes: 1 << 20,
  compression: 'zstd',
  compressionLevel: 1,
  metadata: new Map(),
}

export type WrittenFile = { readonly bytes: Uint8Array; readonly summary: FileSummary }

export async function writeFile(
  encoder: ParquetEncoder,
  fields: readonly IdField[],
  batches: readonly ColumnBatch[],
  options: EncoderOptions,
): Promise<WrittenFile> {
  const parts: Uint8Array[] = []
  const sink = {
    write(bytes: Uint8Array): Promise<void> {
      parts.push(bytes)
      return Promise.resolve()
    },
  }
  const file = encoder.open(fields, sink, options)
  for (const batch of batches) await file.write(batch)
  const summary = await file.close()
  return { bytes: new Uint8Array(Buffer.concat(parts)), summary }
}

/** Metadata as hyparquet reads it. */
export async function metadataOf(bytes: Uint8Array): Promise<FileMetaData> {
  return await parquetMetadataAsync(asyncBuffer(bytes))
}

/**
 * Rows as hyparquet reads them. It is told nothing of logical types, so that it hands out what is
 * stored: micros as bigints, decimals as integers or bytes, text as bytes, groups as objects.
 */
export async function readPhysical(bytes: Uint8Array): Promise<Record<string, unknown>[]> {
  const metadata = await metadataOf(bytes)
  for (const element of metadata.schema) {
    delete element.logical_type
    delete element.converted_type
  }
  return await parquetReadObjects({
    file: asyncBuffer(bytes),
    metadata,
    compressors,
    utf8: false,
    geoparquet: false,
  })
}

/** The cell as {@link readPhysical} hands it out. */
export function physicalOf(type: DataType, cell: Cell): unknown {
  if (cell === null) return null
  switch (type.kind) {
    case 'string':
    case 'char':
      return new Uint8Array(Buffer.from(typeof cell === 'string' ? cell : '', 'utf8'))
    case 'decimal':
      if (type.precision <= 9) return Number(cell)
      return type.precision <= 18
        ? cell
        : bigEndian(typeof cell === 'bigint' ? cell : 0n, type.precision)
    case 'array':
      if (!Array.isArray(cell)) throw new TypeError('array expected')
      return {
        list: (cell as readonly Cell[]).map((element) => ({
          element: physicalOf(type.element, element),
        })),
      }
    case 'map':
      if (typeof cell !== 'object' || !('pairs' in cell)) {
        throw new TypeError('pairs expected')
      }
      return {
        key_value: cell.pairs.map(([key, value]) => ({
          key: physicalOf(type.key, key),
          value: physicalOf(type.value, value),
        })),
      }
    case 'row':
      if (typeof cell !== 'object' || !('row' in cell)) throw new TypeError('row expected')
      return Object.fromEntries(
        type.fields.map((field, at) => [field.name, physicalOf(field.type, cell.row[at] ?? null)]),
      )
    default:
      return cell
  }
}

/** Two's complement in the fewest bytes that hold every value of the precision. */
function bigEndian(value: bigint, precision: number): Uint8Array {
  const size = Math.ceil((Math.log2(10) * precision + 1) / 8)
  const hex = BigInt.asUintN(8 * size, value)
    .toString(16)
    .padStart(2 * size, '0')
  return new Uint8Array(Buffer.from(hex, 'hex'))
}

function asyncBuffer(bytes: Uint8Array): {
  byteLength: number
  slice: (start: number, end?: number) => ArrayBuffer
} {
  return {
    byteLength: bytes.length,
    slice: (start, end) => new Uint8Array(bytes.slice(start, end)).buffer,
  }
}
