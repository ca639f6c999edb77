import { isDeepStrictEqual } from 'node:util'
import { type RecordBatch, type Table as ArrowTable, tableFromIPC } from 'apache-arrow'
import { fromArrow } from '../../core/columns/arrow.ts'
import type { ColumnBatch } from '../../core/columns/column.ts'
import { SluiceError } from '../../core/errors.ts'
import { formatType } from '../../core/schema/format-type.ts'
import type { Field } from '../../core/schema/types.ts'

/** Bytes are an Arrow IPC stream or file. */
export type ArrowRecords = RecordBatch | ArrowTable | Uint8Array

/**
 * Arrow data as batches with exactly the columns of a table, matched by name in any order. Whether a
 * column may hold nulls is not compared: the log refuses the nulls themselves.
 *
 * @throws SluiceError INPUT_UNREADABLE for malformed data, RECORD_REFUSED naming the column that is
 * missing, unknown or of another type.
 */
export function readArrow(fields: readonly Field[], records: ArrowRecords): readonly ColumnBatch[] {
  return batchesOf(records).map((batch) => matchColumns(fields, batch))
}

function batchesOf(records: ArrowRecords): readonly RecordBatch[] {
  if (!(records instanceof Uint8Array)) return 'batches' in records ? records.batches : [records]
  try {
    return tableFromIPC(records).batches
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new SluiceError('INPUT_UNREADABLE', `the bytes are no Arrow IPC stream: ${reason}`, {
      cause: error,
    })
  }
}

function matchColumns(fields: readonly Field[], arrow: RecordBatch): ColumnBatch {
  const lossy = fields.filter(({ allowPrecisionLoss }) => allowPrecisionLoss === true)
  const read = fromArrow(arrow, { allowPrecisionLoss: new Set(lossy.map(({ name }) => name)) })
  const known = new Set(fields.map(({ name }) => name))
  const unknown = read.fields.find(({ name }) => !known.has(name))
  if (unknown !== undefined) throw refused(unknown.name, 'is not a column of the table')
  const columns = fields.map((field) => {
    const at = read.fields.findIndex(({ name }) => name === field.name)
    const type = read.fields[at]?.type
    const column = read.batch.columns[at]
    if (type === undefined || column === undefined) throw refused(field.name, 'is missing')
    if (!isDeepStrictEqual({ ...type, nullable: true }, { ...field.type, nullable: true })) {
      const [is, wanted] = [formatType(type), formatType(field.type)]
      throw refused(field.name, `is ${is}, the table has ${wanted}`)
    }
    return { ...column, type: field.type }
  })
  return { length: read.batch.length, columns }
}

function refused(name: string, what: string): SluiceError {
  return new SluiceError('RECORD_REFUSED', `Arrow data: column ${JSON.stringify(name)} ${what}`, {
    details: { column: name },
  })
}
