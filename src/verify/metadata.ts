import { gunzipSync } from 'node:zlib'
import { isJsonObject, type JsonObject, parseJson } from '../core/json64.ts'
import { damage } from './damage.ts'
import {
  bigAt,
  intAt,
  listAt,
  objectOr,
  objectsAt,
  optionalBig,
  optionalInt,
  optionalText,
  textAt,
  textsAt,
} from './json-view.ts'

/** A snapshot as the metadata lists it. */
export type Snapshot = {
  readonly id: bigint
  readonly parent: bigint | undefined
  readonly sequence: bigint
  /** Milliseconds since 1970. */
  readonly at: bigint
  readonly operation: string
  readonly summary: ReadonlyMap<string, string>
  /** Empty in tables of format 1 that list manifests inline. */
  readonly manifestList: string
  /** From format 3 on: the id of its first new row, and how many ids it gave out. */
  readonly firstRowId: bigint | undefined
  readonly addedRows: bigint | undefined
}

export type SpecField = {
  readonly fieldId: number
  readonly sourceId: number | undefined
  readonly transform: string
}

export type TopColumn = { readonly id: number; readonly name: string }

/** What the audit reads from a `metadata.json` (Iceberg spec, "Table Metadata Fields"). */
export type Metadata = {
  readonly version: number
  readonly uuid: string
  readonly location: string
  readonly lastUpdatedAt: bigint
  readonly lastSequence: bigint
  /** From format 3 on: the id of the next row. */
  readonly nextRowId: bigint | undefined
  /** The snapshot of `main`. */
  readonly head: bigint | undefined
  readonly snapshots: ReadonlyMap<bigint, Snapshot>
  readonly properties: ReadonlyMap<string, string>
  /** Top-level columns of the current schema. */
  readonly columns: readonly TopColumn[]
  /** The key of a primary-key table; empty for a log table. */
  readonly keyColumns: readonly number[]
  readonly specs: ReadonlyMap<number, readonly SpecField[]>
  /** Other files the metadata names: earlier metadata, statistics. */
  readonly otherFiles: readonly string[]
}

const unpackedMax = 256 * 1024 * 1024

/** @param body Plain or gzipped. @throws SluiceError DATA_CORRUPT */
export function readMetadata(body: Uint8Array): Metadata {
  const root = objectOr(parseJson(unzipped(body), { name: 'the metadata' }), 'the metadata')
  const version = intAt(root, 'format-version')
  if (version < 1 || version > 3) throw damage(`format version ${version} is not known`)
  const snapshots = new Map<bigint, Snapshot>()
  for (const each of objectsAt(root, 'snapshots')) {
    const snapshot = readSnapshot(each)
    if (snapshots.has(snapshot.id))
      throw damage(`snapshot ${snapshot.id.toString()} is listed twice`)
    snapshots.set(snapshot.id, snapshot)
  }
  const schema = currentSchema(root)
  const head = headOf(root)
  if (head !== undefined && !snapshots.has(head)) {
    throw damage(`snapshot ${head.toString()} is the head and is not listed`)
  }
  return {
    version,
    uuid: optionalText(root, 'table-uuid') ?? '',
    location: textAt(root, 'location'),
    lastUpdatedAt: bigAt(root, 'last-updated-ms'),
    lastSequence: optionalBig(root, 'last-sequence-number') ?? 0n,
    nextRowId: version < 3 ? undefined : bigAt(root, 'next-row-id'),
    head,
    snapshots,
    properties: textsAt(root, 'properties'),
    columns: objectsAt(schema, 'fields').map((field) => ({
      id: intAt(field, 'id'),
      name: textAt(field, 'name'),
    })),
    keyColumns: listAt(schema, 'identifier-field-ids').flatMap((each) =>
      typeof each === 'number' ? each : [],
    ),
    specs: specsOf(root),
    otherFiles: [
      ...objectsAt(root, 'metadata-log').map((each) => textAt(each, 'metadata-file')),
      ...objectsAt(root, 'statistics').map((each) => textAt(each, 'statistics-path')),
      ...objectsAt(root, 'partition-statistics').map((each) => textAt(each, 'statistics-path')),
    ],
  }
}

function unzipped(body: Uint8Array): Uint8Array {
  if (body[0] !== 0x1f || body[1] !== 0x8b) return body
  try {
    return gunzipSync(body, { maxOutputLength: unpackedMax })
  } catch {
    throw damage('it is not whole gzip')
  }
}

function readSnapshot(json: JsonObject): Snapshot {
  const summary = textsAt(json, 'summary')
  const parent = optionalBig(json, 'parent-snapshot-id')
  return {
    id: bigAt(json, 'snapshot-id'),
    parent: parent === -1n ? undefined : parent,
    sequence: optionalBig(json, 'sequence-number') ?? 0n,
    at: bigAt(json, 'timestamp-ms'),
    operation: summary.get('operation') ?? 'unknown',
    summary,
    manifestList: optionalText(json, 'manifest-list') ?? '',
    firstRowId: optionalBig(json, 'first-row-id'),
    addedRows: optionalBig(json, 'added-rows'),
  }
}

/** The branch decides; where there are no refs, the current snapshot does. Older writers say -1. */
function headOf(root: JsonObject): bigint | undefined {
  const refs = root['refs'] ?? undefined
  const main = isJsonObject(refs) ? (refs['main'] ?? undefined) : undefined
  if (main !== undefined) return bigAt(objectOr(main, 'main'), 'snapshot-id')
  const current = optionalBig(root, 'current-snapshot-id')
  return current === -1n ? undefined : current
}

function currentSchema(root: JsonObject): JsonObject {
  const schemas = objectsAt(root, 'schemas')
  if (schemas.length === 0) return objectOr(root['schema'], 'schema')
  const id = optionalInt(root, 'current-schema-id') ?? 0
  const current = schemas.find((each) => (optionalInt(each, 'schema-id') ?? 0) === id)
  if (current === undefined) throw damage(`schema ${id} is current and is not listed`)
  return current
}

function specsOf(root: JsonObject): ReadonlyMap<number, readonly SpecField[]> {
  const specs = new Map<number, readonly SpecField[]>()
  for (const spec of objectsAt(root, 'partition-specs')) {
    specs.set(
      optionalInt(spec, 'spec-id') ?? 0,
      objectsAt(spec, 'fields').map((field, index) => ({
        // Format 1 may leave the ids out; they then count from 1000.
        fieldId: optionalInt(field, 'field-id') ?? 1000 + index,
        sourceId: optionalInt(field, 'source-id'),
        transform: textAt(field, 'transform'),
      })),
    )
  }
  return specs
}
