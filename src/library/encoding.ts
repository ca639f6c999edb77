import { SluiceError } from '../core/errors.ts'
import { parseSize } from '../core/size.ts'
import type { PlanContext } from '../sink/committer/lake-committer.ts'
import type { EncoderOptions, ParquetEncoder } from '../sink/parquet/encoder.ts'
import { chooseEncoder } from '../sink/parquet/index.ts'

export type EncoderName = ParquetEncoder['name']

const mebibyte = 2 ** 20

/** Defaults of Iceberg, but for the row group: half of it serves readers as well and holds less. */
const defaults = {
  targetFileBytes: 512 * mebibyte,
  rowGroupBytes: 64 * mebibyte,
  pageBytes: mebibyte,
  compressionLevel: 1,
}

/** The encoder for each table: the one asked for, or the fastest that can write its columns. */
export function encoderChoice(
  name: EncoderName | undefined,
): (plan: PlanContext) => ParquetEncoder {
  return (plan) => chooseEncoder(name, plan.version.table.fields)
}

/** What table properties say about files (interface: `write.*`). */
export function encoderOptions(
  plan: PlanContext,
): EncoderOptions & { readonly targetFileBytes: number } {
  return encoderOptionsOf(plan.version.table.properties)
}

export function encoderOptionsOf(
  properties: ReadonlyMap<string, string>,
): EncoderOptions & { readonly targetFileBytes: number } {
  const size = (key: string, fallback: number): number => {
    const text = properties.get(key)
    return text === undefined ? fallback : parseSize(text, key)
  }
  const codec = properties.get('write.parquet.compression-codec') ?? 'zstd'
  if (codec !== 'zstd' && codec !== 'uncompressed' && codec !== 'none') {
    throw new SluiceError(
      'CONFIG_INVALID',
      `write.parquet.compression-codec ${codec}: this version writes zstd or uncompressed`,
    )
  }
  const level = properties.get('write.parquet.compression-level') ?? ''
  return {
    targetFileBytes: size('write.target-file-size-bytes', defaults.targetFileBytes),
    rowGroupBytes: size('write.parquet.row-group-size-bytes', defaults.rowGroupBytes),
    pageBytes: size('write.parquet.page-size-bytes', defaults.pageBytes),
    compression: codec === 'zstd' ? 'zstd' : 'none',
    compressionLevel: /^\d{1,2}$/.test(level)
      ? Number.parseInt(level, 10)
      : defaults.compressionLevel,
    metadata: new Map(),
  }
}
