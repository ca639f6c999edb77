import type { LoadedTable } from '../../catalog/ports.ts'
import { SluiceError } from '../../core/errors.ts'
import { formatType } from '../../core/schema/format-type.ts'
import { parseType } from '../../core/schema/parse-type.ts'
import type { DataType, Field } from '../../core/schema/types.ts'
import { requireSameDefinition, userFields } from '../table-definition.ts'

/**
 * Iceberg has no TINYINT, no CHAR(n) and no digits of time, so a table made with such columns keeps
 * the types as they were declared in a property of its own: their ranges hold for later runs as well.
 */
const property = 'sluice.schema'

/** The property, as a table property with the prefix that passes it on unchanged. */
export function declaredProperty(fields: readonly Field[]): readonly (readonly [string, string])[] {
  if (!fields.some((field) => isNarrowed(field.type) || field.allowPrecisionLoss === true))
    return []
  const columns = fields.map((field) => [
    field.name,
    formatType(field.type),
    ...(field.allowPrecisionLoss === true ? ['allow_precision_loss'] : []),
  ])
  return [[`iceberg.${property}`, JSON.stringify(columns)]]
}

/** Columns as declared, or as the lake shows them where nothing else was declared. */
export function declaredFields(loaded: LoadedTable): readonly Field[] {
  const shown = userFields(loaded.fields)
  const text = loaded.properties.get(property)
  if (text === undefined) return shown
  const declared = new Map(decode(text).map((field) => [field.name, field]))
  const fields = shown.map((field) => declared.get(field.name) ?? field)
  // A column that another tool has changed since is no longer as it was declared.
  try {
    requireSameDefinition('', loaded, { fields, bucketKey: null })
  } catch {
    return shown
  }
  return fields
}

function decode(text: string): readonly Field[] {
  const damaged = (): SluiceError =>
    new SluiceError('DATA_CORRUPT', `table property ${property} is damaged`, { details: { text } })
  let columns: unknown
  try {
    columns = JSON.parse(text)
  } catch {
    throw damaged()
  }
  if (!Array.isArray(columns)) throw damaged()
  return columns.map((column: unknown): Field => {
    if (!Array.isArray(column)) throw damaged()
    const [name, type, loss] = column as readonly unknown[]
    if (typeof name !== 'string' || typeof type !== 'string') throw damaged()
    return {
      name,
      type: parseType(type),
      ...(loss === 'allow_precision_loss' ? { allowPrecisionLoss: true } : {}),
    }
  })
}

function isNarrowed(type: DataType): boolean {
  switch (type.kind) {
    case 'tinyint':
    case 'smallint':
    case 'char':
    case 'binary':
      return true
    case 'time':
    case 'timestamp':
    case 'timestamp_ltz':
      return type.precision !== 6
    case 'array':
      return isNarrowed(type.element)
    case 'map':
      return isNarrowed(type.key) || isNarrowed(type.value)
    case 'row':
      return type.fields.some((field) => isNarrowed(field.type))
    case 'boolean':
    case 'int':
    case 'bigint':
    case 'float':
    case 'double':
    case 'decimal':
    case 'string':
    case 'bytes':
    case 'date':
    default:
      return false
  }
}
