import { randomBytes, randomUUID } from 'node:crypto'
import { dirname } from 'node:path'
import {
  arrayOf,
  jsonObject,
  objectOf,
  withMembers,
} from '../../src/catalog/iceberg/format/json-fields.ts'
import {
  type ManifestEntry,
  type ManifestFileEntry,
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
import { writeVectors } from '../../src/catalog/iceberg/format/puffin.ts'
import { decodeSchema } from '../../src/catalog/iceberg/format/schema-json.ts'
import { liveFilesIn } from '../../src/catalog/iceberg/live-files.ts'
import { liveRowsIn } from '../../src/catalog/iceberg/live-rows.ts'
import { normalizeLocation } from '../../src/catalog/iceberg/location.ts'
import { readDataFile } from '../../src/catalog/iceberg/read-data-file.ts'
import { DeletedRows, positionDeleteFields, union } from '../../src/catalog/iceberg/read-deletes.ts'
import { scanTable, type ScannedFile, type TableScan } from '../../src/catalog/iceberg/scan.ts'
import type { LiveFile, PartitionValue } from '../../src/catalog/ports.ts'
import { numberedRegister } from '../../src/catalog/register/numbered.ts'
import { localStore } from '../../src/catalog/store/local-store.ts'
import type { ColumnBatch } from '../../src/core/columns/column.ts'
import { batchToRows, type Row, rowsToBatch } from '../../src/core/columns/rows.ts'
import { takeBatch } from '../../src/core/columns/take.ts'
import type { JsonValue } from '../../src/core/json64.ts'
import type { IdField } from '../../src/core/schema/types.ts'
import { systemIds } from '../../src/core/system.ts'
import { encoderOptionsOf } from '../../src/library/encoding.ts'
import { chooseEncoder } from '../../src/sink/parquet/index.ts'

/** One partition field more, as ALTER TABLE … ADD PARTITION FIELD or a whole new spec. */
export type ForeignField = {
  readonly name: string
  readonly transform: string
  readonly source: string
}

type Placed = {
  readonly specId: number
  readonly partition: ReadonlyMap<number, PartitionValue>
}
type Added = { readonly specId: number; readonly file: ManifestFileEntry }
type Dropped = { readonly location: string; readonly dataFile: string | undefined }
type Change = {
  readonly operation: string
  readonly data?: readonly Added[]
  readonly deletes?: readonly Added[]
  readonly dropped?: readonly Dropped[]
}

/**
 * Another engine on a table of numbered files that rewrites and deletes rows, as Spark and Trino do.
 * It knows nothing of Sluice, and writes each version's manifests whole.
 */
export class ForeignEngine {
  readonly #folder: string
  readonly #store = localStore(systemIds)

  /** @param folder The table's folder as a URL. */
  constructor(folder: string) {
    this.#folder = normalizeLocation(folder)
  }

  /** Copies of all live rows, or of those that are wanted: keys come twice. */
  async appendRows(wanted: (row: Row) => boolean = () => true): Promise<void> {
    const { scan, live, deleted } = await this.#read()
    const added: Added[] = []
    for (const file of live) {
      const batches = await this.#rowsOf(scan, file, deleted, wanted)
      if (batches.length > 0) added.push(await this.#write(scan, file, batches))
    }
    await this.#commit({ operation: 'append', data: added })
  }

  /**
   * Merges the files of each partition into one, backwards, so that no row keeps its place, and leaves
   * out what is deleted.
   * @param into Where the merged files go; the partition that their rows were in if absent.
   */
  async compact(into?: (file: LiveFile) => Placed): Promise<void> {
    const { scan, live, deleted } = await this.#read()
    const groups = new Map<string, { readonly first: LiveFile; readonly batches: ColumnBatch[] }>()
    for (const file of [...live].reverse()) {
      const place = placeOf(file)
      const group = groups.get(place) ?? { first: file, batches: [] }
      groups.set(place, group)
      group.batches.push(...(await this.#rowsOf(scan, file, deleted)))
    }
    const added: Added[] = []
    for (const { first, batches } of groups.values()) {
      if (batches.length > 0) added.push(await this.#write(scan, first, batches, into?.(first)))
    }
    await this.#commit({ operation: 'replace', data: added, dropped: allOf(scan) })
  }

  /**
   * DELETE FROM … WHERE, merge-on-read: vectors in format 3, else position deletes.
   * @param wide One delete file for all files of a partition, which names none of them.
   */
  async deleteRows(where: (row: Row) => boolean, wide = false): Promise<void> {
    const { scan, live, deleted } = await this.#read()
    const found = new Map<LiveFile, Uint32Array>()
    for (const file of live) {
      const positions = await this.#positionsOf(scan, file, deleted, where)
      if (positions.length > 0) found.set(file, positions)
    }
    await this.#commit(
      scan.formatVersion >= 3
        ? await this.#vectors(scan, found, deleted)
        : await this.#positionDeletes(found, wide),
    )
  }

  /** Takes whole files away: DELETE of a partition. */
  async removeFiles(where: (file: LiveFile) => boolean): Promise<void> {
    const { scan, live } = await this.#read()
    const gone = new Set(live.filter(where).map(({ location }) => location))
    const deletes = scan.deleteFiles.filter(({ referencedDataFile }) =>
      gone.has(referencedDataFile ?? ''),
    )
    const dropped = [
      ...[...gone].map((location) => ({ location, dataFile: undefined })),
      ...deletes.map((each) => ({ location: each.location, dataFile: each.referencedDataFile })),
    ]
    await this.#commit({ operation: 'delete', dropped })
  }

  /** DELETE as a streaming writer does it: by the values of one column. */
  async deleteEqual(row: Row, name: string): Promise<void> {
    const { scan, live } = await this.#read()
    const field = fieldOf(scan, name)
    const [like] = live
    if (like === undefined) throw new Error('there is no file to delete from')
    const batch = rowsToBatch([field], [{ [name]: row[name] ?? null }])
    const file = await this.#parquet([field], [batch], `${dirname(like.location)}/${newName()}`)
    const entry: ManifestFileEntry = {
      ...file,
      content: 'equality-deletes',
      partition: like.partition,
      equalityIds: [field.id],
    }
    await this.#commit({ operation: 'delete', deletes: [{ specId: like.specId, file: entry }] })
  }

  /** Makes a new spec the table's own. @returns its id */
  async evolveSpec(fields: readonly ForeignField[]): Promise<number> {
    const { metadata, version } = await this.#head()
    const { json } = metadata
    const specId = Math.max(...metadata.specs.keys()) + 1
    const known = [...metadata.specs.values()].flatMap((spec) => spec.fields)
    const decoded = decodeSchema(schemaOf(metadata, metadata.currentSchemaId, ''), '')
    let next = Math.max(...known.map(({ fieldId }) => fieldId))
    const encoded = fields.map(({ name, transform, source }) => {
      const sourceId = decoded.find((each) => each.name === source)?.id ?? 0
      const same = known.find((each) => each.sourceId === sourceId && each.transform === transform)
      if (same === undefined) next += 1
      return jsonObject([
        ['name', name],
        ['transform', transform],
        ['source-id', sourceId],
        ['field-id', same?.fieldId ?? next],
      ])
    })
    const spec = jsonObject([
      ['spec-id', specId],
      ['fields', encoded],
    ])
    await this.#swap(metadata, version, [
      ['partition-specs', [...arrayOf(json, 'partition-specs', ''), spec]],
      ['default-spec-id', specId],
      ['last-partition-id', next],
    ])
    return specId
  }

  async #read(): Promise<{
    readonly scan: TableScan
    readonly live: readonly LiveFile[]
    readonly deleted: DeletedRows
  }> {
    const scan = await scanTable(this.#store, this.#folder)
    const files = liveFilesIn(scan)
    return { scan, live: files.data, deleted: new DeletedRows(this.#store, files) }
  }

  async #rowsOf(
    scan: TableScan,
    file: LiveFile,
    deleted: DeletedRows,
    wanted: (row: Row) => boolean = () => true,
  ): Promise<readonly ColumnBatch[]> {
    const batches: ColumnBatch[] = []
    const read = liveRowsIn(file, scan.fields, deleted, (location, fields) =>
      readDataFile(this.#store, location, fields),
    )
    for await (const batch of read) {
      const rows = batchToRows(scan.fields, batch)
      const kept = rows.flatMap((row, at) => (wanted(row) ? [at] : [])).reverse()
      if (kept.length > 0) batches.push(takeBatch(batch, Int32Array.from(kept), kept.length))
    }
    return batches.reverse()
  }

  async #positionsOf(
    scan: TableScan,
    file: LiveFile,
    deleted: DeletedRows,
    where: (row: Row) => boolean,
  ): Promise<Uint32Array> {
    const gone = new Set(await deleted.positions(file))
    const found: number[] = []
    let ordinal = 0
    for await (const batch of readDataFile(
      this.#store,
      normalizeLocation(file.location),
      scan.fields,
    )) {
      for (const row of batchToRows(scan.fields, batch)) {
        if (!gone.has(ordinal) && where(row)) found.push(ordinal)
        ordinal += 1
      }
    }
    return Uint32Array.from(found)
  }

  async #positionDeletes(
    found: ReadonlyMap<LiveFile, Uint32Array>,
    wide: boolean,
  ): Promise<Change> {
    const groups = new Map<string, [LiveFile, Uint32Array][]>()
    for (const [file, positions] of found) {
      const place = wide ? placeOf(file) : file.location
      groups.set(place, [...(groups.get(place) ?? []), [file, positions]])
    }
    const deletes: Added[] = []
    for (const group of groups.values()) {
      const [first] = group
      if (first === undefined) continue
      const [{ location, specId, partition }] = first
      const rows = group
        .flatMap(([file, positions]) =>
          Array.from(positions, (pos) => ({ file_path: file.location, pos: BigInt(pos) })),
        )
        .sort((a, b) => (a.file_path < b.file_path ? -1 : a.file_path > b.file_path ? 1 : 0))
      const batch = rowsToBatch(positionDeleteFields, rows)
      const name = `${dirname(location)}/${newName()}`
      const file = await this.#parquet(positionDeleteFields, [batch], name)
      deletes.push({
        specId,
        file: {
          ...file,
          content: 'position-deletes',
          partition,
          ...(wide ? {} : { referencedDataFile: location }),
        },
      })
    }
    return { operation: 'delete', deletes }
  }

  async #vectors(
    scan: TableScan,
    found: ReadonlyMap<LiveFile, Uint32Array>,
    deleted: DeletedRows,
  ): Promise<Change> {
    const files = [...found.keys()]
    const vectors: { dataFile: string; positions: Uint32Array }[] = []
    for (const [file, fresh] of found) {
      const positions = union([await deleted.positions(file), fresh])
      vectors.push({ dataFile: file.location, positions })
    }
    const { bytes, blobs } = writeVectors(vectors)
    const location = `${this.#folder}/data/${randomUUID()}-deletes.puffin`
    await this.#put(location, bytes)
    const deletes = files.map(({ specId, partition }, at): Added => {
      const { dataFile, positions } = vectors[at] ?? { dataFile: '', positions: new Uint32Array(0) }
      const blob = blobs[at]
      return {
        specId,
        file: {
          content: 'position-deletes',
          location,
          format: 'PUFFIN',
          partition,
          rows: positions.length,
          bytes: bytes.length,
          metrics: [],
          splitOffsets: [],
          equalityIds: [],
          referencedDataFile: dataFile,
          ...(blob === undefined ? {} : { blob }),
        },
      }
    })
    const pointedInto = new Set(files.map((file) => file.location))
    const dropped = scan.deleteFiles
      .filter(({ referencedDataFile }) => pointedInto.has(referencedDataFile ?? ''))
      .map((each) => ({ location: each.location, dataFile: each.referencedDataFile }))
    return { operation: 'delete', deletes, dropped }
  }

  async #write(
    scan: TableScan,
    like: LiveFile,
    batches: readonly ColumnBatch[],
    into: Placed = like,
  ): Promise<Added> {
    const file = await this.#parquet(scan.fields, batches, `${dirname(like.location)}/${newName()}`)
    return { specId: into.specId, file: { ...file, partition: into.partition } }
  }

  async #parquet(
    fields: readonly IdField[],
    batches: readonly ColumnBatch[],
    location: string,
  ): Promise<ManifestFileEntry> {
    const writer = await this.#store.open(normalizeLocation(location))
    const file = chooseEncoder('columnar', fields).open(fields, writer, encoderOptionsOf(new Map()))
    for (const batch of batches) await file.write(batch)
    const { rows, metrics, splitOffsets } = await file.close()
    const bytes = await writer.finish()
    return {
      content: 'data',
      location,
      format: 'PARQUET',
      partition: new Map(),
      rows,
      bytes,
      metrics,
      splitOffsets,
      equalityIds: [],
    }
  }

  async #commit({ operation, data = [], deletes = [], dropped = [] }: Change): Promise<void> {
    const { metadata, version } = await this.#head()
    const scan = await scanTable(this.#store, this.#folder)
    const id = BigInt(`0x${randomBytes(8).toString('hex')}`) & (2n ** 62n - 1n)
    const sequence = metadata.lastSequence + 1n
    const gone = new Set(dropped.map(nameOf))
    const manifests: ManifestFile[] = []
    let { nextRowId } = metadata
    for (const [content, files, added] of [
      ['data', scan.files, data],
      ['deletes', scan.deleteFiles, deletes],
    ] as const) {
      const entries = [
        ...files.map((file) => {
          const status = gone.has(nameOf(droppedOf(file))) ? 'deleted' : 'existing'
          return [file.specId, entryOf(file, status, id)] as const
        }),
        ...added.map(({ specId, file }) => [specId, addedEntry(file, id)] as const),
      ]
      for (const specId of new Set(entries.map(([spec]) => spec))) {
        const own = entries.flatMap(([spec, entry]) => (spec === specId ? [entry] : []))
        const manifest = await this.#manifest(metadata, { content, specId, id, sequence }, own)
        manifests.push(
          content === 'data' && nextRowId !== undefined
            ? { ...manifest, firstRowId: nextRowId }
            : manifest,
        )
        if (content === 'data' && nextRowId !== undefined) {
          nextRowId += BigInt((manifest.addedRows ?? 0) + (manifest.existingRows ?? 0))
        }
      }
    }
    const list = `${this.#folder}/metadata/snap-${String(id)}-1-${randomUUID()}.avro`
    await this.#put(
      list,
      writeManifestList(manifests, {
        snapshotId: id,
        parentId: metadata.head,
        sequence,
        sync: sync(),
        ...(metadata.nextRowId === undefined ? {} : { firstRowId: metadata.nextRowId }),
      }),
    )
    const isGrown = data.length > 0
    const at = Math.max(Date.now(), metadata.lastUpdatedAt)
    const snapshot = jsonObject([
      ['sequence-number', sequence],
      ['snapshot-id', id],
      ['parent-snapshot-id', metadata.head],
      ['timestamp-ms', at],
      [
        'summary',
        jsonObject([
          ['operation', operation],
          ['engine-name', 'other'],
          ...(isGrown ? [['added-data-files', String(data.length)] as const] : []),
        ]),
      ],
      ['manifest-list', list],
      ['schema-id', metadata.currentSchemaId],
      ...(nextRowId === undefined || metadata.nextRowId === undefined
        ? []
        : ([
            ['first-row-id', metadata.nextRowId],
            ['added-rows', nextRowId - metadata.nextRowId],
          ] as const)),
    ])
    const main = jsonObject([
      ['snapshot-id', id],
      ['type', 'branch'],
    ])
    await this.#swap(metadata, version, [
      ['last-sequence-number', sequence],
      ['snapshots', [...arrayOf(metadata.json, 'snapshots', ''), snapshot]],
      ['current-snapshot-id', id],
      ['refs', withMembers(objectOf(metadata.json, 'refs', ''), jsonObject([['main', main]]))],
      ...(nextRowId === undefined ? [] : ([['next-row-id', nextRowId]] as const)),
    ])
  }

  async #manifest(
    metadata: TableMetadata,
    of: {
      readonly content: 'data' | 'deletes'
      readonly specId: number
      readonly id: bigint
      readonly sequence: bigint
    },
    entries: readonly ManifestEntry[],
  ): Promise<ManifestFile> {
    const schema = schemaOf(metadata, metadata.currentSchemaId, '')
    const body = writeManifest(entries, {
      schemaId: metadata.currentSchemaId,
      schema,
      fields: decodeSchema(schema, ''),
      spec: specOf(metadata, of.specId, ''),
      formatVersion: metadata.formatVersion,
      content: of.content,
      sync: sync(),
    })
    const location = `${this.#folder}/metadata/${randomUUID()}-m0.avro`
    await this.#put(location, body)
    const files = (status: string): readonly ManifestEntry[] =>
      entries.filter((entry) => entry.status === status)
    const rows = (status: string): number =>
      files(status).reduce((sum, { file }) => sum + file.rows, 0)
    return {
      location,
      bytes: body.length,
      specId: of.specId,
      content: of.content,
      sequence: of.sequence,
      minSequence: 1n,
      addedSnapshotId: of.id,
      addedFiles: files('added').length,
      existingFiles: files('existing').length,
      deletedFiles: files('deleted').length,
      addedRows: rows('added'),
      existingRows: rows('existing'),
      deletedRows: rows('deleted'),
      partitions: undefined,
    }
  }

  async #swap(
    { json, lastUpdatedAt }: TableMetadata,
    version: number,
    members: readonly (readonly [string, JsonValue | undefined])[],
  ): Promise<void> {
    const now = Math.max(Date.now(), lastUpdatedAt)
    const next = withMembers(json, jsonObject([['last-updated-ms', now], ...members]))
    const register = numberedRegister(this.#store, this.#folder)
    const body = writeMetadata(viewMetadata(next, 'foreign'))
    const outcome = await register.create(version + 1, body)
    if (outcome.kind !== 'applied') throw new Error(`the swap was ${outcome.kind}`)
  }

  async #head(): Promise<{ readonly version: number; readonly metadata: TableMetadata }> {
    const head = await numberedRegister(this.#store, this.#folder).head()
    if (head === undefined) throw new Error(`${this.#folder}: no table`)
    return { version: head.version, metadata: readMetadata(head.body, head.location) }
  }

  async #put(location: string, body: Uint8Array): Promise<void> {
    const writer = await this.#store.open(normalizeLocation(location))
    await writer.write(body)
    await writer.finish()
  }
}

function placeOf({ specId, partition }: LiveFile): string {
  return [specId, ...[...partition].map(([id, value]) => `${id}=${String(value)}`)].join('/')
}

function allOf(scan: TableScan): readonly Dropped[] {
  return [...scan.files, ...scan.deleteFiles].map(droppedOf)
}

/** A Puffin file has a vector for each of many data files, so its location alone is no name. */
function droppedOf(file: ScannedFile): Dropped {
  const dataFile = file.content === 'data' ? undefined : file.referencedDataFile
  return { location: file.location, dataFile }
}

function nameOf({ location, dataFile = '' }: Dropped): string {
  return `${location} ${dataFile}`
}

function entryOf(file: ScannedFile, status: 'existing' | 'deleted', id: bigint): ManifestEntry {
  const { sequence, snapshot } = file
  const snapshotId = status === 'deleted' ? id : snapshot
  return { status, snapshotId, sequence, fileSequence: sequence, file }
}

function addedEntry(file: ManifestFileEntry, id: bigint): ManifestEntry {
  return { status: 'added', snapshotId: id, sequence: undefined, fileSequence: undefined, file }
}

function fieldOf(scan: TableScan, name: string): IdField {
  const field = scan.fields.find((each) => each.name === name)
  if (field === undefined) throw new Error(`no column ${name}`)
  return field
}

function newName(): string {
  return `00000-0-${randomUUID()}-00001.parquet`
}

function sync(): string {
  return randomBytes(16).toString('hex')
}
