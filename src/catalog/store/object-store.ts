import type { Millis } from '../../core/ids.ts'

/**
 * What a create-if-absent came to. These are expected outcomes, so they are returned. What is proven
 * to have had no effect and is nobody's race (no rights, no space) is thrown with effect `none`.
 */
export type CreateOutcome =
  | { readonly kind: 'applied' }
  /** This request wrote nothing and never will. `exists`: the name is taken, maybe by our own
   *  earlier request. `contended`: a competing request was in flight; try again. */
  | { readonly kind: 'rejected'; readonly reason: 'exists' | 'contended' }
  /** No usable reply. The object may be there, or may still appear. */
  | { readonly kind: 'unknown'; readonly cause: unknown }

export type ObjectEntry = {
  readonly location: string
  readonly bytes: number
  /** On the store's own clock. */
  readonly modifiedAt: Millis
}

/** An object that was begun in parts, and neither finished nor given up. No reader sees it. */
export type UploadEntry = {
  readonly location: string
  /** Names it among the uploads to one location. */
  readonly id: string
  /** Of the parts that arrived. */
  readonly bytes: number
  /** When it was begun or its newest part arrived, on the store's own clock; undefined: not known. */
  readonly activeAt: Millis | undefined
}

/** Uploads that a process which ended left behind. */
export interface UnfinishedUploads {
  /** All uploads below `prefix` (which ends with `/`), sorted by location. */
  list(prefix: string): Promise<readonly UploadEntry[]>
  /** Removes its parts. One that is gone is no failure. */
  end(upload: UploadEntry): Promise<void>
}

/** One new object, written front to back. Nothing is visible under its name before `finish`. */
export interface ObjectWriter {
  write(bytes: Uint8Array): Promise<void>
  /** Makes the object durable and visible. @returns its length in bytes. */
  finish(): Promise<number>
  /** Gives the object up. Never throws; a rest that cannot be removed is left to the sweeper. */
  abandon(): Promise<void>
}

/**
 * Objects by location, which is a URL (`file:///…`, `s3://bucket/…`). No method retries a mutating
 * request by itself: a hidden retry turns a lost reply into a false `exists`.
 */
export interface ObjectStore {
  /**
   * Writes the whole object if the name is free. It is visible whole or not at all. Where the store
   * has folders they must exist, unless `makeFolders` is set: the first version of a table makes
   * its folder, a later one must not bring a dropped table back.
   * @throws SluiceError TABLE_MISSING when the folder is gone.
   */
  createIfAbsent(
    location: string,
    body: Uint8Array,
    options?: { readonly makeFolders?: boolean },
  ): Promise<CreateOutcome>
  /** Replaces a hint that nothing depends on. Failures are swallowed by design. */
  putHint(location: string, body: Uint8Array): Promise<void>
  /** Opens a new object under a name nobody else uses; makes the folders it needs. */
  open(location: string): Promise<ObjectWriter>
  /** @returns undefined when there is no such object. */
  read(location: string): Promise<Uint8Array | undefined>
  /** Bytes `[start, end)`; fewer only if the object ends before. */
  readRange(location: string, start: number, end: number): Promise<Uint8Array | undefined>
  size(location: string): Promise<number | undefined>
  /** All objects below `prefix` (which ends with `/`), sorted by location. */
  list(prefix: string): Promise<readonly ObjectEntry[]>
  remove(location: string): Promise<void>
  /** Absent where nothing of an object is kept before it is finished. */
  readonly uploads?: UnfinishedUploads
}
