import type { LoadedTable } from '../../catalog/ports.ts'
import type { Bucket } from '../../core/ids.ts'

/**
 * Iceberg's folder of a partition; readers go by the manifest, people by the folder. Engines disagree
 * on whether `%` in a location is an escape, so what would need one becomes `_`.
 */
export function bucketFolder(
  table: Pick<LoadedTable, 'location' | 'bucketKey'>,
  bucket: Bucket,
): string {
  const field = table.bucketKey === undefined ? '__bucket' : `${table.bucketKey}_bucket`
  return `${table.location}/data/${field.replaceAll(/[^A-Za-z0-9_-]/g, '_')}=${String(bucket)}`
}
