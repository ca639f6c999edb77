import { SluiceError } from '../../core/errors.ts'
import type { IdField } from '../../core/schema/types.ts'
import type { LiveDelete, LiveFile, LiveFiles } from '../ports.ts'
import type { ObjectStore } from '../store/object-store.ts'
import { readVector } from './format/puffin.ts'
import { normalizeLocation, shownLocation } from './location.ts'
import { type ReadColumns, readDataFile } from './read-data-file.ts'

/** The columns of a position delete file (spec, "Position Delete Files"). */
export const positionDeleteFields: readonly IdField[] = [
  {
    id: 2_147_483_546,
    name: 'file_path',
    type: { kind: 'string', nullable: false },
    children: [],
  },
  { id: 2_147_483_545, name: 'pos', type: { kind: 'bigint', nullable: false }, children: [] },
]

const none = new Uint32Array(0)

/**
 * What is deleted in the data files of one version, read when asked for. A vector stands for all
 * positions of its file, whatever position deletes there are; without one, every position delete of
 * the same or a higher sequence number applies (spec, "Scan Planning").
 */
export class DeletedRows {
  readonly #store: ObjectStore
  readonly #resolve: (location: string) => string
  readonly #readColumns: ReadColumns
  readonly #byFile = new Map<string, LiveDelete[]>()
  /** Position deletes that do not name one file. */
  readonly #wide: LiveDelete[] = []
  readonly #read = new Map<string, Promise<ReadonlyMap<string, Uint32Array>>>()

  /** @param options.resolve Where a file lies, when the table was moved. */
  constructor(
    store: ObjectStore,
    files: Pick<LiveFiles, 'deletes'>,
    options: {
      readonly resolve?: (location: string) => string
      readonly readColumns?: ReadColumns
    } = {},
  ) {
    this.#store = store
    this.#resolve = options.resolve ?? normalizeLocation
    this.#readColumns =
      options.readColumns ?? ((location, fields) => readDataFile(store, location, fields))
    for (const file of files.deletes) {
      if (file.content === 'equality-deletes') continue
      if (file.dataFile === undefined) {
        this.#wide.push(file)
        continue
      }
      const known = this.#byFile.get(file.dataFile)
      if (known === undefined) this.#byFile.set(file.dataFile, [file])
      else known.push(file)
    }
  }

  /** Deletes that point into this file and no other. */
  ofFile(file: LiveFile): readonly LiveDelete[] {
    return (this.#byFile.get(file.location) ?? []).filter(
      (each) => each.content === 'deletion-vector' || each.sequence >= file.sequence,
    )
  }

  /** Row ordinals that are deleted, ascending. @throws SluiceError DATA_CORRUPT */
  async positions(file: LiveFile): Promise<Uint32Array> {
    const own = this.ofFile(file)
    const vector = own.find((each) => each.content === 'deletion-vector')
    if (vector !== undefined) return this.#vector(vector)
    const wide = this.#wide.filter((each) => each.sequence >= file.sequence)
    const parts: Uint32Array[] = []
    for (const each of [...own, ...wide]) {
      parts.push((await this.#positions(each)).get(file.location) ?? none)
    }
    return union(parts)
  }

  async #vector(file: LiveDelete): Promise<Uint32Array> {
    const location = this.#resolve(file.location)
    const { blob } = file
    const bytes =
      blob === undefined
        ? undefined
        : await this.#store.readRange(location, blob.offset, blob.offset + blob.bytes)
    if (bytes === undefined) throw missing(location)
    return readVector(bytes, shownLocation(location))
  }

  #positions(file: LiveDelete): Promise<ReadonlyMap<string, Uint32Array>> {
    const known = this.#read.get(file.location)
    if (known !== undefined) return known
    const read = readPositions(this.#readColumns, this.#resolve(file.location))
    this.#read.set(file.location, read)
    return read
  }
}

/** Ascending, each once. */
export function union(parts: readonly Uint32Array[]): Uint32Array {
  const filled = parts.filter((part) => part.length > 0)
  const [only] = filled
  if (only === undefined) return none
  if (filled.length === 1) return only
  const all = new Uint32Array(filled.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of filled) {
    all.set(part, at)
    at += part.length
  }
  return distinct(all.sort())
}

/** @param sorted Ascending; it is changed. */
export function distinct(sorted: Uint32Array): Uint32Array {
  let kept = 0
  for (const position of sorted) {
    if (kept === 0 || sorted[kept - 1] !== position) sorted[kept++] = position
  }
  return sorted.subarray(0, kept)
}

async function readPositions(
  readColumns: ReadColumns,
  location: string,
): Promise<ReadonlyMap<string, Uint32Array>> {
  const lists = new Map<string, number[]>()
  for await (const { length, columns } of readColumns(location, positionDeleteFields)) {
    const [paths, rows] = columns
    if (paths?.layout !== 'bytes' || rows?.layout !== 'int64') throw corrupt(location)
    const text = Buffer.from(paths.values.buffer, paths.values.byteOffset, paths.values.length)
    let [last, list]: [string, number[]] = ['', []]
    for (let row = 0; row < length; row += 1) {
      const position = rows.values[row] ?? -1n
      if (position < 0n || position > 0xffff_ffffn) throw corrupt(location)
      const path = text.toString('utf8', paths.offsets[row], paths.offsets[row + 1])
      if (path !== last) {
        last = path
        list = lists.get(path) ?? []
        lists.set(path, list)
      }
      list.push(Number(position))
    }
  }
  return new Map(
    [...lists].map(([path, list]) => [path, distinct(Uint32Array.from(list).sort())] as const),
  )
}

function missing(location: string): SluiceError {
  const shown = shownLocation(location)
  return new SluiceError('DATA_CORRUPT', `${shown}: a delete file of the table is not there`, {
    details: { file: shown },
  })
}

function corrupt(location: string): SluiceError {
  const shown = shownLocation(location)
  return new SluiceError('DATA_CORRUPT', `${shown}: not a file of deleted positions`, {
    details: { file: shown },
  })
}
