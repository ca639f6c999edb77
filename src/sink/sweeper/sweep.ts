import { shownLocation } from '../../catalog/iceberg/location.ts'
import type { ObjectEntry, ObjectStore, UploadEntry } from '../../catalog/store/object-store.ts'
import { isSluiceError, SluiceError } from '../../core/errors.ts'
import type { Millis } from '../../core/ids.ts'
import type { IdSource } from '../../core/ports.ts'
import { counted } from '../../core/text.ts'
import { type Reachable, readReachable, type ReferenceCache } from './reachable.ts'
import { type KeptReason, type Orphan, planSweep, type SweepPlan } from './sweep-plan.ts'

/** Iceberg's own default. A round may have written files for that long before it commits. */
export const olderThanDefaultMs = 3 * 86_400_000
/** Below this a running round may lose files, so it is asked for twice. */
export const olderThanMinMs = 86_400_000

export type SweepPorts = {
  readonly store: ObjectStore
  readonly ids: IdSource
  /** Whether a location is a file of its own below a folder, with no link on the way to it. */
  readonly isPlainFile: (folder: string, location: string) => Promise<boolean>
}

/** What was found in one table; nothing was deleted yet. */
export type FoundOrphans = SweepPlan & {
  readonly folder: string
  readonly uuid: string
  readonly version: number
  readonly now: Millis
  readonly olderThanMs: number
  readonly cache: ReferenceCache
}

/** Files deleted between two looks at the newest version. */
const groupMax = 200

/**
 * Finds the files of a table that no retained version refers to and the uploads that nobody finished,
 * both older than the retention on the store's clock. Nothing but a file that asks for the time is
 * written.
 *
 * The files are listed before the newest version is read: what a commit adds in between is then
 * referenced, and what it adds afterwards was listed as young.
 * @param folder The table's folder, without a last slash.
 * @throws SluiceError of `readReachable`; one read that fails ends the sweep
 */
export async function findOrphans(
  folder: string,
  options: { readonly olderThanMs: number; readonly force: boolean },
  ports: SweepPorts,
): Promise<FoundOrphans> {
  const { olderThanMs } = options
  if (olderThanMs < olderThanMinMs && !options.force) {
    throw new SluiceError(
      'CONFIG_INVALID',
      'files younger than 24h may be of a round that is still running',
      { fix: 'stop every writer and add --force, or leave --older-than out' },
    )
  }
  const cache: ReferenceCache = new Map()
  const { now, entries } = await listWithTime(folder, ports)
  const uploads = (await ports.store.uploads?.list(`${folder}/`)) ?? []
  const reachable = await readReachable(ports.store, folder, cache)
  refuseOtherVersions(folder, entries, reachable)
  const { names } = reachable
  const plan = planSweep({ folder, entries, uploads, names, now, olderThanMs })
  const { uuid, version } = reachable
  return { ...plan, folder, uuid, version, now, olderThanMs, cache }
}

/**
 * Deletes what was found, and ends the uploads. Before each group of files the newest version is read
 * again, and a file that became referenced is spared.
 * @returns what was deleted, and why the rest was kept
 * @throws SluiceError when a read or a deletion fails; its `state` says how far it came
 */
export async function deleteOrphans(
  found: FoundOrphans,
  ports: SweepPorts,
  signal?: AbortSignal,
): Promise<SweepPlan> {
  const deleted: Orphan[] = []
  const ended: UploadEntry[] = []
  const kept = new Map<KeptReason, number>(found.kept)
  const keep = (reason: KeptReason): void => {
    kept.set(reason, (kept.get(reason) ?? 0) + 1)
  }
  try {
    for (let start = 0; start < found.orphans.length; start += groupMax) {
      signal?.throwIfAborted()
      const group = found.orphans.slice(start, start + groupMax)
      const still = await planAgain(found, group, ports)
      for (const orphan of group) {
        if (!still.has(orphan.location)) keep('spared')
        else if (!(await ports.isPlainFile(found.folder, orphan.location))) keep('changed')
        else {
          await ports.store.remove(orphan.location)
          deleted.push(orphan)
        }
      }
    }
    for (const upload of found.uploads) {
      signal?.throwIfAborted()
      await ports.store.uploads?.end(upload)
      ended.push(upload)
    }
  } catch (error) {
    throw explained(error, deleted.length + ended.length, signal)
  }
  return { orphans: deleted, uploads: ended, kept }
}

async function planAgain(
  found: FoundOrphans,
  entries: readonly ObjectEntry[],
  ports: SweepPorts,
): Promise<ReadonlySet<string>> {
  const { folder, now, olderThanMs, cache } = found
  const { names, uuid } = await readReachable(ports.store, folder, cache)
  if (uuid !== found.uuid) {
    throw new SluiceError(
      'TABLE_REPLACED',
      `${shownLocation(folder)}: the table was replaced while it was swept`,
      { details: { expected: found.uuid, found: uuid } },
    )
  }
  const { orphans } = planSweep({ folder, entries, names, now, olderThanMs })
  return new Set(orphans.map(({ location }) => location))
}

/**
 * Lists the table's folder together with a file made just now, whose time is the store's. Its name is
 * one of a temporary file, so that a rest of it is swept like any other.
 */
async function listWithTime(
  folder: string,
  { store, ids }: SweepPorts,
): Promise<{ readonly now: Millis; readonly entries: readonly ObjectEntry[] }> {
  const probe = `${folder}/metadata/.sluice-clock-${ids.bits128().slice(0, 16)}.tmp`
  const outcome = await store.createIfAbsent(probe, Buffer.from('what time is it'))
  let entries: readonly ObjectEntry[]
  try {
    entries = await store.list(`${folder}/`)
  } finally {
    await store.remove(probe)
  }
  const made = entries.find(({ location }) => location === probe)
  if (outcome.kind !== 'applied' || made === undefined) {
    throw new SluiceError(
      'STORE_UNAVAILABLE',
      `${shownLocation(folder)}: the store does not list a file that was just made, so its clock is not known`,
      { fix: 'run again' },
    )
  }
  return { now: made.modifiedAt, entries: entries.filter((entry) => entry !== made) }
}

/** Metadata that the numbered newest version does not know of may refer to anything here. */
function refuseOtherVersions(
  folder: string,
  entries: readonly ObjectEntry[],
  reachable: Reachable,
): void {
  const prefix = `${folder}/metadata/`
  for (const { location } of entries) {
    const name = location.slice(prefix.length)
    const isMetadata = /^[^/]*\.metadata\.json(?:\.gz)?$/.test(name)
    if (!location.startsWith(prefix) || !isMetadata) continue
    const number = /^v(\d{1,15})\.metadata\.json$/.exec(name)?.[1]
    if (number !== undefined && Number.parseInt(number, 10) <= reachable.version) continue
    const newest = `v${String(reachable.version)}`
    throw new SluiceError(
      'TABLE_MISMATCH',
      `${shownLocation(location)}: ${newest} is the newest version here, and this file is none below it`,
      {
        details: { file: shownLocation(location), version: reachable.version },
        fix: 'another catalog or engine writes this table: let it remove orphan files',
      },
    )
  }
}

function explained(error: unknown, deleted: number, signal: AbortSignal | undefined): unknown {
  const files = counted(deleted, 'file')
  const state = deleted === 0 ? 'nothing was deleted' : `${files} were deleted, the rest was not`
  if (signal?.aborted === true) {
    return new SluiceError('STOPPED', 'the sweep was interrupted', { state, cause: error })
  }
  if (!isSluiceError(error)) return error
  return new SluiceError(error.code, error.message, {
    details: error.details,
    effect: error.effect,
    state,
    cause: error,
    ...(error.fix === undefined ? {} : { fix: error.fix }),
  })
}
