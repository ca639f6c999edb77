import type { DeleteFile, LiveDelete, SnapshotEntry, TableChange } from '../ports.ts'

type Snapshot = NonNullable<TableChange['snapshot']>

/**
 * The summary of a snapshot: our own keys, and the counts that engines read (spec, appendix F). All
 * values are texts: readers refuse the whole table when one is a number.
 */
export function summaryOf(
  snapshot: Snapshot,
  parent: SnapshotEntry | undefined,
): ReadonlyMap<string, string> {
  const { files, deletes = [], droppedDeletes = [] } = snapshot
  const added = countsOf(deletes)
  const removed = countsOf(droppedDeletes)
  const rows = sumOf(files, (file) => file.rows)
  const bytes = sumOf(files, (file) => file.bytes)
  const count = BigInt(files.length)
  const summary = new Map<string, string>([['operation', snapshot.operation]])
  for (const [key, value] of snapshot.summary) summary.set(key, value)
  const counts: readonly (readonly [string, bigint])[] = [
    ['added-data-files', count],
    ['added-records', rows],
    ['added-files-size', bytes + added.bytes],
    ['added-delete-files', added.files],
    ['added-position-delete-files', added.positionFiles],
    ['added-equality-delete-files', added.equalityFiles],
    ['added-dvs', added.vectors],
    ['added-position-deletes', added.positions],
    ['added-equality-deletes', added.equalities],
    ['removed-files-size', removed.bytes],
    ['removed-delete-files', removed.files],
    ['removed-position-delete-files', removed.positionFiles],
    ['removed-dvs', removed.vectors],
    ['removed-position-deletes', removed.positions],
  ]
  for (const [key, value] of counts) if (value > 0n) summary.set(key, String(value))
  const buckets = new Set([
    ...files.map((file) => String(file.bucket)),
    ...deletes.map((file) => partitionKey(file)),
  ])
  summary.set('changed-partition-count', String(buckets.size))
  const totals: readonly (readonly [string, bigint])[] = [
    ['total-records', rows],
    ['total-files-size', bytes + added.bytes - removed.bytes],
    ['total-data-files', count],
    ['total-delete-files', added.files - removed.files],
    ['total-position-deletes', added.positions - removed.positions],
    ['total-equality-deletes', added.equalities - removed.equalities],
  ]
  for (const [key, change] of totals) {
    const before = parent === undefined ? '0' : parent.summary.get(key)
    // A total that the parent does not know cannot be carried on; readers do without it.
    if (before === undefined || !/^\d{1,19}$/.test(before)) continue
    const total = BigInt(before) + change
    if (total >= 0n) summary.set(key, String(total))
  }
  return summary
}

type Counts = Readonly<
  Record<
    'files' | 'bytes' | 'positionFiles' | 'equalityFiles' | 'vectors' | 'positions' | 'equalities',
    bigint
  >
>

function countsOf(deletes: readonly (DeleteFile | LiveDelete)[]): Counts {
  const of = (content: LiveDelete['content']): readonly (DeleteFile | LiveDelete)[] =>
    deletes.filter((file) => file.content === content)
  const [positions, vectors, equalities] = [
    of('position-deletes'),
    of('deletion-vector'),
    of('equality-deletes'),
  ]
  return {
    files: BigInt(deletes.length),
    // A vector is a part of its file.
    bytes: sumOf(deletes, (file) => file.blob?.bytes ?? file.bytes),
    positionFiles: BigInt(positions.length),
    equalityFiles: BigInt(equalities.length),
    vectors: BigInt(vectors.length),
    positions: sumOf([...positions, ...vectors], (file) => file.rows),
    equalities: sumOf(equalities, (file) => file.rows),
  }
}

/** As a data file of the same partition is named by its bucket, where the spec is the table's own. */
function partitionKey({ partition }: DeleteFile): string {
  return [...partition.values()].map(String).join('/')
}

function sumOf<File>(files: readonly File[], valueOf: (file: File) => number): bigint {
  return files.reduce((sum, file) => sum + BigInt(valueOf(file)), 0n)
}
