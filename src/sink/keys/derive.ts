import type { DeleteFile, LiveDelete, LiveFile, LoadedTable } from '../../catalog/ports.ts'
import { distinct, union } from '../../catalog/iceberg/read-deletes.ts'
import type { Bucket } from '../../core/ids.ts'
import type { SplitResult } from '../ports.ts'
import type { IndexedVersion, KeyIndex } from './key-index.ts'

/** A data file in which rows are deleted: one of the version, or one the round itself has written. */
export type DeletedIn = Pick<LiveFile, 'location' | 'specId' | 'partition'> & {
  readonly bucket: Bucket
  /** Row ordinals, ascending, each once. */
  readonly positions: Uint32Array
  /** Delete files of the version that these positions include from now on. */
  readonly drops: readonly LiveDelete[]
}

/** A file with so many position deletes gets one that stands for all of them. */
const deletesPerFileMax = 8

/**
 * What a round deletes on one version: the row that the version has of each key the round touched,
 * and rows of the round's own files that a later change of the round replaced. It is derived for
 * every version anew, never carried over: a position is good for the file it was read from alone.
 */
export async function deriveDeletes(
  table: LoadedTable,
  version: IndexedVersion,
  index: KeyIndex,
  results: readonly SplitResult[],
): Promise<readonly DeletedIn[]> {
  const live = new Map(version.files.data.map((file) => [file.location, file]))
  const derived: DeletedIn[] = []
  for (const result of results) {
    const { bucket, touched } = result
    if (touched === undefined) continue
    const known = await index.lookup(bucket, touched.keys)
    const rows = new Map<number, number[]>()
    known.file.forEach((file, at) => {
      if (file < 0) return
      const list = rows.get(file)
      if (list === undefined) rows.set(file, [known.row[at] ?? 0])
      else list.push(known.row[at] ?? 0)
    })
    for (const [number, list] of rows) {
      const location = await index.locationOf(bucket, number)
      const file = location === undefined ? undefined : live.get(location)
      if (file === undefined) continue
      derived.push(await inFile(table, version, bucket, file, sorted(list)))
    }
    for (const [number, list] of touched.replaced) {
      const file = result.files[number]
      if (file === undefined) continue
      derived.push({
        location: file.location,
        specId: table.specId,
        partition: new Map([[table.bucketFieldId, bucket]]),
        bucket,
        positions: sorted(list),
        drops: [],
      })
    }
  }
  return derived
}

async function inFile(
  table: LoadedTable,
  version: IndexedVersion,
  bucket: Bucket,
  file: LiveFile,
  fresh: Uint32Array,
): Promise<DeletedIn> {
  const { location, specId, partition } = file
  const own = version.deleted.ofFile(file)
  // A vector holds all positions of its file, and takes the place of the one before (format 3).
  const isWhole = table.formatVersion >= 3 || own.length >= deletesPerFileMax
  const positions = isWhole ? union([await version.deleted.positions(file), fresh]) : fresh
  return { location, specId, partition, bucket, positions, drops: isWhole ? own : [] }
}

/** What a commit says of the deletes once their files are written. */
export type WrittenDeletes = {
  readonly deletes: readonly DeleteFile[]
  readonly droppedDeletes: readonly LiveDelete[]
}

function sorted(rows: readonly number[]): Uint32Array {
  return distinct(Uint32Array.from(rows).sort())
}
