import { formatCount } from '../core/text.ts'
import type { Fault, Findings } from './findings.ts'
import { type FileEntry, type History, type Link, placeOf } from './history.ts'
import type { Metadata } from './metadata.ts'

/** The delete files of the newest snapshot, and those that later ones replaced. */
export type Deletes = {
  /** Positions and vectors that name the one data file they point into. */
  readonly byFile: ReadonlyMap<string, readonly FileEntry[]>
  /** Positions in several data files. */
  readonly wide: readonly FileEntry[]
  readonly equality: readonly FileEntry[]
  /** Dropped within the lineage, by data file: whatever they deleted must still be. */
  readonly dropped: ReadonlyMap<string, readonly FileEntry[]>
  /** The oldest snapshot that is listed: files that it dropped may be gone. */
  readonly oldest: bigint | undefined
  /** Live rows, as the manifests count them. */
  readonly rows: bigint
}

export function isVector({ format }: Pick<FileEntry, 'format'>): boolean {
  return format === 'PUFFIN'
}

/** Whether a delete applies to the rows of that file (spec, "Scan Planning"). */
export function applies(deleting: FileEntry, data: FileEntry): boolean {
  return deleting.sequence >= data.sequence
}

/**
 * What manifests say of deletes, over the whole lineage: each points into a data file that is there when
 * it is committed, stands under the spec and partition of that file, and is not older than it.
 */
export function checkDeletes(
  history: History,
  metadata: Metadata,
  shown: (path: string) => string,
  findings: Findings,
): Deletes {
  const check = new DeletesCheck(history, metadata, shown, findings)
  const live = history.manifests.flatMap(({ entries }) =>
    entries.filter(({ status, content }) => status !== 'deleted' && content !== 'data'),
  )
  const byFile = new Map<string, FileEntry[]>()
  const seen = new Set<string>()
  for (const entry of live) {
    if (entry.content !== 'position' || seen.has(placeOf(entry))) continue
    seen.add(placeOf(entry))
    if (check.isUsable(entry, true)) push(byFile, entry.dataFile, entry)
  }
  const dropped = new Map<string, FileEntry[]>()
  for (const entry of history.links.flatMap(({ removed }) => removed)) {
    if (entry.content !== 'position') continue
    if (check.isUsable(entry, false)) push(dropped, entry.dataFile, entry)
  }
  for (const entries of byFile.values()) check.oneVector(entries)
  return {
    byFile,
    dropped,
    wide: live.filter((each) => each.content === 'position' && each.dataFile === undefined),
    equality: live.filter(({ content }) => content === 'equality'),
    oldest: history.links[0]?.snapshot.id,
    rows: check.liveRows(byFile),
  }
}

type Target = { readonly entry: FileEntry; readonly removedBy: Link | undefined }

class DeletesCheck {
  readonly #metadata: Metadata
  readonly #shown: (path: string) => string
  readonly #findings: Findings
  readonly #targets = new Map<string, Target>()
  /** The sequence number from which on all commits are listed. */
  readonly #from: bigint
  readonly #isWhole: boolean

  constructor(
    history: History,
    metadata: Metadata,
    shown: (path: string) => string,
    findings: Findings,
  ) {
    this.#metadata = metadata
    this.#shown = shown
    this.#findings = findings
    this.#isWhole = history.isWhole
    this.#from = history.missing === undefined ? 0n : (history.links[0]?.snapshot.sequence ?? 0n)
    for (const link of history.links) {
      for (const entry of link.removed) {
        if (entry.content === 'data') this.#targets.set(entry.path, { entry, removedBy: link })
      }
    }
    for (const { entries } of history.manifests) {
      for (const entry of entries) {
        if (entry.content !== 'data' || entry.status === 'deleted') continue
        this.#targets.set(entry.path, { entry, removedBy: undefined })
      }
    }
  }

  /** @returns whether its positions can be read and belong to one file that is known */
  isUsable(entry: FileEntry, isLive: boolean): entry is FileEntry & { readonly dataFile: string } {
    if (isVector(entry) && !this.#isWellFormed(entry)) return false
    if (entry.dataFile === undefined) return false
    const target = this.#targets.get(entry.dataFile)
    // A file that an unreadable manifest names may well be there.
    if (target === undefined && !this.#isWhole) return false
    const reason = this.#dangling(entry, target, isLive)
    if (reason !== undefined) this.#dangles(entry, reason)
    return target !== undefined && target.removedBy === undefined && applies(entry, target.entry)
  }

  oneVector(entries: readonly FileEntry[]): void {
    const vectors = entries.filter(isVector)
    if (vectors.length < 2) return
    this.#fault('DUPLICATE_FILE', vectors, {
      expected: '1',
      found: String(vectors.length),
      detail: `${vectors.length} deletion vectors for ${this.#shown(vectors[0]?.dataFile ?? '')}`,
    })
  }

  liveRows(byFile: ReadonlyMap<string, readonly FileEntry[]>): bigint {
    let rows = 0n
    for (const { entry, removedBy } of this.#targets.values()) {
      if (removedBy !== undefined) continue
      const deletes = byFile.get(entry.path) ?? []
      const vector = deletes.find(isVector)
      const counted = vector === undefined ? deletes : [vector]
      rows += counted.reduce((left, each) => left - each.rows, entry.rows)
    }
    return rows
  }

  #isWellFormed(entry: FileEntry): boolean {
    const reason =
      this.#metadata.version < 3
        ? `a deletion vector in a table of format ${this.#metadata.version}`
        : entry.dataFile === undefined
          ? 'a deletion vector that names no data file'
          : entry.blob === undefined
            ? 'a deletion vector that does not say where it lies in its file'
            : undefined
    if (reason !== undefined) this.#fault('UNREADABLE', [entry], { detail: reason })
    return reason === undefined
  }

  #dangling(entry: FileEntry, target: Target | undefined, isLive: boolean): string | undefined {
    const { dataFile = '', sequence } = entry
    const file = this.#shown(dataFile)
    if (target === undefined) {
      // Of deletes from before the oldest snapshot, the file may have gone in a snapshot that expired.
      if (sequence >= this.#from) return `it points into ${file}, which is in no snapshot`
      if (isLive) this.#leftOver(entry)
      return undefined
    }
    const { entry: data, removedBy } = target
    if (removedBy !== undefined) {
      const gone = removedBy.snapshot.sequence
      const text = `it points into ${file}, which snapshot ${removedBy.snapshot.id.toString()} removed`
      if (gone <= sequence) return text
      // Others may leave deletes of files that they rewrote; only vectors have to go with their file.
      if (isLive && (removedBy.isOwn || isVector(entry))) return text
      if (isLive) this.#leftOver(entry)
      return undefined
    }
    if (entry.specId !== data.specId || entry.partition !== data.partition) {
      return `it is in spec ${entry.specId} (${entry.partition}), ${file} in spec ${data.specId} (${data.partition})`
    }
    if (applies(entry, data)) return undefined
    return `its sequence number ${formatCount(entry.sequence)} is lower than ${formatCount(data.sequence)} of ${file}, so that it deletes nothing`
  }

  #leftOver(entry: FileEntry): void {
    this.#findings.warn({
      kind: 'FOREIGN',
      ...this.#place([entry]),
      detail: `a delete of ${this.#shown(entry.dataFile ?? '')}, which another writer removed`,
    })
  }

  #dangles(entry: FileEntry, detail: string): void {
    this.#fault('DANGLING_DELETE', [entry], { detail })
  }

  #fault(
    kind: Fault['kind'],
    entries: readonly FileEntry[],
    what: Pick<Fault, 'detail' | 'expected' | 'found'>,
  ): void {
    this.#findings.fault({ kind, ...this.#place(entries), ...what })
  }

  #place(entries: readonly FileEntry[]): Pick<Fault, 'bucket' | 'snapshotIds' | 'paths'> {
    const bucket = entries[0]?.bucket
    return {
      ...(typeof bucket === 'number' ? { bucket } : {}),
      snapshotIds: [...new Set(entries.map(({ snapshot }) => snapshot))],
      paths: [...new Set(entries.map(({ path }) => this.#shown(path)))],
    }
  }
}

/** Adds to the list of a key. */
export function push<Key, Value>(lists: Map<Key, Value[]>, key: Key, value: Value): void {
  const known = lists.get(key)
  if (known === undefined) lists.set(key, [value])
  else known.push(value)
}
