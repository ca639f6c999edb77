import { columnBuilder, finishBatch } from '../../core/columns/builder.ts'
import { type Column, isNull } from '../../core/columns/column.ts'
import { appendRow } from '../../core/columns/row-codec.ts'
import { SluiceError } from '../../core/errors.ts'
import { check } from '../../core/never.ts'
import type { Field } from '../../core/schema/types.ts'

/** Why a column cannot be the version of rows, or nothing. */
export function versionColumnProblem(fields: readonly Field[], name: string): string | undefined {
  const field = fields.find((each) => each.name === name)
  if (field === undefined) return `version column "${name}" is not a column`
  switch (field.type.kind) {
    case 'int':
    case 'bigint':
    case 'timestamp':
    case 'timestamp_ltz':
      return undefined
    default:
      return `version column "${name}" must be INT, BIGINT, TIMESTAMP or TIMESTAMP_LTZ`
  }
}

/** True when the row's version is lower than that of the row there is. No version is the lowest. */
export function isOlderVersion(
  fields: readonly Field[],
  column: string,
  row: Uint8Array,
  old: Uint8Array,
): boolean {
  const builders = fields.map(({ type }) => columnBuilder({ ...type, nullable: true }))
  appendRow(builders, row, fields)
  appendRow(builders, old, fields)
  const versions = finishBatch(builders).columns[fields.findIndex(({ name }) => name === column)]
  check(versions !== undefined, 'the version is a column of the table')
  const [next, before] = [versionAt(versions, 0), versionAt(versions, 1)]
  if (before === undefined) return false
  return next === undefined || next < before
}

function versionAt(column: Column, row: number): bigint | number | undefined {
  if (isNull(column, row)) return undefined
  if (column.layout === 'int32' || column.layout === 'int64') return column.values[row]
  throw new SluiceError('INVARIANT_BROKEN', 'a version is a number or a time')
}
