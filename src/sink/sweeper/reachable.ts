import { readManifest } from '../../catalog/iceberg/format/manifest.ts'
import { readMetadata, type TableMetadata } from '../../catalog/iceberg/format/metadata.ts'
import { normalizeLocation, shownLocation } from '../../catalog/iceberg/location.ts'
import { readManifests } from '../../catalog/iceberg/stage-snapshot.ts'
import { numberedRegister } from '../../catalog/register/numbered.ts'
import type { ObjectStore } from '../../catalog/store/object-store.ts'
import { SluiceError } from '../../core/errors.ts'
import { isJsonArray, isJsonObject, type JsonValue } from '../../core/json64.ts'

/** What one version of a table keeps alive. */
export type Reachable = {
  readonly uuid: string
  readonly version: number
  /** Names, without folders, of every file that any retained snapshot refers to. */
  readonly names: ReadonlySet<string>
}

/** Names that a manifest list or a manifest refers to, by its location: neither ever changes. */
export type ReferenceCache = Map<string, readonly string[]>

/** Manifests read at once. */
const parallelMax = 16

/**
 * Reads the newest version of a table and everything it refers to: of every listed snapshot, also
 * one that no branch reaches, the manifest list, its manifests, and all their entries, those marked
 * as deleted included; and whatever else the metadata names, such as statistics and older metadata.
 * @param folder The table's folder, without a last slash.
 * @throws SluiceError DATA_CORRUPT, STORE_UNAVAILABLE when anything cannot be read; TABLE_MISMATCH for
 *   a table whose newest metadata is known to another catalog only; LOCATION_REFUSED when it was moved
 */
export async function readReachable(
  store: ObjectStore,
  folder: string,
  cache: ReferenceCache,
): Promise<Reachable> {
  const head = await numberedRegister(store, folder).head()
  const shown = shownLocation(folder)
  if (head === undefined) {
    throw new SluiceError(
      'TABLE_MISMATCH',
      `${shown}: its newest metadata is not a numbered file`,
      {
        fix: 'let the catalog of this table remove its orphan files',
        details: { folder: shown },
      },
    )
  }
  const metadata = readMetadata(head.body, shownLocation(head.location))
  refuseMoved(metadata, folder)
  const names = new Set<string>()
  addTexts(metadata.json, names)
  const manifests = new Set<string>()
  for (const snapshot of metadata.snapshots.values()) {
    const list = normalizeLocation(snapshot.manifestList)
    const named = cache.get(list) ?? (await readManifests(snapshot, store)).map(locationOf)
    cache.set(list, named)
    for (const manifest of named) manifests.add(manifest)
  }
  const wanted = [...manifests]
  for (let start = 0; start < wanted.length; start += parallelMax) {
    const group = wanted.slice(start, start + parallelMax)
    const found = await Promise.all(group.map((each) => filesOf(store, each, cache)))
    for (const name of found.flat()) names.add(name)
  }
  for (const manifest of manifests) names.add(nameOf(manifest))
  return { uuid: metadata.uuid, version: head.version, names }
}

async function filesOf(
  store: ObjectStore,
  manifest: string,
  cache: ReferenceCache,
): Promise<readonly string[]> {
  const location = normalizeLocation(manifest)
  const known = cache.get(location)
  if (known !== undefined) return known
  const shown = shownLocation(location)
  const body = await store.read(location)
  if (body === undefined) {
    throw new SluiceError('DATA_CORRUPT', `${shown}: the manifest is not there`, {
      details: { file: shown },
    })
  }
  const names = readManifest(body, shown).flatMap(({ file }) => [
    nameOf(file.location),
    ...(file.referencedDataFile === undefined ? [] : [nameOf(file.referencedDataFile)]),
  ])
  cache.set(location, names)
  return names
}

/** Every text of the metadata counts as a path: members of later formats name files as well. */
function addTexts(value: JsonValue | undefined, names: Set<string>): void {
  if (typeof value === 'string') names.add(nameOf(value))
  else if (isJsonArray(value)) for (const each of value) addTexts(each, names)
  else if (isJsonObject(value)) for (const each of Object.values(value)) addTexts(each, names)
}

/** Paths in metadata are absolute: of a table that was moved or copied they name other files. */
function refuseMoved(metadata: TableMetadata, folder: string): void {
  const recorded = normalizeLocation(metadata.location)
  if (recorded === folder) return
  const [from, to] = [shownLocation(recorded), shownLocation(folder)]
  throw new SluiceError(
    'LOCATION_REFUSED',
    `${to} says it lies at ${from}; a moved or copied table is only read`,
    { fix: 'name the warehouse by its first path, or move it back', details: { from, to } },
  )
}

function locationOf(file: { readonly location: string }): string {
  return file.location
}

function nameOf(location: string): string {
  return location.slice(location.lastIndexOf('/') + 1)
}
