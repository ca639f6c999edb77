import { counted, formatCount, quoteValue } from '../core/text.ts'
import type { FileFacts } from './data-file.ts'
import type { Findings } from './findings.ts'
import type { FileEntry } from './history.ts'
import { type Comparable, compare, type LeafTally, readBound } from './leaf-tally.ts'
import type { LeafMetrics } from './manifests.ts'
import type { Run } from './offsets.ts'

/** A data file under check. */
export type CheckedFile = {
  readonly entry: FileEntry
  readonly shown: string
  /** Added by a snapshot of ours, which promises more than others do. */
  readonly isOwn: boolean
}

/** What the rows of a file say, against what its manifest says. */
export function checkFacts(
  file: CheckedFile,
  facts: FileFacts,
  metrics: ReadonlyMap<number, LeafMetrics>,
  findings: Findings,
): void {
  const hasItsRows = checkRows(file, facts.rows, findings)
  checkBucket(file, facts, findings)
  for (const [id, leaf] of metrics) {
    const tally = facts.tallies.get(id)
    if (tally === undefined) continue
    if (hasItsRows) checkCounts(file, leaf, tally, findings)
    checkBound(file, 'lower', leaf.lower, tally, findings)
    checkBound(file, 'upper', leaf.upper, tally, findings)
  }
}

/** @returns whether the file has as many rows as its manifest says. */
export function checkRows(file: CheckedFile, rows: bigint, findings: Findings): boolean {
  const { entry } = file
  if (rows === entry.rows) return true
  findings.fault({
    kind: 'ROWCOUNT',
    ...placeOf(file),
    expected: entry.rows.toString(),
    found: rows.toString(),
    detail: `the manifest says ${counted(entry.rows, 'row')}, the file has ${formatCount(rows)}`,
  })
  return false
}

/**
 * Offsets that are out of order, doubled or missing inside one file.
 * @param hasUnlogged Whether it may have rows of a key-value snapshot.
 */
export function checkOrder(
  file: CheckedFile,
  facts: FileFacts,
  hasUnlogged: boolean,
  findings: Findings,
): void {
  const { offsets } = facts
  if (offsets === undefined) {
    if (file.isOwn) offsetFault(file, 'it has no __offset column', findings)
    return
  }
  const { disorder, doubled, count, unlogged } = offsets
  if (doubled !== undefined) {
    offsetFault(file, `offset ${formatCount(doubled)} is in it twice`, findings)
  } else if (disorder !== undefined && file.isOwn) {
    const { row, before, offset } = disorder
    const detail = `row ${formatCount(row)} has offset ${formatCount(offset)} after ${formatCount(before)}`
    offsetFault(file, detail, findings)
  }
  const without = facts.rows - count - (hasUnlogged ? unlogged : 0n)
  if (file.isOwn && without !== 0n) {
    const detail = `${counted(without, 'row')} without an offset`
    offsetFault(file, detail, findings)
  }
}

/**
 * Whether the offsets of a file are among those its round added.
 * @param range Undefined when the round has no end for the bucket.
 */
export function checkRange(
  file: CheckedFile,
  offsets: Run,
  range: Run | undefined,
  findings: Findings,
): void {
  if (range !== undefined && offsets.start >= range.start && offsets.end <= range.end) return
  const found = rangeText(offsets)
  findings.fault({
    kind: 'OFFSETS',
    ...placeOf(file),
    start: offsets.start,
    end: offsets.end,
    found,
    ...(range === undefined ? {} : { expected: rangeText(range) }),
    detail:
      range === undefined
        ? `it has offsets ${found}, and its round none in this bucket`
        : `it has offsets ${found}, its round ${rangeText(range)}`,
  })
}

export function rangeText(run: Run): string {
  return `[${formatCount(run.start)}, ${formatCount(run.end)})`
}

function offsetFault(file: CheckedFile, detail: string, findings: Findings): void {
  findings.fault({ kind: 'OFFSETS', ...placeOf(file), detail })
}

function checkBucket(file: CheckedFile, facts: FileFacts, findings: Findings): void {
  const stray = facts.strayBucket ?? facts.strayKey
  if (stray === undefined) return
  const partition = file.entry.bucket ?? null
  const isKey = facts.strayBucket === undefined
  const others =
    facts.strayCount > 1n ? `, and so have ${formatCount(facts.strayCount - 1n)} more` : ''
  findings.fault({
    kind: 'BUCKET',
    ...placeOf(file),
    column: stray.column,
    expected: String(partition),
    found: String(stray.found),
    detail: isKey
      ? `the ${stray.column} of row ${formatCount(stray.row)} hashes to bucket ${String(stray.found)}, its partition is ${String(partition)}`
      : `row ${formatCount(stray.row)} has ${stray.column} ${String(stray.found)}, its partition is ${String(partition)}${others}`,
  })
}

function checkCounts(
  file: CheckedFile,
  leaf: LeafMetrics,
  tally: LeafTally,
  findings: Findings,
): void {
  // Writers count entries below lists in different ways; ours as Parquet does.
  if (tally.isRepeated && !file.isOwn) return
  const isFloat = tally.layout === 'float32' || tally.layout === 'float64'
  const counts: readonly (readonly [string, bigint | undefined, bigint])[] = [
    ['values', leaf.values, tally.entries],
    ['nulls', leaf.nulls, tally.nulls],
    ['NaN', isFloat ? leaf.nans : undefined, tally.nans],
  ]
  for (const [what, expected, found] of counts) {
    if (expected === undefined || expected === found) continue
    findings.fault({
      kind: 'STATS',
      ...placeOf(file),
      column: tally.name,
      expected: expected.toString(),
      found: found.toString(),
      detail: `column ${tally.name}: the manifest counts ${formatCount(expected)} ${what}, the file has ${formatCount(found)}`,
    })
  }
}

function checkBound(
  file: CheckedFile,
  which: 'lower' | 'upper',
  bytes: Uint8Array | undefined,
  tally: LeafTally,
  findings: Findings,
): void {
  if (bytes === undefined || tally.layout === undefined) return
  const place = { kind: 'STATS', ...placeOf(file), column: tally.name } as const
  const bound = readBound(tally.layout, bytes)
  if (bound === undefined) {
    const detail = `column ${tally.name}: its ${which} bound has ${bytes.length} bytes`
    findings.fault({ ...place, detail })
    return
  }
  const value = which === 'lower' ? tally.min : tally.max
  if (value === undefined) return
  const order = which === 'lower' ? compare(value, bound) : compare(bound, value)
  if (order >= 0) return
  // Not every writer orders the two zeros.
  if (!file.isOwn && value === 0 && bound === 0) return
  findings.fault({
    ...place,
    expected: valueText(bound),
    found: valueText(value),
    detail: `column ${tally.name}: its ${which} bound ${valueText(bound)} excludes ${valueText(value)}, which is there`,
  })
}

function valueText(value: Comparable): string {
  if (typeof value === 'bigint') return value.toString()
  if (typeof value === 'number') return Object.is(value, -0) ? '-0' : String(value)
  const bytes = Buffer.from(value)
  const text = bytes.toString('utf8')
  return Buffer.from(text).equals(bytes)
    ? quoteValue(text)
    : `0x${bytes.subarray(0, 40).toString('hex')}`
}

function placeOf({ entry, shown }: CheckedFile): {
  readonly snapshotIds: readonly bigint[]
  readonly paths: readonly string[]
  readonly bucket?: number
} {
  return {
    snapshotIds: [entry.snapshot],
    paths: [shown],
    ...(typeof entry.bucket === 'number' ? { bucket: entry.bucket } : {}),
  }
}
