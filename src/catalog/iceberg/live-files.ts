import { SluiceError } from '../../core/errors.ts'
import { type Bucket, bucket, snapshotId } from '../../core/ids.ts'
import type { FilePartition, LiveDelete, LiveFiles, LoadedTable } from '../ports.ts'
import type { ObjectStore } from '../store/object-store.ts'
import type { PartitionSpec } from './format/partition-spec.ts'
import { shownLocation } from './location.ts'
import { type ScannedFile, scanTable } from './scan.ts'

/** What the head of a loaded version consists of: data files and what deletes rows in them. */
export async function liveFiles(
  store: ObjectStore,
  folder: string,
  table: LoadedTable,
): Promise<LiveFiles> {
  if (table.head === undefined) return { data: [], deletes: [] }
  const scan = await scanTable(store, folder, { snapshot: table.head })
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

/** The bucket is the last field of the specs that Sluice and Fluss make. */
function bucketOf(
  file: ScannedFile,
  specs: ReadonlyMap<number, PartitionSpec>,
): Bucket | undefined {
  const field = specs.get(file.specId)?.fields.at(-1)
  const place = field === undefined ? undefined : file.partition.get(field.fieldId)
  return typeof place === 'number' && Number.isInteger(place) && place >= 0
    ? bucket(place)
    : undefined
}
