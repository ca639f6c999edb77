import { SluiceError } from '../../core/errors.ts'
import type {
  ChangeForm,
  CsvOptions,
  InputFormat,
  InputLimits,
  InputReader,
  InputTarget,
  RecordPolicy,
  ResumePoint,
} from './input.ts'
import { CsvColumns } from './csv-columns.ts'
import { csvColumns, csvShape } from './csv-header.ts'
import { CsvParser } from './csv-parser.ts'
import type { InputBytes } from './input-bytes.ts'
import { detectFormat, isText, refuseFollowing } from './input-format.ts'
import { ChangeColumns } from './change-columns.ts'
import { JsonColumns } from './json-columns.ts'
import { NdjsonParser } from './ndjson-parser.ts'
import { PrefixHash } from './prefix-hash.ts'
import type { RecordParser } from './record-parser.ts'
import { TextReader } from './text-reader.ts'
import { verifyPrefix } from './verify-prefix.ts'

export type InputSpec = {
  /** Opened by `InputBytes.open`, nothing read yet (looked at by `head` at most). */
  readonly bytes: InputBytes
  readonly target: InputTarget
  /** By default by content and name. */
  readonly format?: InputFormat
  readonly csv?: CsvOptions
  readonly onBadRecord?: RecordPolicy
  readonly onUnknownField?: RecordPolicy
  /** By default 1000. */
  readonly badRecordsMax?: number
  readonly limits?: InputLimits
  /** The last line waits for its newline, and a batch ends when nothing more is there. */
  readonly follow?: boolean
  readonly resume?: ResumePoint
}

/**
 * Opens an input as column batches in the order of the table's columns, from its start or from a
 * resume point, whose prefix is read and verified first. The reader owns `bytes` from
 * then on; they are closed when opening fails.
 * @throws SluiceError INPUT_UNREADABLE, INPUT_CHANGED, RECORD_REFUSED (a CSV header)
 */
export async function openInput(spec: InputSpec): Promise<InputReader> {
  try {
    return await openReader(spec)
  } catch (error) {
    await spec.bytes.close()
    throw error
  }
}

async function openReader(spec: InputSpec): Promise<InputReader> {
  const { bytes, resume } = spec
  const format = await detectFormat(bytes, spec.format)
  requireForm(bytes.name, format, spec.target.changes)
  const rules = {
    onBadRecord: spec.onBadRecord ?? 'fail',
    onUnknownField: spec.onUnknownField ?? 'fail',
    badRecordsMax: spec.badRecordsMax ?? 1000,
  }
  if (spec.follow === true) refuseFollowing(bytes.name, format)
  if (!isText(format)) {
    const { openWhole } = await import('./open-whole.ts')
    const recordsMax = spec.limits?.batchRecordsMax
    return await openWhole({
      bytes,
      format,
      target: spec.target,
      rules,
      ...(resume === undefined ? {} : { resume }),
      ...(recordsMax === undefined ? {} : { recordsMax }),
    })
  }
  const { parser, hasHeader } = await textParser(spec, format)
  const prefix =
    resume === undefined || resume.position === 0n
      ? { position: 0n, lines: 0n, hash: new PrefixHash(), rest: new Uint8Array(0) }
      : await verifyPrefix(bytes, resume)
  return new TextReader({
    bytes,
    format,
    parser,
    ...rules,
    limits: spec.limits ?? {},
    follow: spec.follow ?? false,
    keepsText: format === 'ndjson' && spec.target.primaryKey !== undefined,
    hasHeader,
    start: {
      ...prefix,
      records: prefix.position === 0n ? 0n : (resume?.records ?? 0n),
      awaitsNewline: prefix.position > 0n && resume?.endedWithoutNewline === true,
    },
  })
}

/**
 * Changes that say what they do are read from NDJSON; the rows of any other format are upserts.
 * @throws SluiceError CONFIG_INVALID
 */
export function requireForm(name: string, format: InputFormat, form: ChangeForm | undefined): void {
  if (form === undefined || form.kind === 'upserts' || format === 'ndjson') return
  const option = form.kind === 'debezium' ? '--cdc debezium' : `--op-column ${form.column}`
  throw new SluiceError(
    'CONFIG_INVALID',
    `${name}: ${option} reads NDJSON, and this is ${format}`,
    {
      fix: `convert it to one JSON record per line, or leave the option out: each row is then an upsert`,
    },
  )
}

async function textParser(
  spec: InputSpec,
  format: 'ndjson' | 'csv',
): Promise<{ readonly parser: RecordParser; readonly hasHeader: boolean }> {
  const { primaryKey, changes = { kind: 'upserts' } } = spec.target
  if (format === 'ndjson') {
    const columns =
      primaryKey === undefined
        ? new JsonColumns(spec.target)
        : new ChangeColumns(spec.target, changes)
    return { parser: new NdjsonParser(columns), hasHeader: false }
  }
  const shape = await csvShape(spec.bytes, spec.csv ?? {})
  const columns = csvColumns(shape, spec.target, spec.bytes.name, spec.onUnknownField ?? 'fail')
  const { delimiter, hasHeader } = shape
  const skipHeader = hasHeader && (spec.resume?.position ?? 0n) === 0n
  const sink = new CsvColumns(spec.target, shape, columns)
  return { parser: new CsvParser(sink, { delimiter, skipHeader }), hasHeader }
}
