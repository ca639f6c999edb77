import { isObject, readAvroFile, type AvroObject, type AvroValue } from './avro.ts'

/*
 * What a reader of the Iceberg specification sees of one version of a table: metadata, manifest lists
 * and manifests, without a line of the code that wrote them.
 */

export type Objects = ReadonlyMap<string, { readonly body: Uint8Array }>

export type SeenFile = {
  readonly path: string
  readonly snapshot: string
  readonly sequence: bigint
  readonly bucket: number
  readonly rows: number
  readonly bytes: number
  readonly lower: ReadonlyMap<number, Uint8Array>
  readonly upper: ReadonlyMap<number, Uint8Array>
}

export type SeenSnapshot = {
  readonly id: string
  readonly parent: string | undefined
  readonly sequence: bigint
  readonly at: number
  readonly summary: ReadonlyMap<string, string>
  readonly manifestList: string
}

export type SeenVersion = {
  readonly uuid: string
  readonly lastSequence: bigint
  readonly updatedAt: number
  readonly head: string | undefined
  readonly properties: ReadonlyMap<string, string>
  /** By id, as text: ids have 63 bits. */
  readonly snapshots: ReadonlyMap<string, SeenSnapshot>
  readonly fieldIds: ReadonlyMap<string, number>
}

/** Whole numbers beyond what JSON.parse keeps become texts before it sees them. */
const longNumber = /(":\s*)(-?\d{16,})(?=\s*[,}\]])/g

export function seeVersion(body: Uint8Array, before?: SeenVersion): SeenVersion {
  const text = Buffer.from(body).toString('utf8')
  const root: unknown = JSON.parse(text.replaceAll(longNumber, '$1"$2"'))
  const snapshots = new Map<string, SeenSnapshot>()
  for (const each of listAt(root, 'snapshots')) {
    const id = textAt(each, 'snapshot-id')
    const parent = at(each, 'parent-snapshot-id')
    const known = before?.snapshots.get(id)
    if (known !== undefined && known.manifestList === at(each, 'manifest-list')) {
      snapshots.set(id, known)
      continue
    }
    const listed: SeenSnapshot = {
      id,
      parent:
        parent === undefined || parent === null ? undefined : textAt(each, 'parent-snapshot-id'),
      sequence: BigInt(textAt(each, 'sequence-number')),
      at: Number(textAt(each, 'timestamp-ms')),
      summary: textsAt(each, 'summary'),
      manifestList: textAt(each, 'manifest-list'),
    }
    if (snapshots.has(id)) throw new Error(`snapshot ${id} is listed twice`)
    snapshots.set(id, listed)
  }
  const main = at(at(root, 'refs'), 'main')
  const head = main === undefined ? undefined : textAt(main, 'snapshot-id')
  const current = at(root, 'current-snapshot-id')
  const currentText =
    current === undefined || current === null ? undefined : textAt(root, 'current-snapshot-id')
  if (currentText !== head)
    throw new Error(`main is at ${head ?? 'none'}, current ${currentText ?? 'none'}`)
  const schemaId = textAt(root, 'current-schema-id')
  const schema = listAt(root, 'schemas').find((each) => textAt(each, 'schema-id') === schemaId)
  return {
    uuid: textAt(root, 'table-uuid'),
    lastSequence: BigInt(textAt(root, 'last-sequence-number')),
    updatedAt: Number(textAt(root, 'last-updated-ms')),
    head,
    properties: textsAt(root, 'properties'),
    snapshots,
    fieldIds: new Map(
      listAt(schema, 'fields').map((field) => [textAt(field, 'name'), Number(textAt(field, 'id'))]),
    ),
  }
}

/** The snapshots of a version from the head down, as far as they are listed. */
export function lineageOf(version: SeenVersion): readonly SeenSnapshot[] {
  const lineage: SeenSnapshot[] = []
  let next = version.head
  while (next !== undefined) {
    const snapshot = version.snapshots.get(next)
    if (snapshot === undefined) break
    lineage.push(snapshot)
    next = snapshot.parent
  }
  return lineage
}

export type SeenManifest = {
  readonly path: string
  readonly sequence: bigint
  readonly snapshot: string
  readonly addedFiles: number
  readonly addedRows: number
}

/** Reads manifests once; their names are never used twice, which is checked elsewhere. */
export class ManifestReader {
  readonly #objects: Objects
  readonly #lists = new Map<string, { manifests: readonly SeenManifest[]; ledger?: string }>()
  readonly #entries = new Map<string, readonly SeenFile[]>()

  constructor(objects: Objects) {
    this.#objects = objects
  }

  list(path: string): { readonly manifests: readonly SeenManifest[]; readonly ledger?: string } {
    const known = this.#lists.get(path)
    if (known !== undefined) return known
    const { header, records } = readAvroFile(this.#body(path))
    const ledger = header.get('sluice.ledger')
    const found = {
      manifests: records.map((record) => this.#manifest(record)),
      ...(ledger === undefined ? {} : { ledger }),
    }
    this.#lists.set(path, found)
    return found
  }

  files(manifest: SeenManifest): readonly SeenFile[] {
    const known = this.#entries.get(manifest.path)
    if (known !== undefined) return known
    const { records } = readAvroFile(this.#body(manifest.path))
    const files = records.flatMap((record) => seenFile(record, manifest))
    this.#entries.set(manifest.path, files)
    return files
  }

  #manifest(record: AvroObject): SeenManifest {
    const path = stringOf(record['manifest_path'])
    const length = Number(record['manifest_length'])
    if (this.#body(path).length !== length) throw new Error(`${path} has not ${length} bytes`)
    return {
      path,
      sequence: bigOf(record['sequence_number']),
      snapshot: String(bigOf(record['added_snapshot_id'])),
      addedFiles: Number(record['added_files_count']),
      addedRows: Number(record['added_rows_count']),
    }
  }

  #body(path: string): Uint8Array {
    const found = this.#objects.get(path)
    if (found === undefined) throw new Error(`${path} is named and not there`)
    return found.body
  }
}

/** Files that are in the table by this entry; a deleted one is not. */
function seenFile(record: AvroObject, manifest: SeenManifest): readonly SeenFile[] {
  if (record['status'] === 2) return []
  const file = record['data_file']
  if (!isObject(file)) throw new Error('a manifest entry has no file')
  const partition = file['partition']
  const bucket = isObject(partition) ? Object.values(partition)[0] : undefined
  const sequence = record['sequence_number']
  const snapshot = record['snapshot_id']
  return [
    {
      path: stringOf(file['file_path']),
      snapshot: snapshot === null ? manifest.snapshot : String(bigOf(snapshot)),
      sequence: sequence === null ? manifest.sequence : bigOf(sequence),
      bucket: Number(bucket),
      rows: Number(file['record_count']),
      bytes: Number(file['file_size_in_bytes']),
      lower: boundsOf(file['lower_bounds']),
      upper: boundsOf(file['upper_bounds']),
    },
  ]
}

function boundsOf(value: AvroValue | undefined): ReadonlyMap<number, Uint8Array> {
  const bounds = new Map<number, Uint8Array>()
  if (!Array.isArray(value)) return bounds
  const pairs: readonly AvroValue[] = value
  for (const pair of pairs) {
    if (isObject(pair) && pair['value'] instanceof Uint8Array) {
      bounds.set(Number(pair['key']), pair['value'])
    }
  }
  return bounds
}

function bigOf(value: AvroValue | undefined): bigint {
  if (typeof value === 'bigint') return value
  throw new Error('a long is missing')
}

function stringOf(value: AvroValue | undefined): string {
  if (typeof value === 'string') return value
  throw new Error('a string is missing')
}

function at(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  const found: unknown = Reflect.get(value, key)
  return found
}

function textAt(value: unknown, key: string): string {
  const found = at(value, key)
  if (typeof found === 'string' || typeof found === 'number') return String(found)
  throw new Error(`"${key}" is missing`)
}

function listAt(value: unknown, key: string): readonly unknown[] {
  const found = at(value, key)
  return Array.isArray(found) ? found : []
}

function textsAt(value: unknown, key: string): ReadonlyMap<string, string> {
  const found = at(value, key)
  if (typeof found !== 'object' || found === null) return new Map()
  return new Map(
    Object.entries(found).map(([name, text]: [string, unknown]) => {
      if (typeof text !== 'string') throw new Error(`"${key}": "${name}" is no text`)
      return [name, text]
    }),
  )
}
