import { type Column, type ColumnBatch, isNull } from '../../core/columns/column.ts'
import { SluiceError } from '../../core/errors.ts'
import { formatType } from '../../core/schema/format-type.ts'
import type { Field } from '../../core/schema/types.ts'
import { didYouMean } from '../../core/suggest.ts'
import type { InputTarget, RecordPolicy } from './input.ts'
import { shown } from './record-fault.ts'
import { forbiddenNulls, nullColumn, widening } from './widen.ts'

export type RowFault = {
  readonly reason: string
  readonly kind: 'value' | 'unknown-field'
  /** The column that could not be read; what it has in that row is not to be used. */
  readonly column?: string
}

/** What is wrong with rows of a batch, by their place in it: the first fault of each. */
export class RowFaults {
  readonly #faults = new Map<number, RowFault>()

  get size(): number {
    return this.#faults.size
  }

  at(row: number): RowFault | undefined {
    return this.#faults.get(row)
  }

  add(row: number, fault: RowFault): void {
    if (!this.#faults.has(row)) this.#faults.set(row, fault)
  }
}

/** Columns of a file in the order and types of a table. Rows that do not fit are added to `faults`. */
export type ColumnMatch = (batch: ColumnBatch, faults: RowFaults) => ColumnBatch

/**
 * Matches the columns of a Parquet or Arrow file to those of the table: by name, and only where no
 * value can lose anything.
 * @param onUnknownField Whether the file may have columns that the table lacks; then rows are at
 * fault that have a value there.
 * @throws SluiceError TABLE_MISMATCH for a type, RECORD_REFUSED for a column too many or too few
 */
export function matchColumns(
  fileFields: readonly Field[],
  target: InputTarget,
  name: string,
  onUnknownField: RecordPolicy = 'fail',
): ColumnMatch {
  const unknown = unknownColumns(fileFields, target)
  const [first] = unknown
  if (first !== undefined && onUnknownField === 'fail') {
    throw new SluiceError('RECORD_REFUSED', `${name}: ${first.reason}`, {
      fix: 'take the column out of the file, or set rows with a value there aside: --on-unknown-field quarantine',
      details: { input: name },
    })
  }
  const parts = target.fields.map((field) => matchColumn(fileFields, field, target, name))
  return (batch, faults) => {
    const columns = parts.map(({ field, index, isKey, wanted, widen }) => {
      const source = batch.columns[index]
      if (source === undefined || widen === undefined) return nullColumn(field.type, batch.length)
      const column = widen(source)
      unfitRows(column, field, isKey, (at) => {
        const what = isKey && !isNull(column, at) ? 'is empty' : 'is null'
        faults.add(at, { reason: `${field.name} ${what}, ${wanted}`, kind: 'value' })
      })
      return column
    })
    for (const { index, reason } of unknown) {
      const column = batch.columns[index]
      for (let at = 0; column !== undefined && at < column.length; at += 1) {
        if (!isNull(column, at)) faults.add(at, { reason, kind: 'unknown-field' })
      }
    }
    return { length: batch.length, columns }
  }
}

function unknownColumns(
  fileFields: readonly Field[],
  { fields, table }: InputTarget,
): readonly { readonly index: number; readonly reason: string }[] {
  const names = fields.map((each) => each.name)
  return fileFields.flatMap((field, index) => {
    if (names.includes(field.name)) return []
    const near = didYouMean(field.name, names)
    const reason = `field "${shown(field.name)}" is not a column of ${table}${near}`
    return [{ index, reason }]
  })
}

function matchColumn(
  fileFields: readonly Field[],
  field: Field,
  { table, bucketKey }: InputTarget,
  name: string,
): {
  readonly field: Field
  readonly index: number
  readonly isKey: boolean
  readonly wanted: string
  readonly widen: ((column: Column) => Column) | undefined
} {
  const isKey = field.name === bucketKey
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
}

/** Tells of rows that the column may not hold. */
function unfitRows(column: Column, field: Field, isKey: boolean, tell: (at: number) => void): void {
  if (!isKey) {
    forbiddenNulls(column, field.type, tell)
    return
  }
  for (let at = 0; at < column.length; at += 1) {
    const isEmpty = column.layout === 'bytes' && column.offsets[at] === column.offsets[at + 1]
    if (isEmpty || isNull(column, at)) tell(at)
  }
}
