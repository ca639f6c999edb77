import { SluiceError } from '../../core/errors.ts'
import { type Millis, type SnapshotId, snapshotId } from '../../core/ids.ts'
import type { IdField } from '../../core/schema/types.ts'
import type { SnapshotEntry } from '../ports.ts'
import type { ObjectStore } from '../store/object-store.ts'
import { type ManifestFileEntry, readManifest } from './format/manifest.ts'
import type { ManifestFile } from './format/manifest-list.ts'
import { readMetadata, schemaOf, snapshotSchemaId, type TableMetadata } from './format/metadata.ts'
import type { PartitionSpec } from './format/partition-spec.ts'
import { decodeSchema } from './format/schema-json.ts'
import { findMetadata } from './list-tables.ts'
import { normalizeLocation, shownLocation } from './location.ts'
import { type Moved, resolverFor } from './moved.ts'
import { readManifests } from './stage-snapshot.ts'

/** Which state of the table: the newest if neither is given. */
export type ScanPoint = { readonly snapshot?: bigint; readonly asOf?: Millis }

/** A file that is part of a snapshot. */
export type ScannedFile = ManifestFileEntry & {
  /** Where it lies now; `location` is what the manifest says. */
  readonly resolved: string
  readonly specId: number
  /** Data sequence number: deletes of higher ones apply to it. */
  readonly sequence: bigint
  /** The snapshot that added it. */
  readonly snapshot: bigint
}

/** A table as a reader sees it at one point: what to read, and how. */
export type TableScan = {
  readonly uuid: string
  /** The metadata file that was read. */
  readonly metadata: string
  readonly formatVersion: number
  readonly properties: ReadonlyMap<string, string>
  /** Undefined while the table is empty. */
  readonly snapshot: SnapshotEntry | undefined
  /** Columns at that snapshot, with ids. */
  readonly fields: readonly IdField[]
  readonly specs: ReadonlyMap<number, PartitionSpec>
  readonly files: readonly ScannedFile[]
  readonly deleteFiles: readonly ScannedFile[]
  readonly moved: Moved | undefined
}

/** Manifests read at once. */
const parallelMax = 16

/**
 * Reads what a table consists of, whoever wrote it.
 * @param location The table's folder, or one of its metadata files.
 * @throws SluiceError TABLE_MISSING, DATA_CORRUPT, SCHEMA_UNSUPPORTED; CONFIG_INVALID when the
 *   table has no such point
 */
export async function scanTable(
  store: ObjectStore,
  location: string,
  point: ScanPoint = {},
): Promise<TableScan> {
  const { metadata, at } = await readTable(store, location)
  const shown = shownLocation(at)
  const snapshot = snapshotAt(metadata, point, shown)
  const schemaId =
    (snapshot === undefined ? undefined : snapshotSchemaId(metadata, snapshot.id)) ??
    metadata.currentSchemaId
  const { moved, resolve } = await resolverFor(store, at, {
    location: metadata.location,
    probe: snapshot?.manifestList,
  })
  const manifests = snapshot === undefined ? [] : await readManifests(snapshot, store, resolve)
  const files = await liveFiles(store, manifests, resolve)
  return {
    uuid: metadata.uuid,
    metadata: at,
    formatVersion: metadata.formatVersion,
    properties: metadata.properties,
    snapshot,
    fields: decodeSchema(schemaOf(metadata, schemaId, shown), shown),
    specs: metadata.specs,
    files: files.filter((file) => file.content === 'data'),
    deleteFiles: files.filter((file) => file.content !== 'data'),
    moved,
  }
}

/** The metadata of a table, from its folder or one of its metadata files. */
export async function readTable(
  store: ObjectStore,
  location: string,
): Promise<{ readonly metadata: TableMetadata; readonly at: string }> {
  const normal = normalizeLocation(location)
  const isFile = /\.metadata\.json(\.gz)?$/.test(normal)
  const at = isFile ? normal : (await findMetadata(store, normal))?.location
  const body = at === undefined ? undefined : await store.read(at)
  if (at === undefined || body === undefined) {
    throw new SluiceError('TABLE_MISSING', `${shownLocation(normal)}: no Iceberg table here`, {
      fix: 'name a table folder, or a metadata.json',
    })
  }
  return { metadata: readMetadata(body, shownLocation(at)), at }
}

function snapshotAt(
  metadata: TableMetadata,
  point: ScanPoint,
  shown: string,
): SnapshotEntry | undefined {
  const { snapshot: id, asOf } = point
  const wanted = id ?? (asOf === undefined ? metadata.head : snapshotAsOf(metadata, asOf, shown))
  if (wanted === undefined) return undefined
  const found = wanted > 0n ? metadata.snapshots.get(snapshotId(wanted)) : undefined
  if (found !== undefined) return found
  if (id === undefined) {
    throw new SluiceError('DATA_CORRUPT', `${shown}: snapshot ${String(wanted)} is not listed`, {
      details: { file: shown, snapshot: wanted },
    })
  }
  throw new SluiceError('CONFIG_INVALID', `${shown}: the table has no snapshot ${String(id)}`, {
    fix: `one of ${[...metadata.snapshots.keys()].slice(-5).map(String).join(', ')}`,
    details: { snapshot: id },
  })
}

/** What was current then: the log says it, also across rollbacks, as long as it goes back so far. */
function snapshotAsOf(metadata: TableMetadata, asOf: Millis, shown: string): SnapshotId {
  const current = metadata.snapshotLog.findLast((entry) => entry.at <= asOf)
  if (current !== undefined) return current.snapshot
  for (let id = metadata.head; id !== undefined; ) {
    const entry: SnapshotEntry | undefined = metadata.snapshots.get(id)
    if (entry !== undefined && entry.committedAt <= asOf) return id
    id = entry?.parent
  }
  const first = metadata.snapshotLog[0]?.at
  const since = first === undefined ? 'none' : `the first is of ${new Date(first).toISOString()}`
  throw new SluiceError(
    'CONFIG_INVALID',
    `${shown}: no snapshot as old as ${new Date(asOf).toISOString()} (${since})`,
    { details: { asOf } },
  )
}

async function liveFiles(
  store: ObjectStore,
  manifests: readonly ManifestFile[],
  resolve: (location: string) => string,
): Promise<readonly ScannedFile[]> {
  const files: ScannedFile[] = []
  for (let start = 0; start < manifests.length; start += parallelMax) {
    const group = manifests.slice(start, start + parallelMax)
    const read = await Promise.all(group.map((manifest) => filesIn(store, manifest, resolve)))
    files.push(...read.flat())
  }
  return files
}

async function filesIn(
  store: ObjectStore,
  manifest: ManifestFile,
  resolve: (location: string) => string,
): Promise<readonly ScannedFile[]> {
  const location = resolve(manifest.location)
  const shown = shownLocation(location)
  const body = await store.read(location)
  if (body === undefined) {
    throw new SluiceError('DATA_CORRUPT', `${shown}: the manifest is not there`, {
      details: { file: shown },
    })
  }
  return readManifest(body, shown)
    .filter((entry) => entry.status !== 'deleted')
    .map((entry) => ({
      ...entry.file,
      resolved: resolve(entry.file.location),
      specId: manifest.specId,
      // Only added files inherit; for others a missing number means format 1, where all are 0.
      sequence: entry.sequence ?? (entry.status === 'added' ? manifest.sequence : 0n),
      snapshot: entry.snapshotId ?? manifest.addedSnapshotId,
    }))
}
