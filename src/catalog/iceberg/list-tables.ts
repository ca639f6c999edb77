import type { TableName } from '../ports.ts'
import type { ObjectStore } from '../store/object-store.ts'
import { normalizeLocation, partOfFolder } from './location.ts'

export type FoundTable = {
  readonly name: TableName
  /** The table's folder, without a last slash. */
  readonly folder: string
  /** Its newest metadata file. */
  readonly metadata: string
  /** Whether its metadata files are numbered, which is what Sluice writes. */
  readonly isNumbered: boolean
}

/** Names of a metadata file: `v7.metadata.json`, `00007-<uuid>.metadata.json`, also gzipped. */
const metadataFile =
  /^(?<folder>.*)\/metadata\/(?<v>v?)(?<number>\d{1,15})(?:-[^/]*)?(?:\.gz)?\.metadata\.json(?:\.gz)?$/

/** All tables below a warehouse, sorted by folder; Sluice's own folder there holds none. */
export async function listTables(
  store: ObjectStore,
  warehouse: string,
): Promise<readonly FoundTable[]> {
  const root = `${normalizeLocation(warehouse)}/`
  const newest = new Map<string, Candidate>()
  for (const { location } of await store.list(root)) {
    const candidate = candidateOf(normalizeLocation(location))
    if (candidate === undefined || !candidate.folder.startsWith(root)) continue
    const known = newest.get(candidate.folder)
    if (known === undefined || isNewer(candidate, known)) newest.set(candidate.folder, candidate)
  }
  const tables: FoundTable[] = []
  for (const { folder, location, isNumbered } of newest.values()) {
    const parts = folder.slice(root.length).split('/')
    if (parts[0] === '_sluice') continue
    tables.push({ name: parts.map(partOfFolder), folder, metadata: location, isNumbered })
  }
  return tables.sort((a, b) => (a.folder < b.folder ? -1 : 1))
}

/** The newest metadata file of one table's folder, or undefined when it holds none. */
export async function findMetadata(
  store: ObjectStore,
  folder: string,
): Promise<{ readonly location: string; readonly isNumbered: boolean } | undefined> {
  const normal = normalizeLocation(folder)
  let newest: Candidate | undefined
  for (const { location } of await store.list(`${normal}/metadata/`)) {
    const candidate = candidateOf(normalizeLocation(location))
    if (candidate?.folder !== normal) continue
    if (newest === undefined || isNewer(candidate, newest)) newest = candidate
  }
  return newest
}

type Candidate = {
  readonly folder: string
  readonly location: string
  readonly number: number
  readonly isNumbered: boolean
}

function candidateOf(location: string): Candidate | undefined {
  const groups = metadataFile.exec(location)?.groups
  if (groups === undefined) return undefined
  return {
    folder: groups['folder'] ?? '',
    location,
    number: Number.parseInt(groups['number'] ?? '', 10),
    isNumbered: groups['v'] === 'v',
  }
}

function isNewer(candidate: Candidate, known: Candidate): boolean {
  if (candidate.isNumbered !== known.isNumbered) return candidate.isNumbered
  if (candidate.number !== known.number) return candidate.number > known.number
  return candidate.location > known.location
}
