import { hash } from 'node:crypto'
import { isSluiceError, SluiceError } from '../../core/errors.ts'
import type { Bucket } from '../../core/ids.ts'
import type { Clock, IdSource } from '../../core/ports.ts'
import { formatTableName } from '../../core/table-name.ts'
import type {
  LakeTable,
  LiveFiles,
  LoadedTable,
  SnapshotEntry,
  SwapOutcome,
  TableChange,
  TableName,
} from '../ports.ts'
import type { NumberedRegister, VersionFile } from '../register/numbered.ts'
import type { ObjectStore } from '../store/object-store.ts'
import { applyChange } from './apply-change.ts'
import { dataEnds } from './data-ends.ts'
import { liveFiles } from './live-files.ts'
import type { AvroCompression } from './format/avro.ts'
import { readLedger } from './format/manifest-list.ts'
import {
  readMetadata,
  schemaOf,
  type TableMetadata,
  writeMetadata,
  writingSpec,
} from './format/metadata.ts'
import { bucketLayout } from './format/partition-spec.ts'
import { bucketCountProperty } from './format/properties.ts'
import { decodeSchema, identifierFields } from './format/schema-json.ts'
import { normalizeLocation, shownLocation } from './location.ts'
import type { StagedManifest } from './put-manifest.ts'
import { type StagedList, stageManifest, stageManifestList } from './stage-snapshot.ts'

export type IcebergTableOptions = {
  readonly name: TableName
  /** The table's folder, without a last slash. */
  readonly folder: string
  readonly store: ObjectStore
  readonly register: NumberedRegister
  readonly clock: Pick<Clock, 'now'>
  readonly ids: IdSource
  /** Of manifests and their lists; `deflate` if left out. */
  readonly manifestCompression?: AvroCompression
}

/** A version as it was read; `body` decides whether two are equal. */
type Version = {
  readonly version: number
  readonly location: string
  readonly metadata: TableMetadata
  /** The first bytes, in which a table says which one it is. */
  readonly start: Uint8Array
  readonly table: LoadedTable
}

/** Loaded versions and staged manifests that may still be asked for; older ones are read again. */
const rememberedMax = 4
/** Holds the header of nearly every manifest list, and is one request. */
const headerBytes = 256 * 1024
/** Format, UUID, location and time come first in what every writer writes. */
const startBytes = 1024

/** A table of numbered metadata files, format 2 or 3. */
export class IcebergTable implements LakeTable {
  readonly name: TableName
  readonly #options: IcebergTableOptions
  readonly #shownName: string
  readonly #versions = new Map<string, Version>()
  readonly #manifests = new Map<string, StagedManifest | undefined>()
  /** The newest version this process has seen, and of which table. */
  #newest: { readonly version: number; readonly uuid: string } | undefined

  constructor(options: IcebergTableOptions) {
    this.name = options.name
    this.#options = options
    this.#shownName = formatTableName(options.name)
  }

  async load(): Promise<LoadedTable> {
    const head = await this.#options.register.head()
    if (head === undefined) {
      throw new SluiceError('TABLE_MISSING', `${this.#shownName}: no such table`)
    }
    const token = tokenOf(head)
    const known = this.#versions.get(token)
    let metadata: TableMetadata
    try {
      metadata = known?.metadata ?? readMetadata(head.body, shownLocation(head.location))
    } catch (error) {
      throw await this.#explained(error, head.version)
    }
    this.#refuseMoved(metadata)
    this.#refuseOlder(head.version, metadata.uuid)
    return this.#remembered(known ?? this.#versionOf(head, token, metadata))
  }

  async headerLedger(snapshot: SnapshotEntry): Promise<string> {
    const { store } = this.#options
    const location = normalizeLocation(snapshot.manifestList)
    const shown = shownLocation(location)
    const start = await store.readRange(location, 0, headerBytes)
    let found = start === undefined ? undefined : readLedger(start, shown)
    if (found === undefined) {
      const whole = await store.read(location)
      found = whole === undefined ? undefined : readLedger(whole, shown)
    }
    if (found?.ledger !== undefined) return found.ledger
    const why = found === undefined ? 'it is cut or not there' : 'its header has no ledger'
    throw new SluiceError('DATA_CORRUPT', `${shown}: the ledger cannot be read (${why})`, {
      details: { file: shown, snapshot: snapshot.id },
    })
  }

  dataEnds(table: LoadedTable): Promise<ReadonlyMap<Bucket, bigint> | undefined> {
    return dataEnds(this.#options.store, this.#options.folder, table)
  }

  liveFiles(table: LoadedTable): Promise<LiveFiles> {
    return liveFiles(this.#options.store, this.#options.folder, table)
  }

  /**
   * Throws only before anything was asked of the register: then nothing of the change is visible and
   * nothing of it ever will be.
   */
  async swap(base: LoadedTable, change: TableChange): Promise<SwapOutcome> {
    const held = this.#versions.get(base.token)
    // A base that is no longer remembered was replaced by several versions since.
    if (held === undefined) return { kind: 'rejected' }
    this.#refuseFormat(held.metadata)
    await this.#refuseReplaced(held)
    const staged =
      change.snapshot === undefined
        ? undefined
        : await this.#stage(held.metadata, change.snapshot, base.location)
    const next = applyChange(held.metadata, change, {
      baseLocation: held.location,
      manifestList: staged?.location,
      assignedRows: staged?.assignedRows ?? 0n,
      now: this.#options.clock.now(),
    })
    const body = writeMetadata(next)
    const version = held.version + 1
    const outcome = await this.#options.register.create(version, body)
    if (outcome.kind !== 'applied') return outcome
    this.#newest = { version, uuid: next.uuid }
    const made = { version, location: this.#locationOf(version), body }
    const table = this.#remembered(this.#versionOf(made, tokenOf(made), next))
    return { kind: 'applied', table }
  }

  async #stage(
    metadata: TableMetadata,
    snapshot: NonNullable<TableChange['snapshot']>,
    location: string,
  ): Promise<StagedList> {
    const { store, ids, manifestCompression } = this.#options
    const folder = `${location}/metadata`
    const place = { store, ids, folder, compression: manifestCompression }
    const key = [snapshot.id, metadata.currentSchemaId, metadata.defaultSpecId].join('/')
    if (!this.#manifests.has(key)) {
      remember(this.#manifests, key, await stageManifest(metadata, snapshot, place))
    }
    return stageManifestList(metadata, snapshot, this.#manifests.get(key), place)
  }

  #remembered(version: Version): LoadedTable {
    remember(this.#versions, version.table.token, version)
    return version.table
  }

  #versionOf(
    { version, location, body }: VersionFile,
    token: string,
    metadata: TableMetadata,
  ): Version {
    const shown = shownLocation(location)
    const schema = schemaOf(metadata, metadata.currentSchemaId, shown)
    const fields = decodeSchema(schema, shown)
    const spec = writingSpec(metadata, fields)
    const layout = spec === undefined ? undefined : bucketLayout(spec, fields)
    const bucketCount = layout?.bucketCount ?? countIn(metadata.properties)
    const [bucketField] = spec?.fields ?? []
    if (
      spec === undefined ||
      layout === undefined ||
      bucketField === undefined ||
      bucketCount === undefined
    ) {
      throw new SluiceError(
        'TABLE_MISMATCH',
        `${this.#shownName} is not cut into buckets, so Sluice did not make it`,
        { fix: 'use another table', details: { file: shown } },
      )
    }
    const table: LoadedTable = {
      token,
      uuid: metadata.uuid,
      location: normalizeLocation(metadata.location),
      formatVersion: metadata.formatVersion,
      head: metadata.head,
      snapshots: metadata.snapshots,
      properties: metadata.properties,
      lastSequence: metadata.lastSequence,
      schemaId: metadata.currentSchemaId,
      specId: spec.specId,
      bucketFieldId: bucketField.fieldId,
      fields,
      bucketCount,
      bucketKey: layout.key,
      primaryKey: identifierFields(schema, fields, shown),
    }
    return { version, location, metadata, start: body.slice(0, startBytes), table }
  }

  #refuseFormat(metadata: TableMetadata): void {
    if (metadata.formatVersion > 1) return
    throw new SluiceError(
      'TABLE_MISMATCH',
      `${this.#shownName} is an Iceberg format ${metadata.formatVersion} table; Sluice writes 2 and 3`,
      { fix: 'upgrade the table to format 2' },
    )
  }

  /**
   * Paths in metadata are absolute. Written where it now lies, a moved table would be torn, and a
   * copied one would put its files into the original.
   */
  #refuseMoved(metadata: TableMetadata): void {
    const recorded = normalizeLocation(metadata.location)
    const folder = normalizeLocation(this.#options.folder)
    if (recorded === folder) return
    const [from, to] = [shownLocation(recorded), shownLocation(folder)]
    throw new SluiceError(
      'LOCATION_REFUSED',
      `${this.#shownName} at ${to} says it lies at ${from}; a moved or copied table is only read`,
      { fix: `name the warehouse by its first path, or move it back`, details: { from, to } },
    )
  }

  /**
   * A store may show what it had a while ago. Judged on a version older than one that was seen, an
   * attempt that may still land would look dead.
   */
  #refuseOlder(version: number, uuid: string): void {
    const seen = this.#newest
    if (seen?.uuid === uuid && version < seen.version) {
      throw new SluiceError(
        'STORE_UNAVAILABLE',
        `${this.#shownName}: the store shows v${version}, and has shown v${seen.version} before`,
        { details: { version, seen: seen.version } },
      )
    }
    this.#newest = { version, uuid }
  }

  /**
   * The next number is free also where a table was dropped and made anew under the same name, and
   * the swap would put the old table on top of the new one (I-22). A look at the base makes the
   * window small; only a catalog that compares the UUID in the swap closes it.
   */
  async #refuseReplaced({ version, location, start }: Version): Promise<void> {
    const found = await this.#options.store.readRange(location, 0, start.length)
    if (found !== undefined && Buffer.compare(found, start) === 0) return
    throw new SluiceError(
      'STORE_UNAVAILABLE',
      `${this.#shownName}: v${version} is not what it was when it was read`,
      { details: { version, file: shownLocation(location) }, state: 'nothing was written' },
    )
  }

  async #explained(error: unknown, version: number): Promise<unknown> {
    if (!isSluiceError(error, 'DATA_CORRUPT') || version < 2) return error
    const before = `v${version - 1}`
    const isWhole = await this.#isWhole(version - 1)
    return new SluiceError('DATA_CORRUPT', error.message, {
      details: { ...error.details, previousIsWhole: isWhole },
      state: `nothing was changed; ${before} is ${isWhole ? '' : 'not '}whole`,
      fix: `restore the file; sluice will not go back to ${before} by itself, that could drop commits`,
      cause: error,
    })
  }

  async #isWhole(version: number): Promise<boolean> {
    const location = this.#locationOf(version)
    const body = await this.#options.store.read(location).catch(() => undefined)
    if (body === undefined) return false
    try {
      readMetadata(body, shownLocation(location))
      return true
    } catch {
      return false
    }
  }

  #locationOf(version: number): string {
    return `${this.#options.folder}/metadata/v${version}.metadata.json`
  }
}

function countIn(properties: ReadonlyMap<string, string>): number | undefined {
  const text = properties.get(bucketCountProperty) ?? ''
  return /^[1-9]\d{0,8}$/.test(text) ? Number.parseInt(text, 10) : undefined
}

function tokenOf({ version, body }: VersionFile): string {
  return `${version}-${hash('sha256', body).slice(0, 32)}`
}

function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key)
  map.set(key, value)
  for (const oldest of map.keys()) {
    if (map.size <= rememberedMax) return
    map.delete(oldest)
  }
}
