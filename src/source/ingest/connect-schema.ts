import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from '../../core/json64.ts'
import type { DataType, Field } from '../../core/schema/types.ts'

/**
 * How a value of a Connect type is written, where it is not as a column of its type reads it anyway.
 * Debezium and Connect write days, times and decimals as numbers and bytes that only their schema
 * tells apart.
 */
export type ConnectForm =
  | { readonly kind: 'days'; readonly name: string }
  | { readonly kind: 'time' | 'timestamp'; readonly name: string; readonly unit: Unit }
  | { readonly kind: 'unscaled'; readonly name: string; readonly scale: number }
  | { readonly kind: 'list'; readonly element: ConnectForm }
  | { readonly kind: 'map'; readonly value: ConnectForm }
  | { readonly kind: 'struct'; readonly fields: ReadonlyMap<string, ConnectForm> }

export type Unit = 'ms' | 'us' | 'ns'

/** Columns of a Connect struct, and how those are written that need to be told. */
export type ConnectColumns = {
  readonly fields: readonly Field[]
  readonly forms: ReadonlyMap<string, ConnectForm>
}

/** A Connect schema that no table can be made of. */
export class ConnectFault extends Error {
  override readonly name = 'ConnectFault'
  readonly fix: string | undefined

  constructor(reason: string, fix?: string) {
    super(reason)
    this.fix = fix
  }
}

/**
 * The columns of the rows that an envelope's schema describes (docs/inputs.md). All are nullable.
 * @param schema What stands under `schema`, beside the payload.
 * @throws ConnectFault
 */
export function envelopeColumns(schema: JsonValue): ConnectColumns {
  const fields = isJsonObject(schema) ? schema['fields'] : undefined
  const row = membersOf(fields).find(({ field }) => field === 'after' || field === 'before')
  if (row === undefined) throw new ConnectFault('its schema has no "after"')
  return columnsOf(row.schema, '')
}

type Member = { readonly field: string; readonly schema: JsonObject }

function membersOf(fields: JsonValue | undefined): readonly Member[] {
  if (!isJsonArray(fields)) throw new ConnectFault('its schema is no Connect struct')
  return fields.map((schema) => {
    const field = isJsonObject(schema) ? schema['field'] : undefined
    if (!isJsonObject(schema) || typeof field !== 'string') {
      throw new ConnectFault('a field of its schema has no name')
    }
    return { field, schema }
  })
}

function columnsOf(struct: JsonObject, path: string): ConnectColumns {
  const forms = new Map<string, ConnectForm>()
  const fields = membersOf(struct['fields']).map(({ field, schema }): Field => {
    const { type, form } = columnOf(schema, path === '' ? field : `${path}.${field}`)
    if (form !== undefined) forms.set(field, form)
    return { name: field, type }
  })
  return { fields, forms }
}

type ConnectColumn = { readonly type: DataType; readonly form?: ConnectForm }

function columnOf(schema: JsonObject, path: string): ConnectColumn {
  const named =
    typeof schema['name'] === 'string' ? semantic(schema, schema['name'], path) : undefined
  return named ?? plain(schema, path)
}

/** What the name of a type says; nothing for names that mean no more than the type below them. */
function semantic(schema: JsonObject, name: string, path: string): ConnectColumn | undefined {
  const short = name.replace(/^(io\.debezium|org\.apache\.kafka\.connect)\./, '')
  if (short === name) return undefined
  const time = (unit: Unit): ConnectColumn => ({
    type: { kind: 'time', precision: digits[unit], nullable: true },
    form: { kind: 'time', name, unit },
  })
  const timestamp = (unit: Unit): ConnectColumn => ({
    type: { kind: 'timestamp', precision: digits[unit], nullable: true },
    form: { kind: 'timestamp', name, unit },
  })
  switch (short) {
    case 'time.Date':
    case 'data.Date':
      return { type: { kind: 'date', nullable: true }, form: { kind: 'days', name } }
    case 'time.Time':
    case 'data.Time':
      return time('ms')
    case 'time.MicroTime':
      return time('us')
    case 'time.NanoTime':
      return time('ns')
    case 'time.Timestamp':
    case 'data.Timestamp':
      return timestamp('ms')
    case 'time.MicroTimestamp':
      return timestamp('us')
    case 'time.NanoTimestamp':
      return timestamp('ns')
    case 'time.ZonedTimestamp':
      return { type: { kind: 'timestamp_ltz', precision: 6, nullable: true } }
    case 'data.Decimal':
      return decimal(schema, name, path)
    case 'data.VariableScaleDecimal':
      throw new ConnectFault(
        `${path} is ${name}, whose values differ in scale`,
        'decimal.handling.mode=string, or precise with a scale, in the connector',
      )
    default:
      return undefined
  }
}

const digits = { ms: 3, us: 6, ns: 9 } as const

function decimal(schema: JsonObject, name: string, path: string): ConnectColumn {
  const parameters = schema['parameters']
  const given = (key: string): number | undefined => {
    const value = isJsonObject(parameters) ? parameters[key] : undefined
    const text = typeof value === 'string' || typeof value === 'number' ? String(value) : ''
    return /^\d{1,3}$/.test(text) ? Number(text) : undefined
  }
  const scale = given('scale')
  const precision = given('connect.decimal.precision') ?? 38
  if (scale === undefined || scale > 38 || precision > 38 || scale > precision || precision < 1) {
    throw new ConnectFault(
      `${path} is ${name} that no DECIMAL holds (38 digits at most)`,
      'decimal.handling.mode=string in the connector',
    )
  }
  return {
    type: { kind: 'decimal', precision, scale, nullable: true },
    form: { kind: 'unscaled', name, scale },
  }
}

const scalars = {
  int8: 'tinyint',
  int16: 'smallint',
  int32: 'int',
  int64: 'bigint',
  float: 'float',
  float32: 'float',
  double: 'double',
  float64: 'double',
  boolean: 'boolean',
  string: 'string',
  bytes: 'bytes',
} as const

function plain(schema: JsonObject, path: string): ConnectColumn {
  const type = schema['type']
  if (typeof type === 'string' && Object.hasOwn(scalars, type)) {
    return { type: { kind: scalars[type as keyof typeof scalars], nullable: true } }
  }
  switch (type) {
    case 'struct': {
      const { fields, forms } = columnsOf(schema, path)
      const row: DataType = { kind: 'row', fields, nullable: true }
      return forms.size === 0
        ? { type: row }
        : { type: row, form: { kind: 'struct', fields: forms } }
    }
    case 'array': {
      const element = columnOf(inner(schema, 'items', path), `${path}[]`)
      const array: DataType = { kind: 'array', element: element.type, nullable: true }
      const { form } = element
      return form === undefined
        ? { type: array }
        : { type: array, form: { kind: 'list', element: form } }
    }
    case 'map': {
      const key = columnOf(inner(schema, 'keys', path), `key of ${path}`)
      const value = columnOf(inner(schema, 'values', path), `${path}{}`)
      if (key.type.kind !== 'string') {
        throw new ConnectFault(`${path} is a map whose keys are no strings`)
      }
      const map: DataType = {
        kind: 'map',
        key: { ...key.type, nullable: false },
        value: value.type,
        nullable: true,
      }
      const { form } = value
      return form === undefined ? { type: map } : { type: map, form: { kind: 'map', value: form } }
    }
    default:
      throw new ConnectFault(
        `${path} has the Connect type ${JSON.stringify(type)}, which is not known`,
      )
  }
}

function inner(schema: JsonObject, key: string, path: string): JsonObject {
  const found = schema[key]
  if (isJsonObject(found)) return found
  throw new ConnectFault(`${path} has no "${key}" in its schema`)
}
