import { formatCount } from '../core/text.ts'
import type { Findings } from './findings.ts'
import type { ManifestEntry } from './manifests.ts'
import type { Snapshot } from './metadata.ts'

type Counted = Pick<ManifestEntry, 'content' | 'format' | 'rows' | 'countedBytes'>

/** What the totals of a summary count. */
export type Sums = {
  readonly get: (key: string) => bigint
  readonly add: (entry: Counted) => void
  readonly merge: (other: Sums) => void
}

const keys = [
  'records',
  'data-files',
  'files-size',
  'delete-files',
  'position-deletes',
  'equality-deletes',
] as const
/** What a summary counts besides of what it added and removed. */
const changeKeys = ['position-delete-files', 'equality-delete-files', 'dvs'] as const

export function zeroSums(): Sums {
  const counts = new Map<string, bigint>()
  const raise = (key: (typeof keys | typeof changeKeys)[number], by: bigint): void => {
    counts.set(key, (counts.get(key) ?? 0n) + by)
  }
  const get = (key: string): bigint => counts.get(key) ?? 0n
  return {
    get,
    add: ({ content, format, rows, countedBytes }) => {
      raise('files-size', countedBytes)
      raise(content === 'data' ? 'data-files' : 'delete-files', 1n)
      if (content === 'data') raise('records', rows)
      else raise(`${content}-deletes`, rows)
      if (format === 'PUFFIN') raise('dvs', 1n)
      else if (content !== 'data') raise(`${content}-delete-files`, 1n)
    },
    merge: (other) => {
      for (const key of [...keys, ...changeKeys]) raise(key, other.get(key))
    },
  }
}

/**
 * Compares the counts of a summary with the manifests. A total that is as wrong as the parent's was
 * only carried on, and is told there.
 * @param wrong By how much each total of the parent was wrong.
 * @returns the same for this snapshot
 */
export function checkTotals(
  snapshot: Snapshot,
  of: { readonly sums: Sums; readonly added: Sums; readonly removed: Sums },
  wrong: ReadonlyMap<string, bigint>,
  findings: Findings,
): ReadonlyMap<string, bigint> {
  const nowWrong = new Map<string, bigint>()
  const check = (name: string, actual: bigint): void => {
    const text = snapshot.summary.get(name)
    // Summaries need not have totals; a number that is none cannot be right.
    if (text === undefined) return
    const expected = /^\d{1,19}$/.test(text) ? BigInt(text) : undefined
    const difference = expected === undefined ? 0n : expected - actual
    nowWrong.set(name, difference)
    if (expected !== undefined && difference === 0n) return
    if (expected !== undefined && difference === wrong.get(name)) return
    findings.fault({
      kind: 'TOTALS',
      snapshotIds: [snapshot.id],
      expected: text,
      found: actual.toString(),
      detail: `the summary says ${name} ${expected === undefined ? text : formatCount(expected)}, the manifests sum to ${formatCount(actual)}`,
    })
  }
  for (const key of keys) check(`total-${key}`, of.sums.get(key))
  check('added-records', of.added.get('records'))
  check('added-data-files', of.added.get('data-files'))
  check('added-delete-files', of.added.get('delete-files'))
  check('added-files-size', of.added.get('files-size'))
  // Others have names of their own for some of these, and count some only when they please.
  if (snapshot.summary.has('sluice.commit-id')) {
    for (const key of ['position-deletes', 'equality-deletes', ...changeKeys]) {
      check(`added-${key}`, of.added.get(key))
    }
    for (const key of ['files-size', 'delete-files', 'position-deletes', ...changeKeys]) {
      check(`removed-${key}`, of.removed.get(key))
    }
  }
  // Only totals are carried on from parent to child.
  for (const name of nowWrong.keys()) if (!name.startsWith('total-')) nowWrong.delete(name)
  return nowWrong
}
