import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { SluiceError } from '../../../core/errors.ts'
import {
  type AvroCompression,
  type AvroRecord,
  type AvroSchema,
  avroCodec,
  readAvro,
  readAvroMetadata,
  writeAvro,
} from './avro.ts'
import {
  avroBoolean,
  avroBytes,
  avroCount,
  avroInt,
  avroLong,
  avroRecords,
  avroText,
  optional,
  required,
} from './avro-fields.ts'

/** Range of one partition field over the files of a manifest. */
export type PartitionSummary = {
  readonly containsNull: boolean
  readonly containsNan?: boolean
  /** Iceberg single-value form. */
  readonly lower?: Uint8Array
  readonly upper?: Uint8Array
}

/** One manifest as a manifest list names it. */
export type ManifestFile = {
  readonly location: string
  readonly bytes: number
  readonly specId: number
  readonly content: 'data' | 'deletes'
  readonly sequence: bigint
  readonly minSequence: bigint
  readonly addedSnapshotId: bigint
  /** Counts may be missing in lists of format 1. */
  readonly addedFiles: number | undefined
  readonly existingFiles: number | undefined
  readonly deletedFiles: number | undefined
  readonly addedRows: number | undefined
  readonly existingRows: number | undefined
  readonly deletedRows: number | undefined
  readonly partitions: readonly PartitionSummary[] | undefined
  readonly keyMetadata?: Uint8Array
  /** Of data manifests from format 3 on: the row id of their first row. */
  readonly firstRowId?: bigint
}

export type ManifestListContext = {
  readonly snapshotId: bigint
  readonly parentId: bigint | undefined
  readonly sequence: bigint
  /** Of the snapshot, from format 3 on. */
  readonly firstRowId?: bigint
  /** The ledger when it is too large for the snapshot's summary. */
  readonly ledger?: string
  /** 32 hexadecimal digits, drawn for this file. */
  readonly sync: string
  readonly compression?: AvroCompression | undefined
}

const ledgerKey = 'sluice.ledger'
/** Longer ledgers are deflated, which the value then says by its beginning. */
const plainLedgerMax = 64 * 1024
const deflatedMark = 'deflate:'
const ledgerBytesMax = 1 << 28

const codec = avroCodec(manifestListSchema(2))
const codecWithRowIds = avroCodec(manifestListSchema(3))

/** A manifest list; format 3 if the snapshot has row ids, else 2. @throws SluiceError TABLE_MISMATCH for a manifest without counts */
export function writeManifestList(
  manifests: readonly ManifestFile[],
  context: ManifestListContext,
): Uint8Array {
  const metadata = new Map<string, string>([
    ['snapshot-id', String(context.snapshotId)],
    ['parent-snapshot-id', context.parentId === undefined ? 'null' : String(context.parentId)],
    ['sequence-number', String(context.sequence)],
  ])
  const { firstRowId } = context
  metadata.set('format-version', firstRowId === undefined ? '2' : '3')
  if (firstRowId !== undefined) metadata.set('first-row-id', String(firstRowId))
  if (context.ledger !== undefined) metadata.set(ledgerKey, packLedger(context.ledger))
  return writeAvro(
    firstRowId === undefined ? codec : codecWithRowIds,
    manifests.map(manifestRecord),
    { metadata, sync: context.sync, compression: context.compression },
  )
}

/** Reads a manifest list of any format version and writer. @throws SluiceError DATA_CORRUPT */
export function readManifestList(bytes: Uint8Array, name: string): readonly ManifestFile[] {
  return readAvro(bytes, name).records.map((record) => {
    const keyMetadata = avroBytes(record, 'key_metadata', name)
    const firstRowId = avroLong(record, 'first_row_id', name)
    const count = (field: string): number | undefined => avroCount(record, field, name)
    return {
      location: required(avroText(record, 'manifest_path', name), 'manifest_path', name),
      bytes: required(count('manifest_length'), 'manifest_length', name),
      specId: avroInt(record, 'partition_spec_id', name) ?? 0,
      content: avroInt(record, 'content', name) === 1 ? 'deletes' : 'data',
      sequence: avroLong(record, 'sequence_number', name) ?? 0n,
      minSequence: avroLong(record, 'min_sequence_number', name) ?? 0n,
      addedSnapshotId: avroLong(record, 'added_snapshot_id', name) ?? 0n,
      addedFiles: count('added_files_count') ?? count('added_data_files_count'),
      existingFiles: count('existing_files_count') ?? count('existing_data_files_count'),
      deletedFiles: count('deleted_files_count') ?? count('deleted_data_files_count'),
      addedRows: count('added_rows_count'),
      existingRows: count('existing_rows_count'),
      deletedRows: count('deleted_rows_count'),
      partitions: avroRecords(record, 'partitions', name)?.map((each) => summaryOf(each, name)),
      ...(keyMetadata === undefined ? {} : { keyMetadata }),
      ...(firstRowId === undefined ? {} : { firstRowId }),
    }
  })
}

/**
 * The ledger in the header of a manifest list.
 * @param bytes The file or its beginning.
 * @returns undefined when more of the file is needed
 * @throws SluiceError DATA_CORRUPT
 */
export function readLedger(
  bytes: Uint8Array,
  name: string,
): { readonly ledger: string | undefined } | undefined {
  const metadata = readAvroMetadata(bytes, name)
  if (metadata === undefined) return undefined
  const packed = metadata.get(ledgerKey)
  if (packed === undefined) return { ledger: undefined }
  return { ledger: unpackLedger(Buffer.from(packed).toString('utf8'), name) }
}

function packLedger(ledger: string): string {
  if (Buffer.byteLength(ledger) <= plainLedgerMax) return ledger
  return deflatedMark + deflateRawSync(Buffer.from(ledger)).toString('base64')
}

function unpackLedger(packed: string, name: string): string {
  if (!packed.startsWith(deflatedMark)) return packed
  try {
    return inflateRawSync(Buffer.from(packed.slice(deflatedMark.length), 'base64'), {
      maxOutputLength: ledgerBytesMax,
    }).toString('utf8')
  } catch (cause) {
    throw new SluiceError('DATA_CORRUPT', `${name}: the ledger in its header cannot be unpacked`, {
      details: { file: name },
      cause,
    })
  }
}

function manifestRecord(manifest: ManifestFile): AvroRecord {
  const counted = (value: number | undefined): number => {
    if (value !== undefined) return value
    throw new SluiceError(
      'TABLE_MISMATCH',
      `${manifest.location}: the manifest list of the table has no counts for this manifest`,
      { fix: 'rewrite the manifests with another engine first' },
    )
  }
  return {
    manifest_path: manifest.location,
    manifest_length: BigInt(manifest.bytes),
    partition_spec_id: manifest.specId,
    content: manifest.content === 'data' ? 0 : 1,
    sequence_number: manifest.sequence,
    min_sequence_number: manifest.minSequence,
    added_snapshot_id: manifest.addedSnapshotId,
    added_files_count: counted(manifest.addedFiles),
    existing_files_count: counted(manifest.existingFiles),
    deleted_files_count: counted(manifest.deletedFiles),
    added_rows_count: BigInt(counted(manifest.addedRows)),
    existing_rows_count: BigInt(counted(manifest.existingRows)),
    deleted_rows_count: BigInt(counted(manifest.deletedRows)),
    partitions: manifest.partitions?.map(summaryRecord) ?? null,
    key_metadata: bytesOrNull(manifest.keyMetadata),
    first_row_id: manifest.firstRowId ?? null,
  }
}

function summaryRecord(summary: PartitionSummary): AvroRecord {
  return {
    contains_null: summary.containsNull,
    contains_nan: summary.containsNan ?? null,
    lower_bound: bytesOrNull(summary.lower),
    upper_bound: bytesOrNull(summary.upper),
  }
}

function summaryOf(record: AvroRecord, name: string): PartitionSummary {
  const containsNan = avroBoolean(record, 'contains_nan', name)
  const lower = avroBytes(record, 'lower_bound', name)
  const upper = avroBytes(record, 'upper_bound', name)
  return {
    containsNull: required(avroBoolean(record, 'contains_null', name), 'contains_null', name),
    ...(containsNan === undefined ? {} : { containsNan }),
    ...(lower === undefined ? {} : { lower }),
    ...(upper === undefined ? {} : { upper }),
  }
}

function bytesOrNull(bytes: Uint8Array | undefined): Buffer | null {
  return bytes === undefined ? null : Buffer.from(bytes)
}

/** Spec, "Manifest lists". */
function manifestListSchema(formatVersion: 2 | 3): AvroSchema {
  const field = (name: string, type: AvroSchema, fieldId: number): AvroSchema => ({
    name,
    type,
    'field-id': fieldId,
  })
  const summary: AvroSchema = {
    type: 'record',
    name: 'r508',
    fields: [
      field('contains_null', 'boolean', 509),
      optional('contains_nan', 'boolean', 518),
      optional('lower_bound', 'bytes', 510),
      optional('upper_bound', 'bytes', 511),
    ],
  }
  return {
    type: 'record',
    name: 'manifest_file',
    fields: [
      field('manifest_path', 'string', 500),
      field('manifest_length', 'long', 501),
      field('partition_spec_id', 'int', 502),
      field('content', 'int', 517),
      field('sequence_number', 'long', 515),
      field('min_sequence_number', 'long', 516),
      field('added_snapshot_id', 'long', 503),
      field('added_files_count', 'int', 504),
      field('existing_files_count', 'int', 505),
      field('deleted_files_count', 'int', 506),
      field('added_rows_count', 'long', 512),
      field('existing_rows_count', 'long', 513),
      field('deleted_rows_count', 'long', 514),
      optional('partitions', { type: 'array', items: summary, 'element-id': 508 }, 507),
      optional('key_metadata', 'bytes', 519),
      ...(formatVersion < 3 ? [] : [optional('first_row_id', 'long', 520)]),
    ],
  }
}
