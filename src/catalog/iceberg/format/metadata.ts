import { gunzipSync } from 'node:zlib'
import { SluiceError } from '../../../core/errors.ts'
import { type Millis, millis, type SnapshotId, snapshotId } from '../../../core/ids.ts'
import { isJsonObject, type JsonObject, parseJson, stringifyJson } from '../../../core/json64.ts'
import type { SnapshotEntry } from '../../ports.ts'
import {
  bigOf,
  intOf,
  isAbsent,
  jsonObject,
  objectOf,
  objectsOf,
  textOf,
  textsOf,
  wrongMember,
} from './json-fields.ts'
import type { IdField } from '../../../core/schema/types.ts'
import { bucketLayout, decodeSpec, type PartitionSpec } from './partition-spec.ts'

/**
 * A table's metadata (spec, "Table metadata"), formats 1 to 3. What is written is always `json` with
 * members replaced, so that members unknown to us survive; the rest is a view of it.
 */
export type TableMetadata = {
  readonly json: JsonObject
  readonly formatVersion: number
  /** Empty in format 1 tables that have none. */
  readonly uuid: string
  readonly location: string
  readonly lastSequence: bigint
  readonly lastUpdatedAt: Millis
  readonly currentSchemaId: number
  /** Undecoded, by id: old schemas may have types that only their writer knows. */
  readonly schemas: ReadonlyMap<number, JsonObject>
  readonly defaultSpecId: number
  readonly specs: ReadonlyMap<number, PartitionSpec>
  readonly properties: ReadonlyMap<string, string>
  /** The snapshot of `main`. */
  readonly head: SnapshotId | undefined
  readonly snapshots: ReadonlyMap<SnapshotId, SnapshotEntry>
  /** The first row id that is not given away; undefined before format 3. */
  readonly nextRowId: bigint | undefined
  /** Which snapshot was current from when on, oldest first. */
  readonly snapshotLog: readonly { readonly at: Millis; readonly snapshot: SnapshotId }[]
}

/** @param body Plain or gzipped. @throws SluiceError DATA_CORRUPT, naming the byte */
export function readMetadata(body: Uint8Array, name: string): TableMetadata {
  const json = parseJson(gunzipped(body, name), { name })
  if (!isJsonObject(json)) {
    throw new SluiceError('DATA_CORRUPT', `${name}: not a JSON object`, { details: { file: name } })
  }
  return viewMetadata(json, name)
}

/** The bytes of a `metadata.json`. */
export function writeMetadata(metadata: TableMetadata): Uint8Array {
  return Buffer.from(stringifyJson(metadata.json))
}

/** @throws SluiceError DATA_CORRUPT */
export function viewMetadata(json: JsonObject, name: string): TableMetadata {
  const formatVersion = intOf(json, 'format-version', name)
  if (formatVersion < 1 || formatVersion > 3) {
    throw new SluiceError('DATA_CORRUPT', `${name}: format version ${formatVersion} is not known`, {
      details: { file: name, formatVersion },
    })
  }
  const schemas = schemasOf(json, name)
  const specs = specsOf(json, name)
  const snapshots = new Map<SnapshotId, SnapshotEntry>()
  for (const snapshot of objectsOf(json, 'snapshots', name)) {
    const entry = snapshotEntry(snapshot, name)
    snapshots.set(entry.id, entry)
  }
  return {
    json,
    formatVersion,
    uuid: isAbsent(json, 'table-uuid') ? '' : textOf(json, 'table-uuid', name),
    location: textOf(json, 'location', name),
    lastSequence: isAbsent(json, 'last-sequence-number')
      ? 0n
      : bigOf(json, 'last-sequence-number', name),
    lastUpdatedAt: millisOf(json, 'last-updated-ms', name),
    currentSchemaId: isAbsent(json, 'current-schema-id')
      ? (schemas.keys().next().value ?? 0)
      : intOf(json, 'current-schema-id', name),
    schemas,
    defaultSpecId: isAbsent(json, 'default-spec-id') ? 0 : intOf(json, 'default-spec-id', name),
    specs,
    properties: textsOf(json, 'properties', name),
    head: headOf(json, snapshots, name),
    snapshots,
    nextRowId: formatVersion < 3 ? undefined : bigOf(json, 'next-row-id', name),
    snapshotLog: objectsOf(json, 'snapshot-log', name).map((entry) => ({
      at: millisOf(entry, 'timestamp-ms', name),
      snapshot: snapshotIdOf(entry, 'snapshot-id', name),
    })),
  }
}

/** The schema of that id, undecoded. @throws SluiceError DATA_CORRUPT when there is none */
export function schemaOf(metadata: TableMetadata, schemaId: number, name: string): JsonObject {
  const schema = metadata.schemas.get(schemaId)
  if (schema !== undefined) return schema
  throw new SluiceError('DATA_CORRUPT', `${name}: schema ${schemaId} is not listed`, {
    details: { file: name, schemaId },
  })
}

/** The partition spec of that id. @throws SluiceError DATA_CORRUPT when there is none */
export function specOf(metadata: TableMetadata, specId: number, name: string): PartitionSpec {
  const spec = metadata.specs.get(specId)
  if (spec !== undefined) return spec
  throw new SluiceError('DATA_CORRUPT', `${name}: partition spec ${specId} is not listed`, {
    details: { file: name, specId },
  })
}

/**
 * The spec that new files are written under. Other tools may have given the table another one since;
 * a table may have files of all its specs.
 * @returns undefined when no spec cuts the table into buckets
 */
export function writingSpec(
  metadata: TableMetadata,
  fields: readonly IdField[],
): PartitionSpec | undefined {
  const preferred = metadata.specs.get(metadata.defaultSpecId)
  const newestFirst = [...metadata.specs.values()].sort((a, b) => b.specId - a.specId)
  return [...(preferred === undefined ? [] : [preferred]), ...newestFirst].find(
    (spec) => bucketLayout(spec, fields) !== undefined,
  )
}

/** The id of the schema a snapshot was written with; undefined when it does not say. */
export function snapshotSchemaId(metadata: TableMetadata, id: SnapshotId): number | undefined {
  for (const snapshot of objectsOf(metadata.json, 'snapshots', '')) {
    if (bigOf(snapshot, 'snapshot-id', '') === id) {
      return isAbsent(snapshot, 'schema-id') ? undefined : intOf(snapshot, 'schema-id', '')
    }
  }
  return undefined
}

function gunzipped(body: Uint8Array, name: string): Uint8Array {
  if (body[0] !== 0x1f || body[1] !== 0x8b) return body
  try {
    return gunzipSync(body, { maxOutputLength: 1 << 28 })
  } catch (cause) {
    throw new SluiceError('DATA_CORRUPT', `${name}: not whole gzip`, {
      details: { file: name },
      cause,
    })
  }
}

function schemasOf(json: JsonObject, name: string): ReadonlyMap<number, JsonObject> {
  const listed = isAbsent(json, 'schemas')
    ? [objectOf(json, 'schema', name)]
    : objectsOf(json, 'schemas', name)
  return new Map(
    listed.map((schema) => [
      isAbsent(schema, 'schema-id') ? 0 : intOf(schema, 'schema-id', name),
      schema,
    ]),
  )
}

function specsOf(json: JsonObject, name: string): ReadonlyMap<number, PartitionSpec> {
  const listed = isAbsent(json, 'partition-specs')
    ? [jsonObject([['fields', json['partition-spec'] ?? []]])]
    : objectsOf(json, 'partition-specs', name)
  return new Map(
    listed.map((spec) => {
      const decoded = decodeSpec(spec, name)
      return [decoded.specId, decoded]
    }),
  )
}

/** Versions of a table share the JSON of their snapshots, and a long history is read once. */
const entries = new WeakMap<JsonObject, SnapshotEntry>()

function snapshotEntry(json: JsonObject, name: string): SnapshotEntry {
  const known = entries.get(json)
  if (known !== undefined) return known
  const entry = readSnapshot(json, name)
  entries.set(json, entry)
  return entry
}

function readSnapshot(json: JsonObject, name: string): SnapshotEntry {
  const summary = textsOf(json, 'summary', name)
  return {
    id: snapshotIdOf(json, 'snapshot-id', name),
    parent: isAbsent(json, 'parent-snapshot-id')
      ? undefined
      : snapshotIdOf(json, 'parent-snapshot-id', name),
    sequence: isAbsent(json, 'sequence-number') ? 0n : bigOf(json, 'sequence-number', name),
    committedAt: millisOf(json, 'timestamp-ms', name),
    operation: summary.get('operation') ?? 'unknown',
    summary,
    // Format 1 may list manifests inline instead; such a snapshot can be seen but not read.
    manifestList: isAbsent(json, 'manifest-list') ? '' : textOf(json, 'manifest-list', name),
  }
}

/**
 * The branch decides; tables of writers without refs have the current snapshot alone. A head that is
 * not listed would make the table look empty, so it is an error.
 */
function headOf(
  json: JsonObject,
  snapshots: ReadonlyMap<SnapshotId, SnapshotEntry>,
  name: string,
): SnapshotId | undefined {
  const refs = isAbsent(json, 'refs') ? undefined : objectOf(json, 'refs', name)
  const isBranch = refs !== undefined && !isAbsent(refs, 'main')
  const head = isBranch
    ? snapshotIdOf(objectOf(refs, 'main', name), 'snapshot-id', name)
    : currentOf(json, name)
  if (head === undefined || snapshots.has(head)) return head
  throw new SluiceError('DATA_CORRUPT', `${name}: snapshot ${String(head)} is not listed`, {
    details: { file: name, snapshot: head },
  })
}

/** Older writers say -1 for none. */
function currentOf(json: JsonObject, name: string): SnapshotId | undefined {
  if (isAbsent(json, 'current-snapshot-id')) return undefined
  if (bigOf(json, 'current-snapshot-id', name) === -1n) return undefined
  return snapshotIdOf(json, 'current-snapshot-id', name)
}

function snapshotIdOf(json: JsonObject, key: string, name: string): SnapshotId {
  const value = bigOf(json, key, name)
  if (value < 1n) throw wrongMember(json, key, name, 'a positive snapshot id')
  return snapshotId(value)
}

function millisOf(json: JsonObject, key: string, name: string): Millis {
  const value = intOf(json, key, name)
  if (value < 0) throw wrongMember(json, key, name, 'a time')
  return millis(value)
}
