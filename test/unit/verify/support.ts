import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type AvroSchema,
  avroCodec,
  readAvro,
  writeAvro,
} from '../../../src/catalog/iceberg/format/avro.ts'
import { decodeSchema } from '../../../src/catalog/iceberg/format/schema-json.ts'
import { locationOf } from '../../../src/catalog/store/local-store.ts'
import { memoryStore } from '../../../src/catalog/store/memory-store.ts'
import { fromArrow } from '../../../src/core/columns/arrow.ts'
import type { ColumnBatch } from '../../../src/core/columns/column.ts'
import { parquetBatches } from '../../../src/core/columns/parquet-in.ts'
import { millis } from '../../../src/core/ids.ts'
import { isJsonObject, type JsonValue, parseJson, stringifyJson } from '../../../src/core/json64.ts'
import type { IdField } from '../../../src/core/schema/types.ts'
import { loadZstd } from '../../../src/sink/parquet/codec.ts'
import { columnarEncoder } from '../../../src/sink/parquet/columnar.ts'
import type { TableReport, Level } from '../../../src/verify/verify-table.ts'
import { verifyLake } from '../../../src/verify/verify-lake.ts'
import { runCli, withWarehouse } from '../cli/lake-fixture.ts'

/** Any value inside metadata or a manifest, to be looked up by path. */
export type Loose = Record<string, unknown>

/** The files of a lake that Sluice wrote: two rounds into `demo.t`, keyed, two buckets. */
export type Original = { readonly root: string; readonly files: ReadonlyMap<string, Uint8Array> }

const line = (id: number): string =>
  JSON.stringify({
    id,
    name: id % 7 === 0 ? null : `name ${String(id).padStart(20, '0')}`,
    score: id / 4,
    tags: Array.from({ length: id % 3 }, (_, at) => `t${String(at)}`),
    who: id % 5 === 0 ? null : { first: `f${String(id)}`, age: id % 90 },
  })

/** Tiers twice by the command line, and takes the files into memory. */
export async function tieredLake(
  more: readonly string[] = ['--bucket-key', 'id'],
  buckets = 2,
): Promise<Original> {
  const files = new Map<string, Uint8Array>()
  let root = ''
  await withWarehouse(async (folder) => {
    root = locationOf(folder)
    const input = join(folder, '..', `${folder.slice(-6)}.ndjson`)
    const rows = Array.from({ length: 60 }, (_, id) => line(id)).join('\n')
    const args = ['tier', input, '--warehouse', folder, '--table', 'demo.t']
    writeFileSync(input, `${rows}\n`)
    const first = await runCli([...args, '--buckets', String(buckets), ...more])
    if (first.exit !== 0) throw new Error(first.err)
    const tail = Array.from({ length: 40 }, (_, id) => line(60 + id)).join('\n')
    writeFileSync(input, `${rows}\n${tail}\n`)
    const second = await runCli(args)
    if (second.exit !== 0) throw new Error(second.err)
    for (const name of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      if (!name.isFile()) continue
      const path = join(name.parentPath, name.name)
      files.set(locationOf(path), readFileSync(path))
    }
  })
  return { root, files }
}

/** A copy of a lake in memory that a test may spoil. */
export class Lake {
  readonly root: string
  readonly files: Map<string, Uint8Array>

  constructor(original: Original) {
    this.root = original.root
    this.files = new Map(original.files)
  }

  get folder(): string {
    return `${this.root}/demo/t`
  }

  store(): ReturnType<typeof memoryStore> {
    const store = memoryStore({ now: () => millis(0) })
    for (const [location, body] of this.files) void store.createIfAbsent(location, body)
    return store
  }

  async verify(level: Level = 'rows'): Promise<TableReport> {
    const [report] = await verifyLake(this.store(), this.root, { level })
    if (report === undefined) throw new Error('no table')
    return report
  }

  /** The newest metadata file. */
  get metadataAt(): string {
    const numbers = [...this.files.keys()].flatMap((location) => {
      const number = /\/v(\d+)\.metadata\.json$/.exec(location)?.[1]
      return number === undefined ? [] : Number(number)
    })
    return `${this.folder}/metadata/v${String(Math.max(...numbers))}.metadata.json`
  }

  metadata(): Loose {
    const json = parseJson(this.read(this.metadataAt), { name: 'metadata' })
    if (!isJsonObject(json)) throw new Error('no object')
    return json
  }

  edit(change: (metadata: Loose) => void): void {
    const metadata = this.metadata()
    change(metadata)
    this.files.set(this.metadataAt, Buffer.from(stringifyJson(metadata as JsonValue)))
  }

  snapshots(metadata: Loose = this.metadata()): Loose[] {
    return metadata['snapshots'] as Loose[]
  }

  /** The ledger of a snapshot; of the newest one also its copy in the properties. */
  editLedger(index: number, change: (ledger: Loose) => void): void {
    this.edit((metadata) => {
      const snapshots = this.snapshots(metadata)
      const summary = at(snapshots, index)['summary'] as Loose
      const ledger = JSON.parse(String(summary['sluice.ledger'])) as Loose
      change(ledger)
      summary['sluice.ledger'] = JSON.stringify(ledger)
      summary['sluice.token'] = JSON.stringify(ledger['token'])
      if (index !== snapshots.length - 1) return
      const properties = metadata['properties'] as Loose
      const copy = JSON.parse(String(properties['sluice.progress'])) as Loose
      copy['ends'] = (ledger['buckets'] as unknown[][]).map(([p, b, , end]) => [p, b, end])
      if ('ledger' in copy) copy['ledger'] = JSON.stringify(ledger)
      properties['sluice.progress'] = JSON.stringify(copy)
    })
  }

  /** Manifests of the newest snapshot, the newest first. */
  manifests(): string[] {
    const list = String(this.snapshots().at(-1)?.['manifest-list'])
    return this.avro(list).map((record) => String(record['manifest_path']))
  }

  avro(location: string): Loose[] {
    return readAvro(this.read(location), location).records as Loose[]
  }

  /** Changes a manifest's entries and makes everything that counts them agree again. */
  editManifest(location: string, change: (entries: Loose[]) => void): void {
    this.editAvro(location, change)
    this.recount()
  }

  editAvro(
    location: string,
    change: (records: Loose[]) => void,
    header: ReadonlyMap<string, string> = new Map(),
  ): void {
    const { schema, metadata, records } = readAvro(this.read(location), location)
    const changed = [...records] as Loose[]
    change(changed)
    const rest = new Map<string, string>(header)
    for (const [key, value] of metadata) {
      if (!key.startsWith('avro.')) rest.set(key, Buffer.from(value).toString('utf8'))
    }
    const codec = avroCodec(schema as AvroSchema)
    this.files.set(
      location,
      writeAvro(codec, changed, { metadata: rest, sync: '0123456789abcdef'.repeat(2) }),
    )
  }

  /** Counts and lengths in lists and summaries, computed anew from the manifests. */
  recount(): void {
    this.edit((metadata) => {
      for (const snapshot of this.snapshots(metadata)) {
        const sums = { rows: 0n, files: 0n, size: 0n }
        const added = { rows: 0n, files: 0n, size: 0n }
        this.editAvro(String(snapshot['manifest-list']), (lists) => {
          for (const list of lists) {
            const location = String(list['manifest_path'])
            list['manifest_length'] = BigInt(this.read(location).length)
            for (const key of ['added', 'existing', 'deleted'] as const) {
              list[`${key}_rows_count`] = 0n
              list[`${key}_files_count`] = 0
            }
            for (const entry of this.avro(location)) {
              const file = entry['data_file'] as Loose
              const status = ['existing', 'added', 'deleted'][Number(entry['status'])] ?? ''
              const [rows, size] = [
                file['record_count'] as bigint,
                file['file_size_in_bytes'] as bigint,
              ]
              list[`${status}_rows_count`] = (list[`${status}_rows_count`] as bigint) + rows
              list[`${status}_files_count`] = (list[`${status}_files_count`] as number) + 1
              const isNew =
                status === 'added' && entry['snapshot_id'] === big(snapshot['snapshot-id'])
              for (const sum of [
                status === 'deleted' ? undefined : sums,
                isNew ? added : undefined,
              ]) {
                if (sum === undefined) continue
                sum.rows += rows
                sum.files += 1n
                sum.size += size
              }
            }
          }
        })
        const summary = snapshot['summary'] as Loose
        summary['total-records'] = String(sums.rows)
        summary['total-data-files'] = String(sums.files)
        summary['total-files-size'] = String(sums.size)
        summary['added-records'] = String(added.rows)
        summary['added-data-files'] = String(added.files)
        summary['added-files-size'] = String(added.size)
      }
    })
  }

  fields(): readonly IdField[] {
    const [schema] = this.metadata()['schemas'] as JsonValue[]
    if (!isJsonObject(schema)) throw new Error('no schema')
    return decodeSchema(schema, 'schema')
  }

  /** The data files of a manifest, in its order. */
  dataFiles(manifest: string): string[] {
    return this.avro(manifest).map((entry) => String((entry['data_file'] as Loose)['file_path']))
  }

  /** Writes a data file anew with some values changed; its length in the manifests follows. */
  async rewrite(location: string, change: (batch: ColumnBatch) => ColumnBatch): Promise<void> {
    const fields = this.fields()
    const batches: ColumnBatch[] = []
    const blob = new Blob([new Uint8Array(this.read(location))])
    for await (const batch of parquetBatches(blob, location)) batches.push(fromArrow(batch).batch)
    this.files.set(location, await encode(fields, batches.map(change)))
    for (const manifest of this.manifests()) {
      this.editAvro(manifest, (entries) => {
        for (const { data_file: file } of entries as { data_file: Loose }[]) {
          if (file['file_path'] !== location) continue
          file['file_size_in_bytes'] = BigInt(this.read(location).length)
        }
      })
    }
    this.recount()
  }

  read(location: string): Uint8Array {
    const body = this.files.get(location)
    if (body === undefined) throw new Error(`no ${location}`)
    return body
  }
}

export async function encode(
  fields: readonly IdField[],
  batches: readonly ColumnBatch[],
): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  const sink = {
    write: (bytes: Uint8Array): Promise<void> => {
      pieces.push(Uint8Array.from(bytes))
      return Promise.resolve()
    },
  }
  const file = columnarEncoder(loadZstd).open(fields, sink, {
    rowGroupBytes: 1 << 20,
    pageBytes: 1 << 16,
    compression: 'zstd',
    compressionLevel: 1,
    metadata: new Map(),
  })
  for (const batch of batches) await file.write(batch)
  await file.close()
  return Buffer.concat(pieces)
}

/** The batch with the values of one column of numbers changed. */
export function withColumn(
  batch: ColumnBatch,
  index: number,
  change: (values: (number | bigint)[]) => void,
): ColumnBatch {
  const columns = batch.columns.map((column, at) => {
    if (at !== index) return column
    if (column.layout === 'int64') {
      const values: (number | bigint)[] = [...column.values]
      change(values)
      return { ...column, values: BigInt64Array.from(values.map(BigInt)) }
    }
    if (column.layout !== 'int32') throw new Error(`column ${String(index)} has no numbers`)
    const values: (number | bigint)[] = [...column.values]
    change(values)
    return { ...column, values: Int32Array.from(values.map(Number)) }
  })
  return { ...batch, columns }
}

export function kindsOf(report: TableReport): string[] {
  return report.faults.map(({ kind }) => kind)
}

export function at<T>(list: readonly T[], index: number): T {
  const value = list[index]
  if (value === undefined) throw new Error(`no element ${String(index)}`)
  return value
}

export function big(value: unknown): bigint {
  return BigInt(value as bigint | number)
}
