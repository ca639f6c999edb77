import type { LoadedTable, SnapshotEntry, TableChange } from '../../src/catalog/ports.ts'
import { SluiceError } from '../../src/core/errors.ts'
import {
  type Bucket,
  bucket,
  type CommitId,
  commitId,
  epoch,
  incarnation,
  millis,
  offset,
  type SnapshotId,
  snapshotId,
} from '../../src/core/ids.ts'
import {
  fenceChange,
  ledgerChange,
  roundChange,
  snapshotOf,
} from '../../src/sink/committer/changes.ts'
import { ledgerOf } from '../../src/sink/committer/held-table.ts'
import type { CommitRange } from '../../src/sink/committer/judge.ts'
import { decodeLedger, type Ledger } from '../../src/sink/committer/ledger.ts'
import { findOwn, propertyKeys, summaryKeys } from '../../src/sink/committer/lineage.ts'
import type { ReadVersion } from '../../src/sink/committer/progress.ts'
import { compareTokens, decodeClaim, type Token } from '../../src/sink/committer/token.ts'

export const source = 'embedded:model'

/** How many operations made the version that a change was built on, where that is not the one before. */
type BuiltOn = { readonly on?: number }

/** One version of the abstract catalog: what was done to the one before. */
export type Op =
  | (BuiltOn & {
      readonly kind: 'round'
      readonly holder: number
      readonly start: number
      readonly stop: number
      readonly isFirst: boolean
      readonly of: number
      /** Newest own commit when it was planned. */
      readonly follows: string
    })
  | (BuiltOn & {
      readonly kind: 'fence'
      readonly holder: number
      /** A snapshot without rows, instead of a version with another property; maybe a marked one. */
      readonly form?: 'snapshot' | 'marked'
    })
  /** Some servers drop marked snapshots to let an older request in. */
  | { readonly kind: 'rewind' }
  | { readonly kind: 'foreign' }
  | { readonly kind: 'rollback' }
  | { readonly kind: 'expire' }

export type HolderSpec = {
  readonly incarnation: number
  readonly epoch: number
  /** Where its log ends. */
  readonly stop: number
  readonly bucket: number
  readonly fences: boolean
  /** The id of its round; the same for two of them only where that is the mutation. */
  readonly commit: string
}

export function tokenOf(spec: HolderSpec): Token {
  return {
    generation: 0,
    incarnation: incarnation(spec.incarnation),
    epoch: epoch(spec.epoch),
  }
}

export function commitOf(letter: string): CommitId {
  return commitId(letter.repeat(32))
}

/** What a reader makes of a version. Mutations of reading are put in here. */
export type Reader = (version: LoadedTable) => ReadVersion

/** Folds operations into the table they make, with the changes that production builds. */
export class CatalogFold {
  readonly #specs: readonly HolderSpec[]
  readonly #read: Reader
  readonly #tables = new Map<string, LoadedTable>()
  readonly #versions = new Map<string, ReadVersion>()

  constructor(specs: readonly HolderSpec[], read: Reader) {
    this.#specs = specs
    this.#read = read
  }

  version(ops: readonly Op[]): ReadVersion {
    const key = JSON.stringify(ops)
    const known = this.#versions.get(key)
    if (known !== undefined) return known
    const version = this.#read(this.table(ops))
    this.#versions.set(key, version)
    return version
  }

  table(ops: readonly Op[]): LoadedTable {
    const key = JSON.stringify(ops)
    const known = this.#tables.get(key)
    if (known !== undefined) return known
    const last = ops.at(-1)
    const table = last === undefined ? empty : this.#apply(ops.slice(0, -1), last)
    this.#tables.set(key, table)
    return table
  }

  #apply(before: readonly Op[], op: Op): LoadedTable {
    const base = this.table(before)
    const on = 'on' in op ? this.table(before.slice(0, op.on)) : base
    const token = `v${before.length + 2}`
    switch (op.kind) {
      case 'round': {
        const spec = this.#specs[op.holder]!
        const commit = commitOf(spec.commit)
        const change = roundChange(soundReader(on), {
          commit,
          token: tokenOf(spec),
          source,
          ranges: [rangeOf(op)],
          files: [],
          final: false,
          forceFinished: false,
          inputs: () => new Map(),
        })
        return { ...applied(base, change), token }
      }
      case 'fence': {
        const spec = this.#specs[op.holder]!
        const commit = commitOf(fenceLetter(spec))
        const change =
          op.form === undefined
            ? fenceChange(tokenOf(spec), commit)
            : fenceSnapshot(soundReader(on), tokenOf(spec), commit, op.form)
        return { ...applied(base, change), token }
      }
      case 'rewind': {
        let head = base.head
        for (let at = entryOf(base, head); at?.summary.has(marked) === true; ) {
          head = at.parent
          at = entryOf(base, head)
        }
        return { ...base, head, token }
      }
      case 'foreign': {
        const id = snapshotId(BigInt(900 + before.length))
        return { ...withSnapshot(base, id, new Map()), token }
      }
      case 'rollback': {
        const parent = base.head === undefined ? undefined : base.snapshots.get(base.head)?.parent
        return { ...base, head: parent, token }
      }
      case 'expire': {
        const head = base.head === undefined ? undefined : base.snapshots.get(base.head)
        const kept = head === undefined ? [] : ([[head.id, head]] as const)
        return { ...base, snapshots: new Map(kept), token }
      }
    }
  }
}

/** In the summary of a snapshot that a server may drop. */
export const marked = 'rollbackable'

/** Repeats the ledger below it under the new token. */
function fenceSnapshot(
  base: ReadVersion,
  token: Token,
  commit: CommitId,
  form: 'snapshot' | 'marked',
): TableChange {
  const below = ledgerOf(base)
  const ledger: Ledger = {
    source,
    table: base.table.uuid,
    kind: 'fence',
    token,
    round: below?.round ?? 0,
    commit,
    final: false,
    buckets: below?.buckets ?? new Map(),
    gaps: below?.gaps ?? [],
    inputs: below?.inputs ?? new Map(),
  }
  const notes = form === 'marked' ? new Map([[marked, 'true']]) : new Map<string, string>()
  return ledgerChange(base, ledger, { files: [], forceFinished: false, notes })
}

export function entryOf(table: LoadedTable, id: SnapshotId | undefined): SnapshotEntry | undefined {
  return id === undefined ? undefined : table.snapshots.get(id)
}

/** Fences have ids of their own: capital of nothing, but never one of a round. */
export function fenceLetter(spec: HolderSpec): string {
  return spec.commit === 'a' ? 'd' : spec.commit === 'b' ? 'e' : 'f'
}

export function rangeOf(op: Op & { readonly kind: 'round' }): CommitRange {
  return {
    bucket: bucket(op.of),
    start: offset(BigInt(op.start)),
    end: offset(BigInt(op.stop)),
    isFirst: op.isFirst,
  }
}

/** Reads a version as production does, without waiting: ledgers are inline here. */
export const soundReader: Reader = (table) => {
  const finding = findOwn(table, source)
  const text = table.properties.get(propertyKeys.token)
  const written = text === undefined ? undefined : decodeClaim(text)
  if (finding.kind === 'fresh') return { table, progress: { kind: 'fresh' }, claim: written }
  if (finding.kind !== 'found') {
    const error = new SluiceError('PROGRESS_LOST', 'the lineage does not say')
    const reason = finding.kind === 'lost' ? finding.reason : 'chain-broken'
    return { table, progress: { kind: 'lost', reason, error }, claim: written }
  }
  const { snapshot } = finding
  const ledger = decodeLedger(snapshot.summary.get(summaryKeys.ledger) ?? '', 'model')
  const inLineage = { token: ledger.token, commit: ledger.commit }
  const isHigher = written === undefined || compareTokens(inLineage.token, written.token) > 0
  return {
    table,
    progress: { kind: 'found', ledger, snapshot },
    claim: isHigher ? inLineage : written,
  }
}

export function endOf(version: ReadVersion, of: number): bigint | undefined {
  const { progress } = version
  const id: Bucket = bucket(of)
  return progress.kind === 'found' ? progress.ledger.buckets.get(id)?.end : undefined
}

const empty: LoadedTable = {
  token: 'v1',
  uuid: 'uuid-1',
  location: 'file:///lake/model',
  formatVersion: 2,
  head: undefined,
  snapshots: new Map(),
  properties: new Map(),
  lastSequence: 0n,
  schemaId: 0,
  specId: 0,
  bucketFieldId: 1000,
  fields: [],
  bucketCount: 2,
  bucketKey: undefined,
  primaryKey: [],
}

function applied(base: LoadedTable, change: TableChange): LoadedTable {
  const properties = new Map([...base.properties, ...change.setProperties])
  const { snapshot } = change
  if (snapshot === undefined) return { ...base, properties }
  return { ...withSnapshot(base, snapshot.id, snapshot.summary), properties }
}

function withSnapshot(
  base: LoadedTable,
  id: SnapshotId,
  summary: ReadonlyMap<string, string>,
): LoadedTable {
  const sequence = base.lastSequence + 1n
  const entry: SnapshotEntry = {
    id,
    parent: base.head,
    sequence,
    committedAt: millis(0),
    operation: 'append',
    summary,
    manifestList: 'none',
  }
  const snapshots = new Map(base.snapshots).set(id, entry)
  return { ...base, head: id, snapshots, lastSequence: sequence }
}

export { snapshotOf }
