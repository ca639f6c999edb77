import { SluiceError } from '../../core/errors.ts'
import { check } from '../../core/never.ts'
import type { DataType, IdField } from '../../core/schema/types.ts'

/** Physical types by their number in parquet.thrift. */
export const physicalIds = {
  boolean: 0,
  int32: 1,
  int64: 2,
  float: 4,
  double: 5,
  bytes: 6,
  fixed: 7,
} as const

export type Physical = keyof typeof physicalIds

export type Repetition = 'required' | 'optional' | 'repeated'

export type Logical =
  | { readonly kind: 'string' | 'list' | 'map' | 'date' | 'time' }
  | { readonly kind: 'timestamp'; readonly utc: boolean }
  | { readonly kind: 'decimal'; readonly precision: number; readonly scale: number }

/** One element of the flattened schema in the footer. */
export type SchemaElement = {
  readonly name: string
  readonly repetition: Repetition
  /** Absent on the repeated groups `list` and `key_value`, which Iceberg gives no id. */
  readonly fieldId?: number
  readonly childCount?: number
  readonly physical?: Physical
  /** Bytes of a `fixed` value. */
  readonly fixedLength?: number
  readonly logical?: Logical
}

/** A column of the file: a primitive at the end of a path. */
export type Leaf = {
  readonly fieldId: number
  readonly path: readonly string[]
  readonly type: DataType
  readonly physical: Physical
  readonly fixedLength: number
  /** Definition level of a value that is present. */
  readonly definitionMax: number
  /** Number of lists and maps above. */
  readonly repetitionMax: number
}

/** What shredding a column needs to know: optional or not, and the same of its children. */
export type FileNode = {
  readonly path: readonly string[]
  readonly type: DataType
  readonly nullable: boolean
  readonly children: readonly FileNode[]
}

export type FileSchema = {
  readonly elements: readonly SchemaElement[]
  readonly leaves: readonly Leaf[]
  readonly roots: readonly FileNode[]
}

/** Why these columns have no Parquet form, or undefined when they have one. */
export function refusalOf(fields: readonly IdField[]): string | undefined {
  for (const field of fields) {
    if (field.type.kind === 'row' && field.children.length === 0) {
      return `${field.name} is a ROW without fields, and Parquet has no group without fields`
    }
    const below = refusalOf(field.children)
    if (below !== undefined) return below
  }
  return undefined
}

/** @throws SluiceError SCHEMA_UNSUPPORTED */
export function fileSchema(fields: readonly IdField[]): FileSchema {
  const refusal = refusalOf(fields)
  if (refusal !== undefined) throw new SluiceError('SCHEMA_UNSUPPORTED', refusal)
  const elements: SchemaElement[] = []
  const leaves: Leaf[] = []

  function add(field: IdField, name: string, above: Above, required = false): FileNode {
    const nullable = field.type.nullable && !required
    const repetition: Repetition = nullable ? 'optional' : 'required'
    const path = [...above.path, name]
    const definition = above.definition + (nullable ? 1 : 0)
    const here = { path, definition, repetition: above.repetition }
    const base = { name, repetition, fieldId: field.id }
    const { type } = field
    const children: FileNode[] = []
    if (type.kind === 'row') {
      elements.push({ ...base, childCount: field.children.length })
      for (const child of field.children) children.push(add(child, child.name, here))
    } else if (type.kind === 'array') {
      elements.push({ ...base, childCount: 1, logical: { kind: 'list' } })
      elements.push({ name: 'list', repetition: 'repeated', childCount: 1 })
      children.push(add(childOf(field, 0), 'element', repeated(here, 'list')))
    } else if (type.kind === 'map') {
      elements.push({ ...base, childCount: 1, logical: { kind: 'map' } })
      elements.push({ name: 'key_value', repetition: 'repeated', childCount: 2 })
      const entry = repeated(here, 'key_value')
      children.push(add(childOf(field, 0), 'key', entry, true))
      children.push(add(childOf(field, 1), 'value', entry))
    } else {
      const form = primitiveForm(type)
      elements.push({ ...base, ...form })
      leaves.push({
        fieldId: field.id,
        path,
        type,
        physical: form.physical,
        fixedLength: form.fixedLength ?? 0,
        definitionMax: definition,
        repetitionMax: above.repetition,
      })
    }
    return { path, type, nullable, children }
  }

  const top = { path: [], definition: 0, repetition: 0 }
  const roots = fields.map((field) => add(field, field.name, top))
  return { elements, leaves, roots }
}

type Above = {
  readonly path: readonly string[]
  readonly definition: number
  readonly repetition: number
}

function repeated(above: Above, name: string): Above {
  return {
    path: [...above.path, name],
    definition: above.definition + 1,
    repetition: above.repetition + 1,
  }
}

function childOf(field: IdField, index: number): IdField {
  const child = field.children[index]
  check(child !== undefined, `${field.name} has the children of its type`)
  return child
}

type PrimitiveForm = {
  readonly physical: Physical
  readonly fixedLength?: number
  readonly logical?: Logical
}

function primitiveForm(type: DataType): PrimitiveForm {
  switch (type.kind) {
    case 'boolean':
      return { physical: 'boolean' }
    case 'tinyint':
    case 'smallint':
    case 'int':
      return { physical: 'int32' }
    case 'date':
      return { physical: 'int32', logical: { kind: 'date' } }
    case 'bigint':
      return { physical: 'int64' }
    case 'time':
      return { physical: 'int64', logical: { kind: 'time' } }
    case 'timestamp':
      return { physical: 'int64', logical: { kind: 'timestamp', utc: false } }
    case 'timestamp_ltz':
      return { physical: 'int64', logical: { kind: 'timestamp', utc: true } }
    case 'float':
      return { physical: 'float' }
    case 'double':
      return { physical: 'double' }
    case 'char':
    case 'string':
      return { physical: 'bytes', logical: { kind: 'string' } }
    case 'binary':
    case 'bytes':
      return { physical: 'bytes' }
    case 'decimal':
      return decimalForm(type.precision, type.scale)
    case 'array':
    case 'map':
    case 'row':
      throw new SluiceError('INVARIANT_BROKEN', `${type.kind} is not a primitive type`)
    default:
      return type satisfies never
  }
}

/** Iceberg, appendix A: INT32 to 9 digits, INT64 to 18, above that the fewest bytes that hold it. */
function decimalForm(precision: number, scale: number): PrimitiveForm {
  const logical = { kind: 'decimal', precision, scale } as const
  if (precision <= 9) return { physical: 'int32', logical }
  if (precision <= 18) return { physical: 'int64', logical }
  let bytes = 9
  while (2n ** BigInt(8 * bytes - 1) < 10n ** BigInt(precision)) bytes += 1
  return { physical: 'fixed', fixedLength: bytes, logical }
}
