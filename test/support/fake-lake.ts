import type {
  LakeTable,
  LiveFiles,
  LoadedTable,
  SnapshotEntry,
  SwapOutcome,
  TableChange,
} from '../../src/catalog/ports.ts'
import { type Bucket, millis, type SnapshotId } from '../../src/core/ids.ts'

/** What becomes of the next swap: whether it lands, and whether its reply arrives. */
export type Fate = 'apply' | 'lose-reply' | 'vanish'

/** A lake table in memory, with versions, that can lose requests and replies. */
export class FakeLake implements LakeTable {
  readonly name = ['demo', 'clicks']
  readonly versions: LoadedTable[]
  fates: Fate[] = []
  loads = 0

  constructor() {
    this.versions = [
      {
        token: 'v1',
        uuid: 'uuid-1',
        location: 'file:///lake/demo/clicks',
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
      },
    ]
  }

  get newest(): LoadedTable {
    const last = this.versions.at(-1)
    if (last === undefined) throw new Error('there is always a version')
    return last
  }

  load(): Promise<LoadedTable> {
    this.loads += 1
    return Promise.resolve(this.newest)
  }

  headerLedger(): Promise<string> {
    return Promise.reject(new Error('ledgers are inline here'))
  }

  /** What the rows would say. */
  ends: ReadonlyMap<Bucket, bigint> | undefined

  dataEnds(): Promise<ReadonlyMap<Bucket, bigint> | undefined> {
    return Promise.resolve(this.ends)
  }

  liveFiles(): Promise<LiveFiles> {
    return Promise.resolve({ data: [], deletes: [] })
  }

  swap(base: LoadedTable, change: TableChange): Promise<SwapOutcome> {
    const fate = this.fates.shift() ?? 'apply'
    if (fate === 'vanish') return Promise.resolve({ kind: 'unknown', cause: 'no reply' })
    if (base.token !== this.newest.token) return Promise.resolve({ kind: 'rejected' })
    this.apply(change)
    if (fate === 'lose-reply') return Promise.resolve({ kind: 'unknown', cause: 'no reply' })
    return Promise.resolve({ kind: 'applied', table: this.newest })
  }

  /** Puts a version on top without asking anybody: an operator, or another engine. */
  edit(edit: Partial<LoadedTable>): void {
    this.versions.push({ ...this.newest, ...edit, token: this.#nextToken() })
  }

  apply(change: TableChange): void {
    const base = this.newest
    const snapshots = new Map(base.snapshots)
    let head: SnapshotId | undefined = base.head
    let sequence = base.lastSequence
    if (change.snapshot !== undefined) {
      sequence += 1n
      const entry: SnapshotEntry = {
        id: change.snapshot.id,
        parent: base.head,
        sequence,
        committedAt: millis(0),
        operation: 'append',
        summary: change.snapshot.summary,
        manifestList: 'none',
      }
      snapshots.set(entry.id, entry)
      head = entry.id
    }
    this.edit({
      head,
      snapshots,
      lastSequence: sequence,
      properties: new Map([...base.properties, ...change.setProperties]),
    })
  }

  #nextToken(): string {
    return `v${String(this.versions.length + 1)}`
  }
}
