import { SluiceError } from '../../core/errors.ts'
import type { Inferred } from '../../core/schema/infer.ts'
import { inferInput } from '../../source/ingest/infer-input.ts'
import type { InputBytes } from '../../source/ingest/input-bytes.ts'
import { detectFormat } from '../../source/ingest/input-format.ts'
import { requireForm } from '../../source/ingest/open-input.ts'
import { csvOptions } from './open-source.ts'
import type { TierRequest } from './tier-types.ts'

/**
 * Columns for a new table: from the first records of a text, from the schema of a Parquet or Arrow
 * file. The input is looked at and not read.
 * @throws SluiceError SCHEMA_UNSUPPORTED, INPUT_UNREADABLE
 */
export async function learnFields(
  bytes: InputBytes | undefined,
  request: TierRequest,
  primaryKey: readonly string[] | undefined,
): Promise<Inferred> {
  if (bytes === undefined) throw new SluiceError('CONFIG_INVALID', 'there is no input')
  const format = await detectFormat(bytes, request.inputFormat)
  requireForm(bytes.name, format, request.changes)
  return inferInput({
    bytes,
    format,
    csv: csvOptions(request),
    sampleRecords: request.sampleRecords,
    ...(primaryKey === undefined ? {} : { primaryKey }),
    ...(request.changes === undefined ? {} : { changes: request.changes }),
  })
}
