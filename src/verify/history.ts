import { formatCount } from '../core/text.ts'
import { damage, damageOf } from './damage.ts'
import type { Findings } from './findings.ts'
import { readBound } from './leaf-tally.ts'
import { type Ledger, readLedger, unpackLedger } from './ledger.ts'
import {
  type ListedManifest,
  type ManifestCount,
  type ManifestEntry,
  type ManifestList,
  readManifest,
  readManifestList,
} from './manifests.ts'
import type { Metadata, Snapshot } from './metadata.ts'
import { checkRowIds, type RowIds } from './row-ids.ts'
import { checkTotals, type Sums, zeroSums } from './totals.ts'
import type { TableFiles } from './table-files.ts'

/** A file as one entry of a manifest names it, without its statistics. */
export type FileEntry = Omit<ManifestEntry, 'metrics' | 'partition' | 'snapshot' | 'sequence'> & {
  /** The snapshot that added or removed it. */
  readonly snapshot: bigint
  /** Deletes apply to data whose sequence number is not higher. */
  readonly sequence: bigint
  readonly specId: number
  /** All values of its partition, as text. */
  readonly partition: string
  /** The bucket its partition says; undefined where the spec has none. */
  readonly bucket: number | null | undefined
  /** Bounds of `__offset`, as the manifest has them. */
  readonly lower: bigint | undefined
  readonly upper: bigint | undefined
}

export type Manifest = {
  readonly path: string
  readonly entries: readonly FileEntry[]
  readonly sums: Sums
}

/** A snapshot of the lineage with what was found out about it. */
export type Link = {
  readonly snapshot: Snapshot
  /** Whether it says that Sluice wrote it as a round, fence, override or keepalive. */
  readonly isOwn: boolean
  /** Undefined for others, and where it cannot be read. */
  readonly ledger: Ledger | undefined
  readonly added: readonly FileEntry[]
  readonly removed: readonly FileEntry[]
}

export type History = {
  /** From the oldest snapshot of the lineage that is listed to the head. */
  readonly links: readonly Link[]
  /** A parent that is named and not listed: history before it has expired. */
  readonly missing: bigint | undefined
  /** Manifests of the head. */
  readonly manifests: readonly Manifest[]
  /** Whether every manifest of the head could be read. */
  readonly isHeadWhole: boolean
  /** Whether everything that any listed snapshot refers to could be read. */
  readonly isWhole: boolean
  /** Paths that were added twice, so that no one round can answer for them. */
  readonly doubled: ReadonlySet<string>
  /** Where everything lies that a listed snapshot refers to. */
  readonly referenced: ReadonlySet<string>
}

/** Which partition field holds the bucket, and which columns hold bucket and offset. */
export type Layout = {
  readonly offsetId: number | undefined
  readonly buckets: ReadonlyMap<number, number>
}

const listBytesMax = 512 * 1024 * 1024
const manifestBytesMax = 256 * 1024 * 1024

/** Reads the manifest lists and manifests of every listed snapshot, each once. */
export async function readHistory(
  metadata: Metadata,
  files: TableFiles,
  layout: Layout,
  findings: Findings,
): Promise<History> {
  const { chain, missing } = lineageOf(metadata)
  const reader = new HistoryReader(files, layout, findings)
  const links: Link[] = []
  let head: readonly Manifest[] | undefined = []
  let rowIds: RowIds | undefined = missing === undefined ? new Map() : undefined
  for (const snapshot of chain) {
    const list = await reader.list(snapshot)
    head = list === undefined ? undefined : await reader.manifests(list, snapshot)
    rowIds = list && checkRowIds(snapshot, list.manifests, rowIds, files.shown, findings)
    const isOwn = snapshot.summary.has('sluice.commit-id')
    const ledger = isOwn ? reader.ledger(snapshot, list) : undefined
    const { added, removed } = reader.changesOf(snapshot.id)
    links.push({ snapshot, isOwn, ledger, added, removed })
    if (head !== undefined) reader.totals(snapshot, head)
  }
  const isHeadWhole = head?.every((manifest) => !reader.isDamaged(manifest.path)) ?? false
  reader.duplicates(head ?? [])
  const inChain = new Set(chain.map(({ id }) => id))
  for (const snapshot of metadata.snapshots.values()) {
    if (inChain.has(snapshot.id)) continue
    const list = await reader.list(snapshot)
    if (list !== undefined) await reader.manifests(list, snapshot)
  }
  const { referenced, isWhole, doubled } = reader
  return { links, missing, manifests: head ?? [], isHeadWhole, isWhole, referenced, doubled }
}

function lineageOf(metadata: Metadata): {
  readonly chain: readonly Snapshot[]
  readonly missing: bigint | undefined
} {
  const chain: Snapshot[] = []
  const seen = new Set<bigint>()
  let at = metadata.head
  while (at !== undefined && !seen.has(at)) {
    const snapshot = metadata.snapshots.get(at)
    if (snapshot === undefined) return { chain: chain.reverse(), missing: at }
    seen.add(at)
    chain.push(snapshot)
    at = snapshot.parent
  }
  return { chain: chain.reverse(), missing: undefined }
}

type Changes = { readonly added: FileEntry[]; readonly removed: FileEntry[] }

class HistoryReader {
  readonly referenced = new Set<string>()
  readonly doubled = new Set<string>()
  isWhole = true
  readonly #files: TableFiles
  readonly #layout: Layout
  readonly #findings: Findings
  readonly #manifests = new Map<string, Manifest>()
  readonly #damaged = new Set<string>()
  readonly #changes = new Map<bigint, Changes>()
  readonly #addedBy = new Map<string, bigint>()
  /** By how much each total of the parent was wrong. */
  #wrong: ReadonlyMap<string, bigint> = new Map()

  constructor(files: TableFiles, layout: Layout, findings: Findings) {
    this.#files = files
    this.#layout = layout
    this.#findings = findings
  }

  isDamaged(path: string): boolean {
    return this.#damaged.has(path)
  }

  async list(snapshot: Snapshot): Promise<ManifestList | undefined> {
    const path = snapshot.manifestList
    return await this.#read(path, listBytesMax, [snapshot.id], 'the manifest list', (body) =>
      readManifestList(body),
    )
  }

  /** The manifests of a list; one that cannot be read is a fault, and has no entries. */
  async manifests(list: ManifestList, snapshot: Snapshot): Promise<readonly Manifest[]> {
    const manifests: Manifest[] = []
    const seen = new Set<string>()
    for (const listed of list.manifests) {
      if (seen.has(listed.path)) {
        this.#findings.fault({
          kind: 'DUPLICATE_FILE',
          snapshotIds: [snapshot.id],
          paths: [this.#files.shown(listed.path)],
          detail: 'a manifest is listed twice, so all of its files are',
        })
        continue
      }
      seen.add(listed.path)
      const known = this.#manifests.get(listed.path) ?? (await this.#manifest(listed, snapshot))
      this.#manifests.set(listed.path, known)
      manifests.push(known)
    }
    return manifests
  }

  ledger(snapshot: Snapshot, list: ManifestList | undefined): Ledger | undefined {
    const inline = snapshot.summary.get('sluice.ledger') ?? ''
    const isInline = inline !== '' && !inline.startsWith('manifest-list')
    if (!isInline && list === undefined) return undefined
    try {
      if (isInline) return readLedger(inline)
      const packed = list?.ledger
      if (packed !== undefined) return readLedger(unpackLedger(packed, inline))
      this.#unreadable(snapshot, 'neither its summary nor its manifest list has a ledger')
    } catch (error) {
      this.#unreadable(snapshot, damageOf(error))
    }
    return undefined
  }

  changesOf(id: bigint): Changes {
    return this.#changes.get(id) ?? { added: [], removed: [] }
  }

  totals(snapshot: Snapshot, manifests: readonly Manifest[]): void {
    if (manifests.some(({ path }) => this.#damaged.has(path))) return
    const [added, removed] = [zeroSums(), zeroSums()]
    const changes = this.changesOf(snapshot.id)
    for (const entry of changes.added) added.add(entry)
    for (const entry of changes.removed) removed.add(entry)
    const sums = zeroSums()
    for (const manifest of manifests) sums.merge(manifest.sums)
    this.#wrong = checkTotals(snapshot, { sums, added, removed }, this.#wrong, this.#findings)
  }

  /** Files that are twice in the newest snapshot, though no snapshot added them twice. */
  duplicates(manifests: readonly Manifest[]): void {
    const live = new Set<string>()
    for (const entry of manifests.flatMap(({ entries }) => entries)) {
      if (entry.status === 'deleted') continue
      if (live.has(placeOf(entry))) this.#twice(entry, entry.snapshot)
      live.add(placeOf(entry))
    }
  }

  async #manifest(listed: ListedManifest, snapshot: Snapshot): Promise<Manifest> {
    const entries = await this.#read(
      listed.path,
      manifestBytesMax,
      [snapshot.id],
      'the manifest',
      (body) => {
        const decoded = Array.from(readManifest(body), (entry) => this.#compact(entry, listed))
        this.#checkLength(listed, body.length, snapshot)
        return decoded
      },
    )
    const sums = zeroSums()
    if (entries === undefined) return { path: listed.path, entries: [], sums }
    for (const entry of entries) {
      if (entry.status !== 'deleted') {
        sums.add(entry)
        this.referenced.add(this.#files.locate(entry.path))
      }
      const changes = this.#changes.get(entry.snapshot) ?? { added: [], removed: [] }
      this.#changes.set(entry.snapshot, changes)
      if (entry.status === 'deleted') changes.removed.push(entry)
      if (entry.status !== 'added') continue
      changes.added.push(entry)
      const before = this.#addedBy.get(placeOf(entry))
      if (before === undefined) this.#addedBy.set(placeOf(entry), entry.snapshot)
      else this.#twice(entry, before)
    }
    this.#checkCounts(listed, entries, snapshot)
    return { path: listed.path, entries, sums }
  }

  #compact(entry: ManifestEntry, listed: ListedManifest): FileEntry {
    const { metrics, partition, snapshot, sequence, ...rest } = entry
    if ((entry.content === 'data') !== (listed.content === 'data')) {
      throw damage(`it is listed as a manifest of ${listed.content}, and ${entry.path} is other`)
    }
    // Only what is added inherits the number that its commit got.
    if (sequence === undefined && entry.status === 'existing' && listed.sequence > 0n) {
      throw damage(`${entry.path} is carried on without its sequence number`)
    }
    const { offsetId, buckets } = this.#layout
    const offsets = offsetId === undefined ? undefined : metrics.get(offsetId)
    const fieldId = buckets.get(listed.specId)
    return {
      ...rest,
      snapshot: snapshot ?? listed.addedBy,
      sequence: sequence ?? listed.sequence,
      partition: partitionText(partition),
      specId: listed.specId,
      bucket: fieldId === undefined ? undefined : bucketNumber(partition.get(fieldId)),
      lower: longBound(offsets?.lower),
      upper: longBound(offsets?.upper),
    }
  }

  #checkLength(listed: ListedManifest, bytes: number, snapshot: Snapshot): void {
    if (listed.bytes === BigInt(bytes)) return
    this.#findings.fault({
      kind: 'FILE_SIZE',
      snapshotIds: [snapshot.id],
      paths: [this.#files.shown(listed.path)],
      expected: listed.bytes.toString(),
      found: String(bytes),
      detail: `the list says ${formatCount(listed.bytes)} bytes, the manifest has ${formatCount(bytes)}`,
    })
  }

  /** What the list says about a manifest, against the manifest. */
  #checkCounts(listed: ListedManifest, entries: readonly FileEntry[], snapshot: Snapshot): void {
    const found = new Map<ManifestCount, bigint>()
    for (const { status, rows } of entries) {
      const [files, counted] = [`${status}_files_count`, `${status}_rows_count`] as const
      found.set(files, (found.get(files) ?? 0n) + 1n)
      found.set(counted, (found.get(counted) ?? 0n) + rows)
    }
    for (const [key, expected] of listed.counts) {
      const actual = found.get(key) ?? 0n
      if (expected === actual) continue
      this.#findings.fault({
        kind: 'TOTALS',
        snapshotIds: [snapshot.id],
        paths: [this.#files.shown(listed.path)],
        expected: expected.toString(),
        found: actual.toString(),
        detail: `the list says ${key} ${formatCount(expected)}, the manifest has ${formatCount(actual)}`,
      })
    }
  }

  #twice(entry: FileEntry, before: bigint): void {
    if (this.doubled.has(placeOf(entry))) return
    this.doubled.add(placeOf(entry))
    this.#findings.fault({
      kind: 'DUPLICATE_FILE',
      ...(typeof entry.bucket === 'number' ? { bucket: entry.bucket } : {}),
      snapshotIds: before === entry.snapshot ? [before] : [before, entry.snapshot],
      paths: [this.#files.shown(entry.path)],
      detail:
        entry.content === 'data'
          ? `added twice, so ${formatCount(entry.rows)} rows are readable twice`
          : 'a delete is added twice',
    })
  }

  async #read<T>(
    path: string,
    bytesMax: number,
    snapshotIds: readonly bigint[],
    what: string,
    decode: (body: Uint8Array) => T,
  ): Promise<T | undefined> {
    this.referenced.add(this.#files.locate(path))
    const read =
      path === ''
        ? ({ kind: 'UNREADABLE', detail: 'the metadata names none' } as const)
        : await this.#files.read(path, bytesMax)
    let detail: string
    if ('kind' in read) detail = read.detail
    else {
      try {
        return decode(read.body)
      } catch (error) {
        detail = damageOf(error)
      }
    }
    this.isWhole = false
    this.#damaged.add(path)
    this.#findings.fault({
      kind: 'kind' in read ? read.kind : 'UNREADABLE',
      snapshotIds,
      paths: path === '' ? [] : [this.#files.shown(path)],
      detail: `${what}: ${detail}`,
    })
    return undefined
  }

  #unreadable(snapshot: Snapshot, detail: string): void {
    this.#findings.fault({ kind: 'UNREADABLE', snapshotIds: [snapshot.id], paths: [], detail })
  }
}

/** Vectors share a file; a place names one of them. */
export function placeOf({ path, blob }: Pick<FileEntry, 'path' | 'blob'>): string {
  return blob === undefined ? path : `${path}#${blob.offset.toString()}`
}

function partitionText(partition: ReadonlyMap<number, unknown>): string {
  const shown = (value: unknown): string =>
    value instanceof Uint8Array ? Buffer.from(value).toString('hex') : String(value)
  return Array.from(partition, ([id, value]) => `${id}=${shown(value)}`).join(', ')
}

function bucketNumber(value: unknown): number | null | undefined {
  if (value === null || typeof value === 'number') return value
  return typeof value === 'bigint' ? Number(value) : undefined
}

function longBound(bytes: Uint8Array | undefined): bigint | undefined {
  const value = bytes === undefined ? undefined : readBound('int64', bytes)
  return typeof value === 'bigint' ? value : undefined
}
