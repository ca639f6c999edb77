import { SluiceError } from '../../core/errors.ts'
import { type Bucket, bucket, snapshotId } from '../../core/ids.ts'
import { systemColumns } from '../../core/schema/types.ts'
import type { FilePartition, LiveDelete, LiveFiles, LoadedTable } from '../ports.ts'
import type { ObjectStore } from '../store/object-store.ts'
import type { PartitionSpec } from './format/partition-spec.ts'
import { shownLocation } from './location.ts'
import { type ScannedFile, scanTable, type TableScan } from './scan.ts'

/** What the head of a loaded version consists of: data files and what deletes rows in them. */
export async function liveFiles(
  store: ObjectStore,
  folder: string,
  table: LoadedTable,
): Promise<LiveFiles> {
  if (table.head === undefined) return { data: [], deletes: [] }
  return liveFilesIn(await scanTable(store, folder, { snapshot: table.head }))
}

/** What a scan found. */
export function liveFilesIn(scan: TableScan): LiveFiles {
  return {
    data: scan.files.map((file) => ({
      ...placeOf(file),
      location: file.location,
      bucket: bucketOf(file, scan.specs),
      sequence: file.sequence,
      rows: file.rows,
      bytes: file.bytes,
      snapshot: snapshotId(file.snapshot),
    })),
    deletes: scan.deleteFiles.map(liveDelete),
  }
}

function liveDelete(file: ScannedFile): LiveDelete {
  const isVector = file.format.toUpperCase() === 'PUFFIN'
  if (isVector && (file.blob === undefined || file.referencedDataFile === undefined)) {
    const shown = shownLocation(file.location)
    throw new SluiceError('DATA_CORRUPT', `${shown}: a deletion vector without its place`, {
      details: { file: shown },
    })
  }
  return {
    ...placeOf(file),
    content: isVector
      ? 'deletion-vector'
      : file.content === 'equality-deletes'
        ? 'equality-deletes'
        : 'position-deletes',
    location: file.location,
    sequence: file.sequence,
    rows: file.rows,
    bytes: file.bytes,
    dataFile: file.referencedDataFile,
    blob: file.blob,
    snapshot: snapshotId(file.snapshot),
  }
}

function placeOf({ specId, partition }: ScannedFile): FilePartition {
  return { specId, partition }
}

/** A spec that others made may have more fields than the bucket, and even no bucket. */
function bucketOf(
  file: ScannedFile,
  specs: ReadonlyMap<number, PartitionSpec>,
): Bucket | undefined {
  const fields = specs.get(file.specId)?.fields ?? []
  const field =
    fields.find(({ transform }) => transform.startsWith('bucket[')) ??
    fields.find(({ name, transform }) => transform === 'identity' && name === systemColumns.bucket)
  const place = field === undefined ? undefined : file.partition.get(field.fieldId)
  return typeof place === 'number' && Number.isInteger(place) && place >= 0
    ? bucket(place)
    : undefined
}
