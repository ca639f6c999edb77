import { IcebergTable } from '../catalog/iceberg/iceberg-table.ts'
import { shownLocation } from '../catalog/iceberg/location.ts'
import type { LakeTable } from '../catalog/ports.ts'
import { numberedRegister } from '../catalog/register/numbered.ts'
import type { ObjectStore } from '../catalog/store/object-store.ts'
import { SluiceError } from '../core/errors.ts'
import type { Clock, IdSource } from '../core/ports.ts'

/**
 * Opens the table in a folder, whatever warehouse it is in.
 * @param folder Without a last slash.
 * @throws SluiceError TABLE_EXISTS when its newest metadata is known to another catalog only
 */
export async function openTableFolder(
  place: { readonly name: readonly string[]; readonly folder: string },
  store: ObjectStore,
  ports: { readonly clock: Clock; readonly ids: IdSource },
): Promise<LakeTable> {
  const register = numberedRegister(store, place.folder)
  if ((await register.head()) !== undefined) {
    return new IcebergTable({ ...place, store, register, ...ports })
  }
  throw new SluiceError(
    'TABLE_EXISTS',
    `${shownLocation(place.folder)}: the table belongs to another catalog`,
    { details: { folder: shownLocation(place.folder) } },
  )
}
