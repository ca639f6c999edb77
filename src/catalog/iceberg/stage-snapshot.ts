import { SluiceError } from '../../core/errors.ts'
import type { IdSource } from '../../core/ports.ts'
import type { DataFile, SnapshotEntry, TableChange } from '../ports.ts'
import type { ObjectStore } from '../store/object-store.ts'
import { nextSequence } from './apply-change.ts'
import { sortOrderId, uuidOf } from './create-table.ts'
import { type ManifestEntry, writeManifest } from './format/manifest.ts'
import { type ManifestFile, readManifestList, writeManifestList } from './format/manifest-list.ts'
import { schemaOf, specOf, type TableMetadata } from './format/metadata.ts'
import type { PartitionSpec } from './format/partition-spec.ts'
import { int32Value } from './format/single-value.ts'
import { normalizeLocation, shownLocation } from './location.ts'

type Snapshot = NonNullable<TableChange['snapshot']>

export type StagePlace = {
  readonly store: ObjectStore
  readonly ids: IdSource
  /** Where manifests go, without a last slash. */
  readonly folder: string
}

/** A manifest that is written and that no list names yet; its sequence number is the list's. */
export type StagedManifest = Omit<ManifestFile, 'sequence' | 'minSequence'>

/** Writes the manifest of a snapshot's files. @returns undefined when it has none */
export async function stageManifest(
  base: TableMetadata,
  snapshot: Snapshot,
  place: StagePlace,
): Promise<StagedManifest | undefined> {
  if (snapshot.files.length === 0) return undefined
  const spec = specOf(base, base.defaultSpecId, place.folder)
  const body = writeManifest(
    snapshot.files.map((file) => addedEntry(file, snapshot, base, spec)),
    {
      schemaId: base.currentSchemaId,
      schema: schemaOf(base, base.currentSchemaId, place.folder),
      spec,
      sync: place.ids.bits128(),
    },
  )
  const location = `${place.folder}/${uuidOf(place.ids.bits128())}-m0.avro`
  await writeObject(place.store, location, body)
  return {
    location,
    bytes: body.length,
    specId: spec.specId,
    content: 'data',
    addedSnapshotId: snapshot.id,
    addedFiles: snapshot.files.length,
    existingFiles: 0,
    deletedFiles: 0,
    addedRows: snapshot.files.reduce((sum, file) => sum + file.rows, 0),
    existingRows: 0,
    deletedRows: 0,
    partitions: [bucketSummary(snapshot.files)],
  }
}

/**
 * Writes the manifest list of a snapshot on top of `base`. It is written anew for each attempt, as
 * the sequence number and the manifests below may be others.
 * @returns its location
 */
export async function stageManifestList(
  base: TableMetadata,
  snapshot: Snapshot,
  staged: StagedManifest | undefined,
  place: StagePlace,
): Promise<string> {
  const sequence = nextSequence(base)
  const below = await manifestsBelow(base, place.store)
  const own = staged === undefined ? [] : [{ ...staged, sequence, minSequence: sequence }]
  const body = writeManifestList([...own, ...below], {
    snapshotId: snapshot.id,
    parentId: base.head,
    sequence,
    sync: place.ids.bits128(),
    ...(snapshot.headerLedger === undefined ? {} : { ledger: snapshot.headerLedger }),
  })
  const random = uuidOf(place.ids.bits128())
  const location = `${place.folder}/snap-${String(snapshot.id)}-${random}.avro`
  await writeObject(place.store, location, body)
  return location
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
  return parent === undefined ? [] : readManifests(parent, store)
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

function bucketSummary(files: readonly DataFile[]): {
  readonly containsNull: boolean
  readonly lower: Uint8Array
  readonly upper: Uint8Array
} {
  let [lowest, highest] = [Number.MAX_SAFE_INTEGER, 0]
  for (const { bucket } of files) {
    lowest = Math.min(lowest, bucket)
    highest = Math.max(highest, bucket)
  }
  return { containsNull: false, lower: int32Value(lowest), upper: int32Value(highest) }
}

async function writeObject(store: ObjectStore, location: string, body: Uint8Array): Promise<void> {
  const writer = await store.open(location)
  try {
    await writer.write(body)
    await writer.finish()
  } catch (error) {
    await writer.abandon()
    throw error
  }
}
