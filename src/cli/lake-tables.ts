import { basename, dirname } from 'node:path'
import { findMetadata, listTables } from '../catalog/iceberg/list-tables.ts'
import { partOfFolder, shownLocation } from '../catalog/iceberg/location.ts'
import { refuseEqualityDeletes } from '../catalog/iceberg/scan-rows.ts'
import { type ScanPoint, scanTable } from '../catalog/iceberg/scan.ts'
import type { ObjectStore } from '../catalog/store/object-store.ts'
import { isSluiceError, SluiceError } from '../core/errors.ts'
import { formatTableName } from '../core/table-name.ts'
import { type NamedScan, refuseSharedViews } from './duckdb-views.ts'
import type { Location } from './location.ts'

export type LakeEntry = {
  readonly name: readonly string[]
  /** The table's folder, or the one metadata file that was named. */
  readonly at: string
}

/**
 * The tables of what a command was given: all of a warehouse, or the one of a table's folder or of a
 * `metadata.json`.
 * @throws SluiceError TABLE_MISSING when there is none
 */
export async function tablesAt(
  store: ObjectStore,
  location: Location,
): Promise<readonly LakeEntry[]> {
  const { url, shown } = location
  if (/\.metadata\.json(?:\.gz)?$/.test(url)) {
    return [{ name: nameOfFolder(dirname(dirname(url))), at: url }]
  }
  if ((await findMetadata(store, url)) !== undefined) {
    return [{ name: nameOfFolder(url), at: url }]
  }
  const tables = await listTables(store, url)
  if (tables.length === 0) {
    throw new SluiceError('TABLE_MISSING', `${shown}: no Iceberg table here or below`, {
      fix: 'name a warehouse, a table folder or a metadata.json',
    })
  }
  return tables.map(({ name, folder }) => ({ name, at: folder }))
}

export type ScanRequest = {
  readonly point: ScanPoint
  /** Decides which tables are read: a lake may have thousands. */
  readonly sql: string
  readonly note: (message: string) => void
}

/**
 * Reads the metadata of the tables the SQL names, or of all when it names none (`SHOW ALL TABLES`).
 * @throws SluiceError for a table that is named and cannot be read (others are noted and left out),
 * and for two that would be one view
 */
export async function scanTables(
  store: ObjectStore,
  entries: readonly LakeEntry[],
  request: ScanRequest,
): Promise<readonly NamedScan[]> {
  const named = entries.filter((entry) => mentions(request.sql, entry.name))
  if (request.point.snapshot !== undefined && named.length !== 1) {
    const names = named.map(({ name }) => formatTableName(name)).join(', ')
    throw new SluiceError(
      'CONFIG_INVALID',
      `--snapshot belongs to one table; the SQL names ${named.length === 0 ? 'none' : names}`,
    )
  }
  const wanted = named.length > 0 ? named : entries
  refuseSharedViews(wanted.map(({ name }) => name))
  const scans: NamedScan[] = []
  for (const { name, at } of wanted) {
    try {
      const scan = await scanTable(store, at, request.point)
      refuseEqualityDeletes(scan)
      scans.push({ name, scan })
      if (scan.moved === undefined) continue
      const [from, to] = [shownLocation(scan.moved.from), shownLocation(scan.moved.to)]
      request.note(`${formatTableName(name)} was moved from ${from}; it is read from ${to}`)
    } catch (error) {
      if (named.length > 0 || !isSluiceError(error)) throw error
      request.note(`${formatTableName(name)} is left out: ${error.message}`)
    }
  }
  return scans
}

/**
 * Whether SQL may mean a table: its name stands there as a whole word, behind its namespace if there
 * is a dot. Wrong only towards a table that is not needed.
 */
export function mentions(sql: string, name: readonly string[]): boolean {
  const text = oneSpace(sql.replaceAll('""', '"')).toLowerCase()
  const table = asPattern(name.at(-1) ?? '')
  const schema = asPattern(name.slice(0, -1).join('.'))
  const word = String.raw`[\p{L}\p{N}_$]`
  const alone = String.raw`(?<!${word})(?<!\. ?"?)${table}(?!${word})`
  const qualified = String.raw`(?<!${word})${schema}"? ?\. ?"?${table}(?!${word})`
  return new RegExp(`${alone}|${qualified}`, 'u').test(text)
}

/** Without long runs of space, so that no pattern looks back over one from each of its places. */
function oneSpace(text: string): string {
  return text.replace(/\s+/g, ' ')
}

function asPattern(text: string): string {
  return oneSpace(text.toLowerCase()).replace(/[\\^$.*+?()[\]{}|/]/g, (sign) => `\\${sign}`)
}

function nameOfFolder(url: string): readonly string[] {
  const path = url.replace(/^[a-z0-9]+:\/\//, '/')
  return [basename(dirname(path)), basename(path)].map((part) => partOfFolder(part || 'lake'))
}
