import type { DuckDBValue } from '@duckdb/node-api'
import type { JsonValue } from '../core/json64.ts'
import { counted } from '../core/text.ts'
import type { CommandContext } from './command.ts'
import type { DuckColumn, DuckRows } from './duckdb.ts'
import { isNumeric, type TimeView, valueJson, valueText } from './duckdb-values.ts'
import { type JsonIntegers, writeJson } from './json.ts'
import { columnsThatFit, renderBox } from './render-table.ts'

export type QueryOutput = {
  readonly context: CommandContext
  readonly form: 'box' | 'csv' | 'json'
  /** Who read what. */
  readonly reader: string
  /** Snapshot of each table that was read; undefined for an empty one. */
  readonly snapshots: ReadonlyMap<string, bigint | undefined>
  readonly seconds: () => number
}

/** More rows than this in a box help nobody; `--csv` and `--json` give all. */
const boxRowsMax = 1000

/** Writes the rows of a query to stdout. @returns how many rows it gave. */
export async function writeRows(rows: DuckRows, output: QueryOutput): Promise<number> {
  switch (output.form) {
    case 'csv':
      return await writeCsv(rows, output)
    case 'json':
      return await writeDocument(rows, output)
    case 'box':
      return await writeBox(rows, output)
  }
}

async function writeBox(rows: DuckRows, { context }: QueryOutput): Promise<number> {
  const { terminal } = context
  const times: TimeView = terminal.outIsTerminal ? 'local' : 'utc'
  const shown: (readonly string[])[] = []
  let count = 0
  for await (const piece of rows.pieces) {
    for (const row of piece) {
      if (shown.length < boxRowsMax) shown.push(textsOf(row, rows.columns, times))
      count += 1
    }
  }
  if (!rows.hasRows) return count
  const columns = rows.columns.map(({ name, type }) => ({
    title: name,
    kind: isNumeric(type) ? ('number' as const) : ('text' as const),
  }))
  const width = terminal.outIsTerminal ? terminal.width : undefined
  const places = columnsThatFit(columns, shown, width ?? Infinity)
  const some = <T>(all: readonly T[]): readonly T[] =>
    all.filter((_, index) => places.includes(index))
  const view = { marks: terminal.marks, style: terminal.outStyle, width }
  terminal.result(renderBox(some(columns), shown.map(some), view))
  if (places.length < columns.length) {
    const hidden = columns.filter((_, index) => !places.includes(index)).map(({ title }) => title)
    terminal.note(`too narrow for ${hidden.join(', ')}: --csv or --json gives all`)
  }
  if (count > shown.length) {
    terminal.note(`${counted(count - shown.length, 'more row')}: --csv or --json gives all`)
  }
  return count
}

function textsOf(
  row: readonly DuckDBValue[],
  columns: readonly DuckColumn[],
  times: TimeView,
): readonly string[] {
  return columns.map(({ type }, index) => valueText(row[index] ?? null, type, times) ?? 'NULL')
}

/** RFC 4180 with line feeds. Null is an empty field and the empty string is quoted. */
async function writeCsv(rows: DuckRows, { context }: QueryOutput): Promise<number> {
  const { terminal } = context
  let count = 0
  if (rows.hasRows) terminal.result(rows.columns.map(({ name }) => csvField(name)).join(','))
  for await (const piece of rows.pieces) {
    const lines = piece.map((row) =>
      rows.columns
        .map(({ type }, index) => csvField(valueText(row[index] ?? null, type, 'utc')))
        .join(','),
    )
    if (lines.length > 0) terminal.result(lines.join('\n'))
    count += piece.length
  }
  return count
}

function csvField(text: string | undefined): string {
  if (text === undefined) return ''
  if (text !== '' && !/[",\r\n]|^\s|\s$/.test(text)) return text
  return `"${text.replaceAll('"', '""')}"`
}

async function writeDocument(rows: DuckRows, output: QueryOutput): Promise<number> {
  const { context, snapshots, reader } = output
  const integers: JsonIntegers = context.json ?? 'number'
  const written: JsonValue[] = []
  for await (const piece of rows.pieces) {
    for (const row of piece) {
      written.push(rows.columns.map((_, index) => valueJson(row[index] ?? null)))
    }
  }
  const document = {
    schema: 'sluice.query/1',
    ok: true,
    snapshot_ids: Object.fromEntries(
      [...snapshots].map(([table, id]) => [table, id?.toString() ?? null]),
    ),
    columns: rows.columns.map(({ name, type }) => ({ name, type: type.toString() })),
    rows: written,
    row_count: written.length,
    seconds: Number(output.seconds().toFixed(3)),
    reader,
  }
  context.terminal.result(writeJson(document, integers))
  return written.length
}
