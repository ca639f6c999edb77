import type { RecordBatch } from 'apache-arrow'
import { type Column, bitAt, isNull } from '../core/columns/column.ts'
import { parquetBatches } from '../core/columns/parquet-in.ts'
import { SluiceError } from '../core/errors.ts'
import { formatCount, quoteValue } from '../core/text.ts'
import { damage, damageOf } from './damage.ts'
import { columnAt } from './data-file.ts'
import { type Deletes, push } from './deletes.ts'
import { rangeText } from './file-check.ts'
import type { Findings } from './findings.ts'
import type { FileEntry, History } from './history.ts'
import { fieldIdOf } from './leaves.ts'
import type { Ledger } from './ledger.ts'
import type { Metadata } from './metadata.ts'
import type { PositionSet } from './position-set.ts'
import { type DataRows, DeleteReader } from './read-deletes.ts'
import { StoreBlob } from './store-blob.ts'
import type { TableFiles } from './table-files.ts'
import type { Level } from './verify-table.ts'

/** A live data file of a primary-key table whose rows were read. */
export type KeyedFile = DataRows & {
  readonly shown: string
  /** What it calls its columns, by id. */
  readonly names: ReadonlyMap<number, string>
  readonly bucket: number | undefined
  /** Lowest and highest offset of its rows; undefined where none has one. */
  readonly bounds:
    | { readonly lower: bigint | undefined; readonly upper: bigint | undefined }
    | undefined
}

type Context = {
  readonly metadata: Metadata
  readonly files: TableFiles
  readonly history: History
  readonly deletes: Deletes
  readonly findings: Findings
  readonly level: Level
  readonly signal?: AbortSignal | undefined
}

/** Keys in memory at once; a bucket with more is read several times. */
const keysMax = 2_000_000

/**
 * The rows that deletes leave: one for each key, with an offset of the table's ledger.
 * @returns how many there are; undefined when some file could not be read, or none was to be
 */
export async function checkKeyedRows(
  keyed: readonly KeyedFile[],
  ledger: Ledger | undefined,
  context: Context,
): Promise<bigint | undefined> {
  const { files, deletes, history, findings, level } = context
  if (level === 'metadata') return undefined
  const own = new Set(history.links.filter(({ isOwn }) => isOwn).map(({ snapshot }) => snapshot.id))
  const reader = new DeleteReader(files, deletes, own, findings)
  await reader.checkFooters()
  if (level === 'files') return undefined
  checkOffsets(keyed, ledger, context)
  const live = new Set(
    history.manifests.flatMap(({ entries }) =>
      entries.filter((each) => each.status !== 'deleted' && each.content === 'data').map(pathOf),
    ),
  )
  let [rows, isWhole] = [0n, keyed.length === live.size]
  for (const [bucket, group] of groupsOf(keyed)) {
    const found = await new Group(group, reader, context).check(bucket, live)
    rows += found ?? 0n
    isWhole &&= found !== undefined
  }
  return isWhole ? rows : undefined
}

/** By bucket; all in one where a file does not say its bucket. */
function groupsOf(
  keyed: readonly KeyedFile[],
): ReadonlyMap<number | undefined, readonly KeyedFile[]> {
  const groups = new Map<number, KeyedFile[]>()
  for (const file of keyed) {
    const bucket = file.bucket ?? file.entry.bucket
    if (typeof bucket !== 'number') return new Map([[undefined, keyed]])
    push(groups, bucket, file)
  }
  return groups
}

/** Rows that others added have no offsets of ours; all the rest is of the ledger. */
function checkOffsets(
  keyed: readonly KeyedFile[],
  ledger: Ledger | undefined,
  { history, findings }: Context,
): void {
  const foreign = new Set(
    history.links
      .filter(({ isOwn, snapshot }) => !isOwn && snapshot.operation !== 'replace')
      .map(({ snapshot }) => snapshot.id),
  )
  for (const { entry, shown, bucket = entry.bucket, bounds } of keyed) {
    if (foreign.has(entry.snapshot) || ledger === undefined || typeof bucket !== 'number') continue
    if (bounds?.lower === undefined || bounds.upper === undefined) continue
    const range = ledger.buckets.get(bucket)
    const found = { start: bounds.lower, end: bounds.upper + 1n }
    if (range !== undefined && found.start >= range.origin && found.end <= range.end) continue
    const whole =
      range === undefined ? undefined : rangeText({ start: range.origin, end: range.end })
    findings.fault({
      kind: 'OFFSETS',
      bucket,
      ...found,
      snapshotIds: [entry.snapshot],
      paths: [shown],
      ...(whole === undefined ? {} : { expected: whole }),
      found: rangeText(found),
      detail: `it has offsets ${rangeText(found)}, the table ${whole ?? 'none in this bucket'}`,
    })
  }
}

/** The files of one bucket, with what is deleted in them. */
class Group {
  readonly #files: readonly KeyedFile[]
  readonly #reader: DeleteReader
  readonly #context: Context
  readonly #deleted: (PositionSet | undefined)[] = []
  /** The highest sequence number of an equality delete, by key. */
  readonly #byKey = new Map<string, bigint>()
  #live = 0n
  #isWhole = true

  constructor(files: readonly KeyedFile[], reader: DeleteReader, context: Context) {
    this.#files = files
    this.#reader = reader
    this.#context = context
  }

  /** @returns the number of live rows, or undefined when it is not known */
  async check(bucket: number | undefined, live: ReadonlySet<string>): Promise<bigint | undefined> {
    const { deletes } = this.#context
    const isOfGroup = (entry: FileEntry): boolean =>
      bucket === undefined || typeof entry.bucket !== 'number' || entry.bucket === bucket
    const wide = await this.#reader.wide(
      deletes.wide.filter(isOfGroup),
      new Map(this.#files.map((file) => [file.entry.path, file])),
      (path) => live.has(path),
    )
    for (const file of this.#files) {
      this.#stopIfAsked()
      this.#deleted.push(await this.#reader.deleted(file, wide.get(file.entry.path)))
    }
    for (const entry of deletes.equality.filter(isOfGroup)) {
      if (!(await this.#takeEquality(entry))) return undefined
    }
    const rows = this.#files.reduce((sum, file) => sum + file.rows, 0)
    const passes = Math.max(1, Math.ceil(rows / keysMax))
    for (let pass = 0; pass < passes; pass += 1) await this.#checkKeys(pass, passes)
    return this.#isWhole ? this.#live : undefined
  }

  /** @returns whether it is known what it deletes */
  async #takeEquality(entry: FileEntry): Promise<boolean> {
    const { metadata, findings, files } = this.#context
    const ids = new Set(entry.equalityIds)
    if (
      ids.size !== metadata.keyColumns.length ||
      !metadata.keyColumns.every((id) => ids.has(id))
    ) {
      findings.warn({
        kind: 'FOREIGN',
        snapshotIds: [entry.snapshot],
        paths: [files.shown(entry.path)],
        detail: 'a delete by other columns than the key: which rows are live is not known',
      })
      return false
    }
    return this.#attempt(entry, async () => {
      for await (const keys of this.#keys(entry, undefined)) {
        for (const key of keys) {
          const known = this.#byKey.get(key)
          if (known === undefined || known < entry.sequence) this.#byKey.set(key, entry.sequence)
        }
      }
    })
  }

  /** One key in `passes` of them is looked at, so that not all are in memory. */
  async #checkKeys(pass: number, passes: number): Promise<void> {
    const places = new Map<string, number>()
    for (const [at, file] of this.#files.entries()) {
      this.#stopIfAsked()
      const deleted = this.#deleted[at]
      if (deleted === undefined) {
        this.#isWhole = false
        continue
      }
      const isRead = await this.#attempt(file.entry, async () => {
        let row = 0
        for await (const keys of this.#keys(file.entry, file.names)) {
          for (const key of keys) {
            if (!deleted.has(row) && (passes === 1 || passOf(key, passes) === pass)) {
              this.#takeKey(places, key, { at, row })
            }
            row += 1
          }
        }
      })
      if (!isRead) this.#isWhole = false
    }
  }

  #takeKey(places: Map<string, number>, key: string, place: { at: number; row: number }): void {
    const file = this.#files[place.at]
    if (file === undefined) return
    // Equality deletes are for rows of lower sequence numbers only (spec, "Scan Planning").
    if ((this.#byKey.get(key) ?? -1n) > file.entry.sequence) return
    this.#live += 1n
    const before = places.get(key)
    if (before === undefined) {
      places.set(key, place.at * 2 ** 32 + place.row)
      return
    }
    const other = this.#files[Math.floor(before / 2 ** 32)]
    if (other !== undefined) this.#doubled(key, [other, before % 2 ** 32], [file, place.row])
  }

  #doubled(
    key: string,
    first: readonly [KeyedFile, number],
    second: readonly [KeyedFile, number],
  ): void {
    const { metadata, findings } = this.#context
    const [[one, row], [other, otherRow]] = [first, second]
    const bucket = other.bucket ?? other.entry.bucket
    const columns = metadata.keyColumns
      .map((id) => metadata.columns.find((column) => column.id === id)?.name ?? String(id))
      .join(', ')
    findings.fault({
      kind: 'DUPLICATE_KEY',
      ...(typeof bucket === 'number' ? { bucket } : {}),
      snapshotIds: [...new Set([one.entry.snapshot, other.entry.snapshot])],
      paths: [...new Set([one.shown, other.shown])],
      column: columns,
      expected: '1',
      found: '2',
      detail: `the key ${columns} = ${keyText(key)} has two live rows`,
      also: `row ${formatCount(row)} of ${one.shown}, row ${formatCount(otherRow)} of ${other.shown}`,
    })
  }

  /** The keys of a file in the order of its rows. */
  async *#keys(
    entry: FileEntry,
    names: ReadonlyMap<number, string> | undefined,
  ): AsyncGenerator<readonly string[]> {
    const { metadata, files } = this.#context
    const wanted = metadata.keyColumns.map((id) => ({
      id,
      name: names?.get(id) ?? metadata.columns.find((column) => column.id === id)?.name ?? '',
    }))
    const blob = new StoreBlob(files.store, files.locate(entry.path), 0, Number(entry.bytes))
    const columns = names === undefined ? {} : { columns: wanted.map(({ name }) => name) }
    for await (const batch of parquetBatches(blob, 'the file', columns)) {
      yield keysOf(batch, wanted)
    }
  }

  async #attempt(entry: FileEntry, read: () => Promise<void>): Promise<boolean> {
    const { findings, files } = this.#context
    try {
      await read()
      return true
    } catch (error) {
      findings.fault({
        kind: 'UNREADABLE',
        snapshotIds: [entry.snapshot],
        paths: [files.shown(entry.path)],
        ...(typeof entry.bucket === 'number' ? { bucket: entry.bucket } : {}),
        detail: damageOf(error),
      })
      return false
    }
  }

  #stopIfAsked(): void {
    if (this.#context.signal?.aborted === true) {
      throw new SluiceError('STOPPED', 'the audit was stopped')
    }
  }
}

/** Keys as texts: two rows have the same key if and only if the texts are equal. */
function keysOf(
  batch: RecordBatch,
  wanted: readonly { readonly id: number; readonly name: string }[],
): readonly string[] {
  const columns = wanted.map(({ id, name }) => {
    const at = batch.schema.fields.findIndex((field) =>
      fieldIdOf(field) === undefined ? field.name === name : fieldIdOf(field) === id,
    )
    const field = batch.schema.fields[at]
    const column = field === undefined ? undefined : columnAt(batch, at, field)
    if (column === undefined) throw damage(`it has no key column ${quoteValue(name)}`)
    return column
  })
  return Array.from({ length: batch.numRows }, (_, row) =>
    columns.map((column) => valueText(column, row)).join(','),
  )
}

/** Numbers as digits, so that a column that was widened has the same text; bytes after their length. */
function valueText(column: Column, row: number): string {
  if (isNull(column, row)) return 'null'
  switch (column.layout) {
    case 'bit':
      return bitAt(column, row) ? 'true' : 'false'
    case 'int32':
    case 'int64':
      return String(column.values[row])
    case 'int128': {
      const low = BigInt.asUintN(64, column.values[2 * row] ?? 0n)
      return (((column.values[2 * row + 1] ?? 0n) << 64n) | low).toString()
    }
    case 'bytes': {
      const [from = 0, to = 0] = [column.offsets[row], column.offsets[row + 1]]
      const { buffer, byteOffset, length } = column.values
      return `${to - from}:${Buffer.from(buffer, byteOffset, length).toString('latin1', from, to)}`
    }
    default:
      throw damage(`a key column of the type ${column.type.kind}`)
  }
}

function keyText(key: string): string {
  const text = Buffer.from(key, 'latin1').toString('utf8')
  return /^-?\d+$/.test(text) ? text : quoteValue(text.replace(/^\d+:(?!.*,\d+:)/s, ''))
}

function passOf(key: string, passes: number): number {
  let hash = 0
  for (let at = 0; at < key.length; at += 1) hash = (Math.imul(hash, 31) + key.charCodeAt(at)) | 0
  return (hash >>> 0) % passes
}

function pathOf({ path }: FileEntry): string {
  return path
}
