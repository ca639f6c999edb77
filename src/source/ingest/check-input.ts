import { csvColumns, csvShape } from './csv-header.ts'
import type { CsvOptions, InputFormat, InputTarget, RecordPolicy } from './input.ts'
import type { InputBytes } from './input-bytes.ts'
import { isText } from './input-format.ts'

/**
 * Checks, before anything is written for it, that the columns an input names fit the table. Nothing of
 * the input is taken; its records are left to the reader.
 * @throws SluiceError TABLE_MISMATCH, RECORD_REFUSED, SCHEMA_UNSUPPORTED, INPUT_UNREADABLE,
 * DATA_CORRUPT
 */
export async function checkInput(input: {
  readonly bytes: InputBytes
  readonly format: InputFormat
  readonly csv: CsvOptions
  readonly target: InputTarget
  readonly onUnknownField: RecordPolicy
}): Promise<void> {
  const { bytes, format, target, onUnknownField } = input
  if (format === 'csv') {
    csvColumns(await csvShape(bytes, input.csv), target, bytes.name, onUnknownField)
  }
  if (isText(format)) return
  // Late: the decoders are large, and most inputs are text.
  const { checkWhole } = await import('./open-whole.ts')
  await checkWhole(bytes, format, target, onUnknownField)
}

/**
 * Checks what an input says of its own form, whatever table it is for: a CSV header, the schema of a
 * Parquet or Arrow file. Nothing of it is taken.
 * @throws SluiceError INPUT_UNREADABLE, SCHEMA_UNSUPPORTED, DATA_CORRUPT
 */
export async function checkShape(input: {
  readonly bytes: InputBytes
  readonly format: InputFormat
  readonly csv: CsvOptions
}): Promise<void> {
  const { bytes, format, csv } = input
  if (format === 'csv') await csvShape(bytes, csv)
  if (isText(format)) return
  const { checkSchemaOf } = await import('./open-whole.ts')
  await checkSchemaOf(bytes, format)
}
