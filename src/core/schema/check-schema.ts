import { SluiceError } from '../errors.ts'
import { didYouMean } from '../suggest.ts'
import { formatType } from './format-type.ts'
import { type DataType, type DataTypeKind, type Field, systemColumns } from './types.ts'

const columnsMax = 1000

/** Kinds a primary key may have. */
const primaryKeyKinds: ReadonlySet<DataTypeKind> = new Set([
  'boolean',
  'tinyint',
  'smallint',
  'int',
  'bigint',
  'decimal',
  'char',
  'string',
  'binary',
  'bytes',
  'date',
  'time',
  'timestamp',
  'timestamp_ltz',
])

/** Kinds a bucket key may have: those that Fluss hashes. */
const bucketKeyKinds: ReadonlySet<DataTypeKind> = new Set([
  'int',
  'bigint',
  'decimal',
  'char',
  'string',
  'binary',
  'bytes',
  'date',
  'time',
  'timestamp',
  'timestamp_ltz',
])

/** What is wrong with a column, and which one: for a message that names its place. */
export type SchemaProblem = { readonly column: number; readonly message: string }

/** The first problem of the columns' names and types, or nothing. */
export function schemaProblem(fields: readonly Field[]): SchemaProblem | undefined {
  if (fields.length === 0) return { column: 0, message: 'a table has at least one column' }
  if (fields.length > columnsMax) {
    return { column: columnsMax, message: `${fields.length} columns, at most ${columnsMax}` }
  }
  const seen = new Map<string, string>()
  for (const [column, field] of fields.entries()) {
    const message = nameProblem(field.name, seen) ?? precisionProblem(field)
    if (message !== undefined) return { column, message }
    seen.set(field.name.toLowerCase(), field.name)
  }
  return undefined
}

/** @throws SluiceError SCHEMA_UNSUPPORTED for what `schemaProblem` finds, after `where: `. */
export function checkSchema(fields: readonly Field[], where: string): void {
  const problem = schemaProblem(fields)
  if (problem !== undefined) {
    throw new SluiceError('SCHEMA_UNSUPPORTED', `${where}: ${problem.message}`)
  }
}

/** Why a column cannot be part of the primary key, or nothing. */
export function primaryKeyProblem(fields: readonly Field[], name: string): string | undefined {
  const field = fields.find((each) => each.name === name)
  if (field === undefined) return missing('primary key', fields, name)
  if (primaryKeyKinds.has(field.type.kind)) return undefined
  return `primary key "${name}" is ${kindText(field.type)}; a key must be BOOLEAN, an integer, DECIMAL, STRING, BYTES, DATE, TIME or TIMESTAMP`
}

/** Why a column cannot be the bucket key, or nothing. */
export function bucketKeyProblem(fields: readonly Field[], name: string): string | undefined {
  const field = fields.find((each) => each.name === name)
  if (field === undefined) return missing('bucket key', fields, name)
  if (bucketKeyKinds.has(field.type.kind)) return undefined
  return `bucket key "${name}" is ${kindText(field.type)}; a bucket key must be INT, BIGINT, DECIMAL, STRING, BYTES, DATE, TIME or TIMESTAMP`
}

function missing(what: string, fields: readonly Field[], name: string): string {
  const names = fields.map((field) => field.name)
  return `${what} "${name}" is not a column${didYouMean(name, names)}`
}

function nameProblem(name: string, seen: ReadonlyMap<string, string>): string | undefined {
  if (name === '') return 'a column needs a name'
  if (Buffer.byteLength(name) > 255) return `column name "${name.slice(0, 40)}…" is over 255 bytes`
  if (/[\p{Cc}\p{Bidi_Control}\p{Surrogate}]/u.test(name)) {
    return `column name ${JSON.stringify(name)} holds a control character`
  }
  const reserved = Object.values(systemColumns).find((system) => system === name.toLowerCase())
  if (reserved !== undefined) return `column name "${name}" is kept for Sluice's own ${reserved}`
  const other = seen.get(name.toLowerCase())
  if (other === undefined) return undefined
  return other === name
    ? `column "${name}" appears twice`
    : `columns "${other}" and "${name}" differ only by case`
}

function precisionProblem(field: Field): string | undefined {
  const fine = field.allowPrecisionLoss === true ? undefined : finerThanMicros(field.type)
  if (fine === undefined) return undefined
  return `column "${field.name}" is ${formatType(fine)}; format version 2 holds microseconds, so declare 6 digits or "allow_precision_loss": true`
}

function finerThanMicros(type: DataType): DataType | undefined {
  switch (type.kind) {
    case 'time':
    case 'timestamp':
    case 'timestamp_ltz':
      return type.precision > 6 ? type : undefined
    case 'array':
      return finerThanMicros(type.element)
    case 'map':
      return finerThanMicros(type.key) ?? finerThanMicros(type.value)
    case 'row':
      for (const field of type.fields) {
        const fine = finerThanMicros(field.type)
        if (fine !== undefined) return fine
      }
      return undefined
    default:
      return undefined
  }
}

function kindText(type: DataType): string {
  return type.kind === 'row' || type.kind === 'array' || type.kind === 'map'
    ? type.kind.toUpperCase()
    : formatType({ ...type, nullable: true })
}
