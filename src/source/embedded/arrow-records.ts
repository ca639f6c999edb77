import { type RecordBatch, type Table as ArrowTable, tableFromIPC } from 'apache-arrow'
import { fromArrow } from '../../core/columns/arrow.ts'
import type { ColumnBatch } from '../../core/columns/column.ts'
import { decoderReason } from '../../core/columns/decoder-reason.ts'
import { SluiceError } from '../../core/errors.ts'
import { formatType } from '../../core/schema/format-type.ts'
import type { Field } from '../../core/schema/types.ts'
import { firstForbiddenNull, nullColumn, widening } from '../ingest/widen.ts'

/** Bytes are an Arrow IPC stream or file. */
export type ArrowRecords = RecordBatch | ArrowTable | Uint8Array

/**
 * Arrow data as batches with exactly the columns of a table, matched by name in any order. Types may be
 * narrower than the table's where no value can lose anything; a nullable column may be missing, and
 * whether a column says that it may hold nulls does not matter as long as it holds none that it may not.
 *
 * @throws SluiceError INPUT_UNREADABLE for malformed data, RECORD_REFUSED naming the column that is
 * missing, unknown or of another type, or the row with a null in a NOT NULL column.
 */
export function readArrow(fields: readonly Field[], records: ArrowRecords): readonly ColumnBatch[] {
  let firstRow = 0
  return batchesOf(records).map((batch) => {
    const matched = matchColumns(fields, batch, firstRow)
    firstRow += matched.length
    return matched
  })
}

function batchesOf(records: ArrowRecords): readonly RecordBatch[] {
  if (!(records instanceof Uint8Array)) return 'batches' in records ? records.batches : [records]
  try {
    return tableFromIPC(records).batches
  } catch (error) {
    const message = `the bytes are no Arrow IPC stream: ${decoderReason(error)}`
    throw new SluiceError('INPUT_UNREADABLE', message, { cause: error })
  }
}

function matchColumns(fields: readonly Field[], arrow: RecordBatch, firstRow: number): ColumnBatch {
  const lossy = fields.filter(({ allowPrecisionLoss }) => allowPrecisionLoss === true)
  const read = fromArrow(arrow, { allowPrecisionLoss: new Set(lossy.map(({ name }) => name)) })
  const known = new Set(fields.map(({ name }) => name))
  const unknown = read.fields.find(({ name }) => !known.has(name))
  if (unknown !== undefined) throw refused(unknown.name, 'is not a column of the table')
  const { length } = read.batch
  const columns = fields.map((field) => {
    const wanted = formatType(field.type)
    const at = read.fields.findIndex(({ name }) => name === field.name)
    const type = read.fields[at]?.type
    const column = read.batch.columns[at]
    if (type === undefined || column === undefined) {
      if (field.type.nullable) return nullColumn(field.type, length)
      throw refused(field.name, `is missing, the table has ${wanted}`)
    }
    const widen = widening(type, field.type)
    if (widen === undefined) {
      const is = formatType({ ...type, nullable: true })
      throw refused(field.name, `is ${is}, the table has ${wanted}`)
    }
    const widened = widen(column)
    const forbidden = firstForbiddenNull(widened, field.type)
    if (forbidden === -1) return widened
    const row = firstRow + forbidden
    throw refused(field.name, `holds a null in row ${row}, the table has ${wanted}`, { row })
  })
  return { length, columns }
}

function refused(
  name: string,
  what: string,
  details: Readonly<Record<string, unknown>> = {},
): SluiceError {
  return new SluiceError('RECORD_REFUSED', `Arrow data: column ${JSON.stringify(name)} ${what}`, {
    details: { column: name, ...details },
  })
}
