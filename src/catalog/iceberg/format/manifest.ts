import { SluiceError } from '../../../core/errors.ts'
import { type JsonObject, stringifyJson } from '../../../core/json64.ts'
import {
  type AvroCodec,
  type AvroCompression,
  type AvroRecord,
  avroCodec,
  readAvro,
  writeAvro,
} from './avro.ts'
import {
  avroBytes,
  avroCount,
  avroCounts,
  avroInt,
  avroLong,
  avroRecords,
  avroText,
  isAvroRecord,
  required,
} from './avro-fields.ts'
import {
  manifestSchema,
  partitionColumns,
  partitionFieldIds,
  partitionSchema,
} from './manifest-schema.ts'
import { encodeSpecFields, type PartitionSpec } from './partition-spec.ts'
import type { IdField } from '../../../core/schema/types.ts'
import type { PartitionValue } from '../../ports.ts'

/** What a file holds: rows, deleted positions, or values of deleted rows. */
export type FileContent = 'data' | 'position-deletes' | 'equality-deletes'

/** Per column, in file order of the field ids. */
export type ColumnMetrics = {
  readonly fieldId: number
  readonly columnBytes?: number
  readonly valueCount?: number
  readonly nullCount?: number
  readonly nanCount?: number
  readonly lower?: Uint8Array
  readonly upper?: Uint8Array
}

export type ManifestFileEntry = {
  readonly content: FileContent
  readonly location: string
  /** As written: `PARQUET`, `parquet`, `PUFFIN`, … */
  readonly format: string
  /** By partition field id. */
  readonly partition: ReadonlyMap<number, PartitionValue>
  readonly rows: number
  readonly bytes: number
  readonly metrics: readonly ColumnMetrics[]
  readonly splitOffsets: readonly number[]
  readonly equalityIds: readonly number[]
  readonly sortOrderId?: number
  readonly referencedDataFile?: string
  /** Of a deletion vector: where its blob lies in the Puffin file. */
  readonly blob?: { readonly offset: number; readonly bytes: number }
}

export type ManifestEntry = {
  readonly status: 'existing' | 'added' | 'deleted'
  /** Undefined: that of the manifest. */
  readonly snapshotId: bigint | undefined
  /** Undefined: that of the manifest, for added files. */
  readonly sequence: bigint | undefined
  readonly fileSequence: bigint | undefined
  readonly file: ManifestFileEntry
}

export type ManifestContext = {
  readonly schemaId: number
  /** The schema as the metadata has it. */
  readonly schema: JsonObject
  readonly spec: PartitionSpec
  /** The columns of the table, from which partition values have their types. */
  readonly fields: readonly IdField[]
  readonly formatVersion: number
  readonly content: 'data' | 'deletes'
  /** 32 hexadecimal digits, drawn for this file. */
  readonly sync: string
  readonly compression?: AvroCompression | undefined
}

const statuses = ['existing', 'added', 'deleted'] as const
const contents = ['data', 'position-deletes', 'equality-deletes'] as const

/**
 * A manifest, format 2 or 3. Sequence numbers of added files are left to be inherited, so that the
 * file can be used again by the next attempt, whose sequence number is another.
 */
export function writeManifest(
  entries: readonly ManifestEntry[],
  context: ManifestContext,
): Uint8Array {
  return writeAvro(
    codecOf(context),
    entries.map((entry) => entryRecord(entry, context.spec)),
    {
      sync: context.sync,
      compression: context.compression,
      metadata: new Map([
        ['schema', stringifyJson(context.schema)],
        ['schema-id', String(context.schemaId)],
        ['partition-spec', stringifyJson(encodeSpecFields(context.spec))],
        ['partition-spec-id', String(context.spec.specId)],
        ['format-version', String(context.formatVersion)],
        ['content', context.content],
      ]),
    },
  )
}

/** Codecs by what their schemas differ in: tables have few specs, and compiling one is slow. */
const codecs = new Map<string, AvroCodec>()
const codecsMax = 64

function codecOf({ spec, fields, formatVersion }: ManifestContext): AvroCodec {
  const key = JSON.stringify([formatVersion, partitionSchema(spec, fields)])
  const known = codecs.get(key)
  if (known !== undefined) return known
  const codec = avroCodec(manifestSchema(spec, fields, formatVersion))
  if (codecs.size >= codecsMax) codecs.clear()
  codecs.set(key, codec)
  return codec
}

/** Reads a manifest of any format version and writer. @throws SluiceError DATA_CORRUPT */
export function readManifest(bytes: Uint8Array, name: string): readonly ManifestEntry[] {
  const file = readAvro(bytes, name)
  const partitionIds = partitionFieldIds(file.schema)
  return file.records.map((record) => {
    const status = statuses[required(avroInt(record, 'status', name), 'status', name)]
    const data = record['data_file']
    if (status === undefined || !isAvroRecord(data)) {
      throw new SluiceError('DATA_CORRUPT', `${name}: an entry without a file or status`, {
        details: { file: name },
      })
    }
    return {
      status,
      snapshotId: avroLong(record, 'snapshot_id', name),
      sequence: avroLong(record, 'sequence_number', name),
      fileSequence: avroLong(record, 'file_sequence_number', name),
      file: readDataFile(data, partitionIds, name),
    }
  })
}

function entryRecord(entry: ManifestEntry, spec: PartitionSpec): AvroRecord {
  const { file } = entry
  const counts = (value: (metrics: ColumnMetrics) => number | undefined): unknown =>
    columnMap(file.metrics, (metrics) => {
      const count = value(metrics)
      return count === undefined ? undefined : BigInt(count)
    })
  return {
    status: statuses.indexOf(entry.status),
    snapshot_id: entry.snapshotId ?? null,
    sequence_number: entry.sequence ?? null,
    file_sequence_number: entry.fileSequence ?? null,
    data_file: {
      content: contents.indexOf(file.content),
      file_path: file.location,
      file_format: file.format,
      partition: Object.fromEntries(
        partitionColumns(spec).map(({ avroName, fieldId }) => [
          avroName,
          file.partition.get(fieldId) ?? null,
        ]),
      ),
      record_count: BigInt(file.rows),
      file_size_in_bytes: BigInt(file.bytes),
      column_sizes: counts((metrics) => metrics.columnBytes),
      value_counts: counts((metrics) => metrics.valueCount),
      null_value_counts: counts((metrics) => metrics.nullCount),
      nan_value_counts: counts((metrics) => metrics.nanCount),
      lower_bounds: columnMap(file.metrics, ({ lower }) => lower && Buffer.from(lower)),
      upper_bounds: columnMap(file.metrics, ({ upper }) => upper && Buffer.from(upper)),
      key_metadata: null,
      split_offsets: file.splitOffsets.length === 0 ? null : file.splitOffsets.map(BigInt),
      equality_ids: file.equalityIds.length === 0 ? null : file.equalityIds,
      sort_order_id: file.sortOrderId ?? null,
      referenced_data_file: file.referencedDataFile ?? null,
      first_row_id: null,
      content_offset: file.blob === undefined ? null : BigInt(file.blob.offset),
      content_size_in_bytes: file.blob === undefined ? null : BigInt(file.blob.bytes),
    },
  }
}

function readDataFile(
  record: AvroRecord,
  partitionIds: ReadonlyMap<string, number>,
  name: string,
): ManifestFileEntry {
  const content = contents[avroInt(record, 'content', name) ?? 0]
  if (content === undefined) {
    throw new SluiceError('DATA_CORRUPT', `${name}: a file of unknown content`, {
      details: { file: name },
    })
  }
  const sortOrderId = avroInt(record, 'sort_order_id', name)
  const referencedDataFile = avroText(record, 'referenced_data_file', name)
  const blobOffset = avroCount(record, 'content_offset', name)
  const blobBytes = avroCount(record, 'content_size_in_bytes', name)
  return {
    content,
    location: required(avroText(record, 'file_path', name), 'file_path', name),
    format: required(avroText(record, 'file_format', name), 'file_format', name),
    partition: readPartition(record['partition'], partitionIds),
    rows: required(avroCount(record, 'record_count', name), 'record_count', name),
    bytes: required(avroCount(record, 'file_size_in_bytes', name), 'file_size_in_bytes', name),
    metrics: readMetrics(record, name),
    splitOffsets: avroCounts(record, 'split_offsets', name) ?? [],
    equalityIds: avroCounts(record, 'equality_ids', name) ?? [],
    ...(sortOrderId === undefined ? {} : { sortOrderId }),
    ...(referencedDataFile === undefined ? {} : { referencedDataFile }),
    ...(blobOffset === undefined || blobBytes === undefined
      ? {}
      : { blob: { offset: blobOffset, bytes: blobBytes } }),
  }
}

function readPartition(
  record: unknown,
  fieldIds: ReadonlyMap<string, number>,
): ReadonlyMap<number, PartitionValue> {
  const partition = new Map<number, PartitionValue>()
  if (!isAvroRecord(record)) return partition
  for (const [field, fieldId] of fieldIds) {
    const value = record[field]
    partition.set(fieldId, isPartitionValue(value) ? value : null)
  }
  return partition
}

function isPartitionValue(value: unknown): value is PartitionValue {
  return value === null || value instanceof Uint8Array || primitives.has(typeof value)
}

const primitives: ReadonlySet<string> = new Set(['boolean', 'number', 'bigint', 'string'])

/** A map from column id, which Avro's own maps cannot be; null when no column has a value. */
function columnMap(
  metrics: readonly ColumnMetrics[],
  valueOf: (metrics: ColumnMetrics) => unknown,
): readonly { readonly key: number; readonly value: unknown }[] | null {
  const entries = metrics.flatMap((each) => {
    const value = valueOf(each)
    return value === undefined ? [] : [{ key: each.fieldId, value }]
  })
  return entries.length === 0 ? null : entries
}

type Building = { -readonly [Key in keyof ColumnMetrics]: ColumnMetrics[Key] }

function readMetrics(record: AvroRecord, name: string): readonly ColumnMetrics[] {
  const columns = new Map<number, Building>()
  const column = (pair: AvroRecord): Building => {
    const fieldId = required(avroInt(pair, 'key', name), 'key', name)
    const known = columns.get(fieldId) ?? { fieldId }
    columns.set(fieldId, known)
    return known
  }
  const counts = [
    ['column_sizes', 'columnBytes'],
    ['value_counts', 'valueCount'],
    ['null_value_counts', 'nullCount'],
    ['nan_value_counts', 'nanCount'],
  ] as const
  for (const [field, key] of counts) {
    for (const pair of avroRecords(record, field, name) ?? []) {
      column(pair)[key] = required(avroCount(pair, 'value', name), field, name)
    }
  }
  const bounds = [
    ['lower_bounds', 'lower'],
    ['upper_bounds', 'upper'],
  ] as const
  for (const [field, key] of bounds) {
    for (const pair of avroRecords(record, field, name) ?? []) {
      column(pair)[key] = required(avroBytes(pair, 'value', name), field, name)
    }
  }
  return [...columns.values()].sort((left, right) => left.fieldId - right.fieldId)
}
