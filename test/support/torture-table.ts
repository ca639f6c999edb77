import { writeFile } from 'node:fs/promises'
import path from 'node:path'
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

/** Whether the nullable column at this place is null in a row; all are in the last one. */
export function isNullAt(place: number, row: number, rows: number): boolean {
  return row === rows - 1 || (row * 7 + place) % 3 === 0
}

/** The table of these columns, with `id` before them. */
export function tortureTable(columns: readonly TortureColumn[], rows: number): TortureTable {
  const lines = Array.from({ length: rows }, (_, row) => {
    const cells = columns.flatMap((column, place) => {
      const value = column.values[valueIndex(column, row, rows)] ?? 'null'
      const name = JSON.stringify(column.name)
      const nullName = JSON.stringify(`${column.name}_null`)
      const cell = `${name}:${value}`
      if (!isNullAt(place, row, rows)) return [cell, `${nullName}:${value}`]
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
