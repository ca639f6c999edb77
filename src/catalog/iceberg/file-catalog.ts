import { SluiceError } from '../../core/errors.ts'
import type { Clock, IdSource } from '../../core/ports.ts'
import { checkTableName, formatTableName } from '../../core/table-name.ts'
import type { LakeCatalog, LakeTable, TableDefinition, TableName } from '../ports.ts'
import { numberedRegister } from '../register/numbered.ts'
import type { ObjectStore } from '../store/object-store.ts'
import { createTableMetadata } from './create-table.ts'
import type { AvroCompression } from './format/avro.ts'
import { writeMetadata } from './format/metadata.ts'
import { IcebergTable } from './iceberg-table.ts'
import { findMetadata, listTables } from './list-tables.ts'
import { normalizeLocation, shownLocation, tableFolder } from './location.ts'

export type FileCatalogOptions = {
  readonly store: ObjectStore
  /** Location of the warehouse. */
  readonly warehouse: string
  readonly clock: Pick<Clock, 'now'>
  readonly ids: IdSource
  /** Of manifests and their lists; `deflate` if left out. */
  readonly manifestCompression?: AvroCompression
}

/** Sluice's own folder in a warehouse, which is no namespace. */
const ownFolder = '_sluice'

/**
 * Tables in folders: `<warehouse>/<namespace…>/<table>/{metadata,data}`, their versions numbered
 * files. There is no other catalog: the folder is the truth.
 */
export function fileCatalog(options: FileCatalogOptions): LakeCatalog {
  const { store } = options
  const warehouse = normalizeLocation(options.warehouse)

  const tableAt = (
    name: TableName,
    folder: string,
    access: 'read' | 'write',
  ): { table: IcebergTable; register: Register } => {
    const register = numberedRegister(store, folder, { mendsHint: access === 'write' })
    return { register, table: new IcebergTable({ ...options, name, folder, register }) }
  }

  const open: LakeCatalog['open'] = async (name, access = 'read') => {
    checkTableName(name)
    const folder = tableFolder(warehouse, name)
    const { table, register } = tableAt(name, folder, access)
    if ((await register.head()) !== undefined) return table
    const foreign = await findMetadata(store, folder)
    if (foreign === undefined) return undefined
    throw new SluiceError(
      'TABLE_EXISTS',
      `${formatTableName(name)} belongs to another catalog: ${shownLocation(foreign.location)}`,
      { fix: 'use another table, or the catalog that made it' },
    )
  }

  return {
    open,

    async create(definition) {
      const present = await open(definition.name, 'write')
      if (present !== undefined) return { table: present, created: false }
      await refuseName(store, warehouse, definition.name)
      return createTable(definition)
    },

    async list() {
      const tables = await listTables(store, warehouse)
      return tables.filter((found) => found.isNumbered).map((found) => found.name)
    },
  }

  async function createTable(
    definition: TableDefinition,
  ): Promise<{ readonly table: LakeTable; readonly created: boolean }> {
    const folder = tableFolder(warehouse, definition.name)
    const { table, register } = tableAt(definition.name, folder, 'write')
    const metadata = createTableMetadata(definition, {
      location: folder,
      random: options.ids.bits128(),
      now: options.clock.now(),
    })
    const outcome = await register.create(1, writeMetadata(metadata))
    switch (outcome.kind) {
      case 'applied':
        return { table, created: true }
      case 'rejected':
        return { table, created: false }
      case 'unknown':
        throw new SluiceError(
          'STORE_UNAVAILABLE',
          `${formatTableName(definition.name)}: no answer to its creation; it may exist now`,
          { cause: outcome.cause },
        )
    }
  }
}

type Register = ReturnType<typeof numberedRegister>

async function refuseName(store: ObjectStore, warehouse: string, name: TableName): Promise<void> {
  const shown = formatTableName(name)
  if (name[0] === ownFolder) {
    throw new SluiceError('NAME_INVALID', `table name ${shown}: "${ownFolder}" is Sluice's own`)
  }
  for (const found of await listTables(store, warehouse)) {
    const other = formatTableName(found.name)
    const depth = Math.min(found.name.length, name.length)
    let isBelow = true
    for (let at = 0; at < depth && isBelow; at += 1) {
      const [left, right] = [name[at] ?? '', found.name[at] ?? '']
      isBelow = left === right
      if (isBelow || folded(left) !== folded(right)) continue
      throw new SluiceError('NAME_INVALID', `table name ${shown}: ${other} differs only by case`, {
        fix: `use ${other}, or a name that differs by more than case`,
        details: { name: shown, other },
      })
    }
    if (!isBelow || found.name.length === name.length) continue
    throw new SluiceError(
      'NAME_INVALID',
      `table name ${shown}: one of it and ${other} would lie in the folder of the other`,
      { fix: 'a namespace may not have the name of a table', details: { name: shown, other } },
    )
  }
}

/** File systems that fold case also take a letter with its mark for the composed letter. */
function folded(part: string): string {
  return part.normalize('NFC').toLowerCase()
}
