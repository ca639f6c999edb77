import { csvColumns, csvShape } from './csv-header.ts'
import type { CsvOptions, InputFormat, InputTarget } from './input.ts'
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
}): Promise<void> {
  const { bytes, format, target } = input
  if (format === 'csv') csvColumns(await csvShape(bytes, input.csv), target, bytes.name)
  if (isText(format)) return
  // Late: the decoders are large, and most inputs are text.
  const { checkWhole } = await import('./open-whole.ts')
  await checkWhole(bytes, format, target)
}
