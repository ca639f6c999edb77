import { damageOf } from './damage.ts'
import type { Findings } from './findings.ts'
import type { History, Link } from './history.ts'
import {
  compareTokens,
  digestOfEnds,
  type Ledger,
  type ProgressCopy,
  readClaim,
  readCopy,
  showToken,
  type Token,
} from './ledger.ts'
import type { Metadata } from './metadata.ts'

/** How far the table is, and on whose word. */
export type Progress = {
  readonly ledger: Ledger | undefined
  /** Ends without origins, from a copy that the data proves. */
  readonly ends: ReadonlyMap<number, bigint> | undefined
}

/**
 * The table properties against the lineage. The lineage says how far the table is; the properties are
 * a copy that must agree with it, be older, or be from above a rollback.
 * @param dataEnds One more than the highest offset of each bucket; undefined when not known.
 */
export function checkProgress(
  metadata: Metadata,
  history: History,
  dataEnds: ReadonlyMap<number, bigint> | undefined,
  findings: Findings,
): Progress {
  checkToken(metadata, history.links, findings)
  const { links, missing } = history
  const newest = links.findLast(({ isOwn }) => isOwn)
  const text = metadata.properties.get('sluice.progress')
  const copy = text === undefined ? undefined : copyOf(text, findings)
  if (newest !== undefined) {
    if (copy !== undefined) checkCopy(copy, metadata, links, newest, findings)
    return { ledger: newest.ledger, ends: undefined }
  }
  if (copy === undefined) return { ledger: undefined, ends: undefined }
  if (missing !== undefined) {
    return copyWithoutLineage(copy, missing, dataEnds, findings)
  }
  // Rolled back to before the first commit: the copy is of a snapshot that is listed and left.
  if (!metadata.snapshots.has(copy.snapshot)) {
    findings.fault({
      kind: 'PROGRESS',
      snapshotIds: [copy.snapshot],
      detail:
        metadata.head === undefined
          ? 'sluice.progress says how far the table is, and the branch is gone'
          : 'sluice.progress says how far the table is, and no snapshot of its history is ours',
      also: 'the table was replaced, or rolled back to before its first commit',
    })
  }
  return { ledger: undefined, ends: undefined }
}

/** The history that would say how far the table is has expired: the data may prove the copy. */
function copyWithoutLineage(
  copy: ProgressCopy,
  missing: bigint,
  dataEnds: ReadonlyMap<number, bigint> | undefined,
  findings: Findings,
): Progress {
  const { ends, ledger } = copy
  const isParent = copy.snapshot === missing
  if (ends === undefined || (dataEnds === undefined && !isParent)) {
    return { ledger: undefined, ends: undefined }
  }
  if (isParent || sameEnds(ends, dataEnds ?? new Map())) {
    return { ledger, ends: ledger === undefined ? ends : undefined }
  }
  findings.fault({
    kind: 'PROGRESS',
    snapshotIds: [copy.snapshot],
    expected: endsText(ends),
    found: endsText(dataEnds ?? new Map()),
    detail: 'the ends of sluice.progress are not those of the data, and the history has expired',
  })
  return { ledger: undefined, ends: undefined }
}

function checkCopy(
  copy: ProgressCopy,
  metadata: Metadata,
  links: readonly Link[],
  newest: Link,
  findings: Findings,
): void {
  const named = links.find(({ snapshot }) => snapshot.id === copy.snapshot)
  const fault = (detail: string, ids: readonly bigint[], values: Values = {}): void => {
    findings.fault({ kind: 'PROGRESS', snapshotIds: ids, detail, ...values })
  }
  if (named === undefined) {
    const { sequence } = newest.snapshot
    const isListed = metadata.snapshots.has(copy.snapshot)
    // Higher numbers, and snapshots that are listed elsewhere, are from above a rollback.
    if (isListed || copy.sequence !== sequence) return
    fault('sluice.progress names another snapshot with the sequence number of this one', [
      newest.snapshot.id,
      copy.snapshot,
    ])
    return
  }
  if (named.snapshot.sequence !== copy.sequence) {
    fault('sluice.progress has another sequence number than its snapshot', [copy.snapshot], {
      expected: named.snapshot.sequence.toString(),
      found: copy.sequence.toString(),
    })
  }
  if (named.ledger === undefined) return
  const ends = new Map([...named.ledger.buckets].map(([bucket, { end }]) => [bucket, end]))
  const agrees =
    copy.ends === undefined ? copy.sha256 === digestOfEnds(ends) : sameEnds(copy.ends, ends)
  if (agrees) return
  fault('the ends of sluice.progress are not those of its snapshot', [copy.snapshot], {
    expected: endsText(ends),
    ...(copy.ends === undefined ? {} : { found: endsText(copy.ends) }),
  })
}

type Values = { readonly expected?: string; readonly found?: string }

/** The token in the properties is the highest ever written; a rollback does not lower it. */
function checkToken(metadata: Metadata, links: readonly Link[], findings: Findings): void {
  const text = metadata.properties.get('sluice.token')
  if (text === undefined) return
  let claim: Token
  try {
    claim = readClaim(text)
  } catch (error) {
    findings.fault({ kind: 'PROGRESS', detail: `sluice.token is damaged: ${damageOf(error)}` })
    return
  }
  let highest: { readonly token: Token; readonly id: bigint } | undefined
  for (const { snapshot, ledger } of links) {
    if (ledger === undefined) continue
    if (highest === undefined || compareTokens(ledger.token, highest.token) > 0) {
      highest = { token: ledger.token, id: snapshot.id }
    }
  }
  if (highest === undefined || compareTokens(claim, highest.token) >= 0) return
  findings.fault({
    kind: 'PROGRESS',
    snapshotIds: [highest.id],
    expected: showToken(highest.token),
    found: showToken(claim),
    detail: `sluice.token is epoch ${showToken(claim)}, a snapshot is of epoch ${showToken(highest.token)}`,
  })
}

function copyOf(text: string, findings: Findings): ProgressCopy | undefined {
  try {
    return readCopy(text)
  } catch (error) {
    findings.fault({ kind: 'PROGRESS', detail: `sluice.progress is damaged: ${damageOf(error)}` })
    return undefined
  }
}

function sameEnds(a: ReadonlyMap<number, bigint>, b: ReadonlyMap<number, bigint>): boolean {
  return a.size === b.size && [...a].every(([bucket, end]) => b.get(bucket) === end)
}

function endsText(ends: ReadonlyMap<number, bigint>): string {
  const sorted = [...ends].sort(([a], [b]) => a - b)
  const shown = sorted.slice(0, 16).map(([bucket, end]) => `${bucket}: ${end.toString()}`)
  return shown.join(', ') + (sorted.length > 16 ? ', …' : '')
}
