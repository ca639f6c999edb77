import type { ColumnBatch } from '../../core/columns/column.ts'
import { takeBatch } from '../../core/columns/take.ts'
import type { Bucket } from '../../core/ids.ts'
import type { IdField } from '../../core/schema/types.ts'
import type { LiveFile, LiveFiles } from '../ports.ts'
import { normalizeLocation } from './location.ts'
import type { ReadColumns } from './read-data-file.ts'
import type { DeletedRows } from './read-deletes.ts'

export type LiveRowsPorts = {
  readonly files: () => Promise<LiveFiles>
  readonly deletedIn: (files: LiveFiles) => DeletedRows
  readonly readColumns: ReadColumns
}

/** The rows of one bucket that are not deleted. */
export async function* liveRowsOf(
  bucket: Bucket,
  fields: readonly IdField[],
  ports: LiveRowsPorts,
): AsyncGenerator<ColumnBatch> {
  const files = await ports.files()
  const deleted = ports.deletedIn(files)
  for (const file of files.data) {
    if (file.bucket === bucket) yield* liveRowsIn(file, fields, deleted, ports.readColumns)
  }
}

/** The rows of one data file that are not deleted, in their order. */
export async function* liveRowsIn(
  file: LiveFile,
  fields: readonly IdField[],
  deleted: DeletedRows,
  readColumns: ReadColumns,
): AsyncGenerator<ColumnBatch> {
  const positions = await deleted.positions(file)
  let [ordinal, next] = [0, 0]
  for await (const batch of readColumns(normalizeLocation(file.location), fields)) {
    const kept: number[] = []
    for (let row = 0; row < batch.length; row += 1) {
      if (positions[next] === ordinal + row) next += 1
      else kept.push(row)
    }
    ordinal += batch.length
    if (kept.length === batch.length) yield batch
    else if (kept.length > 0) yield takeBatch(batch, Int32Array.from(kept), kept.length)
  }
}
