import type { ObjectStore } from '../store/object-store.ts'
import { folderOfMetadata, normalizeLocation, schemeOf } from './location.ts'

/** That a table's files lie elsewhere than its metadata says. */
export type Moved = { readonly from: string; readonly to: string }

export type Resolver = {
  readonly moved: Moved | undefined
  /** Where a file lies that metadata or a manifest names. */
  readonly resolve: (recorded: string) => string
}

/**
 * Metadata names every file by its absolute location. When the table was moved since, all of them
 * are looked for beside the metadata instead.
 * @param probe A file the metadata names; whether it is where it should be decides.
 */
export async function resolverFor(
  store: ObjectStore,
  metadataLocation: string,
  recorded: { readonly location: string; readonly probe: string | undefined },
): Promise<Resolver> {
  const from = normalizeLocation(recorded.location)
  const to = folderOfMetadata(normalizeLocation(metadataLocation))
  const stays: Resolver = { moved: undefined, resolve: normalizeLocation }
  if (from === to || recorded.probe === undefined) return stays
  const isThere = async (location: string): Promise<boolean> =>
    schemeOf(location) === schemeOf(to) && (await store.size(location)) !== undefined
  if (await isThere(normalizeLocation(recorded.probe))) return stays
  const rebase = (location: string): string => {
    const normal = normalizeLocation(location)
    return normal.startsWith(`${from}/`) ? to + normal.slice(from.length) : normal
  }
  if (!(await isThere(rebase(recorded.probe)))) return stays
  return { moved: { from, to }, resolve: rebase }
}
