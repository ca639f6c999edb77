import { type AvroRecord, isRecord, openAvro } from './avro.ts'
import { damage } from './damage.ts'

/** A manifest as a manifest list names it; counts may be missing in lists of format 1. */
export type ListedManifest = {
  readonly path: string
  readonly bytes: bigint
  readonly content: 'data' | 'deletes'
  readonly specId: number
  /** The sequence number that its added files inherit. */
  readonly sequence: bigint
  readonly addedBy: bigint
  /** The id of its first row; from format 3 on, of data. */
  readonly firstRowId: bigint | undefined
  readonly counts: ReadonlyMap<ManifestCount, bigint>
}

export const manifestCounts = [
  'added_files_count',
  'existing_files_count',
  'deleted_files_count',
  'added_rows_count',
  'existing_rows_count',
  'deleted_rows_count',
] as const
export type ManifestCount = (typeof manifestCounts)[number]

export type ManifestList = {
  readonly manifests: readonly ListedManifest[]
  /** The ledger in its header, packed. */
  readonly ledger: string | undefined
}

/** Counts and bounds of one leaf column, by its id. */
export type LeafMetrics = {
  values?: bigint
  nulls?: bigint
  nans?: bigint
  lower?: Uint8Array
  upper?: Uint8Array
}

export type ManifestEntry = {
  readonly status: 'existing' | 'added' | 'deleted'
  /** Undefined: that of the manifest. */
  readonly snapshot: bigint | undefined
  readonly content: 'data' | 'position' | 'equality'
  readonly path: string
  readonly format: string
  /** Values by partition field id. */
  readonly partition: ReadonlyMap<number, unknown>
  readonly rows: bigint
  readonly bytes: bigint
  /** Undefined: that of the manifest. */
  readonly sequence: bigint | undefined
  /** The one data file that a delete points into. */
  readonly dataFile: string | undefined
  /** Where a deletion vector lies in its file. */
  readonly blob: { readonly offset: bigint; readonly bytes: bigint } | undefined
  /** The columns of an equality delete. */
  readonly equalityIds: readonly number[]
  /** Bytes that count in totals: of a deletion vector only its part of the file. */
  readonly countedBytes: bigint
  readonly metrics: ReadonlyMap<number, LeafMetrics>
}

const statuses = ['existing', 'added', 'deleted'] as const
const contents = ['data', 'position', 'equality'] as const

/** Older names of counts that every reader knows. */
const olderCounts: Readonly<Partial<Record<ManifestCount, string>>> = {
  added_files_count: 'added_data_files_count',
  existing_files_count: 'existing_data_files_count',
  deleted_files_count: 'deleted_data_files_count',
}

/** @throws SluiceError DATA_CORRUPT */
export function readManifestList(bytes: Uint8Array): ManifestList {
  const file = openAvro(bytes)
  const manifests: ListedManifest[] = []
  for (const record of file.records()) {
    const counts = new Map<ManifestCount, bigint>()
    for (const key of manifestCounts) {
      const value = record[key] ?? record[olderCounts[key] ?? key] ?? undefined
      if (value !== undefined) counts.set(key, bigOf(value, key))
    }
    manifests.push({
      path: textOf(record['manifest_path'], 'manifest_path'),
      bytes: bigOf(record['manifest_length'], 'manifest_length'),
      content: Number(record['content'] ?? 0) === 1 ? 'deletes' : 'data',
      specId: Number(record['partition_spec_id'] ?? 0),
      sequence: bigOf(record['sequence_number'] ?? 0n, 'sequence_number'),
      firstRowId: optionalBig(record, 'first_row_id'),
      addedBy: bigOf(record['added_snapshot_id'] ?? 0n, 'added_snapshot_id'),
      counts,
    })
  }
  return { manifests, ledger: file.header.get('sluice.ledger')?.toString('utf8') }
}

/** The entries of a manifest of any writer and format version. @throws SluiceError DATA_CORRUPT */
export function* readManifest(bytes: Uint8Array): Generator<ManifestEntry> {
  const file = openAvro(bytes)
  const partitionIds = idsOfPartition(file.schema)
  for (const record of file.records()) {
    const status = statuses[Number(record['status'])]
    const data = record['data_file']
    if (status === undefined || !isRecord(data)) throw damage('an entry without a status or a file')
    yield {
      status,
      snapshot: optionalBig(record, 'snapshot_id'),
      sequence: optionalBig(record, 'sequence_number'),
      ...dataFile(data, partitionIds),
    }
  }
}

function dataFile(
  record: AvroRecord,
  partitionIds: ReadonlyMap<string, number>,
): Omit<ManifestEntry, 'status' | 'snapshot' | 'sequence'> {
  const content = contents[Number(record['content'] ?? 0)]
  if (content === undefined) throw damage('a file of unknown content')
  const tuple = record['partition']
  const bytes = bigOf(record['file_size_in_bytes'], 'file_size_in_bytes')
  const part = optionalBig(record, 'content_size_in_bytes')
  const offset = optionalBig(record, 'content_offset')
  const dataFile = record['referenced_data_file'] ?? undefined
  const ids: unknown = record['equality_ids'] ?? []
  return {
    content,
    path: textOf(record['file_path'], 'file_path'),
    format: textOf(record['file_format'], 'file_format').toUpperCase(),
    partition: new Map(
      isRecord(tuple) ? [...partitionIds].map(([name, id]) => [id, tuple[name] ?? null]) : [],
    ),
    rows: bigOf(record['record_count'], 'record_count'),
    bytes,
    countedBytes: part ?? bytes,
    dataFile: dataFile === undefined ? undefined : textOf(dataFile, 'referenced_data_file'),
    blob: part === undefined || offset === undefined ? undefined : { offset, bytes: part },
    equalityIds: Array.isArray(ids) ? ids.map(Number) : [],
    metrics: metricsOf(record),
  }
}

function metricsOf(record: AvroRecord): ReadonlyMap<number, LeafMetrics> {
  const metrics = new Map<number, LeafMetrics>()
  const each = (key: string, put: (leaf: LeafMetrics, value: unknown) => void): void => {
    const pairs: unknown = record[key] ?? []
    if (!Array.isArray(pairs)) throw damage(`"${key}" should be a map`)
    for (const pair of pairs as readonly unknown[]) {
      if (!isRecord(pair) || typeof pair['key'] !== 'number') throw damage(`"${key}" is not a map`)
      const leaf = metrics.get(pair['key']) ?? {}
      metrics.set(pair['key'], leaf)
      put(leaf, pair['value'])
    }
  }
  each('value_counts', (leaf, value) => (leaf.values = bigOf(value, 'value_counts')))
  each('null_value_counts', (leaf, value) => (leaf.nulls = bigOf(value, 'null_value_counts')))
  each('nan_value_counts', (leaf, value) => (leaf.nans = bigOf(value, 'nan_value_counts')))
  each('lower_bounds', (leaf, value) => (leaf.lower = bytesOf(value, 'lower_bounds')))
  each('upper_bounds', (leaf, value) => (leaf.upper = bytesOf(value, 'upper_bounds')))
  return metrics
}

/** Names in the records of the partition tuple, which only its Avro schema ties to field ids. */
function idsOfPartition(schema: unknown): ReadonlyMap<string, number> {
  const ids = new Map<string, number>()
  const tuple = typeOfField(typeOfField(schema, 'data_file'), 'partition')
  for (const field of fieldsOf(tuple)) {
    const [name, id] = [field['name'], field['field-id']]
    if (typeof name === 'string' && typeof id === 'number') ids.set(name, id)
  }
  return ids
}

function typeOfField(schema: unknown, name: string): unknown {
  return fieldsOf(schema).find((field) => field['name'] === name)?.['type']
}

function fieldsOf(schema: unknown): readonly AvroRecord[] {
  const fields = isRecord(schema) ? schema['fields'] : undefined
  return Array.isArray(fields) ? fields.filter(isRecord) : []
}

function textOf(value: unknown, key: string): string {
  if (typeof value === 'string') return value
  throw damage(`"${key}" should be a text`)
}

function bigOf(value: unknown, key: string): bigint {
  if (typeof value === 'bigint') return value
  if (typeof value === 'number' && Number.isSafeInteger(value)) return BigInt(value)
  throw damage(`"${key}" should be a whole number`)
}

function optionalBig(record: AvroRecord, key: string): bigint | undefined {
  const value = record[key] ?? undefined
  return value === undefined ? undefined : bigOf(value, key)
}

function bytesOf(value: unknown, key: string): Uint8Array {
  if (value instanceof Uint8Array) return value
  throw damage(`"${key}" should be bytes`)
}
