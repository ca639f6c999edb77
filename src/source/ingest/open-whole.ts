import { openAsBlob } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import {
  type DataType as ArrowType,
  type Field as ArrowField,
  type RecordBatch,
  RecordBatchReader,
  type Schema,
} from 'apache-arrow'
import { SluiceError } from '../../core/errors.ts'
import { checkSchema } from '../../core/schema/check-schema.ts'
import type { Inferred } from '../../core/schema/infer.ts'
import { fieldFromArrow, refuseUnsigned64 } from '../../core/columns/arrow-type.ts'
import type { Field } from '../../core/schema/types.ts'
import { digestOf } from './identify.ts'
import type { BadRecordRules } from './bad-records.ts'
import type { InputReader, InputTarget, RecordPolicy, ResumePoint } from './input.ts'
import { InputBytes } from './input-bytes.ts'
import { inputChanged } from './input-changed.ts'
import { matchColumns } from './match-columns.ts'
import { corrupt, WholeReader } from './whole-reader.ts'

type WholeFormat = 'parquet' | 'arrow'

/** Opens a Parquet or Arrow input; see `openInput`. */
export async function openWhole(options: {
  readonly bytes: InputBytes
  readonly format: WholeFormat
  readonly target: InputTarget
  readonly rules: BadRecordRules
  readonly resume?: ResumePoint
  readonly recordsMax?: number
}): Promise<InputReader> {
  const { bytes, format, target, rules, resume } = options
  const digest = await fileDigest(bytes)
  if (resume !== undefined && resume.digest !== digest && digest !== '') {
    throw inputChanged(bytes.name, { ...resume, whole: true }, undefined)
  }
  // Plain files are read by other handles.
  if (isPlainFile(bytes)) await bytes.close()
  return new WholeReader({
    name: bytes.name,
    format,
    target,
    rules,
    batches: batchesOf(bytes, format),
    digest,
    skip: { rows: resume?.position ?? 0n, records: resume?.records ?? 0n },
    recordsMax: options.recordsMax ?? 8192,
    bytes,
  })
}

/**
 * The columns a Parquet or Arrow input carries, for a table that does not exist yet; nothing of the
 * input is taken.
 * @throws SluiceError SCHEMA_UNSUPPORTED, DATA_CORRUPT, INPUT_UNREADABLE
 */
export async function wholeFields(
  bytes: InputBytes,
  format: WholeFormat,
  primaryKey: readonly string[] = [],
): Promise<Inferred> {
  try {
    const schema = await schemaOf(bytes, format)
    schema.fields.forEach((field: ArrowField<ArrowType>) => {
      refuseUnsigned64(field)
    })
    const fields = fieldsOf(schema, []).map((field) => {
      const isKey = primaryKey.includes(field.name)
      return isKey ? { ...field, type: { ...field.type, nullable: false } } : field
    })
    checkSchema(fields, bytes.name)
    return { fields, notes: [] }
  } catch (error) {
    throw corrupt(error, bytes.name, format)
  }
}

/**
 * Checks that the columns of a Parquet or Arrow input fit those of a table; nothing of the input is
 * taken.
 * @throws SluiceError TABLE_MISMATCH, RECORD_REFUSED, SCHEMA_UNSUPPORTED, DATA_CORRUPT,
 * INPUT_UNREADABLE
 */
export async function checkWhole(
  bytes: InputBytes,
  format: WholeFormat,
  target: InputTarget,
  onUnknownField: RecordPolicy,
): Promise<void> {
  try {
    const fields = fieldsOf(await schemaOf(bytes, format), target.fields)
    matchColumns(fields, target, bytes.name, onUnknownField)
  } catch (error) {
    throw corrupt(error, bytes.name, format)
  }
}

/**
 * Checks that the columns of a Parquet or Arrow input can be told; nothing of it is taken.
 * @throws SluiceError DATA_CORRUPT, INPUT_UNREADABLE
 */
export async function checkSchemaOf(bytes: InputBytes, format: WholeFormat): Promise<void> {
  try {
    await schemaOf(bytes, format)
  } catch (error) {
    throw corrupt(error, bytes.name, format)
  }
}

/** @param wanted Columns that may be cut to microseconds are known from these. */
function fieldsOf(schema: Schema, wanted: readonly Field[]): readonly Field[] {
  const lossy = wanted.filter((field) => field.allowPrecisionLoss === true)
  const names = new Set(lossy.map((field) => field.name))
  return schema.fields.map((each: ArrowField<ArrowType>) =>
    fieldFromArrow(each, () => names.has(each.name)),
  )
}

/** Empty for a stream: it is read once, so there is nothing to compare with later. */
async function fileDigest(bytes: InputBytes): Promise<string> {
  const { name, location } = bytes
  if (location.kind === 'stream' || bytes.bytesTotal === undefined) return ''
  const again = await InputBytes.open({ name, location })
  try {
    return await digestOf(again)
  } finally {
    await again.close()
  }
}

function batchesOf(
  bytes: InputBytes,
  format: WholeFormat,
): AsyncGenerator<RecordBatch, void, undefined> {
  return format === 'parquet' ? parquetRows(bytes) : arrowBatches(bytes)
}

async function* arrowBatches(bytes: InputBytes): AsyncGenerator<RecordBatch, void, undefined> {
  const { location } = bytes
  if (!isPlainFile(bytes) || location.kind === 'stream') {
    yield* await RecordBatchReader.from(streamOf(bytes))
    return
  }
  const file = await open(location.path, 'r')
  try {
    await refuseCutFile(file)
    yield* await RecordBatchReader.from(file)
  } finally {
    await file.close()
  }
}

const arrowMagic = Buffer.from('ARROW1', 'latin1')

/** An Arrow file is read from its end, which tells as well whether it is whole. */
async function refuseCutFile(file: FileHandle): Promise<void> {
  const { size } = await file.stat()
  const head = await bytesAt(file, 0, arrowMagic.length)
  if (!head.equals(arrowMagic)) return
  const tail = await bytesAt(file, Math.max(0, size - 10), 10)
  const footer = tail.length < 10 ? 0 : tail.readInt32LE(0)
  const isWhole = tail.subarray(4).equals(arrowMagic) && footer > 0 && footer <= size - 18
  if (!isWhole) throw new Error('it does not end like one')
}

async function bytesAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position)
  return buffer.subarray(0, bytesRead)
}

async function* streamOf(bytes: InputBytes): AsyncGenerator<Uint8Array, void, undefined> {
  refuseArrowFile(bytes.name, await bytes.head(8))
  for (;;) {
    const chunk = await bytes.read()
    if (chunk === undefined) return
    yield chunk
  }
}

/** The schema of an Arrow file may be in its footer only, so it cannot be read in passing. */
function refuseArrowFile(name: string, head: Buffer): void {
  if (head.toString('latin1', 0, 6) !== 'ARROW1') return
  throw new SluiceError(
    'INPUT_UNREADABLE',
    `${name}: an Arrow file needs to be a plain file, since it is read from its end`,
    { fix: 'save it as a file and name that, or send the Arrow stream format' },
  )
}

/** Neither compressed nor a pipe: any part of it can be read. */
function isPlainFile(bytes: InputBytes): boolean {
  return (
    bytes.location.kind === 'file' && bytes.bytesTotal !== undefined && bytes.compression === 'none'
  )
}

async function* parquetRows(bytes: InputBytes): AsyncGenerator<RecordBatch, void, undefined> {
  // Late: the decoder is large, and most inputs are text.
  const { parquetBatches } = await import('../../core/columns/parquet-in.ts')
  yield* parquetBatches(await blobOf(bytes), bytes.name)
}

async function blobOf(bytes: InputBytes): Promise<Blob> {
  const { location, name } = bytes
  if (!isPlainFile(bytes) || location.kind === 'stream') {
    throw new SluiceError(
      'INPUT_UNREADABLE',
      `${name}: Parquet needs a plain file, since it is read from its end`,
      {
        fix: 'save it as a file and name that',
      },
    )
  }
  return await openAsBlob(location.path)
}

async function schemaOf(bytes: InputBytes, format: WholeFormat): Promise<Schema> {
  if (format === 'parquet') {
    const decoder = await import('parquet-wasm')
    const file = await decoder.ParquetFile.fromFile(await blobOf(bytes))
    try {
      return RecordBatchReader.from(file.schema().intoIPCStream()).open().schema
    } finally {
      file.free()
    }
  }
  const { location } = bytes
  if (!isPlainFile(bytes) || location.kind === 'stream') {
    const head = await bytes.head(1024 * 1024)
    refuseArrowFile(bytes.name, head)
    return RecordBatchReader.from(head).open().schema
  }
  const file = await open(location.path, 'r')
  try {
    await refuseCutFile(file)
    const reader = await RecordBatchReader.from(file)
    return (await reader.open()).schema
  } finally {
    await file.close()
  }
}
