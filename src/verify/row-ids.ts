import { formatCount } from '../core/text.ts'
import type { Findings } from './findings.ts'
import type { ListedManifest } from './manifests.ts'
import type { Metadata, Snapshot } from './metadata.ts'

/** The first row ids that the manifests of a snapshot have, by path. */
export type RowIds = ReadonlyMap<string, bigint>

/**
 * The row ids of a snapshot of format 3 (spec, "Row Lineage"): manifests keep the ids they have, and
 * those without get the next ones in the order of the list, from the first id of the snapshot on.
 * @param before Those of the parent; undefined when they are not known.
 * @returns those of this snapshot
 */
export function checkRowIds(
  snapshot: Snapshot,
  manifests: readonly ListedManifest[],
  before: RowIds | undefined,
  shown: (path: string) => string,
  findings: Findings,
): RowIds {
  const ids = new Map<string, bigint>()
  const { firstRowId, addedRows } = snapshot
  if (firstRowId === undefined) return ids
  let next = firstRowId
  for (const manifest of manifests) {
    const { path, content, firstRowId: found } = manifest
    const known = before?.get(path)
    const isNew = known === undefined && (before !== undefined || manifest.addedBy === snapshot.id)
    const expected = content === 'deletes' ? undefined : isNew ? next : (known ?? found)
    if (found !== undefined) ids.set(path, found)
    if (isNew && content === 'data') {
      next += manifest.counts.get('added_rows_count') ?? 0n
      next += manifest.counts.get('existing_rows_count') ?? 0n
    }
    const isMissing = found === undefined && content === 'data'
    if (found === expected && !isMissing) continue
    findings.fault({
      kind: 'TOTALS',
      snapshotIds: [snapshot.id],
      paths: [shown(path)],
      ...(expected === undefined ? {} : { expected: expected.toString() }),
      ...(found === undefined ? {} : { found: found.toString() }),
      detail: `the list says first_row_id ${found === undefined ? 'nowhere' : formatCount(found)}, it should be ${expected === undefined ? 'nowhere' : formatCount(expected)}`,
    })
  }
  const given = next - firstRowId
  // Which manifests an older parent had is not known, so neither is how many ids there were.
  if (before !== undefined && addedRows !== given) {
    findings.fault({
      kind: 'TOTALS',
      snapshotIds: [snapshot.id],
      expected: given.toString(),
      ...(addedRows === undefined ? {} : { found: addedRows.toString() }),
      detail: `the snapshot says added-rows ${addedRows === undefined ? 'nowhere' : formatCount(addedRows)}, its manifests got ${formatCount(given)} row ids`,
    })
  }
  return ids
}

/** Each snapshot goes on where the one before it in the table stopped, and so does the table. */
export function checkNextRowId(metadata: Metadata, findings: Findings): void {
  const { nextRowId, lastSequence } = metadata
  if (nextRowId === undefined) return
  const snapshots = [...metadata.snapshots.values()]
    .filter(({ firstRowId }) => firstRowId !== undefined)
    .sort((a, b) => (a.sequence < b.sequence ? -1 : 1))
  for (const [at, snapshot] of snapshots.entries()) {
    const after = snapshots[at + 1]
    const end = (snapshot.firstRowId ?? 0n) + (snapshot.addedRows ?? 0n)
    const found = after === undefined ? nextRowId : (after.firstRowId ?? 0n)
    const sequence = after === undefined ? lastSequence : after.sequence - 1n
    // Ids that expired snapshots in between gave out are not known.
    const isNext = sequence === snapshot.sequence
    if (isNext ? found === end : found >= end) continue
    findings.fault({
      kind: 'TOTALS',
      snapshotIds: [snapshot.id, ...(after === undefined ? [] : [after.id])],
      expected: end.toString(),
      found: found.toString(),
      detail: `${after === undefined ? 'next-row-id' : 'first-row-id'} is ${formatCount(found)}, the snapshot before ends at ${formatCount(end)}`,
    })
  }
}
