import { SluiceError } from '../../core/errors.ts'
import type { DeleteFile, LiveDelete, TableChange } from '../ports.ts'
import { type ManifestEntry, readManifest } from './format/manifest.ts'
import type { ManifestFile } from './format/manifest-list.ts'
import type { TableMetadata } from './format/metadata.ts'
import { normalizeLocation, shownLocation } from './location.ts'
import {
  manifestContext,
  putManifest,
  type StagedManifest,
  type StagePlace,
} from './put-manifest.ts'

type Snapshot = NonNullable<TableChange['snapshot']>

/** The manifests of deletes that a snapshot has, on top of those below it. */
export type StagedDeletes = {
  readonly added: readonly StagedManifest[]
  /** Manifests of the base without what the snapshot drops, under new names. */
  readonly rewritten: readonly Omit<ManifestFile, 'sequence'>[]
  readonly kept: readonly ManifestFile[]
}

/**
 * Writes the delete files of a snapshot into manifests of their own specs, and takes dropped ones out
 * of the manifests that name them, in which they stay for this snapshot as deleted.
 * @throws SluiceError COMMIT_STALE when a delete to be dropped is not in the base
 */
export async function stageDeletes(
  base: TableMetadata,
  snapshot: Snapshot,
  below: readonly ManifestFile[],
  place: StagePlace,
): Promise<StagedDeletes> {
  const { deletes = [], droppedDeletes = [] } = snapshot
  const added: StagedManifest[] = []
  for (const [specId, files] of bySpec(deletes)) {
    const entries = files.map((file) => addedEntry(file, snapshot))
    const context = manifestContext(base, specId, 'deletes', place)
    added.push(await putManifest(entries, context, snapshot, place))
  }
  if (droppedDeletes.length === 0) return { added, rewritten: [], kept: below }

  const dropped = new Set(droppedDeletes.map(placeOf))
  const rewritten: Omit<ManifestFile, 'sequence'>[] = []
  const kept: ManifestFile[] = []
  for (const manifest of below) {
    const entries = manifest.content === 'data' ? [] : await liveEntries(manifest, place)
    if (!entries.some((entry) => dropped.has(placeOf(entry.file)))) {
      kept.push(manifest)
      continue
    }
    const next = entries.map((entry): ManifestEntry => {
      const isDropped = dropped.delete(placeOf(entry.file))
      // Only added entries inherit: these must say their numbers themselves.
      return isDropped
        ? { ...entry, status: 'deleted', snapshotId: snapshot.id }
        : { ...entry, status: 'existing' }
    })
    const context = manifestContext(base, manifest.specId, 'deletes', place)
    const staged = await putManifest(next, context, snapshot, place)
    rewritten.push({ ...staged, minSequence: lowestSequence(next) })
  }
  const [missing] = dropped
  if (missing !== undefined) {
    throw new SluiceError('COMMIT_STALE', 'a delete file to be replaced is not in the table', {
      details: { file: shownLocation(missing) },
      fix: 'run again',
    })
  }
  return { added, rewritten, kept }
}

/** Vectors share a file; a place names one of them. */
function placeOf(file: { readonly location: string; readonly blob?: LiveDelete['blob'] }): string {
  return file.blob === undefined ? file.location : `${file.location}#${file.blob.offset}`
}

function bySpec(files: readonly DeleteFile[]): ReadonlyMap<number, readonly DeleteFile[]> {
  const specs = new Map<number, DeleteFile[]>()
  for (const file of files) {
    const known = specs.get(file.specId)
    if (known === undefined) specs.set(file.specId, [file])
    else known.push(file)
  }
  return specs
}

function addedEntry(file: DeleteFile, snapshot: Snapshot): ManifestEntry {
  const { content, location, partition, rows, bytes, metrics, dataFile, blob } = file
  return {
    status: 'added',
    snapshotId: snapshot.id,
    sequence: undefined,
    fileSequence: undefined,
    file: {
      content: content === 'equality-deletes' ? 'equality-deletes' : 'position-deletes',
      location,
      format: content === 'deletion-vector' ? 'PUFFIN' : 'PARQUET',
      partition,
      rows,
      bytes,
      metrics,
      splitOffsets: [],
      equalityIds: file.equalityIds,
      ...(dataFile === undefined ? {} : { referencedDataFile: dataFile }),
      ...(blob === undefined ? {} : { blob }),
    },
  }
}

async function liveEntries(
  manifest: ManifestFile,
  place: StagePlace,
): Promise<readonly ManifestEntry[]> {
  const location = normalizeLocation(manifest.location)
  const shown = shownLocation(location)
  const body = await place.store.read(location)
  if (body === undefined) {
    throw new SluiceError('DATA_CORRUPT', `${shown}: the manifest is not there`, {
      details: { file: shown },
    })
  }
  return readManifest(body, shown)
    .filter((entry) => entry.status !== 'deleted')
    .map((entry) => ({
      ...entry,
      snapshotId: entry.snapshotId ?? manifest.addedSnapshotId,
      sequence: entry.sequence ?? manifest.sequence,
      fileSequence: entry.fileSequence ?? manifest.sequence,
    }))
}

function lowestSequence(entries: readonly ManifestEntry[]): bigint {
  let lowest: bigint | undefined
  for (const { status, sequence } of entries) {
    if (status === 'deleted' || sequence === undefined) continue
    if (lowest === undefined || sequence < lowest) lowest = sequence
  }
  return lowest ?? entries[0]?.sequence ?? 0n
}
