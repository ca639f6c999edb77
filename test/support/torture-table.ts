import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { isJsonArray, isJsonObject, type JsonValue, parseJson } from '../../src/core/json64.ts'
import type { Row, Value } from '../../src/core/columns/rows.ts'
import { parseType } from '../../src/core/schema/parse-type.ts'
import type { DataType } from '../../src/core/schema/types.ts'
import type { TortureColumn } from './torture-columns.ts'

/** A table with each column twice, NOT NULL and nullable, as a schema file and NDJSON lines. */
export type TortureTable = {
  readonly columns: readonly { readonly name: string; readonly type: string }[]
  readonly lines: readonly string[]
}

/** The value of a row is the one at this place of its column: rising, so that files do not overlap. */
export function valueIndex(column: TortureColumn, row: number, rows: number): number {
  return Math.floor((row * column.values.length) / rows)
}

/** Whether the nullable twin of a column is null in a row; all are in the last one. */
export function isNullAt(column: TortureColumn, row: number, rows: number): boolean {
  return row === rows - 1 || (row * 7 + column.name.length) % 3 === 0
}

/** The table of these columns, with `id` before them. */
export function tortureTable(columns: readonly TortureColumn[], rows: number): TortureTable {
  const lines = Array.from({ length: rows }, (_, row) => {
    const cells = columns.flatMap((column) => {
      const value = column.values[valueIndex(column, row, rows)] ?? 'null'
      const name = JSON.stringify(column.name)
      const nullName = JSON.stringify(`${column.name}_null`)
      const cell = `${name}:${value}`
      if (!isNullAt(column, row, rows)) return [cell, `${nullName}:${value}`]
      // A null may also be a field that is not there.
      return row % 2 === 0 ? [cell] : [cell, `${nullName}:null`]
    })
    return `{${[`"id":${String(row)}`, ...cells].join(',')}}`
  })
  const pairs = columns.flatMap(({ name, type }) => [
    { name, type: `${type} NOT NULL` },
    { name: `${name}_null`, type },
  ])
  return { columns: [{ name: 'id', type: 'INT NOT NULL' }, ...pairs], lines }
}

/** Writes the schema file and the NDJSON file; returns their paths. */
export async function writeTable(
  folder: string,
  name: string,
  table: TortureTable,
): Promise<{ readonly schema: string; readonly input: string }> {
  const schema = path.join(folder, `${name}.schema.json`)
  const input = path.join(folder, `${name}.ndjson`)
  await writeFile(schema, JSON.stringify({ columns: table.columns }))
  await writeFile(input, table.lines.map((line) => `${line}\n`).join(''))
  return { schema, input }
}

/** The rows of `tortureTable` as values of the library. */
export function libraryRows(columns: readonly TortureColumn[], rows: number): Row[] {
  const values = columns.map(({ type, values }) =>
    values.map((text) => libraryValue(parseType(type), text)),
  )
  return Array.from({ length: rows }, (_, row) => {
    const cells = columns.flatMap((column, place): [string, Value][] => {
      const value = values[place]?.[valueIndex(column, row, rows)] ?? null
      const orNull = isNullAt(column, row, rows) ? null : value
      return [
        [column.name, value],
        [`${column.name}_null`, orNull],
      ]
    })
    return Object.fromEntries([['id', row], ...cells])
  })
}

function libraryValue(type: DataType, text: string): Value {
  // A JavaScript number could not hold its digits.
  if (type.kind === 'decimal') return text.replaceAll('"', '')
  return valueOf(type, parseJson(text, { name: 'value' }))
}

function valueOf(type: DataType, json: JsonValue | undefined): Value {
  if (json === null || json === undefined) return null
  switch (type.kind) {
    case 'bigint':
      return typeof json === 'number' ? BigInt(json) : scalar(json)
    case 'float':
    case 'double':
      return Number(json)
    case 'decimal':
      return String(scalar(json))
    case 'binary':
    case 'bytes':
      return new Uint8Array(Buffer.from(String(scalar(json)), 'base64'))
    case 'array':
      return isJsonArray(json) ? json.map((element) => valueOf(type.element, element)) : null
    case 'map':
      return new Map(
        Object.entries(isJsonObject(json) ? json : {}).map(([key, value]) => [
          key,
          valueOf(type.value, value),
        ]),
      )
    case 'row':
      return Object.fromEntries(
        type.fields.map((field) => [
          field.name,
          isJsonObject(json) ? valueOf(field.type, json[field.name]) : null,
        ]),
      )
    default:
      return scalar(json)
  }
}

function scalar(json: JsonValue): Exclude<JsonValue, object> | null {
  return typeof json === 'object' ? null : json
}
