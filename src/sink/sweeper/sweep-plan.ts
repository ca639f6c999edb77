import type { ObjectEntry, UploadEntry } from '../../catalog/store/object-store.ts'
import type { Millis } from '../../core/ids.ts'

/** Why a file may go: nothing refers to it, or it is a temporary file of a writer that died. */
export type OrphanReason = 'unreferenced' | 'temporary'

/**
 * Why a file stays. `changed`: it is no longer the plain file that was listed, for example a link was
 * put in its place. `spared`: it became referenced between the plan and the deletion. `upload`: it is
 * no file yet, and may still become one.
 */
export type KeptReason =
  | 'referenced'
  | 'version'
  | 'young'
  | 'hidden'
  | 'other-table'
  | 'outside'
  | 'changed'
  | 'spared'
  | 'upload'

export type Orphan = ObjectEntry & { readonly reason: OrphanReason }

export type SweepPlan = {
  /** By location. */
  readonly orphans: readonly Orphan[]
  /** Unfinished, and as old as an orphan: ending them harms nobody but whoever still writes one. */
  readonly uploads: readonly UploadEntry[]
  readonly kept: ReadonlyMap<KeptReason, number>
}

export type SweepFacts = {
  /** The table's folder, without a last slash. */
  readonly folder: string
  /** Everything below the folder. */
  readonly entries: readonly ObjectEntry[]
  /** Unfinished uploads below the folder, in stores that have any. */
  readonly uploads?: readonly UploadEntry[]
  /**
   * Names, without folders, of all files that a retained version refers to. Names of data files,
   * manifests and lists are drawn at random, so a name is enough, and one that is spelled with
   * another scheme, a doubled slash or through a link is still the same.
   */
  readonly names: ReadonlySet<string>
  /** On the store's clock. */
  readonly now: Millis
  readonly olderThanMs: number
}

/** Decides about each file. Pure; everything that is not known to be an orphan stays. */
export function planSweep(facts: SweepFacts): SweepPlan {
  const others = otherTables(facts)
  const orphans: Orphan[] = []
  const kept = new Map<KeptReason, number>()
  for (const entry of facts.entries) {
    const reason = reasonOf(entry, facts, others)
    if (reason === 'unreferenced' || reason === 'temporary') orphans.push({ ...entry, reason })
    else kept.set(reason, (kept.get(reason) ?? 0) + 1)
  }
  const all = facts.uploads ?? []
  const uploads = all.filter((upload) => isLeft(upload, facts, others))
  if (uploads.length < all.length) kept.set('upload', all.length - uploads.length)
  return { orphans, uploads, kept }
}

/** Whether a finished file refers to the same name does not matter: it is another object. */
function isLeft(upload: UploadEntry, facts: SweepFacts, others: readonly string[]): boolean {
  const { location, activeAt, bytes } = upload
  if (activeAt === undefined) return false
  const entry = { location, bytes, modifiedAt: activeAt }
  const reason = reasonOf(entry, { ...facts, names: noNames }, others)
  return reason === 'unreferenced' || reason === 'temporary'
}

const noNames: ReadonlySet<string> = new Set()

/** A temporary of a local store, or the object that asks the store for its time. */
const temporaryName = /^\.sluice-[^/]*\.tmp$/
const versionName = /(?:\.metadata\.json(?:\.gz)?|^version-hint\.text)$/

function reasonOf(
  entry: ObjectEntry,
  facts: SweepFacts,
  others: readonly string[],
): OrphanReason | KeptReason {
  const { folder, names, now, olderThanMs } = facts
  const parts = partsBelow(entry.location, folder)
  const [area] = parts ?? []
  const name = parts?.at(-1)
  if (parts === undefined || name === undefined) return 'outside'
  if (area !== 'data' && area !== 'metadata') return 'outside'
  if (others.some((other) => entry.location.startsWith(`${other}/`))) return 'other-table'
  if (versionName.test(name)) return 'version'
  const isYoung = now - entry.modifiedAt <= olderThanMs
  if (temporaryName.test(name)) return isYoung ? 'young' : 'temporary'
  if (names.has(name)) return 'referenced'
  if (isHidden(parts)) return 'hidden'
  return isYoung ? 'young' : 'unreferenced'
}

/** The parts of a path below a folder; undefined when it is not below it, or not plainly. */
function partsBelow(location: string, folder: string): readonly string[] | undefined {
  if (!location.startsWith(`${folder}/`)) return undefined
  const parts = location.slice(folder.length + 1).split('/')
  const isPlain = parts.every((part) => part !== '' && part !== '.' && part !== '..')
  return isPlain && parts.length > 1 ? parts : undefined
}

/** What other engines leave alone: `_` or `.` in front, unless it is the folder of a partition. */
function isHidden(parts: readonly string[]): boolean {
  return parts.some((part) => part.startsWith('.') || (part.startsWith('_') && !part.includes('=')))
}

/** Folders of tables that lie inside this one: what they refer to is not known here. */
function otherTables({ entries, folder }: SweepFacts): readonly string[] {
  const folders = new Set<string>()
  for (const { location } of entries) {
    const other = /^(.*)\/metadata\/[^/]*\.metadata\.json(?:\.gz)?$/.exec(location)?.[1]
    if (other !== undefined && other !== folder) folders.add(other)
  }
  return [...folders]
}
