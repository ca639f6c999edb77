import { millis, type Millis } from '../../core/ids.ts'
import { type JsonObject, type JsonValue } from '../../core/json64.ts'
import { check } from '../../core/never.ts'
import type { SnapshotEntry, TableChange } from '../ports.ts'
import { arrayOf, isAbsent, jsonObject, objectOf, withMembers } from './format/json-fields.ts'
import { type TableMetadata, viewMetadata } from './format/metadata.ts'
import { metadataLogMax } from './format/properties.ts'
import { summaryOf } from './snapshot-summary.ts'

export type ChangeContext = {
  /** Where the base lies; goes into the metadata log. */
  readonly baseLocation: string
  /** Where the new manifest list lies, if the change makes a snapshot. */
  readonly manifestList: string | undefined
  /** Rows that got row ids by it (format 3). */
  readonly assignedRows?: bigint
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
      assignedRows: context.assignedRows ?? 0n,
      now,
    })
    const logged = jsonObject([
      ['timestamp-ms', now],
      ['snapshot-id', id],
    ])
    members.set('last-sequence-number', nextSequence(base))
    if (base.nextRowId !== undefined) {
      members.set('next-row-id', base.nextRowId + (context.assignedRows ?? 0n))
    }
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
    readonly assignedRows: bigint
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
    ['first-row-id', base.nextRowId],
    ['added-rows', base.nextRowId === undefined ? undefined : at.assignedRows],
  ])
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
