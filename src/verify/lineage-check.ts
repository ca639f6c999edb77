import { counted, formatCount } from '../core/text.ts'
import type { Findings } from './findings.ts'
import type { History, Link } from './history.ts'
import { compareTokens, type Ledger, showToken, type Token } from './ledger.ts'
import type { Metadata } from './metadata.ts'
import type { Run } from './offsets.ts'

/** The offsets that each own snapshot may have added, by bucket; from the origin if not known. */
export type RoundRanges = ReadonlyMap<bigint, ReadonlyMap<number, Run>>

/**
 * What snapshots of ours say about themselves and about those before them: ends never go back, a
 * lower token never follows a higher one, and the ledger is the one of this snapshot and this table.
 */
export function checkLineage(
  metadata: Metadata,
  history: History,
  findings: Findings,
): RoundRanges {
  const ranges = new Map<bigint, ReadonlyMap<number, Run>>()
  let highest: { readonly token: Token; readonly id: bigint } | undefined
  let before: { readonly ledger: Ledger; readonly id: bigint } | undefined
  let pick: Link | undefined
  for (const link of history.links) {
    const { snapshot, ledger } = link
    if (ledger === undefined) {
      // What an unreadable ledger of ours said is not known, so neither is the range after it.
      if (link.isOwn) before = undefined
      else if (isPick(link, metadata)) pick = link
      continue
    }
    // A later ledger, an operator's decision for one, knows of the rows that a pick brought.
    pick = undefined
    checkOwnWords(link, ledger, metadata, findings)
    if (highest !== undefined && compareTokens(ledger.token, highest.token) < 0) {
      findings.fault({
        kind: 'FENCE',
        snapshotIds: [highest.id, snapshot.id],
        expected: showToken(highest.token),
        found: showToken(ledger.token),
        detail: `a commit of epoch ${showToken(ledger.token)} after one of epoch ${showToken(highest.token)}`,
        also: `the higher one is snapshot ${highest.id.toString()}`,
      })
    } else highest = { token: ledger.token, id: snapshot.id }
    const rewound =
      before === undefined ? [] : rewinds(before, { ledger, id: snapshot.id }, findings)
    if (before !== undefined && before.ledger.source !== ledger.source) {
      findings.fault({
        kind: 'PROGRESS',
        snapshotIds: [before.id, snapshot.id],
        expected: before.ledger.source,
        found: ledger.source,
        detail: 'two sources feed one table',
      })
    }
    ranges.set(snapshot.id, rangesOf(before?.ledger, ledger, new Set(rewound)))
    before = { ledger, id: snapshot.id }
  }
  if (pick !== undefined) {
    findings.fault({
      kind: 'PROGRESS',
      snapshotIds: [pick.snapshot.id],
      detail: 'a snapshot of ours was cherry-picked: its rows are there without their ledger',
    })
  }
  return ranges
}

/** Buckets whose end is lower than before; an operator's override may do that on purpose. */
function rewinds(
  before: { readonly ledger: Ledger; readonly id: bigint },
  after: { readonly ledger: Ledger; readonly id: bigint },
  findings: Findings,
): readonly number[] {
  const { kind } = after.ledger
  if (kind === 'override' || kind === 'resync') return []
  const rewound: number[] = []
  for (const [bucket, { origin, end }] of before.ledger.buckets) {
    const now = after.ledger.buckets.get(bucket)
    if (now !== undefined && now.end >= end && now.origin === origin) continue
    rewound.push(bucket)
    findings.fault({
      kind: 'REWIND',
      bucket,
      snapshotIds: [before.id, after.id],
      expected: `[${origin.toString()}, ${end.toString()})`,
      ...(now === undefined ? {} : { found: `[${now.origin.toString()}, ${now.end.toString()})` }),
      detail:
        now === undefined
          ? 'the bucket had an end and has none any more'
          : now.end < end
            ? `the end went back from ${formatCount(end)} to ${formatCount(now.end)}`
            : `the origin moved from ${formatCount(origin)} to ${formatCount(now.origin)}`,
    })
  }
  return rewound
}

function rangesOf(
  before: Ledger | undefined,
  ledger: Ledger,
  rewound: ReadonlySet<number>,
): ReadonlyMap<number, Run> {
  const ranges = new Map<number, Run>()
  for (const [bucket, { origin, end }] of ledger.buckets) {
    const start = rewound.has(bucket) ? origin : (before?.buckets.get(bucket)?.end ?? origin)
    ranges.set(bucket, { start, end })
  }
  return ranges
}

/** The short texts of the summary are for people; they must not say anything else than the ledger. */
function checkOwnWords(link: Link, ledger: Ledger, metadata: Metadata, findings: Findings): void {
  const { snapshot } = link
  const said: readonly (readonly [string, string])[] = [
    ['sluice.commit-id', ledger.commit],
    ['sluice.kind', ledger.kind],
    ['sluice.token', JSON.stringify(ledger.token)],
    ['sluice.round', String(ledger.round)],
    ['sluice.source', ledger.source],
  ]
  for (const [key, expected] of said) {
    const found = snapshot.summary.get(key)
    if (found === undefined || found === expected) continue
    findings.fault({
      kind: 'PROGRESS',
      snapshotIds: [snapshot.id],
      expected,
      found,
      detail: `the summary says ${key} ${found}, its ledger ${expected}`,
    })
  }
  if (ledger.table === metadata.uuid) return
  findings.fault({
    kind: 'PROGRESS',
    snapshotIds: [snapshot.id],
    expected: metadata.uuid,
    found: ledger.table,
    detail: 'its ledger is of another table',
  })
}

/** A cherry-pick brings rows of ours without the ledger that would say so. */
function isPick({ snapshot }: Link, metadata: Metadata): boolean {
  const picked = snapshot.summary.get('source-snapshot-id') ?? ''
  if (!/^\d{1,19}$/.test(picked)) return false
  return metadata.snapshots.get(BigInt(picked))?.summary.has('sluice.commit-id') === true
}

/** Other writers, expired history, and times that go back: worth knowing, and no faults. */
export function warnOfHistory(metadata: Metadata, history: History, findings: Findings): void {
  const { links, missing } = history
  const [oldest] = links
  if (missing !== undefined && oldest !== undefined) {
    findings.warn({
      kind: 'EXPIRED',
      snapshotIds: [oldest.snapshot.id, missing],
      detail: `${before(oldest)}, expired by another tool`,
    })
  }
  let parent: Link | undefined
  for (const link of links) {
    const { snapshot } = link
    if (!link.isOwn && snapshot.summary.get('commit-user') !== '__sluice') {
      findings.warn({
        kind: 'FOREIGN',
        snapshotIds: [snapshot.id],
        detail: `${snapshot.operation} by another writer: ${changesText(link)}`,
      })
    }
    if (parent !== undefined && snapshot.at < parent.snapshot.at) {
      findings.warn({
        kind: 'CLOCK',
        snapshotIds: [parent.snapshot.id, snapshot.id],
        detail: `it is ${formatCount(parent.snapshot.at - snapshot.at)} ms older than its parent`,
      })
    }
    if (snapshot.at > metadata.lastUpdatedAt) {
      findings.warn({
        kind: 'CLOCK',
        snapshotIds: [snapshot.id],
        detail: 'it is of a later time than the last change of the table',
      })
    }
    parent = link
  }
}

/** Every snapshot takes one sequence number, so the oldest says how many there were before it. */
export function expiredCount(history: History): bigint {
  const [oldest] = history.links
  if (history.missing === undefined || oldest === undefined) return 0n
  const { sequence } = oldest.snapshot
  return sequence > 1n ? sequence - 1n : 1n
}

/** How much is not known, before which snapshot. */
function before(oldest: Link): string {
  const { sequence } = oldest.snapshot
  const many = sequence > 1n ? counted(sequence - 1n, 'snapshot') : 'snapshots'
  return `${many} before ${oldest.snapshot.id.toString()}`
}

function changesText({ added, removed }: Link): string {
  const rows = added.reduce((sum, entry) => (entry.content === 'data' ? sum + entry.rows : sum), 0n)
  const deletes = added.filter(({ content }) => content !== 'data').length
  const data = added.length - deletes
  const parts = [`${counted(data, 'file')} with ${counted(rows, 'row')} added`]
  if (removed.length > 0) parts.push(`${counted(removed.length, 'file')} removed`)
  if (deletes > 0) parts.push(`${counted(deletes, 'delete file')} added`)
  return parts.join(', ')
}
