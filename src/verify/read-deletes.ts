import { parquetBatches } from '../core/columns/parquet-in.ts'
import { formatCount } from '../core/text.ts'
import { damage, damageOf } from './damage.ts'
import { columnAt } from './data-file.ts'
import { applies, type Deletes, isVector, push } from './deletes.ts'
import type { Fault, Findings } from './findings.ts'
import type { FileEntry } from './history.ts'
import { PositionSet } from './position-set.ts'
import { type PuffinBlob, readPuffinFooter, readVector } from './puffin.ts'
import { StoreBlob } from './store-blob.ts'
import type { TableFiles } from './table-files.ts'

/** A live data file, and how many rows it was found to have. */
export type DataRows = { readonly entry: FileEntry; readonly rows: number }

/** Reserved ids of the columns of a position delete file (spec, "Reserved Field IDs"). */
const [pathId, positionId] = [2_147_483_546, 2_147_483_545]

/** Reads delete files, each into a set of positions, and holds them to what is said of them. */
export class DeleteReader {
  readonly #files: TableFiles
  readonly #deletes: Deletes
  readonly #own: ReadonlySet<bigint>
  readonly #findings: Findings
  /** Deletes of several files, with the files they point into that are not there. */
  readonly #told = new Set<string>()

  constructor(files: TableFiles, deletes: Deletes, own: ReadonlySet<bigint>, findings: Findings) {
    this.#files = files
    this.#deletes = deletes
    this.#own = own
    this.#findings = findings
  }

  /** The footers of Puffin files, against the manifests that name their vectors. */
  async checkFooters(): Promise<void> {
    const vectors = new Map<string, FileEntry[]>()
    for (const entry of [...this.#deletes.byFile.values()].flat().filter(isVector)) {
      push(vectors, entry.path, entry)
    }
    for (const entries of vectors.values()) {
      const [first] = entries
      if (first === undefined || !(await this.#isThere(first))) continue
      await this.#attempt(first, async () => {
        const blobs = await readPuffinFooter(this.#blob(first))
        for (const entry of entries) this.#checkBlob(entry, blobs)
      })
    }
  }

  /**
   * The deleted rows of a data file: those of its vector, else of all its position deletes.
   * @param wide Those that deletes of several files say.
   * @returns undefined when some cannot be read
   */
  async deleted(data: DataRows, wide: PositionSet | undefined): Promise<PositionSet | undefined> {
    const { path } = data.entry
    const entries = this.#deletes.byFile.get(path) ?? []
    const vectors = entries.filter(isVector)
    const others = entries.filter((entry) => !isVector(entry))
    const deleted = new PositionSet(data.rows)
    const beside: { readonly entry: FileEntry | undefined; readonly set: PositionSet }[] = []
    for (const entry of [...vectors, ...others]) {
      const set = await this.#positions(entry, data, true)
      if (set === undefined) return undefined
      // A vector stands for all deletes of its file.
      if (isVector(entry) || vectors.length === 0) deleted.addAll(set)
      else beside.push({ entry, set })
    }
    if (wide !== undefined && vectors.length === 0) deleted.addAll(wide)
    else if (wide !== undefined) beside.push({ entry: undefined, set: wide })
    for (const { entry, set } of beside) this.#checkKept(data, deleted, set, entry)
    for (const entry of this.#deletes.dropped.get(path) ?? []) {
      const set = await this.#positions(entry, data, false)
      if (set !== undefined) this.#checkKept(data, deleted, set, entry)
    }
    return deleted
  }

  /** Positions of deletes of several files, for those of the given files that they apply to. */
  async wide(
    entries: readonly FileEntry[],
    files: ReadonlyMap<string, DataRows>,
    isLive: (path: string) => boolean,
  ): Promise<ReadonlyMap<string, PositionSet>> {
    const sets = new Map<string, PositionSet>()
    for (const entry of entries) {
      if (!(await this.#isThere(entry))) continue
      const gone = new Set<string>()
      const beyond = new Map<string, number>()
      await this.#attempt(entry, async () => {
        for await (const [path, position] of this.#rows(entry)) {
          const data = files.get(path)
          if (data === undefined) {
            if (!isLive(path) && !this.#told.has(`${entry.path} ${path}`)) gone.add(path)
            continue
          }
          if (!applies(entry, data.entry)) continue
          const set = sets.get(path) ?? new PositionSet(data.rows)
          sets.set(path, set)
          set.add(position, position + 1)
          if (position >= data.rows) beyond.set(path, position)
        }
      })
      for (const path of gone) {
        this.#told.add(`${entry.path} ${path}`)
        const detail = `it points into ${this.#files.shown(path)}, which is not in the snapshot`
        this.#fault('DANGLING_DELETE', entry, { detail })
      }
      for (const [path, position] of beyond) {
        const data = files.get(path)
        if (data !== undefined) this.#beyond(entry, data, position)
      }
    }
    return sets
  }

  /** @returns undefined when it cannot be read, which is told; for a dropped one, if it is gone */
  async #positions(
    entry: FileEntry,
    data: DataRows,
    isLive: boolean,
  ): Promise<PositionSet | undefined> {
    if (!(await this.#isThere(entry))) {
      const isNeeded = !isLive && entry.snapshot !== this.#deletes.oldest
      if (isNeeded)
        this.#fault('MISSING_FILE', entry, { detail: 'not there, and a listed snapshot needs it' })
      return undefined
    }
    const set = new PositionSet(data.rows)
    const isRead = await this.#attempt(entry, () =>
      isVector(entry) ? this.#readVector(entry, set) : this.#readFile(entry, set, isLive),
    )
    if (!isRead) return undefined
    if (set.beyond !== undefined) this.#beyond(entry, data, set.beyond)
    return set
  }

  async #readVector(entry: FileEntry, set: PositionSet): Promise<void> {
    const { offset = 0n, bytes = 0n } = entry.blob ?? {}
    if (offset < 0n || offset + bytes > entry.bytes) throw damage('its vector lies beyond its end')
    const [from, to] = [Number(offset), Number(offset + bytes)]
    const blob = this.#blob(entry).slice(from, to)
    const count = readVector(new Uint8Array(await blob.arrayBuffer()), (start, end) => {
      set.add(start, end)
    })
    if (BigInt(count) === entry.rows) return
    this.#fault('ROWCOUNT', entry, {
      expected: entry.rows.toString(),
      found: String(count),
      detail: `the manifest says ${formatCount(entry.rows)} positions, the vector has ${formatCount(count)}`,
    })
  }

  async #readFile(entry: FileEntry, set: PositionSet, isLive: boolean): Promise<void> {
    let before = -1
    let stray: string | undefined
    let disorder: number | undefined
    for await (const [path, position] of this.#rows(entry)) {
      if (path !== entry.dataFile) stray ??= path
      else set.add(position, position + 1)
      if (position <= before) disorder ??= position
      before = position
    }
    if (stray !== undefined) {
      const detail = `it deletes in ${this.#files.shown(stray)}, its manifest names ${this.#files.shown(entry.dataFile ?? '')}`
      this.#fault('DANGLING_DELETE', entry, { detail })
    }
    if (disorder === undefined || !isLive || !this.#own.has(entry.snapshot)) return
    const detail = `position ${formatCount(disorder)} is out of order or twice`
    this.#fault('OFFSETS', entry, { detail })
  }

  async *#rows(entry: FileEntry): AsyncGenerator<readonly [path: string, position: number]> {
    for await (const batch of parquetBatches(this.#blob(entry), 'the file')) {
      const [paths, positions] = [pathId, positionId].map((id) => {
        const at = batch.schema.fields.findIndex(
          ({ metadata }) => metadata.get('PARQUET:field_id') === String(id),
        )
        const field = batch.schema.fields[at]
        return field === undefined ? undefined : columnAt(batch, at, field)
      })
      if (paths?.layout !== 'bytes' || positions?.layout !== 'int64') {
        throw damage('it has no columns of paths and positions')
      }
      const text = Buffer.from(paths.values.buffer, paths.values.byteOffset, paths.values.length)
      for (let row = 0; row < batch.numRows; row += 1) {
        const path = text.toString('utf8', paths.offsets[row], paths.offsets[row + 1])
        yield [path, Number(positions.values[row] ?? 0n)]
      }
    }
  }

  /** Rows once deleted stay so: whatever a replaced delete said, the deletes of now must say. */
  #checkKept(
    data: DataRows,
    now: PositionSet,
    before: PositionSet,
    entry: FileEntry | undefined,
  ): void {
    let [lost, first]: [number, number | undefined] = [0, undefined]
    for (const row of before) {
      if (now.has(row)) continue
      first ??= row
      lost += 1
    }
    if (first === undefined) return
    const vector = this.#deletes.byFile.get(data.entry.path)?.find(isVector) ?? data.entry
    const ids = [entry?.snapshot, vector.snapshot].filter((id) => id !== undefined)
    const by = entry === undefined ? 'by a delete of several files' : this.#files.shown(entry.path)
    this.#fault('REWIND', vector, {
      snapshotIds: [...new Set(ids)],
      expected: String(before.count),
      found: String(before.count - lost),
      detail: `${lost === 1 ? '1 row' : `${formatCount(lost)} rows`} of ${this.#files.shown(data.entry.path)} that ${lost === 1 ? 'was' : 'were'} deleted ${lost === 1 ? 'is' : 'are'} live again, the first is row ${formatCount(first)}`,
      also: `deleted in ${by}`,
    })
  }

  #checkBlob(entry: FileEntry, blobs: readonly PuffinBlob[] | undefined): void {
    if (blobs === undefined) return
    const blob = blobs.find(({ offset }) => offset === entry.blob?.offset)
    if (blob?.bytes !== entry.blob?.bytes || blob?.type !== 'deletion-vector-v1') {
      const detail = `its footer has no deletion vector of ${formatCount(entry.blob?.bytes ?? 0n)} bytes at byte ${formatCount(entry.blob?.offset ?? 0n)}`
      this.#fault('UNREADABLE', entry, { detail })
      return
    }
    if (blob.codec !== undefined) {
      this.#fault('UNREADABLE', entry, { detail: 'a deletion vector that is compressed' })
    }
    const dataFile = blob.properties.get('referenced-data-file') ?? ''
    if (dataFile !== entry.dataFile) {
      this.#fault('DANGLING_DELETE', entry, {
        expected: entry.dataFile ?? '',
        found: dataFile,
        detail: `its footer says it is of ${this.#files.shown(dataFile)}, its manifest of ${this.#files.shown(entry.dataFile ?? '')}`,
      })
    }
    const cardinality = blob.properties.get('cardinality') ?? ''
    if (cardinality === entry.rows.toString()) return
    this.#fault('ROWCOUNT', entry, {
      expected: entry.rows.toString(),
      found: cardinality,
      detail: `the manifest says ${formatCount(entry.rows)} positions, its footer ${cardinality || 'nothing'}`,
    })
  }

  #beyond(entry: FileEntry, data: DataRows, position: number): void {
    const file = this.#files.shown(data.entry.path)
    this.#fault('DANGLING_DELETE', entry, {
      found: String(position),
      detail: `it deletes row ${formatCount(position)} of ${file}, which has ${formatCount(data.rows)} rows`,
    })
  }

  /** Whether the file is there as its manifest says; what it is instead was told when it was listed. */
  async #isThere({ path, bytes }: FileEntry): Promise<boolean> {
    const found = await this.#files.store.size(this.#files.locate(path))
    return found !== undefined && BigInt(found) === bytes
  }

  #blob({ path, bytes }: FileEntry): StoreBlob {
    return new StoreBlob(this.#files.store, this.#files.locate(path), 0, Number(bytes))
  }

  async #attempt(entry: FileEntry, read: () => Promise<void>): Promise<boolean> {
    try {
      await read()
      return true
    } catch (error) {
      this.#fault('UNREADABLE', entry, { detail: damageOf(error) })
      return false
    }
  }

  #fault(
    kind: Fault['kind'],
    entry: FileEntry,
    what: Omit<Fault, 'kind' | 'bucket' | 'paths'>,
  ): void {
    this.#findings.fault({
      kind,
      ...(typeof entry.bucket === 'number' ? { bucket: entry.bucket } : {}),
      snapshotIds: [entry.snapshot],
      paths: [this.#files.shown(entry.path)],
      ...what,
    })
  }
}
