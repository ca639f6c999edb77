import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { fileCatalog } from '../catalog/iceberg/file-catalog.ts'
import type { LakeCatalog } from '../catalog/ports.ts'
import { errnoOf } from '../catalog/store/local-errors.ts'
import { localStore, pathOf } from '../catalog/store/local-store.ts'
import type { ObjectStore } from '../catalog/store/object-store.ts'
import { SluiceError } from '../core/errors.ts'
import type { Clock, IdSource } from '../core/ports.ts'

/** A warehouse with its store and its catalog. */
export type OpenedLake = {
  /** URL without a slash at the end. */
  readonly warehouse: string
  readonly store: ObjectStore
  readonly catalog: LakeCatalog
}

/**
 * Opens a warehouse on a local disk. Nothing is written; the folder is made with the first table, if
 * its parent exists.
 * @throws SluiceError LOCATION_REFUSED, STORE_DENIED
 */
export async function openWarehouse(
  warehouse: string,
  ports: { readonly clock: Clock; readonly ids: IdSource },
): Promise<OpenedLake> {
  await requireFolderOrParent(pathOf(warehouse))
  const store = localStore(ports.ids)
  return { warehouse, store, catalog: fileCatalog({ store, warehouse, ...ports }) }
}

async function requireFolderOrParent(path: string): Promise<void> {
  for (const each of [path, dirname(path)]) {
    try {
      if ((await stat(each)).isDirectory()) return
      throw new SluiceError('LOCATION_REFUSED', `${each}: not a folder`)
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') continue
      if (error instanceof SluiceError) throw error
      throw new SluiceError('STORE_DENIED', `${each}: cannot be read (${errnoOf(error) ?? ''})`, {
        cause: error,
      })
    }
  }
  throw new SluiceError('LOCATION_REFUSED', `${path}: neither it nor its parent folder exists`, {
    fix: `mkdir -p ${dirname(path)}`,
  })
}
