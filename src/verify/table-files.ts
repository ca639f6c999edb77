import type { ObjectStore } from '../catalog/store/object-store.ts'
import { formatCount } from '../core/text.ts'

/** Why an object is of no use: absent, or not what it should be. */
export type Unusable = { readonly kind: 'MISSING_FILE' | 'UNREADABLE'; readonly detail: string }

/** The objects of one table, wherever its metadata says they are and wherever it was moved to. */
export type TableFiles = {
  readonly store: ObjectStore
  /** The table's folder, without a last slash. */
  readonly folder: string
  /** Where an object lies now. */
  readonly locate: (recorded: string) => string
  /** What a report calls it: its path below the table's folder, or its location. */
  readonly shown: (recorded: string) => string
  /** Reads a whole object of at most `bytesMax`. */
  readonly read: (
    recorded: string,
    bytesMax: number,
  ) => Promise<{ readonly body: Uint8Array } | Unusable>
}

/**
 * Metadata names every file by its absolute location. Where files lie beside the metadata instead,
 * those are audited: the lake that was named, not the one it was copied from.
 * @param metadataLocation The metadata file that was read, normalized.
 * @param probe A file that the metadata names.
 */
export async function tableFiles(
  store: ObjectStore,
  metadataLocation: string,
  recorded: { readonly location: string; readonly probe: string | undefined },
): Promise<TableFiles> {
  const folder = metadataLocation.replace(/\/[^/]*\/?[^/]*$/, '')
  const from = normalLocation(recorded.location)
  const rebase = (location: string): string => {
    const normal = normalLocation(location)
    return normal.startsWith(`${from}/`) ? folder + normal.slice(from.length) : normal
  }
  const isBeside =
    from !== folder &&
    recorded.probe !== undefined &&
    schemeOf(rebase(recorded.probe)) === schemeOf(folder) &&
    (await store.size(rebase(recorded.probe))) !== undefined
  const locate = isBeside ? rebase : normalLocation
  return {
    store,
    folder,
    locate,
    shown: (location) => {
      const at = locate(location)
      return at.startsWith(`${folder}/`) ? at.slice(folder.length + 1) : at
    },
    read: async (location, bytesMax) => {
      const at = locate(location)
      // Another kind of store is beyond what was opened, and may be a trap.
      if (schemeOf(at) !== schemeOf(folder)) {
        return { kind: 'MISSING_FILE', detail: 'it lies in another store' }
      }
      const bytes = await store.size(at)
      if (bytes === undefined) return { kind: 'MISSING_FILE', detail: 'it is not there' }
      if (bytes === 0) return { kind: 'UNREADABLE', detail: 'it is empty' }
      if (bytes > bytesMax) {
        const detail = `${formatCount(bytes)} bytes, at most ${formatCount(bytesMax)} are read`
        return { kind: 'UNREADABLE', detail }
      }
      const body = await store.readRange(at, 0, bytes)
      return body === undefined ? { kind: 'MISSING_FILE', detail: 'it is not there' } : { body }
    },
  }
}

/** A location in the form stores take, whichever writer put it: `file:///…`, `s3://…`. */
export function normalLocation(location: string): string {
  const trimmed = location.replace(/(?<=[^/:])\/+$/, '')
  if (trimmed.startsWith('/')) return `file://${trimmed}`
  return trimmed.replace(/^file:(?:\/\/localhost)?\/+/, 'file:///').replace(/^s3[an]:/, 's3:')
}

export function schemeOf(location: string): string {
  return /^[a-z][a-z0-9+.-]*(?=:)/i.exec(location)?.[0].toLowerCase() ?? ''
}
