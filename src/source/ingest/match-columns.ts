import type { ColumnBatch } from '../../core/columns/column.ts'
import { SluiceError } from '../../core/errors.ts'
import { formatType } from '../../core/schema/format-type.ts'
import type { Field } from '../../core/schema/types.ts'
import { didYouMean } from '../../core/suggest.ts'
import type { InputTarget } from './input.ts'
import { shown } from './record-fault.ts'
import { firstForbiddenNull, nullColumn, widening } from './widen.ts'

/** Columns of a file in the order and types of a table. `firstRow` is the batch's place, for errors. */
export type ColumnMatch = (batch: ColumnBatch, firstRow: bigint) => ColumnBatch

/**
 * Matches the columns of a Parquet or Arrow file to those of the table: by name, and only where no
 * value can lose anything.
 * @throws SluiceError TABLE_MISMATCH for a type, RECORD_REFUSED for a column too many or too few
 */
export function matchColumns(
  fileFields: readonly Field[],
  target: InputTarget,
  name: string,
): ColumnMatch {
  const { fields, table } = target
  for (const field of fileFields) {
    if (fields.some((each) => each.name === field.name)) continue
    const near = didYouMean(
      field.name,
      fields.map((each) => each.name),
    )
    throw new SluiceError(
      'RECORD_REFUSED',
      `${name}: field "${shown(field.name)}" is not a column of ${table}${near}`,
      { fix: 'take the column out of the file' },
    )
  }
  const parts = fields.map((field) => {
    const index = fileFields.findIndex((each) => each.name === field.name)
    const source = fileFields[index]
    const wanted = `column ${field.name} of ${table} is ${formatType(field.type)}`
    if (source === undefined) {
      if (field.type.nullable) return { field, index, widen: undefined }
      throw new SluiceError('RECORD_REFUSED', `${name}: ${field.name} is missing, ${wanted}`)
    }
    const widen = widening(source.type, field.type)
    if (widen !== undefined) return { field, index, widen }
    const found = formatType({ ...source.type, nullable: true })
    throw new SluiceError('TABLE_MISMATCH', `${name}: ${field.name} is ${found}, ${wanted}`, {
      fix: 'convert the column in the file, or use another table',
    })
  })
  return (batch, firstRow) => ({
    length: batch.length,
    columns: parts.map(({ field, index, widen }) => {
      const source = batch.columns[index]
      if (source === undefined || widen === undefined) return nullColumn(field.type, batch.length)
      const column = widen(source)
      const at = firstForbiddenNull(column, field.type)
      if (at === -1) return column
      const row = firstRow + BigInt(at)
      throw new SluiceError(
        'RECORD_REFUSED',
        `${name} row ${String(row)}: ${field.name} is null, column ${field.name} of ${table} is ${formatType(field.type)}`,
        { details: { input: name, row, column: field.name } },
      )
    }),
  })
}
