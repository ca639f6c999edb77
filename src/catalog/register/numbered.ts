import { SluiceError } from '../../core/errors.ts'
import { shownLocation } from '../iceberg/location.ts'
import type { ObjectStore } from '../store/object-store.ts'

/** One version as found: its number, where it lies, and its content. */
export type VersionFile = {
  readonly version: number
  readonly location: string
  readonly body: Uint8Array
}

export type CreateVersion =
  | { readonly kind: 'applied' }
  /** The number is taken by another writer; this request wrote nothing. */
  | { readonly kind: 'rejected' }
  | { readonly kind: 'unknown'; readonly cause: unknown }

/**
 * Versions of a table as numbered files, `metadata/vN.metadata.json`. Creating number N + 1 is the
 * atomic swap of version N: it succeeds for exactly one writer. Versions are contiguous, the newest
 * is the highest number there is, and the hint only makes finding it faster.
 */
export interface NumberedRegister {
  /** The newest version, or undefined when the table does not exist. */
  head(): Promise<VersionFile | undefined>
  /** @throws SluiceError DATA_CORRUPT when the version would fill a hole below another one. */
  create(version: number, body: Uint8Array): Promise<CreateVersion>
}

/**
 * @param table Location of the table's folder, without a trailing slash.
 * @param mendsHint Brings a hint up to date that lies behind the head. Its writer was killed, or had no
 * answer, right after the swap; engines that trust the hint would stay at the version before.
 */
export function numberedRegister(
  store: ObjectStore,
  table: string,
  { mendsHint }: { readonly mendsHint: boolean } = { mendsHint: false },
): NumberedRegister {
  const locationOf = (version: number): string =>
    `${table}/metadata/v${String(version)}.metadata.json`
  const hint = `${table}/metadata/version-hint.text`
  let known = 0

  const exists = async (version: number): Promise<boolean> =>
    version > 0 && (await store.size(locationOf(version))) !== undefined

  const landed = async (version: number): Promise<CreateVersion> => {
    known = version
    await writeHint(store, hint, version)
    return { kind: 'applied' }
  }

  return {
    async head(): Promise<VersionFile | undefined> {
      const shown = await hinted(store, hint)
      let version = Math.max(known, shown)
      if (!(await exists(version))) version = await listed(store, table)
      if (version === 0) return undefined
      while (await exists(version + 1)) version += 1
      const body = await store.read(locationOf(version))
      if (body === undefined) {
        throw new SluiceError('TABLE_MISSING', `${table}: removed while it was being read`)
      }
      known = version
      if (mendsHint && version > shown) await writeHint(store, hint, version)
      return { version, location: locationOf(version), body }
    },

    async create(version, body): Promise<CreateVersion> {
      if (await hasForeignName(store, table, version)) return { kind: 'rejected' }
      // A version is made after the one before it, so the order of the two questions is conclusive.
      if ((await exists(version + 1)) && !(await exists(version))) {
        throw holeError(locationOf(version), locationOf(version + 1))
      }
      const location = locationOf(version)
      const outcome = await store.createIfAbsent(location, body, { makeFolders: version === 1 })
      if (outcome.kind === 'applied') return await landed(version)
      if (outcome.kind === 'rejected' && outcome.reason === 'contended') return { kind: 'rejected' }
      // A name that is taken may be taken by this very request, sent twice below us (NFS repeats a
      // link whose reply was lost), and an unknown outcome is resolved by reading.
      let found: Uint8Array | undefined
      try {
        found = await store.read(location)
      } catch (cause) {
        return { kind: 'unknown', cause }
      }
      if (found !== undefined) {
        if (Buffer.compare(found, body) !== 0) return { kind: 'rejected' }
        return await landed(version)
      }
      if (outcome.kind === 'unknown') return outcome
      return { kind: 'unknown', cause: new Error(`${location}: taken, yet not there`) }
    },
  }
}

/** Whoever fills the hole makes the version above it the newest, and what was just written old. */
function holeError(missing: string, above: string): SluiceError {
  const [shown, next] = [shownLocation(missing), shownLocation(above)]
  return new SluiceError('DATA_CORRUPT', `${shown}: missing, and ${next} is there`, {
    state: 'nothing was changed',
    fix: 'restore the missing file if it was lost, else move the one above it away',
    details: { missing: shown, above: next },
  })
}

/** Other engines may write version N compressed, under names that do not collide with ours. */
async function hasForeignName(
  store: ObjectStore,
  table: string,
  version: number,
): Promise<boolean> {
  const names = [`v${String(version)}.gz.metadata.json`, `v${String(version)}.metadata.json.gz`]
  for (const name of names) {
    if ((await store.size(`${table}/metadata/${name}`)) !== undefined) return true
  }
  return false
}

async function hinted(store: ObjectStore, hint: string): Promise<number> {
  const body = await store.read(hint)
  const text = body === undefined ? '' : Buffer.from(body).toString('utf8').trim()
  return /^\d{1,15}$/.test(text) ? Number.parseInt(text, 10) : 0
}

async function listed(store: ObjectStore, table: string): Promise<number> {
  let highest = 0
  for (const entry of await store.list(`${table}/metadata/`)) {
    const match = /\/v(\d{1,15})\.metadata\.json$/.exec(entry.location)
    if (match?.[1] !== undefined) highest = Math.max(highest, Number.parseInt(match[1], 10))
  }
  return highest
}

/** Only upwards: a reader starts at the hint and walks up, so a hint that goes back hides nothing
 *  but costs it a longer walk. */
async function writeHint(store: ObjectStore, hint: string, version: number): Promise<void> {
  const present = await hinted(store, hint).catch(() => 0)
  if (version > present) await store.putHint(hint, Buffer.from(String(version)))
}
