import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { writeVectors } from '../../../src/catalog/iceberg/format/puffin.ts'
import { positionDeleteFields } from '../../../src/catalog/iceberg/read-deletes.ts'
import { rowsToBatch } from '../../../src/core/columns/rows.ts'
import type { Field } from '../../../src/core/schema/types.ts'
import { seededChance } from '../../../src/core/system.ts'
import { KeyedWorld, type WorldChange } from '../../support/keyed-world.ts'
import { at, encode, Lake, type Loose, type Original } from './support.ts'

export const keyedFields: readonly Field[] = [
  { name: 'id', type: { kind: 'bigint', nullable: false } },
  { name: 'name', type: { kind: 'string', nullable: true } },
]

/** Rounds of random changes over few keys, and processes that end and begin again. */
export async function randomRounds(
  world: KeyedWorld,
  of: { readonly seed: number; readonly rounds: number; readonly keys: number },
): Promise<void> {
  const chance = seededChance(of.seed)
  for (let round = 0; round < of.rounds; round += 1) {
    if (chance.below(5) === 0) await world.restart()
    const changes = Array.from({ length: 1 + chance.below(3 * of.keys) }, (): WorldChange => {
      const id = BigInt(chance.below(of.keys))
      const isDelete = chance.below(4) === 0
      return [isDelete ? 'delete' : 'upsert', { id, name: isDelete ? null : `in ${String(round)}` }]
    })
    await world.change(changes)
    await world.round()
  }
}

/**
 * Three rounds, so that what is in the files is known: twelve keys; then 0 to 5 again; then 6 and 7 are
 * deleted and 8 and 9 written again. Each data file of the first round has been deleted from twice.
 */
export async function keyedLake(formatVersion: 2 | 3): Promise<Original> {
  const world = await KeyedWorld.create({
    fields: keyedFields,
    primaryKey: ['id'],
    buckets: 2,
    formatVersion,
  })
  const upserts = (from: number, to: number, name: string): WorldChange[] =>
    Array.from({ length: to - from }, (_, id) => ['upsert', { id: BigInt(from + id), name }])
  try {
    await world.change(upserts(0, 12, 'first'))
    await world.round()
    await world.change(upserts(0, 6, 'second'))
    await world.round()
    await world.change([
      ['delete', { id: 6n, name: null }],
      ['delete', { id: 7n, name: null }],
      ...upserts(8, 10, 'third'),
    ])
    await world.round()
    return { root: pathToFileURL(join(world.folder, 'lake')).href, files: filesIn(world.folder) }
  } finally {
    await world.close()
  }
}

function filesIn(folder: string): ReadonlyMap<string, Uint8Array> {
  const files = new Map<string, Uint8Array>()
  for (const name of readdirSync(join(folder, 'lake'), { recursive: true, withFileTypes: true })) {
    if (!name.isFile()) continue
    const path = join(name.parentPath, name.name)
    files.set(pathToFileURL(path).href, readFileSync(path))
  }
  return files
}

const statuses = ['existing', 'added', 'deleted'] as const

/** A copy of a primary-key table's lake that a test may spoil. */
export class KeyedLake extends Lake {
  override get folder(): string {
    return `${this.root}/demo/customers`
  }

  /** Manifests of the newest snapshot that list deletes, or data; the newest first. */
  manifestsOf(content: 'data' | 'deletes'): string[] {
    return this.listed()
      .filter((record) => record['content'] === (content === 'data' ? 0 : 1))
      .map((record) => String(record['manifest_path']))
  }

  /** What the manifest list of the newest snapshot says. */
  listed(): Loose[] {
    return this.avro(this.listAt)
  }

  get listAt(): string {
    return String(this.snapshots().at(-1)?.['manifest-list'])
  }

  /** Files of live entries of the newest snapshot's manifests. */
  live(content: 'data' | 'deletes'): Loose[] {
    return this.manifestsOf(content).flatMap((manifest) =>
      this.avro(manifest)
        .filter((entry) => entry['status'] !== 2)
        .map((entry) => entry['data_file'] as Loose),
    )
  }

  /** Changes the live delete that `pick` takes, and what counts it. */
  editDelete(
    change: (entry: Loose, file: Loose) => void,
    pick: (file: Loose) => boolean = () => true,
  ): void {
    let done = 0
    for (const manifest of this.manifestsOf('deletes')) {
      this.editAvro(manifest, (entries) => {
        for (const entry of entries) {
          const file = entry['data_file'] as Loose
          if (done > 0 || entry['status'] === 2 || !pick(file)) continue
          done += 1
          change(entry, file)
        }
      })
    }
    if (done === 0) throw new Error('no such delete')
    this.recount()
  }

  /** The rows a delete of the first live kind says, in place of those it says. */
  async replacePositions(
    file: Loose,
    positions: readonly number[],
    dataFile = String(file['referenced_data_file']),
  ): Promise<void> {
    const location = String(file['file_path'])
    if (file['file_format'] === 'PUFFIN') {
      const { bytes, blobs } = writeVectors([{ dataFile, positions: Uint32Array.from(positions) }])
      this.files.set(location, bytes)
      file['content_offset'] = BigInt(blobs[0]?.offset ?? 0)
      file['content_size_in_bytes'] = BigInt(blobs[0]?.bytes ?? 0)
    } else {
      const rows = positions.map((pos) => ({ file_path: dataFile, pos: BigInt(pos) }))
      this.files.set(
        location,
        await encode(positionDeleteFields, [rowsToBatch(positionDeleteFields, rows)]),
      )
      for (const key of ['value_counts', 'null_value_counts', 'lower_bounds', 'upper_bounds']) {
        file[key] = null
      }
    }
    file['record_count'] = BigInt(positions.length)
    file['file_size_in_bytes'] = BigInt(this.read(location).length)
  }

  /** Counts and lengths in lists and summaries, of all that they count. */
  override recount(): void {
    this.edit((metadata) => {
      for (const snapshot of this.snapshots(metadata)) this.#recount(snapshot)
    })
  }

  #recount(snapshot: Loose): void {
    const id = BigInt(snapshot['snapshot-id'] as bigint | number)
    const sums = new Map<string, bigint>()
    const raise = (key: string, by: bigint): void => void sums.set(key, (sums.get(key) ?? 0n) + by)
    this.editAvro(String(snapshot['manifest-list']), (lists) => {
      for (const list of lists) {
        const location = String(list['manifest_path'])
        list['manifest_length'] = BigInt(this.read(location).length)
        for (const key of statuses) {
          list[`${key}_rows_count`] = 0n
          list[`${key}_files_count`] = 0
        }
        for (const entry of this.avro(location)) {
          const file = entry['data_file'] as Loose
          const status = at(statuses, Number(entry['status']))
          const rows = file['record_count'] as bigint
          list[`${status}_rows_count`] = (list[`${status}_rows_count`] as bigint) + rows
          list[`${status}_files_count`] = (list[`${status}_files_count`] as number) + 1
          const isNew = entry['snapshot_id'] === id
          const prefixes = [
            status === 'deleted' ? undefined : 'total',
            isNew && status === 'added' ? 'added' : undefined,
            isNew && status === 'deleted' ? 'removed' : undefined,
          ]
          for (const prefix of prefixes) {
            if (prefix === undefined) continue
            const size = (file['content_size_in_bytes'] ?? file['file_size_in_bytes']) as bigint
            raise(`${prefix}-files-size`, size)
            if (file['content'] === 0) {
              raise(`${prefix}-data-files`, 1n)
              raise(`${prefix}-records`, rows)
              continue
            }
            raise(`${prefix}-delete-files`, 1n)
            raise(`${prefix}-position-deletes`, rows)
            const isVector = file['file_format'] === 'PUFFIN'
            raise(`${prefix}-${isVector ? 'dvs' : 'position-delete-files'}`, 1n)
          }
        }
      }
    })
    const summary = snapshot['summary'] as Loose
    for (const key of Object.keys(summary)) {
      if (/^(total|added|removed)-/.test(key)) summary[key] = String(sums.get(key) ?? 0n)
    }
  }
}
