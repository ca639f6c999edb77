import { fileCatalog } from '../src/catalog/iceberg/file-catalog.ts'
import type { ObjectStore } from '../src/catalog/store/object-store.ts'
import { bucket, millis, snapshotId } from '../src/core/ids.ts'
import {
  isJsonArray,
  isJsonObject,
  type JsonObject,
  parseJson,
  stringifyJson,
} from '../src/core/json64.ts'
import { warehouse } from './process.ts'
import type { Random } from './random.ts'
import type { SimStore } from './sim-store.ts'
import type { World } from './world.ts'

/*
 * Operators and other engines: they do to a table what people do to tables, at once and whole. On a
 * numbered table that is the next version, created if absent.
 */

type Place = {
  readonly world: World
  readonly store: SimStore
  readonly random: Random
  /** Folder of the table. */
  readonly folder: string
}

type Found = { readonly number: number; readonly json: JsonObject; readonly location: string }

/** Another engine appends a file of its own. */
export async function appendForeign(place: Place, name: readonly string[]): Promise<boolean> {
  const { store, random, folder, world } = place
  const direct = directStore(store)
  const ids = { bits128: () => random.bits128() }
  const clock = { now: () => millis(1_700_000_000_000 + world.now) }
  const catalog = fileCatalog({ store: direct, warehouse, clock, ids, manifestCompression: 'null' })
  const table = await catalog.open(name)
  if (table === undefined) return false
  const base = await table.load()
  const location = `${folder}/data/foreign-${ids.bits128()}.parquet`
  store.createNow(location, Buffer.from('rows of another engine'))
  const metrics = [{ fieldId: 1, columnBytes: 1, valueCount: 1, nullCount: 1 }]
  const file = { location, bucket: bucket(0), rows: 1, bytes: 22, metrics, splitOffsets: [] }
  const outcome = await table.swap(base, {
    snapshot: {
      id: drawSnapshot(random),
      operation: 'append',
      summary: new Map([['engine-name', 'another']]),
      files: [file],
    },
    setProperties: new Map(),
  })
  return outcome.kind === 'applied'
}

/** Another engine rewrites manifests: a snapshot without a change of data. */
export function rewriteForeign(place: Place): boolean {
  return edit(place, (json) => {
    const head = headOf(json)
    const snapshots = snapshotsOf(json)
    const parent = snapshots.find((each) => each['snapshot-id'] === head)
    const summary = parent?.['summary']
    if (parent === undefined || !isJsonObject(summary)) return undefined
    const totals = Object.entries(summary).filter(([key]) => key.startsWith('total-'))
    const id = drawSnapshot(place.random)
    const last = json['last-sequence-number']
    if (typeof last !== 'number' && typeof last !== 'bigint') return undefined
    const sequence = BigInt(last) + 1n
    const next: JsonObject = {
      'sequence-number': sequence,
      'snapshot-id': id,
      'parent-snapshot-id': head,
      'timestamp-ms': json['last-updated-ms'],
      summary: { operation: 'replace', ...Object.fromEntries(totals) },
      'manifest-list': parent['manifest-list'],
      'schema-id': 0,
    }
    return {
      ...json,
      'last-sequence-number': sequence,
      snapshots: [...snapshots, next],
      ...pointAt(id),
    }
  })
}

/**
 * An operator puts the branch back.
 * @param to `own`: onto a commit of Sluice below the newest one; `root`: to before the first commit
 */
export function rollBack(place: Place, to: 'own' | 'root' = 'own'): boolean {
  return edit(place, (json) => {
    const lineage = lineageOf(json)
    const own = lineage.slice(1).filter(isOwn)
    const target = to === 'own' ? own[place.random.below(own.length)] : undefined
    if (to === 'root') {
      const rest = { ...json, refs: {}, 'current-snapshot-id': undefined }
      return lineage.length === 0 ? undefined : rest
    }
    const id = target?.['snapshot-id']
    return typeof id === 'bigint' || typeof id === 'number'
      ? { ...json, ...pointAt(id) }
      : undefined
  })
}

/** A tool expires history. @param keep `own`: down to our newest commit; `head`: only the head */
export function expire(place: Place, keep: 'own' | 'head'): boolean {
  return edit(place, (json) => {
    const lineage = lineageOf(json)
    const own = lineage.findIndex(isOwn)
    const count = keep === 'head' ? 1 : own + 1
    if (lineage.length <= count || count === 0) return undefined
    return { ...json, snapshots: lineage.slice(0, count).reverse() }
  })
}

/** The folder goes, with all that is in it. */
export function drop({ store, folder }: Place): void {
  for (const location of [...store.objects.keys()]) {
    if (location.startsWith(`${folder}/`)) store.removeNow(location)
  }
}

function edit(place: Place, change: (json: JsonObject) => JsonObject | undefined): boolean {
  const found = newest(place)
  if (found === undefined) return false
  const next = change(found.json)
  if (next === undefined) return false
  const location = `${place.folder}/metadata/v${found.number + 1}.metadata.json`
  return place.store.createNow(location, Buffer.from(stringifyJson(next)))
}

function newest({ store, folder }: Place): Found | undefined {
  let number = 0
  const at = (version: number): string => `${folder}/metadata/v${version}.metadata.json`
  while (store.objects.has(at(number + 1))) number += 1
  const body = store.objects.get(at(number))?.body
  if (body === undefined) return undefined
  const json = parseJson(body, { name: at(number) })
  return isJsonObject(json) ? { number, json, location: at(number) } : undefined
}

function pointAt(id: bigint | number): JsonObject {
  const main = { 'snapshot-id': id, type: 'branch' }
  return { 'current-snapshot-id': id, refs: { main } }
}

function headOf(json: JsonObject): JsonObject[string] {
  return json['current-snapshot-id']
}

function snapshotsOf(json: JsonObject): readonly JsonObject[] {
  const list = json['snapshots']
  return isJsonArray(list) ? list.filter(isJsonObject) : []
}

function lineageOf(json: JsonObject): readonly JsonObject[] {
  const all = new Map(snapshotsOf(json).map((each) => [shown(each['snapshot-id']), each]))
  const lineage: JsonObject[] = []
  let next = headOf(json)
  while (next !== undefined && next !== null) {
    const snapshot = all.get(shown(next))
    if (snapshot === undefined) break
    lineage.push(snapshot)
    next = snapshot['parent-snapshot-id']
  }
  return lineage
}

/** Small ids are numbers in parsed JSON, large ones bigints. */
function shown(id: JsonObject[string]): string {
  return typeof id === 'bigint' || typeof id === 'number' ? String(id) : ''
}

function isOwn(snapshot: JsonObject): boolean {
  const summary = snapshot['summary']
  return isJsonObject(summary) && summary['sluice.commit-id'] !== undefined
}

function drawSnapshot(random: Random): ReturnType<typeof snapshotId> {
  return snapshotId(BigInt(`0x${random.bits128().slice(0, 15)}`) + 1n)
}

/** The store without a network: for those who are not under test. */
export function directStore(store: SimStore): ObjectStore {
  const { objects } = store
  return {
    createIfAbsent: (location, body) =>
      Promise.resolve(
        store.createNow(location, body)
          ? { kind: 'applied' }
          : { kind: 'rejected', reason: 'exists' },
      ),
    putHint: () => Promise.resolve(),
    open: (location) => {
      const chunks: Uint8Array[] = []
      return Promise.resolve({
        write: (bytes) => {
          chunks.push(bytes.slice())
          return Promise.resolve()
        },
        finish: () => {
          const body = Buffer.concat(chunks)
          store.createNow(location, body)
          return Promise.resolve(body.length)
        },
        abandon: () => Promise.resolve(),
      })
    },
    read: (location) => Promise.resolve(objects.get(location)?.body),
    readRange: (location, start, end) =>
      Promise.resolve(objects.get(location)?.body.subarray(start, end)),
    size: (location) => Promise.resolve(objects.get(location)?.body.length),
    list: (prefix) =>
      Promise.resolve(
        [...objects]
          .filter(([location]) => location.startsWith(prefix))
          .map(([location, { body }]) => ({
            location,
            bytes: body.length,
            modifiedAt: millis(0),
          }))
          .sort((a, b) => (a.location < b.location ? -1 : 1)),
      ),
    remove: () => Promise.resolve(),
  }
}
