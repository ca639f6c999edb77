import type { IdSource } from '../../core/ports.ts'
import { systemColumns } from '../../core/schema/types.ts'
import type { TableChange } from '../ports.ts'
import type { ObjectStore } from '../store/object-store.ts'
import { uuidOf } from './create-table.ts'
import type { AvroCompression } from './format/avro.ts'
import { type ManifestContext, type ManifestEntry, writeManifest } from './format/manifest.ts'
import type { ManifestFile, PartitionSummary } from './format/manifest-list.ts'
import { schemaOf, specOf, type TableMetadata } from './format/metadata.ts'
import type { PartitionSpec } from './format/partition-spec.ts'
import { decodeSchema } from './format/schema-json.ts'
import { int32Value } from './format/single-value.ts'

type Snapshot = NonNullable<TableChange['snapshot']>

export type StagePlace = {
  readonly store: ObjectStore
  readonly ids: IdSource
  /** Where manifests go, without a last slash. */
  readonly folder: string
  readonly compression: AvroCompression | undefined
}

/** A manifest that is written and that no list names yet; its sequence number is the list's. */
export type StagedManifest = Omit<ManifestFile, 'sequence' | 'minSequence'>

/** What the header of a manifest of that spec says. */
export function manifestContext(
  base: TableMetadata,
  specId: number,
  content: ManifestContext['content'],
  place: StagePlace,
): ManifestContext {
  const schema = schemaOf(base, base.currentSchemaId, place.folder)
  return {
    schemaId: base.currentSchemaId,
    schema,
    fields: decodeSchema(schema, place.folder),
    spec: specOf(base, specId, place.folder),
    formatVersion: base.formatVersion,
    content,
    sync: place.ids.bits128(),
    compression: place.compression,
  }
}

/** Writes a manifest under a fresh name and counts what is in it. */
export async function putManifest(
  entries: readonly ManifestEntry[],
  context: ManifestContext,
  snapshot: Snapshot,
  place: StagePlace,
): Promise<StagedManifest> {
  const body = writeManifest(entries, context)
  const location = `${place.folder}/${uuidOf(place.ids.bits128())}-m0.avro`
  await writeObject(place.store, location, body)
  const files = (status: ManifestEntry['status']): number =>
    entries.filter((entry) => entry.status === status).length
  const rows = (status: ManifestEntry['status']): number =>
    entries.reduce((sum, entry) => sum + (entry.status === status ? entry.file.rows : 0), 0)
  return {
    location,
    bytes: body.length,
    specId: context.spec.specId,
    content: context.content,
    addedSnapshotId: snapshot.id,
    addedFiles: files('added'),
    existingFiles: files('existing'),
    deletedFiles: files('deleted'),
    addedRows: rows('added'),
    existingRows: rows('existing'),
    deletedRows: rows('deleted'),
    partitions: partitionSummaries(context.spec, entries),
  }
}

/** Bounds only of numbers, which buckets, days and years are: a range too narrow would lose rows. */
function partitionSummaries(
  spec: PartitionSpec,
  entries: readonly ManifestEntry[],
): readonly PartitionSummary[] {
  return spec.fields.map(({ fieldId, transform }) => {
    const values = entries.map(({ file }) => file.partition.get(fieldId) ?? null)
    const containsNull = values.includes(null)
    const numbers = values.filter((value) => typeof value === 'number')
    const isCounted = !/^(identity|truncate)/.test(transform) || isBucketColumn(spec, fieldId)
    if (!isCounted || numbers.length === 0) return { containsNull }
    const lowest = numbers.reduce((low, value) => Math.min(low, value))
    const highest = numbers.reduce((high, value) => Math.max(high, value))
    return { containsNull, lower: int32Value(lowest), upper: int32Value(highest) }
  })
}

/** The bucket column of Sluice and Fluss is an INT, and the one identity field they make. */
function isBucketColumn(spec: PartitionSpec, fieldId: number): boolean {
  return spec.fields.some((each) => each.fieldId === fieldId && each.name === systemColumns.bucket)
}

export async function writeObject(
  store: ObjectStore,
  location: string,
  body: Uint8Array,
): Promise<void> {
  const writer = await store.open(location)
  try {
    await writer.write(body)
    await writer.finish()
  } catch (error) {
    await writer.abandon()
    throw error
  }
}
