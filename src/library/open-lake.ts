import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { fileCatalog } from '../catalog/iceberg/file-catalog.ts'
import { schemeOf } from '../catalog/iceberg/location.ts'
import type { LakeCatalog } from '../catalog/ports.ts'
import { errnoOf } from '../core/errno.ts'
import { pathOf } from '../catalog/store/local-store.ts'
import type { ObjectStore } from '../catalog/store/object-store.ts'
import { openStore } from '../catalog/store/open-store.ts'
import type { ProbeCache } from '../catalog/store/probe-cache.ts'
import { cacheFolder, fileProbeCache } from '../catalog/store/probe-cache-store.ts'
import type { S3Options } from '../catalog/store/s3-client.ts'
import type { StorePorts } from '../catalog/store/s3-store.ts'
import { SluiceError } from '../core/errors.ts'

/** A warehouse with its store and its catalog. */
export type OpenedLake = {
  /** URL without a slash at the end. */
  readonly warehouse: string
  readonly store: ObjectStore
  readonly catalog: LakeCatalog
  /** As of `OpenedStore`: to be called before the first write. */
  requireSafe(): Promise<void>
}

export type WarehouseOptions = {
  /** How the bucket is reached, for a warehouse on S3. */
  readonly s3?: S3Options
  /** Where it is kept that a store's conditional writes are safe. Absent: in the user's cache. */
  readonly probe?: ProbeCache
}

/**
 * Opens a warehouse in a folder or a bucket. Nothing is written; the folder is made with the first
 * table, if its parent exists.
 * @throws SluiceError LOCATION_REFUSED, STORE_DENIED, CONFIG_INVALID
 */
export async function openWarehouse(
  warehouse: string,
  ports: StorePorts,
  options: WarehouseOptions = {},
): Promise<OpenedLake> {
  if (schemeOf(warehouse) === 'file') await requireFolderOrParent(pathOf(warehouse))
  const probe = options.probe ?? fileProbeCache(cacheFolder(process.env), ports.ids)
  const opened = await openStore(warehouse, { ...options, ports, probe })
  return { ...opened, catalog: fileCatalog({ ...opened, ...ports }) }
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
