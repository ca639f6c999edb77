import type { ColumnBatch } from '../../core/columns/column.ts'
import { SluiceError } from '../../core/errors.ts'
import { counted } from '../../core/text.ts'
import type { IdField } from '../../core/schema/types.ts'
import type { ObjectStore } from '../store/object-store.ts'
import { liveFilesIn } from './live-files.ts'
import { liveRowsIn } from './live-rows.ts'
import { normalizeLocation, shownLocation } from './location.ts'
import { readDataFile } from './read-data-file.ts'
import { DeletedRows } from './read-deletes.ts'
import type { TableScan } from './scan.ts'

/** @throws SluiceError TABLE_MISMATCH when rows would come back that the table has deleted */
export function refuseEqualityDeletes(scan: TableScan): void {
  const files = scan.deleteFiles.filter((file) => file.content === 'equality-deletes')
  const [first] = files
  if (first === undefined) return
  const found = counted(files.length, 'equality delete file')
  throw new SluiceError(
    'TABLE_MISMATCH',
    `${shownLocation(scan.metadata)}: the table has ${found}, which Sluice does not read`,
    {
      fix: 'read it with another engine, or compact it',
      details: { deleteFiles: files.length, first: first.location },
    },
  )
}

/** The rows of a scan that are not deleted, file by file. */
export async function* scanRows(
  store: ObjectStore,
  scan: TableScan,
  fields: readonly IdField[],
): AsyncGenerator<ColumnBatch> {
  refuseEqualityDeletes(scan)
  const { deleted, resolve } = deletedIn(store, scan)
  for (const file of liveFilesIn(scan).data) {
    yield* liveRowsIn(file, fields, deleted, (location, wanted) =>
      readDataFile(store, resolve(location), wanted),
    )
  }
}

/** Row ordinals that are deleted, by the location of the data file as its manifest has it. */
export async function deletedPositions(
  store: ObjectStore,
  scan: TableScan,
): Promise<ReadonlyMap<string, Uint32Array>> {
  refuseEqualityDeletes(scan)
  const positions = new Map<string, Uint32Array>()
  if (scan.deleteFiles.length === 0) return positions
  const { deleted } = deletedIn(store, scan)
  for (const file of liveFilesIn(scan).data) {
    const found = await deleted.positions(file)
    if (found.length > 0) positions.set(file.location, found)
  }
  return positions
}

function deletedIn(
  store: ObjectStore,
  scan: TableScan,
): { readonly deleted: DeletedRows; readonly resolve: (location: string) => string } {
  const moved = new Map(
    [...scan.files, ...scan.deleteFiles].map((file) => [
      normalizeLocation(file.location),
      file.resolved,
    ]),
  )
  const resolve = (location: string): string => {
    const normal = normalizeLocation(location)
    return moved.get(normal) ?? normal
  }
  return { deleted: new DeletedRows(store, liveFilesIn(scan), { resolve }), resolve }
}
