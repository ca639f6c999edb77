import { millis, type Millis } from '../../core/ids.ts'
import { type JsonObject, type JsonValue } from '../../core/json64.ts'
import { check } from '../../core/never.ts'
import type { DataFile, SnapshotEntry, TableChange } from '../ports.ts'
import { arrayOf, isAbsent, jsonObject, objectOf, withMembers } from './format/json-fields.ts'
import { type TableMetadata, viewMetadata } from './format/metadata.ts'
import { metadataLogMax } from './format/properties.ts'

export type ChangeContext = {
  /** Where the base lies; goes into the metadata log. */
  readonly baseLocation: string
  /** Where the new manifest list lies, if the change makes a snapshot. */
  readonly manifestList: string | undefined
  readonly now: Millis
}

/** The sequence number that the next snapshot of a table has. */
export function nextSequence(base: TableMetadata): bigint {
  return base.lastSequence + 1n
}

/**
 * The metadata after a change. Pure; the base's unknown members survive. Times never go back, since
 * readers refuse tables in which they do.
 */
export function applyChange(
  base: TableMetadata,
  change: TableChange,
  context: ChangeContext,
): TableMetadata {
  const parent = base.head === undefined ? undefined : base.snapshots.get(base.head)
  const now = millis(Math.max(context.now, base.lastUpdatedAt, parent?.committedAt ?? 0))
  const properties = new Map([...base.properties, ...change.setProperties])
  const members = new Map<string, JsonValue>([
    ['last-updated-ms', now],
    ['properties', jsonObject(properties)],
    ['metadata-log', nextMetadataLog(base, context.baseLocation, properties)],
  ])
  if (change.snapshot !== undefined) {
    check(context.manifestList !== undefined, 'a snapshot has a manifest list')
    const { id } = change.snapshot
    check(!base.snapshots.has(id), 'a snapshot id is listed once')
    const snapshot = snapshotJson(base, change.snapshot, {
      parent,
      manifestList: context.manifestList,
      now,
    })
    const logged = jsonObject([
      ['timestamp-ms', now],
      ['snapshot-id', id],
    ])
    members.set('last-sequence-number', nextSequence(base))
    members.set('current-snapshot-id', id)
    members.set('refs', nextRefs(base, id))
    members.set('snapshots', [...arrayOf(base.json, 'snapshots', ''), snapshot])
    members.set('snapshot-log', [...arrayOf(base.json, 'snapshot-log', ''), logged])
  }
  return viewMetadata(withMembers(base.json, jsonObject(members)), context.baseLocation)
}

type Snapshot = NonNullable<TableChange['snapshot']>

function snapshotJson(
  base: TableMetadata,
  snapshot: Snapshot,
  at: {
    readonly parent: SnapshotEntry | undefined
    readonly manifestList: string
    readonly now: Millis
  },
): JsonObject {
  return jsonObject([
    ['sequence-number', nextSequence(base)],
    ['snapshot-id', snapshot.id],
    ['parent-snapshot-id', base.head],
    ['timestamp-ms', at.now],
    ['summary', jsonObject(summaryOf(snapshot, at.parent))],
    ['manifest-list', at.manifestList],
    ['schema-id', base.currentSchemaId],
  ])
}

/** All values are texts: readers refuse the whole table when one is a number. */
function summaryOf(
  snapshot: Snapshot,
  parent: SnapshotEntry | undefined,
): ReadonlyMap<string, string> {
  const files = BigInt(snapshot.files.length)
  const rows = sumOf(snapshot.files, (file) => file.rows)
  const bytes = sumOf(snapshot.files, (file) => file.bytes)
  const summary = new Map<string, string>([['operation', snapshot.operation]])
  for (const [key, value] of snapshot.summary) summary.set(key, value)
  if (files > 0n) {
    summary.set('added-data-files', String(files))
    summary.set('added-records', String(rows))
    summary.set('added-files-size', String(bytes))
  }
  const buckets = new Set(snapshot.files.map((file) => file.bucket))
  summary.set('changed-partition-count', String(buckets.size))
  const totals: readonly (readonly [string, bigint])[] = [
    ['total-records', rows],
    ['total-files-size', bytes],
    ['total-data-files', files],
    ['total-delete-files', 0n],
    ['total-position-deletes', 0n],
    ['total-equality-deletes', 0n],
  ]
  for (const [key, added] of totals) {
    const before = parent === undefined ? '0' : parent.summary.get(key)
    // A total that the parent does not know cannot be carried on; readers do without it.
    if (before === undefined || !/^\d{1,19}$/.test(before)) continue
    summary.set(key, String(BigInt(before) + added))
  }
  return summary
}

function sumOf(files: readonly DataFile[], valueOf: (file: DataFile) => number): bigint {
  return files.reduce((sum, file) => sum + BigInt(valueOf(file)), 0n)
}

/** Moves `main`; its retention settings, and all other branches and tags, stay. */
function nextRefs(base: TableMetadata, id: bigint): JsonObject {
  const refs = isAbsent(base.json, 'refs') ? jsonObject([]) : objectOf(base.json, 'refs', '')
  const main = isAbsent(refs, 'main') ? jsonObject([]) : objectOf(refs, 'main', '')
  const moved = withMembers(
    main,
    jsonObject([
      ['snapshot-id', id],
      ['type', 'branch'],
    ]),
  )
  return withMembers(refs, jsonObject([['main', moved]]))
}

function nextMetadataLog(
  base: TableMetadata,
  baseLocation: string,
  properties: ReadonlyMap<string, string>,
): readonly JsonValue[] {
  const entry = jsonObject([
    ['timestamp-ms', base.lastUpdatedAt],
    ['metadata-file', baseLocation],
  ])
  return [...arrayOf(base.json, 'metadata-log', ''), entry].slice(-metadataLogMax(properties))
}
