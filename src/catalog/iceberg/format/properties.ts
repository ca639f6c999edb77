import { SluiceError } from '../../../core/errors.ts'

/** Number of buckets of a table whose partition spec does not say it. */
export const bucketCountProperty = 'fluss.bucket.num'

const previousVersionsMax = 'write.metadata.previous-versions-max'
const previousVersionsDefault = 100

/**
 * Maps the user's properties as Fluss does: `iceberg.X` becomes `X`, any other becomes `fluss.X`.
 * @throws SluiceError CONFIG_INVALID for one that Sluice could not keep to
 */
export function lakeProperties(
  properties: ReadonlyMap<string, string>,
): ReadonlyMap<string, string> {
  const mapped = new Map<string, string>([['write.parquet.compression-codec', 'zstd']])
  const lakePrefix = 'iceberg.'
  for (const [key, value] of properties) {
    mapped.set(key.startsWith(lakePrefix) ? key.slice(lakePrefix.length) : `fluss.${key}`, value)
  }
  const codec = mapped.get('write.metadata.compression-codec') ?? 'none'
  if (codec.toLowerCase() !== 'none') {
    throw new SluiceError(
      'CONFIG_INVALID',
      `iceberg.write.metadata.compression-codec: "${codec}" would hide versions of the table`,
      { fix: 'leave it out' },
    )
  }
  return mapped
}

/** How many earlier metadata files the metadata log names; at least 1. */
export function metadataLogMax(properties: ReadonlyMap<string, string>): number {
  const text = properties.get(previousVersionsMax) ?? ''
  return /^\d{1,6}$/.test(text) ? Math.max(1, Number.parseInt(text, 10)) : previousVersionsDefault
}
