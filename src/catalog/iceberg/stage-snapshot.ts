import { SluiceError } from '../../core/errors.ts'
import { check } from '../../core/never.ts'
import type { DataFile, SnapshotEntry, TableChange } from '../ports.ts'
import type { ObjectStore } from '../store/object-store.ts'
import { nextSequence } from './apply-change.ts'
import { sortOrderId, uuidOf } from './create-table.ts'
import type { ManifestEntry } from './format/manifest.ts'
import { type ManifestFile, readManifestList, writeManifestList } from './format/manifest-list.ts'
import { schemaOf, type TableMetadata, writingSpec } from './format/metadata.ts'
import { decodeSchema } from './format/schema-json.ts'
import type { PartitionSpec } from './format/partition-spec.ts'
import { normalizeLocation, shownLocation } from './location.ts'
import {
  manifestContext,
  putManifest,
  type StagedManifest,
  type StagePlace,
  writeObject,
} from './put-manifest.ts'
import { stageDeletes } from './stage-deletes.ts'

type Snapshot = NonNullable<TableChange['snapshot']>

/** Writes the manifest of a snapshot's data files. @returns undefined when it has none */
export async function stageManifest(
  base: TableMetadata,
  snapshot: Snapshot,
  place: StagePlace,
): Promise<StagedManifest | undefined> {
  if (snapshot.files.length === 0) return undefined
  const schema = schemaOf(base, base.currentSchemaId, place.folder)
  const spec = writingSpec(base, decodeSchema(schema, place.folder))
  check(spec !== undefined, 'a table that is written is cut into buckets')
  const context = manifestContext(base, spec.specId, 'data', place)
  const entries = snapshot.files.map((file) => addedEntry(file, snapshot, base, context.spec))
  return putManifest(entries, context, snapshot, place)
}

/** A manifest list as it was written, and how many rows got row ids by it (format 3). */
export type StagedList = { readonly location: string; readonly assignedRows: bigint }

/**
 * Writes the manifest list of a snapshot on top of `base`. It is written anew for each attempt, as
 * the sequence number and the manifests below may be others.
 */
export async function stageManifestList(
  base: TableMetadata,
  snapshot: Snapshot,
  staged: StagedManifest | undefined,
  place: StagePlace,
): Promise<StagedList> {
  const sequence = nextSequence(base)
  const below = await manifestsBelow(base, place.store)
  const deletes = await stageDeletes(base, snapshot, below, place)
  const own = [...(staged === undefined ? [] : [staged]), ...deletes.added]
  const listed = [
    ...own.map((manifest) => ({ ...manifest, sequence, minSequence: sequence })),
    ...deletes.rewritten.map((manifest) => ({ ...manifest, sequence })),
    ...deletes.kept,
  ]
  const { manifests, assignedRows } = withRowIds(listed, base.nextRowId)
  const body = writeManifestList(manifests, {
    snapshotId: snapshot.id,
    parentId: base.head,
    sequence,
    sync: place.ids.bits128(),
    compression: place.compression,
    ...(base.nextRowId === undefined ? {} : { firstRowId: base.nextRowId }),
    ...(snapshot.headerLedger === undefined ? {} : { ledger: snapshot.headerLedger }),
  })
  const random = uuidOf(place.ids.bits128())
  const location = `${place.folder}/snap-${String(snapshot.id)}-${random}.avro`
  await writeObject(place.store, location, body)
  return { location, assignedRows }
}

/** Gives each data manifest without row ids the next ones, in the order of the list (spec, v3). */
function withRowIds(
  manifests: readonly ManifestFile[],
  nextRowId: bigint | undefined,
): { readonly manifests: readonly ManifestFile[]; readonly assignedRows: bigint } {
  if (nextRowId === undefined) return { manifests, assignedRows: 0n }
  let next = nextRowId
  const numbered = manifests.map((manifest): ManifestFile => {
    if (manifest.content === 'deletes' || manifest.firstRowId !== undefined) return manifest
    const firstRowId = next
    next += BigInt((manifest.addedRows ?? 0) + (manifest.existingRows ?? 0))
    return { ...manifest, firstRowId }
  })
  return { manifests: numbered, assignedRows: next - nextRowId }
}

/** The manifests of a snapshot. @throws SluiceError DATA_CORRUPT when the list is gone or damaged */
export async function readManifests(
  snapshot: SnapshotEntry,
  store: ObjectStore,
  resolve: (location: string) => string = normalizeLocation,
): Promise<readonly ManifestFile[]> {
  const location = resolve(snapshot.manifestList)
  const shown = shownLocation(location)
  const body = snapshot.manifestList === '' ? undefined : await store.read(location)
  if (body === undefined) {
    throw new SluiceError(
      'DATA_CORRUPT',
      `${shown || 'snapshot'}: the manifest list of snapshot ${String(snapshot.id)} is not there`,
      { details: { file: shown, snapshot: snapshot.id } },
    )
  }
  return readManifestList(body, shown)
}

/** All manifests of the base, one more for each round. Merging small ones is maintenance's. */
async function manifestsBelow(
  base: TableMetadata,
  store: ObjectStore,
): Promise<readonly ManifestFile[]> {
  const parent = base.head === undefined ? undefined : base.snapshots.get(base.head)
  return parent === undefined ? [] : (await readManifests(parent, store)).filter(hasLiveFiles)
}

/** Entries of removed files stay for the snapshot that removed them, and no longer. */
function hasLiveFiles({ addedFiles, existingFiles }: ManifestFile): boolean {
  return addedFiles === undefined || existingFiles === undefined || addedFiles + existingFiles > 0
}

function addedEntry(
  file: DataFile,
  snapshot: Snapshot,
  base: TableMetadata,
  spec: PartitionSpec,
): ManifestEntry {
  const hasOrder = base.json['default-sort-order-id'] === sortOrderId
  return {
    status: 'added',
    snapshotId: snapshot.id,
    sequence: undefined,
    fileSequence: undefined,
    file: {
      content: 'data',
      location: file.location,
      format: 'PARQUET',
      partition: new Map(spec.fields.map((field) => [field.fieldId, file.bucket])),
      rows: file.rows,
      bytes: file.bytes,
      metrics: file.metrics,
      splitOffsets: file.splitOffsets,
      equalityIds: [],
      ...(hasOrder ? { sortOrderId } : {}),
    },
  }
}
