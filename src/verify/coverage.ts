import { counted, formatCount } from '../core/text.ts'
import { rangeText } from './file-check.ts'
import type { Findings } from './findings.ts'
import type { FileEntry, Link } from './history.ts'
import { type DeclaredGap, showToken } from './ledger.ts'
import type { RoundRanges } from './lineage-check.ts'
import type { Run } from './offsets.ts'
import { type Overlap, type Piece, tile, without } from './tiling.ts'

/** What one file holds of a bucket. */
export type Holding = {
  readonly shown: string
  readonly snapshot: bigint
  /** Undefined when only their number and bounds are known. */
  readonly runs: readonly Run[] | undefined
  readonly bounds: Run
  readonly count: bigint
}

export type Expected = {
  /** The offsets that the rows of each bucket should have. */
  readonly wholes: ReadonlyMap<number, Run>
  readonly declared: readonly DeclaredGap[]
  /** Removed by other writers on purpose, by bucket. */
  readonly removed: ReadonlyMap<number, readonly Run[]>
  /** Buckets some of whose offsets are not known: nothing can be said to be missing there. */
  readonly blind: ReadonlySet<number>
  /** False when a manifest could not be read: then nothing can be said to be missing. */
  readonly isWhole: boolean
}

/** Whether the files of each bucket hold each of its offsets once: no `GAP`, no `OVERLAP`. */
export function checkCoverage(
  holdings: ReadonlyMap<number, readonly Holding[]>,
  expected: Expected,
  context: {
    readonly links: readonly Link[]
    readonly ranges: RoundRanges
    readonly findings: Findings
  },
): void {
  const buckets = [...expected.wholes].sort(([a], [b]) => a - b)
  for (const [bucket, whole] of buckets) {
    const held = holdings.get(bucket) ?? []
    const pieces: Piece<Holding>[] = held.flatMap((file) =>
      (file.runs ?? []).map((run) => ({ ...run, file })),
    )
    const holes = expected.declared
      .filter((gap) => gap.bucket === bucket)
      .map(({ from, to }) => ({ start: from, end: to }))
    const { gaps, overlaps } = tile(pieces, holes, whole)
    for (const overlap of overlaps) tellOverlap(bucket, overlap, context)
    const left = gaps.flatMap((gap) => without(gap, expected.removed.get(bucket) ?? []))
    const counted = held.filter(({ runs }) => runs === undefined)
    const mayMiss = expected.isWhole && !expected.blind.has(bucket)
    if (counted.length > 0) compareCounts(bucket, left, counted, mayMiss, context.findings)
    else if (mayMiss) for (const gap of left) tellGap(bucket, gap, whole, context)
  }
}

/** The offsets that files removed by other writers held; a `replace` must keep its rows. */
export function removedByOthers(links: readonly Link[]): ReadonlyMap<number, readonly Run[]> {
  const removed = new Map<number, Run[]>()
  for (const { isOwn, snapshot, removed: entries } of links) {
    if (isOwn || (snapshot.operation !== 'delete' && snapshot.operation !== 'overwrite')) continue
    for (const { bucket, lower, upper } of entries) {
      if (typeof bucket !== 'number' || lower === undefined || upper === undefined) continue
      const runs = removed.get(bucket) ?? []
      removed.set(bucket, runs)
      runs.push({ start: lower, end: upper + 1n })
    }
  }
  return removed
}

/** What the bounds of a manifest say; undefined when they say nothing or the rows are not of a log. */
export function holdingOf(entry: FileEntry, shown: string): Holding | undefined {
  const { lower, upper, rows, snapshot } = entry
  if (lower === undefined || upper === undefined || lower < 0n || upper < lower) return undefined
  const bounds = { start: lower, end: upper + 1n }
  const runs = bounds.end - bounds.start === rows ? [bounds] : undefined
  return { shown, snapshot, runs, bounds, count: rows }
}

type Context = Parameters<typeof checkCoverage>[2]

function tellOverlap(bucket: number, overlap: Overlap<Holding>, context: Context): void {
  const { start, end, first, second } = overlap
  const ids = [...new Set([first.snapshot, second.snapshot])]
  const names = ids.map((id) => snapshotText(id, context.links))
  const where =
    names.length > 1 ? `snapshot ${names.join(' and ')}` : `two files of snapshot ${names.join('')}`
  const rows = end - start
  context.findings.fault({
    kind: 'OVERLAP',
    bucket,
    start,
    end,
    snapshotIds: ids,
    paths: [first.shown, second.shown],
    detail: `in ${where}`,
    also: `${counted(rows, 'row')} ${rows === 1n ? 'is' : 'are'} readable twice; files ${first.shown}, ${second.shown}`,
  })
}

function tellGap(bucket: number, gap: Run, whole: Run, context: Context): void {
  const { links, ranges, findings } = context
  const round = links.find(({ snapshot }) => {
    const range = ranges.get(snapshot.id)?.get(bucket)
    return range !== undefined && range.start <= gap.start && gap.start < range.end
  })
  findings.fault({
    kind: 'GAP',
    bucket,
    ...gap,
    snapshotIds: round === undefined ? [] : [round.snapshot.id],
    paths: [],
    detail: `in no file, although the lake end is ${formatCount(whole.end)}`,
    ...(round === undefined
      ? {}
      : { also: `they are of snapshot ${snapshotText(round.snapshot.id, links)}` }),
  })
}

/** Where offsets of a file are mixed too much to be listed, their number must fit what is left. */
function compareCounts(
  bucket: number,
  left: readonly Run[],
  files: readonly Holding[],
  mayMiss: boolean,
  findings: Findings,
): void {
  const missing = left.reduce((sum, { start, end }) => sum + end - start, 0n)
  const held = files.reduce((sum, { count }) => sum + count, 0n)
  if (missing === held || (missing > held && !mayMiss)) return
  const [first] = left
  const last = left.at(-1)
  const detail = `by count: files with mixed offsets hold ${counted(held, 'row')}, ${formatCount(missing)} are left to hold`
  findings.fault({
    kind: missing > held ? 'GAP' : 'OVERLAP',
    bucket,
    ...(first === undefined || last === undefined ? {} : { start: first.start, end: last.end }),
    snapshotIds: [...new Set(files.map(({ snapshot }) => snapshot))],
    paths: files.slice(0, 10).map(({ shown }) => shown),
    detail,
    also: files
      .slice(0, 10)
      .map(({ bounds, shown }) => `${shown} within ${rangeText(bounds)}`)
      .join(', '),
  })
}

/** `6204118… (round 8, epoch 1.3)`. */
function snapshotText(id: bigint, links: readonly Link[]): string {
  const ledger = links.find(({ snapshot }) => snapshot.id === id)?.ledger
  if (ledger === undefined) return id.toString()
  return `${id.toString()} (round ${ledger.round}, epoch ${showToken(ledger.token)})`
}
