import { type Bucket, bucket } from '../../core/ids.ts'
import { systemColumns } from '../../core/schema/types.ts'
import type { LoadedTable } from '../ports.ts'
import type { ObjectStore } from '../store/object-store.ts'
import { readInt64Value } from './format/single-value.ts'
import { scanTable } from './scan.ts'

/**
 * What the rows themselves say about progress: per bucket one more than the highest `__offset` bound
 * over the live files at the head. A file that does not say (another writer's) makes all of it unknown.
 */
export async function dataEnds(
  store: ObjectStore,
  folder: string,
  table: LoadedTable,
): Promise<ReadonlyMap<Bucket, bigint> | undefined> {
  if (table.head === undefined) return new Map()
  // A changelog's last offset may be a delete, which leaves no row.
  if (table.primaryKey.length > 0) return undefined
  const offsets = table.fields.find((field) => field.name === systemColumns.offset)
  if (offsets === undefined) return undefined
  const scan = await scanTable(store, folder, { snapshot: table.head })
  const ends = new Map<Bucket, bigint>()
  for (const file of scan.files) {
    if (file.rows === 0) continue
    const [place] = file.partition.values()
    const upper = file.metrics.find((each) => each.fieldId === offsets.id)?.upper
    if (typeof place !== 'number' || place < 0 || upper?.length !== 8) return undefined
    const end = readInt64Value(upper) + 1n
    const known = ends.get(bucket(place))
    if (known === undefined || end > known) ends.set(bucket(place), end)
  }
  return ends
}
