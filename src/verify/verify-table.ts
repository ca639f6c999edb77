import type { ObjectStore } from '../catalog/store/object-store.ts'
import { checkCoverage, removedByOthers } from './coverage.ts'
import { damageOf } from './damage.ts'
import { checkDeletes } from './deletes.ts'
import { type Fault, Findings, type Warning } from './findings.ts'
import { type FileEntry, type History, type Layout, readHistory } from './history.ts'
import { checkKeyedRows, type KeyedFile } from './keyed-rows.ts'
import type { DeclaredGap } from './ledger.ts'
import { checkLineage, expiredCount, warnOfHistory } from './lineage-check.ts'
import { type Metadata, readMetadata } from './metadata.ts'
import type { Run } from './offsets.ts'
import { warnOfOrphans } from './orphans.ts'
import { checkProgress, type Progress } from './progress-check.ts'
import { type Holdings, readFiles } from './read-files.ts'
import { checkNextRowId } from './row-ids.ts'
import { normalLocation, tableFiles } from './table-files.ts'

/**
 * How deep an audit goes: metadata, manifests and ledgers; that every file is there, with its length
 * and its number of rows; or every value of every row.
 */
export const levels = ['metadata', 'files', 'rows'] as const
export type Level = (typeof levels)[number]

export type TableReport = {
  readonly table: string
  readonly level: Level
  readonly snapshotId: bigint | undefined
  readonly snapshotsChecked: number
  /** Snapshots of the lineage that are gone, as far as the sequence numbers tell. */
  readonly snapshotsSkipped: bigint
  /** Live data files and their rows, without the deleted ones of a primary-key table. */
  readonly files: number
  readonly rows: bigint
  /** Whether Sluice ever wrote to the table; else there are no offsets to audit. */
  readonly isTiered: boolean
  /** Made to be tiered into, and nobody has written to it yet. */
  readonly isUntouched: boolean
  readonly lakeEnds: readonly { readonly bucket: number; readonly end: bigint }[]
  readonly declaredGaps: readonly DeclaredGap[]
  /** Snapshots by which an operator set how far the table is. */
  readonly decisions: readonly Decision[]
  /** The first of each kind; `faultCount` counts all. */
  readonly faults: readonly Fault[]
  readonly faultCount: number
  readonly warnings: readonly Warning[]
}

export type Decision = {
  readonly snapshotId: bigint
  /** `override` or `resync`. */
  readonly kind: string
  /** Empty where the summary does not say it. */
  readonly reason: string
  readonly by: string
}

const metadataBytesMax = 256 * 1024 * 1024

/**
 * Audits one table from the lake alone.
 * @param location One of its metadata files.
 * @throws SluiceError STORE_UNAVAILABLE, STORE_DENIED: then there is no verdict
 */
export async function verifyTable(
  store: ObjectStore,
  table: {
    readonly name: string
    readonly location: string
    /** Metadata files above a hole in the numbers. */
    readonly strays?: readonly string[]
  },
  options: { readonly level: Level; readonly signal?: AbortSignal | undefined },
): Promise<TableReport> {
  const { level } = options
  const findings = new Findings()
  const at = normalLocation(table.location)
  const outside = await tableFiles(store, at, { location: at, probe: undefined })
  for (const stray of table.strays ?? []) {
    findings.warn({
      kind: 'ORPHAN',
      paths: [outside.shown(stray)],
      detail: strayText(outside.shown(at)),
    })
  }
  const read = await outside.read(at, metadataBytesMax)
  const metadata = 'kind' in read ? read : decoded(read.body)
  if ('kind' in metadata) {
    findings.fault({ kind: metadata.kind, paths: [outside.shown(at)], detail: metadata.detail })
    return reportOf({ table: table.name, level, findings })
  }
  const files = await tableFiles(store, at, {
    location: metadata.location,
    probe: probeOf(metadata),
  })
  const layout = layoutOf(metadata)
  const history = await readHistory(metadata, files, layout.partition, findings)
  const ranges = checkLineage(metadata, history, findings)
  warnOfHistory(metadata, history, findings)
  checkNextRowId(metadata, findings)
  const isKeyed = metadata.keyColumns.length > 0
  // The last change of a bucket may have left no row, so the rows of a key prove no end.
  const proof = isKeyed ? undefined : dataEnds(history)
  const progress = checkProgress(metadata, history, proof, findings)
  const listing = level === 'metadata' ? undefined : await store.list(`${files.folder}/`)
  const keyed: KeyedFile[] = []
  const held = await readFiles({
    metadata,
    files,
    history,
    ranges,
    layout,
    listing,
    findings,
    onKeyed: ({ entry, shown }, { rows, names, bucket, offsets }) => {
      const bounds = offsets?.count ? { lower: offsets.lower, upper: offsets.upper } : undefined
      keyed.push({ entry, shown, rows: Number(rows), names, bucket, bounds })
    },
    ...options,
  })
  // A table of others may name a key that nothing keeps unique.
  let rows: bigint | undefined
  if (isKeyed && layout.offset !== undefined) {
    const deletes = checkDeletes(history, metadata, files.shown, findings)
    const context = { metadata, files, history, deletes, findings, ...options }
    rows = (await checkKeyedRows(keyed, progress.ledger, context)) ?? deletes.rows
  }
  // A primary-key table holds the last row of each key, so its offsets have holes.
  if (!isKeyed) {
    checkCoverage(held.byBucket, expectedOf(progress, history, held), {
      links: history.links,
      ranges,
      findings,
    })
  }
  if (listing !== undefined) warnOfOrphans(listing, metadata, files, history, findings)
  return reportOf({ table: table.name, level, findings, metadata, history, progress, rows })
}

function strayText(head: string): string {
  return `it lies above a hole in the numbers, and ${head} below it is the newest; move it away before the hole is filled`
}

function decoded(
  body: Uint8Array,
): Metadata | { readonly kind: 'UNREADABLE'; readonly detail: string } {
  try {
    return readMetadata(body)
  } catch (error) {
    return { kind: 'UNREADABLE', detail: damageOf(error) }
  }
}

function probeOf({ snapshots, head }: Metadata): string | undefined {
  const list = head === undefined ? undefined : snapshots.get(head)?.manifestList
  return list === '' ? undefined : list
}

/** Which columns and which partition field say bucket and offset. */
export type TableLayout = {
  readonly bucket: { readonly id: number; readonly name: string } | undefined
  readonly offset: { readonly id: number; readonly name: string } | undefined
  readonly partition: Layout
  /** The bucket transform of each spec that has one. */
  readonly hashes: ReadonlyMap<number, { readonly columnId: number; readonly buckets: number }>
}

function layoutOf({ columns, specs }: Metadata): TableLayout {
  const bucket = columns.find(({ name }) => name === '__bucket')
  const offset = columns.find(({ name }) => name === '__offset')
  const buckets = new Map<number, number>()
  const hashes = new Map<number, { readonly columnId: number; readonly buckets: number }>()
  for (const [specId, fields] of specs) {
    for (const { fieldId, sourceId, transform } of fields) {
      const count = /^bucket\[(\d{1,9})\]$/.exec(transform)?.[1]
      const isIdentity = transform === 'identity' && sourceId === bucket?.id
      if (buckets.has(specId) || sourceId === undefined || (!isIdentity && !count)) continue
      buckets.set(specId, fieldId)
      if (count !== undefined && Number(count) > 0) {
        hashes.set(specId, { columnId: sourceId, buckets: Number(count) })
      }
    }
  }
  return { bucket, offset, hashes, partition: { offsetId: offset?.id, buckets } }
}

function liveData(history: History): readonly FileEntry[] {
  return history.manifests.flatMap(({ entries }) =>
    entries.filter(({ status, content }) => status !== 'deleted' && content === 'data'),
  )
}

/** By the bounds of the manifests: what a copy of the ends may be proven by. */
function dataEnds(history: History): ReadonlyMap<number, bigint> | undefined {
  const ends = new Map<number, bigint>()
  for (const { bucket, upper } of liveData(history)) {
    if (typeof bucket !== 'number' || upper === undefined) return undefined
    if (upper + 1n > (ends.get(bucket) ?? 0n)) ends.set(bucket, upper + 1n)
  }
  return history.isHeadWhole ? ends : undefined
}

function expectedOf(
  { ledger, ends }: Progress,
  history: History,
  held: Holdings,
): Parameters<typeof checkCoverage>[1] {
  const wholes = new Map<number, Run>()
  for (const [bucket, { origin, end }] of ledger?.buckets ?? []) {
    wholes.set(bucket, { start: origin, end })
  }
  // Where only the ends are known, the rows that are there begin it.
  for (const [bucket, end] of ends ?? []) {
    const starts = (held.byBucket.get(bucket) ?? []).map(({ bounds }) => bounds.start)
    const start = starts.reduce((least, each) => (each < least ? each : least), end)
    wholes.set(bucket, { start, end })
  }
  return {
    wholes,
    declared: ledger?.gaps ?? [],
    removed: removedByOthers(history.links),
    blind: held.blind,
    isWhole: history.isHeadWhole,
  }
}

function decisionsIn({ links }: History): readonly Decision[] {
  return links.flatMap(({ ledger, snapshot: { id, summary } }) => {
    if (ledger?.kind !== 'override' && ledger?.kind !== 'resync') return []
    const text = (key: string): string => summary.get(key) ?? ''
    return [
      { snapshotId: id, kind: ledger.kind, reason: text('sluice.reason'), by: text('sluice.by') },
    ]
  })
}

function reportOf(of: {
  readonly table: string
  readonly level: Level
  readonly findings: Findings
  readonly metadata?: Metadata
  readonly history?: History
  readonly progress?: Progress
  /** Live rows of a primary-key table. */
  readonly rows?: bigint | undefined
}): TableReport {
  const { table, level, findings, history, progress, metadata } = of
  const live = history === undefined ? [] : liveData(history)
  const ends =
    progress?.ledger === undefined
      ? [...(progress?.ends ?? [])]
      : [...progress.ledger.buckets].map(([bucket, { end }]) => [bucket, end] as const)
  return {
    table,
    level,
    snapshotId: metadata?.head,
    snapshotsChecked: history?.links.length ?? 0,
    snapshotsSkipped: history === undefined ? 0n : expiredCount(history),
    files: live.length,
    rows: of.rows ?? live.reduce((sum, { rows }) => sum + rows, 0n),
    isTiered: ends.length > 0 || history?.links.some(({ isOwn }) => isOwn) === true,
    isUntouched:
      metadata?.snapshots.size === 0 && metadata.columns.some(({ name }) => name === '__offset'),
    lakeEnds: ends.map(([bucket, end]) => ({ bucket, end })).sort((a, b) => a.bucket - b.bucket),
    declaredGaps: progress?.ledger?.gaps ?? [],
    decisions: history === undefined ? [] : decisionsIn(history),
    faults: findings.faults(),
    faultCount: findings.faultCount,
    warnings: findings.warnings(),
  }
}
