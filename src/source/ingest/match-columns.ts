import { type Column, type ColumnBatch, isNull, sliceBatch } from '../../core/columns/column.ts'
import { SluiceError } from '../../core/errors.ts'
import { formatType } from '../../core/schema/format-type.ts'
import type { Field } from '../../core/schema/types.ts'
import { didYouMean } from '../../core/suggest.ts'
import type { InputTarget } from './input.ts'
import { shown } from './record-fault.ts'
import { firstForbiddenNull, nullColumn, widening } from './widen.ts'

/** Columns of a file in the order and types of a table, up to the first row that does not fit. */
export type Matched = { readonly records: ColumnBatch; readonly refused: SluiceError | undefined }

/** `firstRow` is the batch's place, for errors. */
export type ColumnMatch = (batch: ColumnBatch, firstRow: bigint) => Matched

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
    const isKey = field.name === target.bucketKey
    const index = fileFields.findIndex((each) => each.name === field.name)
    const source = fileFields[index]
    const typed = `column ${field.name} of ${table} is ${formatType(field.type)}`
    const wanted = isKey ? `column ${field.name} of ${table} is the bucket key` : typed
    const part = { field, index, isKey, wanted }
    if (source === undefined) {
      if (field.type.nullable && !isKey) return { ...part, widen: undefined }
      throw new SluiceError('RECORD_REFUSED', `${name}: ${field.name} is missing, ${wanted}`)
    }
    const widen = widening(source.type, field.type)
    if (widen !== undefined) return { ...part, widen }
    const found = formatType({ ...source.type, nullable: true })
    throw new SluiceError('TABLE_MISMATCH', `${name}: ${field.name} is ${found}, ${typed}`, {
      fix: 'convert the column in the file, or use another table',
    })
  })
  return (batch, firstRow) => {
    const columns: Column[] = []
    let fault: { readonly at: number; readonly error: SluiceError } | undefined
    for (const { field, index, isKey, wanted, widen } of parts) {
      const source = batch.columns[index]
      if (source === undefined || widen === undefined) {
        columns.push(nullColumn(field.type, batch.length))
        continue
      }
      const column = widen(source)
      columns.push(column)
      const at = firstUnfit(column, field, isKey)
      if (at === -1 || (fault !== undefined && fault.at <= at)) continue
      const row = firstRow + BigInt(at)
      const what = isKey && !isNull(column, at) ? 'is empty' : 'is null'
      const message = `${name} row ${String(row)}: ${field.name} ${what}, ${wanted}`
      const details = { input: name, row, column: field.name }
      fault = { at, error: new SluiceError('RECORD_REFUSED', message, { details }) }
    }
    const records = { length: batch.length, columns }
    if (fault === undefined) return { records, refused: undefined }
    return { records: sliceBatch(records, 0, fault.at), refused: fault.error }
  }
}

/** First row that the column may not hold; -1 when there is none. */
function firstUnfit(column: Column, field: Field, isKey: boolean): number {
  if (!isKey) return firstForbiddenNull(column, field.type)
  for (let at = 0; at < column.length; at += 1) {
    const isEmpty = column.layout === 'bytes' && column.offsets[at] === column.offsets[at + 1]
    if (isEmpty || isNull(column, at)) return at
  }
  return -1
}
