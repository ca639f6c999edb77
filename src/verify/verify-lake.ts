import { findMetadata, listTables } from '../catalog/iceberg/list-tables.ts'
import type { ObjectStore } from '../catalog/store/object-store.ts'
import { SluiceError } from '../core/errors.ts'
import { formatTableName } from '../core/table-name.ts'
import { normalLocation } from './table-files.ts'
import { type Level, type TableReport, verifyTable } from './verify-table.ts'

export type VerifyOptions = {
  /** `rows` if left out. */
  readonly level?: Level
  /** Parts of one table's name; every table if left out. */
  readonly table?: readonly string[]
  readonly signal?: AbortSignal
  /** Told before each table is read. */
  readonly onTable?: (table: string) => void
}

/**
 * Audits the tables of a lake from what lies in it and nothing else, by readers of their own. One
 * report for each table, in the order of their folders.
 * @param location A warehouse, a table's folder, or a `metadata.json`, as a URL.
 * @throws SluiceError TABLE_MISSING; STORE_UNAVAILABLE and STORE_DENIED when there is no verdict
 */
export async function verifyLake(
  store: ObjectStore,
  location: string,
  options: VerifyOptions = {},
): Promise<readonly TableReport[]> {
  const { level = 'rows', signal, onTable } = options
  const reports: TableReport[] = []
  for (const table of await tablesOf(store, normalLocation(location), options.table)) {
    onTable?.(table.name)
    reports.push(await verifyTable(store, table, { level, signal }))
  }
  return reports
}

type Found = {
  readonly name: string
  readonly location: string
  /** Metadata files above a hole in the numbers. */
  readonly strays: readonly string[]
}

async function tablesOf(
  store: ObjectStore,
  location: string,
  wanted: readonly string[] | undefined,
): Promise<readonly Found[]> {
  if (/\.metadata\.json(?:\.gz)?$/.test(location)) {
    const folder = location.replace(/\/[^/]*\/[^/]*$/, '')
    return named([{ name: nameOf(folder), location, strays: [] }], wanted, location)
  }
  const own = await findMetadata(store, location)
  if (own !== undefined) {
    return named([{ ...own, name: nameOf(location) }], wanted, location)
  }
  const tables = (await listTables(store, location)).map(({ name, metadata, strays }) => ({
    name: formatTableName(name),
    location: metadata,
    strays,
  }))
  return named(tables, wanted, location)
}

function named(
  tables: readonly Found[],
  wanted: readonly string[] | undefined,
  location: string,
): readonly Found[] {
  const shown = location.replace(/^file:\/\//, '')
  if (wanted === undefined) {
    if (tables.length > 0) return tables
    throw new SluiceError('TABLE_MISSING', `${shown}: no Iceberg table here or below`, {
      fix: 'name a warehouse, a table folder or a metadata.json',
    })
  }
  const name = formatTableName(wanted)
  const found = tables.filter((table) => table.name === name)
  if (found.length > 0) return found
  const some = tables.slice(0, 20).map((table) => table.name)
  throw new SluiceError('TABLE_MISSING', `${shown}: no table ${name}`, {
    ...(some.length === 0 ? {} : { fix: `tables here: ${some.join(', ')}` }),
  })
}

/** The name of a table from its folder; folders hold other characters as `~2F`. */
function nameOf(folder: string): string {
  const parts = folder.split('/').slice(-2)
  return formatTableName(
    parts.map((part) =>
      part.replace(/(?:~[0-9A-F]{2})+/g, (run) =>
        Buffer.from(run.replaceAll('~', ''), 'hex').toString('utf8'),
      ),
    ),
  )
}
