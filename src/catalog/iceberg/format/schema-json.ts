import { SluiceError } from '../../../core/errors.ts'
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  stringifyJson,
} from '../../../core/json64.ts'
import { unreachable } from '../../../core/never.ts'
import type { DataType, IdField } from '../../../core/schema/types.ts'
import { arrayOf, intOf, isAbsent, jsonObject, objectsOf, textOf } from './json-fields.ts'

/** The types of columns in Iceberg's schema JSON (spec, appendix C), after Fluss's mapping. */

/**
 * @param fields Top-level fields, system columns included.
 * @param identifiers Names of the columns of the primary key, if there is one.
 */
export function encodeSchema(
  fields: readonly IdField[],
  schemaId: number,
  identifiers: readonly string[] = [],
): JsonObject {
  const ids = fields.filter(({ name }) => identifiers.includes(name)).map(({ id }) => id)
  return jsonObject([
    ['type', 'struct'],
    ['schema-id', schemaId],
    ['identifier-field-ids', ids.length === 0 ? undefined : ids],
    ['fields', fields.map(encodeField)],
  ])
}

/** @throws SluiceError DATA_CORRUPT; SCHEMA_UNSUPPORTED for a type that Sluice has no column for. */
export function decodeSchema(schema: JsonObject, name: string): readonly IdField[] {
  return objectsOf(schema, 'fields', name).map((field) => decodeField(field, name))
}

/** The columns of the primary key; empty for a log table. @throws SluiceError DATA_CORRUPT */
export function identifierFields(
  schema: JsonObject,
  fields: readonly IdField[],
  name: string,
): readonly string[] {
  return arrayOf(schema, 'identifier-field-ids', name).flatMap((id) => {
    const field = fields.find((each) => each.id === id)
    return field === undefined ? [] : [field.name]
  })
}

/**
 * What a type is after being stored in a lake table and read back: small integers are wider,
 * lengths of texts are gone, times have microseconds. Compare definitions by this form.
 */
export function lakeType(type: DataType): DataType {
  const { nullable } = type
  switch (type.kind) {
    case 'tinyint':
    case 'smallint':
      return { kind: 'int', nullable }
    case 'char':
      return { kind: 'string', nullable }
    case 'binary':
      return { kind: 'bytes', nullable }
    case 'time':
    case 'timestamp':
    case 'timestamp_ltz':
      return { kind: type.kind, precision: 6, nullable }
    case 'array':
      return { kind: 'array', element: lakeType(type.element), nullable }
    case 'map':
      // Iceberg has no null keys.
      return {
        kind: 'map',
        key: { ...lakeType(type.key), nullable: false },
        value: lakeType(type.value),
        nullable,
      }
    case 'row':
      return {
        kind: 'row',
        nullable,
        fields: type.fields.map((field) => ({
          name: field.name,
          type: lakeType(field.type),
          ...(field.comment === undefined ? {} : { comment: field.comment }),
        })),
      }
    default:
      return type
  }
}

function encodeField(field: IdField): JsonObject {
  return jsonObject([
    ['id', field.id],
    ['name', field.name],
    ['required', !field.type.nullable],
    ['type', encodeType(field)],
    ['doc', field.comment],
  ])
}

function encodeType(field: IdField): JsonValue {
  const { type } = field
  switch (type.kind) {
    case 'boolean':
    case 'float':
    case 'double':
    case 'date':
    case 'time':
    case 'timestamp':
      return type.kind
    case 'tinyint':
    case 'smallint':
    case 'int':
      return 'int'
    case 'bigint':
      return 'long'
    case 'decimal':
      return `decimal(${type.precision}, ${type.scale})`
    case 'char':
    case 'string':
      return 'string'
    case 'binary':
    case 'bytes':
      return 'binary'
    case 'timestamp_ltz':
      return 'timestamptz'
    case 'array': {
      const element = childOf(field, 0)
      return jsonObject([
        ['type', 'list'],
        ['element-id', element.id],
        ['element', encodeType(element)],
        ['element-required', !element.type.nullable],
      ])
    }
    case 'map': {
      const [key, value] = [childOf(field, 0), childOf(field, 1)]
      return jsonObject([
        ['type', 'map'],
        ['key-id', key.id],
        ['key', encodeType(key)],
        ['value-id', value.id],
        ['value', encodeType(value)],
        ['value-required', !value.type.nullable],
      ])
    }
    case 'row':
      return jsonObject([
        ['type', 'struct'],
        ['fields', field.children.map(encodeField)],
      ])
    default:
      return unreachable(type)
  }
}

function childOf(field: IdField, index: number): IdField {
  const child = field.children[index]
  if (child === undefined) {
    throw new SluiceError('INVARIANT_BROKEN', `column "${field.name}" lost its nested types`)
  }
  return child
}

function decodeField(field: JsonObject, name: string): IdField {
  const column = textOf(field, 'name', name)
  const decoded = decodeType(field['type'], column, name)
  return {
    id: intOf(field, 'id', name),
    name: column,
    type: { ...decoded.type, nullable: field['required'] !== true },
    ...(isAbsent(field, 'doc') ? {} : { comment: textOf(field, 'doc', name) }),
    children: decoded.children,
  }
}

type Decoded = { readonly type: DataType; readonly children: readonly IdField[] }

function decodeType(json: JsonValue | undefined, column: string, name: string): Decoded {
  if (typeof json === 'string') return { type: decodePrimitive(json, column, name), children: [] }
  if (!isJsonObject(json)) {
    throw new SluiceError('DATA_CORRUPT', `${name}: column "${column}" has no type`, {
      details: { file: name, column },
    })
  }
  const nullable = true
  const nested = (part: 'element' | 'key' | 'value'): IdField => {
    const decoded = decodeType(json[part], `${column}.${part}`, name)
    const isRequired = part === 'key' || json[`${part}-required`] === true
    return {
      id: intOf(json, `${part}-id`, name),
      name: part,
      type: { ...decoded.type, nullable: !isRequired },
      children: decoded.children,
    }
  }
  switch (json['type']) {
    case 'list': {
      const element = nested('element')
      return { type: { kind: 'array', element: element.type, nullable }, children: [element] }
    }
    case 'map': {
      const key = nested('key')
      const value = nested('value')
      return {
        type: { kind: 'map', key: key.type, value: value.type, nullable },
        children: [key, value],
      }
    }
    case 'struct': {
      const children = decodeSchema(json, name)
      const fields = children.map(({ name: child, type, comment }) => ({
        name: child,
        type,
        ...(comment === undefined ? {} : { comment }),
      }))
      return { type: { kind: 'row', fields, nullable }, children }
    }
    default:
      throw unsupported(column, stringifyJson(json['type'] ?? null), name)
  }
}

function decodePrimitive(text: string, column: string, name: string): DataType {
  const nullable = true
  switch (text) {
    case 'boolean':
    case 'int':
    case 'float':
    case 'double':
    case 'date':
    case 'string':
      return { kind: text, nullable }
    case 'long':
      return { kind: 'bigint', nullable }
    case 'time':
    case 'timestamp':
      return { kind: text, precision: 6, nullable }
    case 'timestamptz':
      return { kind: 'timestamp_ltz', precision: 6, nullable }
    case 'timestamp_ns':
      return { kind: 'timestamp', precision: 9, nullable }
    case 'timestamptz_ns':
      return { kind: 'timestamp_ltz', precision: 9, nullable }
    case 'binary':
      return { kind: 'bytes', nullable }
    case 'uuid':
      return { kind: 'binary', length: 16, nullable }
    default:
      break
  }
  const decimal = /^decimal\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)$/.exec(text)
  if (decimal !== null) {
    return {
      kind: 'decimal',
      precision: Number.parseInt(decimal[1] ?? '', 10),
      scale: Number.parseInt(decimal[2] ?? '', 10),
      nullable,
    }
  }
  const fixed = /^fixed\[(\d{1,9})\]$/.exec(text)
  if (fixed !== null) {
    return { kind: 'binary', length: Number.parseInt(fixed[1] ?? '', 10), nullable }
  }
  throw unsupported(column, text, name)
}

function unsupported(column: string, type: string, name: string): SluiceError {
  return new SluiceError(
    'SCHEMA_UNSUPPORTED',
    `${name}: column "${column}" is ${type}, which Sluice does not know`,
    { details: { file: name, column, type }, fix: 'read the table with another engine' },
  )
}
