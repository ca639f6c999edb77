import { SluiceError } from '../../core/errors.ts'
import { type Bucket, bucket, snapshotId } from '../../core/ids.ts'
import { systemColumns } from '../../core/schema/types.ts'
import type { FilePartition, LiveDelete, LiveFiles, LoadedTable } from '../ports.ts'
import type { ObjectStore } from '../store/object-store.ts'
import type { PartitionField } from './format/partition-spec.ts'
import { shownLocation } from './location.ts'
import { type ScannedFile, scanTable, type TableScan } from './scan.ts'

/** What the head of a loaded version consists of: data files and what deletes rows in them. */
export async function liveFiles(
  store: ObjectStore,
  folder: string,
  table: LoadedTable,
): Promise<LiveFiles> {
  if (table.head === undefined) return { data: [], deletes: [] }
  return liveFilesIn(await scanTable(store, folder, { snapshot: table.head }), table)
}

type Layout = Pick<LoadedTable, 'bucketCount' | 'bucketKey'>

/**
 * What a scan found.
 * @param layout The buckets to tell files by; without it, no file has one.
 */
export function liveFilesIn(scan: TableScan, layout?: Layout): LiveFiles {
  const fieldOf = layout === undefined ? () => undefined : bucketFieldIn(scan, layout)
  return {
    data: scan.files.map((file) => ({
      ...placeOf(file),
      location: file.location,
      bucket: bucketOf(file, fieldOf(file.specId)),
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

/**
 * Which partition field of a spec is the bucket. A spec that others made may have more fields, or cut
 * the rows in another way: by another count or column, a number that looks like a bucket is none.
 */
function bucketFieldIn(
  { fields, specs }: TableScan,
  { bucketCount, bucketKey }: Layout,
): (specId: number) => PartitionField | undefined {
  const source = fields.find(({ name }) => name === (bucketKey ?? systemColumns.bucket))
  const transform = bucketKey === undefined ? 'identity' : `bucket[${bucketCount}]`
  return (specId) =>
    specs
      .get(specId)
      ?.fields.find((each) => each.transform === transform && each.sourceId === source?.id)
}

function bucketOf(file: ScannedFile, field: PartitionField | undefined): Bucket | undefined {
  const place = field === undefined ? undefined : file.partition.get(field.fieldId)
  return typeof place === 'number' && Number.isInteger(place) && place >= 0
    ? bucket(place)
    : undefined
}
