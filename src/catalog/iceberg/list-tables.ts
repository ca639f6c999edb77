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
  /** Numbered files above a hole: no writer and no reader that counts upward comes to them. */
  readonly strays: readonly string[]
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
  const byFolder = new Map<string, Candidate[]>()
  for (const { location } of await store.list(root)) {
    const candidate = candidateOf(normalizeLocation(location))
    if (candidate === undefined || !candidate.folder.startsWith(root)) continue
    const known = byFolder.get(candidate.folder)
    if (known === undefined) byFolder.set(candidate.folder, [candidate])
    else known.push(candidate)
  }
  const tables: FoundTable[] = []
  for (const [folder, candidates] of byFolder) {
    const parts = folder.slice(root.length).split('/')
    if (parts[0] === '_sluice') continue
    const head = await headOf(store, folder, candidates)
    if (head === undefined) continue
    const { location: metadata, isNumbered, strays } = head
    tables.push({ name: parts.map(partOfFolder), folder, metadata, isNumbered, strays })
  }
  return tables.sort((a, b) => (a.folder < b.folder ? -1 : 1))
}

/** The newest metadata file of one table's folder, or undefined when it holds none. */
export async function findMetadata(store: ObjectStore, folder: string): Promise<Head | undefined> {
  const normal = normalizeLocation(folder)
  const candidates: Candidate[] = []
  for (const { location } of await store.list(`${normal}/metadata/`)) {
    const candidate = candidateOf(normalizeLocation(location))
    if (candidate?.folder === normal) candidates.push(candidate)
  }
  return headOf(store, normal, candidates)
}

type Head = Pick<FoundTable, 'isNumbered' | 'strays'> & { readonly location: string }

/**
 * The newest of the metadata files of one folder. Where numbers are missing between others, the newest
 * is the one that probing finds: upward from the hint, and from the highest number if what the hint
 * names is gone. A writer of the table goes by the same rule.
 */
async function headOf(
  store: ObjectStore,
  folder: string,
  candidates: readonly Candidate[],
): Promise<Head | undefined> {
  const ascending = [...candidates].sort((a, b) => (isNewer(a, b) ? 1 : -1))
  const newest = ascending.at(-1)
  if (newest === undefined) return undefined
  const { location, isNumbered } = newest
  const numbered = ascending.filter((each) => each.isNumbered)
  const numbers = new Set(numbered.map(({ number }) => number))
  const [lowest] = numbered
  if (lowest === undefined || newest.number - lowest.number + 1 === numbers.size) {
    return { location, isNumbered, strays: [] }
  }
  let head = await hinted(store, folder)
  if (!numbers.has(head)) head = newest.number
  while (numbers.has(head + 1)) head += 1
  return {
    location: numbered.findLast(({ number }) => number === head)?.location ?? location,
    isNumbered,
    strays: numbered.filter(({ number }) => number > head).map((each) => each.location),
  }
}

async function hinted(store: ObjectStore, folder: string): Promise<number> {
  const body = await store.read(`${folder}/metadata/version-hint.text`)
  const text = body === undefined ? '' : Buffer.from(body).toString('utf8').trim()
  return /^\d{1,15}$/.test(text) ? Number.parseInt(text, 10) : 0
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
