import { deletedPositions } from '../catalog/iceberg/scan-rows.ts'
import type { TableScan } from '../catalog/iceberg/scan.ts'
import type { ObjectStore } from '../catalog/store/object-store.ts'
import { pathOf } from '../catalog/store/local-store.ts'
import { SluiceError } from '../core/errors.ts'
import { unreachable } from '../core/never.ts'
import type { DataType, IdField } from '../core/schema/types.ts'
import { formatTableName } from '../core/table-name.ts'
import { type DuckDb, quoteName, quoteText } from './duckdb.ts'

export type NamedScan = { readonly name: readonly string[]; readonly scan: TableScan }

/**
 * Makes a table of the lake a view. Its columns are matched by field id, so that files written
 * before a column was renamed or added still read right.
 */
export async function createView(
  db: DuckDb,
  store: ObjectStore,
  { name, scan }: NamedScan,
): Promise<void> {
  const shown = formatTableName(name)
  for (const file of scan.files) {
    if (file.format.toUpperCase() === 'PARQUET') continue
    throw new SluiceError('SCHEMA_UNSUPPORTED', `${shown}: ${file.format} files are not read`)
  }
  const select = selectOf(scan, await loadDeletes(db, store, scan, name))
  for (const { schema, view } of viewsOf(name)) {
    await db.run(`create schema if not exists ${quoteName(schema)}`)
    await db.run(`create or replace view ${quoteName(schema)}.${quoteName(view)} as ${select}`)
  }
}

/**
 * Refuses tables that DuckDB could not tell apart: it has one level of schemas, and case does not
 * count in it.
 * @throws SluiceError CONFIG_INVALID naming both
 */
export function refuseSharedViews(names: readonly (readonly string[])[]): void {
  const seen = new Map<string, readonly string[]>()
  for (const name of names) {
    for (const { schema, view } of viewsOf(name)) {
      const key = `${schema}\0${view}`.toLowerCase()
      const other = seen.get(key)
      if (other === undefined) {
        seen.set(key, name)
        continue
      }
      const both = `${formatTableName(other)} and ${formatTableName(name)}`
      throw new SluiceError('CONFIG_INVALID', `${both} would be one view of DuckDB`, {
        fix: 'name the folder of one of them, or its metadata.json, as LAKE',
      })
    }
  }
}

type ViewName = { readonly schema: string; readonly view: string }

/** The views a table is queried by. */
function viewsOf(name: readonly string[]): readonly ViewName[] {
  const schema = name.slice(0, -1).join('.')
  const view = name.at(-1) ?? ''
  // `default` is a keyword of SQL; without this every such table would have to be quoted.
  return schema === 'default'
    ? [
        { schema, view },
        { schema: 'main', view },
      ]
    : [{ schema, view }]
}

/** Rows that are deleted, in a table of DuckDB: which file, by its path, and which ordinal. */
export type LoadedDeletes = { readonly table: string; readonly files: ReadonlySet<string> }

const schemaOfDeletes = '__sluice'
/** Positions in one statement. */
const insertMax = 20_000

/** Hands the positions that are deleted over to DuckDB, which reads no deletes of Iceberg by itself. */
export async function loadDeletes(
  db: DuckDb,
  store: ObjectStore,
  scan: TableScan,
  name: readonly string[],
): Promise<LoadedDeletes | undefined> {
  const positions = await deletedPositions(store, scan)
  if (positions.size === 0) return undefined
  const table = `${quoteName(schemaOfDeletes)}.${quoteName(formatTableName(name))}`
  await db.run(`create schema if not exists ${quoteName(schemaOfDeletes)}`)
  await db.run(`create or replace table ${table} (file varchar, ordinal bigint)`)
  for (const file of scan.files) {
    const found = positions.get(file.location)
    if (found === undefined) continue
    const path = quoteText(pathOf(file.resolved))
    for (let from = 0; from < found.length; from += insertMax) {
      const part = found.subarray(from, from + insertMax).join(',')
      await db.run(`insert into ${table} select ${path}, unnest([${part}])`)
    }
  }
  return { table, files: new Set(positions.keys()) }
}

/** The SELECT over the files of a table; a typed one without rows when it has none. */
export function selectOf(scan: TableScan, deletes?: LoadedDeletes): string {
  const isTouched = (file: TableScan['files'][number]): boolean =>
    deletes?.files.has(file.location) === true
  const touched = scan.files.filter(isTouched)
  if (deletes === undefined || touched.length === 0) return plainSelect(scan)
  const live =
    `select * exclude (__sluice_file, file_row_number) from ${readOf(scan, touched, true)} as rows ` +
    `where not exists (select 1 from ${deletes.table} as deleted ` +
    'where deleted.file = rows.__sluice_file and deleted.ordinal = rows.file_row_number)'
  const whole = scan.files.filter((file) => !isTouched(file))
  return whole.length === 0 ? live : `${live} union all select * from ${readOf(scan, whole, false)}`
}

function plainSelect(scan: TableScan): string {
  if (scan.files.length === 0) {
    const columns = scan.fields.map(
      (field) => `cast(null as ${duckType(field)}) as ${quoteName(field.name)}`,
    )
    return `select ${columns.join(', ')} where false`
  }
  return `select * from ${readOf(scan, scan.files, false)}`
}

/** @param numbered With the path of each row's file and its ordinal in there. */
function readOf(scan: TableScan, files: TableScan['files'], numbered: boolean): string {
  const paths = files.map((file) => quoteText(globEscaped(pathOf(file.resolved))))
  const fields = scan.fields.map(
    (field) =>
      `${field.id}: {name: ${quoteText(field.name)}, type: ${quoteText(duckType(field))}, ` +
      'default_value: NULL}',
  )
  const more = numbered ? ", filename = '__sluice_file', file_row_number = true" : ''
  return (
    `read_parquet([${paths.join(', ')}], ` +
    `schema = map {${fields.join(', ')}}, hive_partitioning = false${more})`
  )
}

/** DuckDB's type of a column. */
export function duckType(field: IdField): string {
  return typeText(field.type, field.children)
}

function typeText(type: DataType, children: readonly IdField[]): string {
  switch (type.kind) {
    case 'boolean':
    case 'tinyint':
    case 'smallint':
    case 'bigint':
    case 'float':
    case 'double':
    case 'date':
    case 'timestamp':
    case 'time':
      return type.kind.toUpperCase()
    case 'int':
      return 'INTEGER'
    case 'decimal':
      return `DECIMAL(${type.precision}, ${type.scale})`
    case 'char':
    case 'string':
      return 'VARCHAR'
    case 'binary':
    case 'bytes':
      return 'BLOB'
    case 'timestamp_ltz':
      return 'TIMESTAMPTZ'
    case 'array':
      return `${memberText(children[0])}[]`
    case 'map':
      return `MAP(${memberText(children[0])}, ${memberText(children[1])})`
    case 'row': {
      const members = children.map((child) => `${quoteName(child.name)} ${duckType(child)}`)
      return `STRUCT(${members.join(', ')})`
    }
    default:
      return unreachable(type)
  }
}

function memberText(child: IdField | undefined): string {
  if (child !== undefined) return duckType(child)
  throw new SluiceError('INVARIANT_BROKEN', 'a nested type has its children')
}

/** Names of files are patterns to DuckDB; these characters stand for themselves in brackets. */
function globEscaped(path: string): string {
  return path.replace(/[[*?]/g, (character) => `[${character}]`)
}
