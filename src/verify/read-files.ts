import type { ObjectEntry } from '../catalog/store/object-store.ts'
import { SluiceError } from '../core/errors.ts'
import { formatCount } from '../core/text.ts'
import { type Holding, holdingOf } from './coverage.ts'
import { damageOf } from './damage.ts'
import { type FileFacts, footerRows, readFacts } from './data-file.ts'
import { type CheckedFile, checkFacts, checkOrder, checkRange, checkRows } from './file-check.ts'
import type { Findings } from './findings.ts'
import { type FileEntry, type History, placeOf } from './history.ts'
import type { RoundRanges } from './lineage-check.ts'
import { type LeafMetrics, readManifest } from './manifests.ts'
import type { Metadata } from './metadata.ts'
import { StoreBlob } from './store-blob.ts'
import { normalLocation, schemeOf, type TableFiles } from './table-files.ts'
import type { Level, TableLayout } from './verify-table.ts'

/** What the live data files hold. */
export type Holdings = {
  readonly byBucket: ReadonlyMap<number, readonly Holding[]>
  /** Buckets with a file of ours whose offsets are not known. */
  readonly blind: ReadonlySet<number>
}

export type ReadFilesInput = {
  readonly metadata: Metadata
  readonly files: TableFiles
  readonly history: History
  readonly ranges: RoundRanges
  readonly layout: TableLayout
  /** Everything below the table's folder; undefined where only metadata is read. */
  readonly listing: readonly ObjectEntry[] | undefined
  readonly findings: Findings
  readonly level: Level
  /** Told of each live data file of a primary-key table whose rows were read. */
  readonly onKeyed?: (file: CheckedFile, facts: FileFacts) => void
  readonly signal?: AbortSignal | undefined
}

const manifestBytesMax = 256 * 1024 * 1024

/** Checks every live file as deep as the level says, one at a time. */
export async function readFiles(input: ReadFilesInput): Promise<Holdings> {
  const { history, files } = input
  const reading = new FilesReading(input)
  const seen = new Set<string>()
  for (const manifest of history.manifests) {
    const live = manifest.entries.filter((entry) => {
      if (entry.status === 'deleted' || seen.has(placeOf(entry))) return false
      seen.add(placeOf(entry))
      return true
    })
    const metrics =
      input.level === 'rows' && live.length > 0
        ? await metricsOf(manifest.path, files)
        : new Map<string, Metrics>()
    for (const entry of live) {
      if (input.signal?.aborted === true) throw new SluiceError('STOPPED', 'the audit was stopped')
      await reading.take(entry, metrics.get(placeOf(entry)) ?? new Map())
    }
  }
  reading.checkRemoved(seen)
  return reading
}

type Metrics = ReadonlyMap<number, LeafMetrics>

/** Statistics are read a second time, so that those of all files need not be held at once. */
async function metricsOf(path: string, files: TableFiles): Promise<ReadonlyMap<string, Metrics>> {
  const read = await files.read(path, manifestBytesMax)
  const metrics = new Map<string, Metrics>()
  if ('kind' in read) return metrics
  for (const entry of readManifest(read.body)) {
    if (entry.status !== 'deleted') metrics.set(placeOf(entry), entry.metrics)
  }
  return metrics
}

class FilesReading implements Holdings {
  readonly byBucket = new Map<number, Holding[]>()
  readonly blind = new Set<number>()
  readonly #input: ReadFilesInput
  readonly #sizes: ReadonlyMap<string, number>
  readonly #own: ReadonlySet<bigint>
  readonly #replaced: ReadonlySet<bigint>

  constructor(input: ReadFilesInput) {
    this.#input = input
    this.#sizes = new Map(
      input.listing?.map(({ location, bytes }) => [normalLocation(location), bytes]),
    )
    const { links } = input.history
    this.#own = new Set(links.filter(({ isOwn }) => isOwn).map(({ snapshot }) => snapshot.id))
    this.#replaced = new Set(
      links.filter(({ snapshot }) => snapshot.operation === 'replace').map((e) => e.snapshot.id),
    )
  }

  async take(entry: FileEntry, metrics: Metrics): Promise<void> {
    const { files, level, findings } = this.#input
    const shown = files.shown(entry.path)
    const file: CheckedFile = { entry, shown, isOwn: this.#own.has(entry.snapshot) }
    const isThere = level === 'metadata' || (await this.#checkPresence(file))
    const facts = isThere ? await this.#decode(file) : undefined
    if (facts !== undefined) checkFacts(file, facts, metrics, findings)
    if (entry.content === 'data') this.#hold(file, facts)
  }

  /** Files that were live once: their rounds are judged by what the manifests said of them. */
  checkRemoved(live: ReadonlySet<string>): void {
    const { files } = this.#input
    for (const { added } of this.#input.history.links) {
      for (const entry of added) {
        if (live.has(entry.path) || entry.content !== 'data') continue
        const shown = files.shown(entry.path)
        const holding = holdingOf(entry, shown)
        const isOwn = this.#own.has(entry.snapshot)
        if (holding === undefined || typeof entry.bucket !== 'number') continue
        this.#checkRange({ entry, shown, isOwn }, entry.bucket, holding.bounds)
      }
    }
  }

  async #checkPresence(file: CheckedFile): Promise<boolean> {
    const { files, findings } = this.#input
    const { entry, shown } = file
    const at = files.locate(entry.path)
    const place = {
      snapshotIds: [entry.snapshot],
      paths: [shown],
      ...(typeof entry.bucket === 'number' ? { bucket: entry.bucket } : {}),
    }
    if (schemeOf(at) !== schemeOf(files.folder)) {
      findings.fault({ kind: 'MISSING_FILE', ...place, detail: 'it lies in another store' })
      return false
    }
    const bytes = this.#sizes.get(at) ?? (await files.store.size(at))
    if (bytes === undefined) {
      const detail = `not there, with ${formatCount(entry.rows)} rows`
      findings.fault({ kind: 'MISSING_FILE', ...place, detail })
      return false
    }
    if (BigInt(bytes) === entry.bytes) return true
    findings.fault({
      kind: 'FILE_SIZE',
      ...place,
      expected: entry.bytes.toString(),
      found: String(bytes),
      detail: `the manifest says ${formatCount(entry.bytes)} bytes, the file has ${formatCount(bytes)}`,
    })
    return false
  }

  /** @returns what the rows say; undefined when they were not read */
  async #decode(file: CheckedFile): Promise<FileFacts | undefined> {
    const { level, files, layout, findings } = this.#input
    const { entry, shown } = file
    if (level === 'metadata' || entry.format !== 'PARQUET') return undefined
    const blob = new StoreBlob(files.store, files.locate(entry.path), 0, Number(entry.bytes))
    try {
      if (level === 'files') {
        checkRows(file, await footerRows(blob), findings)
        return undefined
      }
      return await readFacts(blob, {
        bucket: layout.bucket,
        offset: layout.offset,
        hash: layout.hashes.get(entry.specId),
        partition: entry.bucket,
      })
    } catch (error) {
      findings.fault({
        kind: 'UNREADABLE',
        snapshotIds: [entry.snapshot],
        paths: [shown],
        ...(typeof entry.bucket === 'number' ? { bucket: entry.bucket } : {}),
        detail: damageOf(error),
      })
      return undefined
    }
  }

  /** Notes what a file holds: by its rows where they were read, else by its manifest. */
  #hold(file: CheckedFile, facts: FileFacts | undefined): void {
    const { entry, shown, isOwn } = file
    const { findings, metadata } = this.#input
    const bucket = facts?.bucket ?? entry.bucket
    const isKeyed = metadata.keyColumns.length > 0
    if (isKeyed && facts !== undefined) this.#input.onKeyed?.(file, facts)
    if (typeof bucket !== 'number') return
    const isKept = isOwn || this.#replaced.has(entry.snapshot)
    // A round of a snapshot of keys and values ends where it begins, as none of its rows has an offset.
    const round = this.#input.ranges.get(entry.snapshot)?.get(bucket)
    const hasUnlogged = isKeyed && (!isOwn || round === undefined || round.start === round.end)
    if (facts !== undefined && isKept) checkOrder(file, facts, hasUnlogged, findings)
    const holding = facts === undefined ? holdingOf(entry, shown) : held(entry, shown, facts)
    if (holding === undefined) {
      if (isKept && entry.rows > 0n) this.blind.add(bucket)
      return
    }
    this.#checkRange(file, bucket, holding.bounds)
    const files = this.byBucket.get(bucket) ?? []
    this.byBucket.set(bucket, files)
    files.push(holding)
  }

  #checkRange(file: CheckedFile, bucket: number, offsets: Holding['bounds']): void {
    const { ranges, findings, history } = this.#input
    if (history.doubled.has(file.entry.path)) return
    const round = file.isOwn ? ranges.get(file.entry.snapshot) : undefined
    if (round !== undefined) checkRange(file, offsets, round.get(bucket), findings)
  }
}

function held(entry: FileEntry, shown: string, facts: FileFacts): Holding | undefined {
  const { offsets, runs } = facts
  if (offsets?.lower === undefined || offsets.upper === undefined) return undefined
  const bounds = { start: offsets.lower, end: offsets.upper + 1n }
  return { shown, snapshot: entry.snapshot, runs, bounds, count: offsets.count }
}
