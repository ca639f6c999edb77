import { randomBytes, randomUUID } from 'node:crypto'
import { copyFile, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import {
  arrayOf,
  bigOf,
  isAbsent,
  jsonObject,
  objectOf,
  objectsOf,
  withMembers,
} from '../../src/catalog/iceberg/format/json-fields.ts'
import {
  type ManifestFileEntry,
  type ManifestEntry,
  writeManifest,
} from '../../src/catalog/iceberg/format/manifest.ts'
import {
  type ManifestFile,
  writeManifestList,
} from '../../src/catalog/iceberg/format/manifest-list.ts'
import {
  readMetadata,
  schemaOf,
  specOf,
  type TableMetadata,
  viewMetadata,
  writeMetadata,
} from '../../src/catalog/iceberg/format/metadata.ts'
import { decodeSchema } from '../../src/catalog/iceberg/format/schema-json.ts'
import { normalizeLocation } from '../../src/catalog/iceberg/location.ts'
import { scanTable, type ScannedFile } from '../../src/catalog/iceberg/scan.ts'
import { readManifests } from '../../src/catalog/iceberg/stage-snapshot.ts'
import { numberedRegister } from '../../src/catalog/register/numbered.ts'
import { localStore, pathOf } from '../../src/catalog/store/local-store.ts'
import { type JsonObject, type JsonValue } from '../../src/core/json64.ts'
import { systemIds } from '../../src/core/system.ts'

export type Added = {
  /** Copies of live files, as another writer's. `silent`: their manifests say nothing of offsets. */
  readonly copies?: number
  readonly silent?: boolean
}

/**
 * Another engine, or an operator with one, on a table of numbered files: it knows nothing of Sluice,
 * and creates its versions only if they are absent, as it must beside Sluice.
 */
export class ForeignWriter {
  readonly #folder: string
  readonly #store = localStore(systemIds)

  /** @param folder The table's folder as a URL. */
  constructor(folder: string) {
    this.#folder = normalizeLocation(folder)
  }

  async metadata(): Promise<TableMetadata> {
    return (await this.#head()).metadata
  }

  /** Ids from the head down, as far as they are listed. */
  async lineage(): Promise<readonly bigint[]> {
    const { head, snapshots } = await this.metadata()
    const ids: bigint[] = []
    for (let at = head; at !== undefined; ) {
      const entry = snapshots.get(at)
      if (entry === undefined) break
      ids.push(entry.id)
      at = entry.parent
    }
    return ids
  }

  /** Adds copies of live files, or an empty snapshot. @returns its id */
  async append(added: Added = {}): Promise<bigint> {
    const base = await this.#head()
    const files = await this.#copies(added)
    return this.#commit(base, 'append', files, await this.#manifestsOf(base.metadata))
  }

  /** Rewrites every live file into a copy of it, as compaction does. */
  async compact(): Promise<bigint> {
    return this.#rewrite('replace', await this.#copies({ copies: Number.MAX_SAFE_INTEGER }))
  }

  /** Removes all live files and adds copies of some. */
  async overwrite(added: Added = {}): Promise<bigint> {
    return this.#rewrite('overwrite', await this.#copies(added))
  }

  /** Forgets all but the newest snapshots of the lineage, and deletes their manifest lists. */
  async expire(kept: number): Promise<void> {
    const base = await this.#head()
    const ids = new Set((await this.lineage()).slice(0, kept))
    const listed = objectsOf(base.metadata.json, 'snapshots', '')
    const stays = (each: JsonObject): boolean => ids.has(bigOf(each, 'snapshot-id', ''))
    await this.#swap(base, [
      ['snapshots', listed.filter(stays)],
      ['snapshot-log', objectsOf(base.metadata.json, 'snapshot-log', '').filter(stays)],
    ])
    for (const snapshot of base.metadata.snapshots.values()) {
      if (!ids.has(snapshot.id)) await rm(pathOf(normalizeLocation(snapshot.manifestList)))
    }
  }

  /** Points the branch at a listed snapshot: rollback, and the way back. */
  async rollback(to: bigint): Promise<void> {
    const base = await this.#head()
    await this.#swap(base, this.#branchAt(base.metadata, to))
  }

  /** Puts the files that a listed snapshot added on top of the branch. */
  async cherryPick(picked: bigint): Promise<bigint> {
    const base = await this.#head()
    const scan = await scanTable(this.#store, this.#folder, { snapshot: picked })
    const files = scan.files.filter((file) => file.snapshot === picked)
    const below = await this.#manifestsOf(base.metadata)
    return this.#commit(base, 'append', files, below, [['source-snapshot-id', String(picked)]])
  }

  /** CREATE OR REPLACE TABLE: the UUID and the properties stay, the branch does not. */
  async replace(added?: Added): Promise<void> {
    const files = added === undefined ? [] : await this.#copies(added)
    const base = await this.#head()
    await this.#swap(base, [
      ['current-snapshot-id', -1],
      ['refs', jsonObject([])],
      ['snapshot-log', []],
    ])
    if (added !== undefined) await this.#commit(await this.#head(), 'append', files, [])
  }

  async setProperty(key: string, value: string | undefined): Promise<void> {
    const base = await this.#head()
    const before = objectOf(base.metadata.json, 'properties', '')
    const kept = Object.entries(before).filter(([name]) => name !== key)
    const properties = value === undefined ? kept : [...kept, [key, value] as const]
    await this.#swap(base, [['properties', jsonObject(properties)]])
  }

  /** Makes an existing file below the table's folder one of its data files. */
  async adopt(path: string): Promise<void> {
    const base = await this.#head()
    const [like] = (await scanTable(this.#store, this.#folder)).files
    if (like === undefined) throw new Error('there is no file to be like')
    const file = { ...like, location: `${this.#folder}/${path}`, metrics: [] }
    await this.#commit(base, 'append', [file], await this.#manifestsOf(base.metadata))
  }

  /** ANALYZE: a statistics file of the head. */
  async addStatistics(path: string): Promise<void> {
    const base = await this.#head()
    const statistics = jsonObject([
      ['snapshot-id', base.metadata.head],
      ['statistics-path', `${this.#folder}/${path}`],
      ['file-size-in-bytes', 15],
      ['file-footer-size-in-bytes', 4],
      ['blob-metadata', []],
    ])
    await this.#swap(base, [['statistics', [statistics]]])
  }

  /** Makes the table anew under its name, as a copy of its definition: it has another UUID. */
  async dropAndRecreate(properties: 'kept' | 'new' = 'new'): Promise<void> {
    const { json } = await this.metadata()
    const own = Object.entries(objectOf(json, 'properties', '')).filter(
      ([key]) => properties === 'kept' || !key.startsWith('sluice.'),
    )
    await rm(pathOf(this.#folder), { recursive: true })
    const empty = ['snapshots', 'snapshot-log', 'metadata-log'].map((key) => [key, []] as const)
    const next = withMembers(
      json,
      jsonObject([
        ...empty,
        ['table-uuid', randomUUID()],
        ['last-sequence-number', 0],
        ['current-snapshot-id', -1],
        ['refs', jsonObject([])],
        ['properties', jsonObject(own)],
      ]),
    )
    const register = numberedRegister(this.#store, this.#folder)
    const body = writeMetadata(viewMetadata(next, 'foreign'))
    const outcome = await register.create(1, body)
    if (outcome.kind !== 'applied') throw new Error(`the create was ${outcome.kind}`)
  }

  async #rewrite(operation: string, files: readonly ManifestFileEntry[]): Promise<bigint> {
    const base = await this.#head()
    const scan = await scanTable(this.#store, this.#folder)
    const id = newId()
    const removed = scan.files.map((file) => entryOf(file, 'deleted', id))
    return this.#commit(base, operation, files, [], [], { id, removed })
  }

  async #commit(
    base: Head,
    operation: string,
    added: readonly ManifestFileEntry[],
    below: readonly ManifestFile[],
    notes: readonly (readonly [string, string])[] = [],
    more: { readonly id: bigint; readonly removed: readonly ManifestEntry[] } = {
      id: newId(),
      removed: [],
    },
  ): Promise<bigint> {
    const { metadata } = base
    const { id, removed } = more
    const sequence = metadata.lastSequence + 1n
    const entries = [...added.map((file) => entryOf(file, 'added', id)), ...removed]
    const own = await this.#manifest(metadata, entries, id, sequence)
    const manifestList = `${this.#folder}/metadata/snap-${String(id)}-1-${randomUUID()}.avro`
    const list = writeManifestList([...own, ...below], {
      snapshotId: id,
      parentId: metadata.head,
      sequence,
      sync: randomBytes(16).toString('hex'),
    })
    await this.#write(manifestList, list)
    const at = Math.max(Date.now(), metadata.lastUpdatedAt)
    const snapshot = jsonObject([
      ['sequence-number', sequence],
      ['snapshot-id', id],
      ['parent-snapshot-id', metadata.head],
      ['timestamp-ms', at],
      ['summary', jsonObject([['operation', operation], ['engine-name', 'other'], ...notes])],
      ['manifest-list', manifestList],
      ['schema-id', metadata.currentSchemaId],
    ])
    await this.#swap(base, [
      ['last-sequence-number', sequence],
      ['snapshots', [...arrayOf(metadata.json, 'snapshots', ''), snapshot]],
      ...this.#branchAt(metadata, id),
    ])
    return id
  }

  async #manifest(
    metadata: TableMetadata,
    entries: readonly ManifestEntry[],
    id: bigint,
    sequence: bigint,
  ): Promise<readonly ManifestFile[]> {
    if (entries.length === 0) return []
    const spec = specOf(metadata, metadata.defaultSpecId, '')
    const schema = schemaOf(metadata, metadata.currentSchemaId, '')
    const sync = randomBytes(16).toString('hex')
    const body = writeManifest(entries, {
      schemaId: metadata.currentSchemaId,
      schema,
      fields: decodeSchema(schema, ''),
      spec,
      formatVersion: metadata.formatVersion,
      content: 'data',
      sync,
    })
    const location = `${this.#folder}/metadata/${randomUUID()}-m0.avro`
    await this.#write(location, body)
    const of = (status: string): readonly ManifestEntry[] =>
      entries.filter((entry) => entry.status === status)
    const rows = (status: string): number =>
      of(status).reduce((sum, { file }) => sum + file.rows, 0)
    return [
      {
        location,
        bytes: body.length,
        specId: spec.specId,
        content: 'data',
        sequence,
        minSequence: 1n,
        addedSnapshotId: id,
        addedFiles: of('added').length,
        existingFiles: 0,
        deletedFiles: of('deleted').length,
        addedRows: rows('added'),
        existingRows: 0,
        deletedRows: rows('deleted'),
        partitions: undefined,
      },
    ]
  }

  /** Real files, so that every reader reads the table afterwards. */
  async #copies({ copies = 0, silent = false }: Added): Promise<readonly ManifestFileEntry[]> {
    if (copies === 0) return []
    const { files } = await scanTable(this.#store, this.#folder)
    return Promise.all(
      files.slice(0, copies).map(async (file) => {
        const location = `${dirname(file.location)}/00000-0-${randomUUID()}-00001.parquet`
        await copyFile(
          pathOf(normalizeLocation(file.location)),
          pathOf(normalizeLocation(location)),
        )
        return { ...file, location, ...(silent ? { metrics: [] } : {}) }
      }),
    )
  }

  #branchAt(metadata: TableMetadata, id: bigint): readonly Member[] {
    const refs = isAbsent(metadata.json, 'refs')
      ? jsonObject([])
      : objectOf(metadata.json, 'refs', '')
    const main = jsonObject([
      ['snapshot-id', id],
      ['type', 'branch'],
    ])
    const log = arrayOf(metadata.json, 'snapshot-log', '')
    const logged = jsonObject([
      ['timestamp-ms', Math.max(Date.now(), metadata.lastUpdatedAt)],
      ['snapshot-id', id],
    ])
    return [
      ['current-snapshot-id', id],
      ['refs', withMembers(refs, jsonObject([['main', main]]))],
      ['snapshot-log', [...log, logged]],
    ]
  }

  async #manifestsOf(metadata: TableMetadata): Promise<readonly ManifestFile[]> {
    const head = metadata.head === undefined ? undefined : metadata.snapshots.get(metadata.head)
    return head === undefined ? [] : readManifests(head, this.#store)
  }

  async #swap(base: Head, members: readonly Member[]): Promise<void> {
    const { json, lastUpdatedAt } = base.metadata
    const before = jsonObject([
      ['timestamp-ms', lastUpdatedAt],
      ['metadata-file', base.location],
    ])
    const next = withMembers(
      json,
      jsonObject([
        ['last-updated-ms', Math.max(Date.now(), lastUpdatedAt)],
        ['metadata-log', [...arrayOf(json, 'metadata-log', ''), before]],
        ...members,
      ]),
    )
    const register = numberedRegister(this.#store, this.#folder)
    const outcome = await register.create(
      base.version + 1,
      writeMetadata(viewMetadata(next, 'foreign')),
    )
    if (outcome.kind !== 'applied') throw new Error(`the swap was ${outcome.kind}`)
  }

  async #head(): Promise<Head> {
    const head = await numberedRegister(this.#store, this.#folder).head()
    if (head === undefined) throw new Error(`${this.#folder}: no table`)
    const { version, location, body } = head
    return { version, location, metadata: readMetadata(body, location) }
  }

  async #write(location: string, body: Uint8Array): Promise<void> {
    const writer = await this.#store.open(location)
    await writer.write(body)
    await writer.finish()
  }
}

type Member = readonly [string, JsonValue | undefined]
type Head = {
  readonly version: number
  readonly location: string
  readonly metadata: TableMetadata
}

function entryOf(
  file: ManifestFileEntry | ScannedFile,
  status: 'added' | 'deleted',
  id: bigint,
): ManifestEntry {
  const sequence = status === 'deleted' && 'sequence' in file ? file.sequence : undefined
  return { status, snapshotId: id, sequence, fileSequence: sequence, file }
}

function newId(): bigint {
  return BigInt(`0x${randomBytes(8).toString('hex')}`) & (2n ** 62n - 1n)
}
