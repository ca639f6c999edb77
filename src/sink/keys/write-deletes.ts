import type { DeleteFile, FieldMetrics, LoadedTable } from '../../catalog/ports.ts'
import { writeVectors } from '../../catalog/iceberg/format/puffin.ts'
import { positionDeleteFields } from '../../catalog/iceberg/read-deletes.ts'
import type { ObjectStore } from '../../catalog/store/object-store.ts'
import type { Column } from '../../core/columns/column.ts'
import type { IdSource } from '../../core/ports.ts'
import type { EncoderOptions, ParquetEncoder } from '../parquet/encoder.ts'
import type { DeletedIn } from './derive.ts'

export type DeleteWriterPorts = {
  readonly store: ObjectStore
  readonly ids: IdSource
  /** Into which folder files of the bucket go, without a last slash. */
  readonly folderOf: (deletedIn: DeletedIn) => string
  /** What goes in front of a file's name; says which bucket and round it belongs to. */
  readonly prefixOf: (deletedIn: DeletedIn) => string
  readonly encoder: ParquetEncoder
  readonly options: EncoderOptions
}

/** Positions written at once; a data file has seldom more of them in a round. */
const batchRows = 65_536

/**
 * Writes deletes as the table's format has them: one position delete file for each data file, or one
 * Puffin file with a vector for each of them.
 */
export async function writeDeletes(
  table: LoadedTable,
  derived: readonly DeletedIn[],
  ports: DeleteWriterPorts,
): Promise<readonly DeleteFile[]> {
  const [first] = derived
  if (first === undefined) return []
  const random = ports.ids.bits128()
  const nameOf = (each: DeletedIn, at: number): string =>
    `${ports.folderOf(each)}/${ports.prefixOf(each)}-${random}-${String(at).padStart(5, '0')}-deletes`
  if (table.formatVersion >= 3) return writePuffin(derived, `${nameOf(first, 1)}.puffin`, ports)
  const files: DeleteFile[] = []
  for (const [at, each] of derived.entries()) {
    files.push(await writeParquet(each, `${nameOf(each, at + 1)}.parquet`, ports))
  }
  return files
}

async function writePuffin(
  derived: readonly DeletedIn[],
  location: string,
  { store }: DeleteWriterPorts,
): Promise<readonly DeleteFile[]> {
  const { bytes, blobs } = writeVectors(
    derived.map((each) => ({ dataFile: each.location, positions: each.positions })),
  )
  const writer = await store.open(location)
  try {
    await writer.write(bytes)
    await writer.finish()
  } catch (error) {
    await writer.abandon()
    throw error
  }
  return derived.map((each, at) => ({
    content: 'deletion-vector',
    specId: each.specId,
    partition: each.partition,
    location,
    bytes: bytes.length,
    rows: each.positions.length,
    dataFile: each.location,
    blob: blobs[at],
    equalityIds: [],
    metrics: [],
  }))
}

async function writeParquet(
  deletedIn: DeletedIn,
  location: string,
  { store, encoder, options }: DeleteWriterPorts,
): Promise<DeleteFile> {
  const { positions } = deletedIn
  const path = Buffer.from(deletedIn.location)
  const writer = await store.open(location)
  try {
    const file = encoder.open(positionDeleteFields, writer, options)
    for (let from = 0; from < positions.length; from += batchRows) {
      const part = positions.subarray(from, from + batchRows)
      await file.write({
        length: part.length,
        columns: [pathColumn(path, part.length), positionColumn(part)],
      })
    }
    const summary = await file.close()
    return {
      content: 'position-deletes',
      specId: deletedIn.specId,
      partition: deletedIn.partition,
      location,
      bytes: await writer.finish(),
      rows: positions.length,
      dataFile: deletedIn.location,
      blob: undefined,
      equalityIds: [],
      metrics: summary.metrics.map((each) => withWholePath(each, path)),
    }
  } catch (error) {
    await writer.abandon()
    throw error
  }
}

/** Readers scope a delete file by equal bounds of its path, which a cut bound could not be. */
function withWholePath(metrics: FieldMetrics, path: Uint8Array): FieldMetrics {
  if (metrics.fieldId !== positionDeleteFields[0]?.id) return metrics
  return { ...metrics, lower: path, upper: path }
}

function pathColumn(path: Uint8Array, length: number): Column {
  const values = new Uint8Array(path.length * length)
  for (let at = 0; at < length; at += 1) values.set(path, at * path.length)
  return {
    ...plain(length),
    type: { kind: 'string', nullable: false },
    layout: 'bytes',
    offsets: Int32Array.from({ length: length + 1 }, (_, at) => at * path.length),
    values,
  }
}

function positionColumn(positions: Uint32Array): Column {
  return {
    ...plain(positions.length),
    type: { kind: 'bigint', nullable: false },
    layout: 'int64',
    values: BigInt64Array.from(positions, BigInt),
  }
}

function plain(length: number): Pick<Column, 'length' | 'nullCount' | 'validity' | 'bitOffset'> {
  return { length, nullCount: 0, validity: undefined, bitOffset: 0 }
}
