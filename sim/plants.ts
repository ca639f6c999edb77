import type { LakeTable, LoadedTable, SnapshotEntry } from '../src/catalog/ports.ts'
import type { ObjectStore } from '../src/catalog/store/object-store.ts'
import { SluiceError } from '../src/core/errors.ts'
import { type Bucket, bucket, commitId, offset, snapshotId } from '../src/core/ids.ts'
import { judge } from '../src/sink/committer/judge.ts'
import { decodeLedger, type Ledger } from '../src/sink/committer/ledger.ts'
import { propertyKeys, summaryKeys } from '../src/sink/committer/lineage.ts'
import { type ReadVersion, readVersion } from '../src/sink/committer/progress.ts'
import type { BucketEnds } from '../src/source/ports.ts'
import type { Scenario } from './plan.ts'
import type { Seams } from './seams.ts'

/** A bug that is put in on purpose, to see that it is found. */
export type Plant = {
  readonly name: string
  readonly says: string
  /** Where such a bug shows soonest. */
  readonly scenario: Scenario
  /** Seeds within which it has to be found. */
  readonly seedsMax: number
  /** For one process; what it keeps is lost with the process. */
  readonly seams: () => Seams
}

type Read = (lake: LakeTable, source: string) => Promise<ReadVersion>

/** Changes what a version is read as, for the planner and the judge alike. */
function reading(change: (version: ReadVersion) => ReadVersion): { readonly readVersion: Read } {
  return { readVersion: async (lake, source) => change(await readVersion(lake, source)) }
}

const nobodysCommit = commitId('f'.repeat(32))
const nobodysSnapshot = snapshotId(1n)

export const plants: readonly Plant[] = [
  {
    name: 'no-continuity',
    says: 'where a round begins is not compared with where the table ends',
    scenario: 'processes',
    seedsMax: 200,
    seams: () => ({
      judge: (version, claim) =>
        judge({ ...version, claim: undefined }, { ...withoutFollows(claim), ranges: [] }),
    }),
  },
  {
    name: 'no-own-id',
    says: 'a commit does not look for itself before it tries again',
    scenario: 'store',
    seedsMax: 200,
    seams: () => ({
      judge: (version, claim) =>
        judge(version, { ...claim, commit: nobodysCommit, snapshotId: nobodysSnapshot }),
    }),
  },
  {
    name: 'token-before-id',
    says: 'a holder asks whether it is fenced before it asks whether it has landed',
    scenario: 'all',
    seedsMax: 300,
    seams: () => ({
      judge: (version, claim) => {
        const asked = { ...claim, commit: nobodysCommit, snapshotId: nobodysSnapshot }
        const verdict = judge(version, asked)
        return verdict.kind === 'fenced' ? verdict : judge(version, claim)
      },
    }),
  },
  {
    name: 'doubt-forgotten',
    says: 'a commit without an answer counts as one that did not happen',
    scenario: 'store',
    seedsMax: 300,
    seams: () => ({
      committer: (sound) => ({
        plan: (assignment) => sound.plan(assignment),
        commit: async (plan, results, final) => {
          const outcome = await sound.commit(plan, results, final)
          if (outcome.kind !== 'unknown') return outcome
          const error = new SluiceError('COMMIT_CONTENDED', 'no answer, so it did not happen')
          return { kind: 'rejected', error }
        },
      }),
    }),
  },
  {
    name: 'check-once',
    says: 'a commit is judged when it is first tried and not when it is tried again (fluss 2648)',
    scenario: 'processes',
    seedsMax: 200,
    seams: (): Seams => {
      const judged = new Set<string>()
      return {
        judge: (version, claim) => {
          if (judged.has(claim.commit)) return { kind: 'apply' }
          judged.add(claim.commit)
          return judge(version, claim)
        },
      }
    },
  },
  {
    name: 'own-memory',
    says: 'rounds are planned from what the process remembers, not from the lake (fluss 1064)',
    scenario: 'store',
    seedsMax: 200,
    seams: ownMemory,
  },
  {
    name: 'ends-from-properties',
    says: 'ends are read from the table property although the branch was rolled back',
    scenario: 'people',
    seedsMax: 200,
    seams: (): Seams => reading(endsFromProperties),
  },
  {
    name: 'newest-listed',
    says: 'progress is the newest own snapshot of the list instead of the lineage',
    scenario: 'people',
    seedsMax: 200,
    seams: () => reading(newestListed),
  },
  {
    name: 'absent-is-zero',
    says: 'a history that was expired counts as a table that was never tiered',
    scenario: 'people',
    seedsMax: 200,
    seams: () =>
      reading((version) =>
        version.progress.kind === 'lost' ? { ...version, progress: { kind: 'fresh' } } : version,
      ),
  },
  {
    name: 'token-from-lineage',
    says: 'who holds the table is read from snapshots only, which a fence does not write',
    scenario: 'processes',
    seedsMax: 200,
    seams: () =>
      reading((version) => {
        const { progress } = version
        if (progress.kind !== 'found') return { ...version, claim: undefined }
        const { token, commit } = progress.ledger
        return { ...version, claim: { token, commit } }
      }),
  },
  {
    name: 'conflict-is-final',
    says: 'a request is sent again below the commit, and the answer "taken" believed (B-18)',
    scenario: 'store',
    seedsMax: 300,
    seams: () => ({ lake: conflictIsFinal }),
  },
  {
    name: 'eager-delete',
    says: 'the files of a commit are deleted when its answer does not come (B-17)',
    scenario: 'store',
    seedsMax: 300,
    seams: () => ({ lake: eagerDelete }),
  },
  {
    name: 'derived-commit-id',
    says: 'the id of a commit is made from the token, which two processes can share',
    scenario: 'processes',
    seedsMax: 300,
    seams: derivedCommitId,
  },
  {
    name: 'swap-on-newest',
    says: 'a commit is put on whatever is newest instead of on the version it was judged on',
    scenario: 'processes',
    seedsMax: 200,
    seams: () => ({ lake: swapOnNewest }),
  },
  {
    name: 'check-then-put',
    says: 'the store looks whether a name is free and then writes it, in two steps',
    scenario: 'processes',
    seedsMax: 200,
    seams: () => ({ store: checkThenPut }),
  },
  {
    name: 'names-repeat',
    says: 'names of data files are counted from the start of the process',
    scenario: 'processes',
    seedsMax: 200,
    seams: () => ({ fileIds: () => ({ bits128: () => '0'.repeat(32) }) }),
  },
  {
    name: 'extra-forgotten',
    says: 'a replay does not skip what single buckets already have beyond its position',
    scenario: 'all',
    seedsMax: 200,
    seams: () => ({
      resume: ({ ends, inputs }) => ({
        ends,
        inputs: new Map(
          [...inputs].map(([id, progress]) => [id, { ...progress, extra: new Map() }]),
        ),
      }),
    }),
  },
  {
    name: 'position-ahead',
    says: 'an input is noted as far as it was read, not as far as it is in the lake',
    scenario: 'all',
    seedsMax: 200,
    seams: () => ({
      source: (sound) => ({
        ...bound(sound),
        inputs: (id) => sound.inputs(id, allOf(sound.tables()[0]?.bucketCount ?? 0)),
      }),
    }),
  },
  {
    name: 'strangers-followed',
    says: 'a log goes on behind the commit of another process as if it were its own',
    scenario: 'people',
    seedsMax: 200,
    seams: () => ({
      judge: (version, claim) => judge(version, withoutFollows(claim)),
      held: (held) => ({
        ...held,
        landed: Object.assign([...held.landed], { includes: () => false }),
        drawn: everything(held.drawn),
      }),
    }),
  },
]

export function plantOf(name: string): Plant | undefined {
  return plants.find((plant) => plant.name === name)
}

type Claim = Parameters<typeof judge>[1]

function withoutFollows(claim: Claim): Claim {
  const { follows, ...rest } = claim
  return follows === undefined ? claim : rest
}

/** A set that says it has everything. */
function everything<T>(real: Set<T>): Set<T> {
  const open = new Set(real)
  open.has = () => true
  return open
}

function withLedger(version: ReadVersion, change: (ledger: Ledger) => Ledger): ReadVersion {
  const { progress } = version
  if (progress.kind !== 'found') return version
  return { ...version, progress: { ...progress, ledger: change(progress.ledger) } }
}

function withEnds(version: ReadVersion, ends: BucketEnds): ReadVersion {
  return withLedger(version, (ledger) => {
    const buckets = new Map(ledger.buckets)
    for (const [id, end] of ends) {
      buckets.set(id, { origin: buckets.get(id)?.origin ?? offset(0n), end })
    }
    return { ...ledger, buckets }
  })
}

function ownMemory(): Seams {
  let remembered: Ledger | undefined
  const read: Read = async (lake, source) => {
    const version = await readVersion(lake, source)
    if (version.progress.kind !== 'found') return version
    remembered ??= version.progress.ledger
    const { buckets } = remembered
    return withLedger(version, (ledger) => ({ ...ledger, buckets }))
  }
  return {
    readVersion: read,
    judge: (version, claim) => judge(version, withoutFollows(claim)),
    committer: (sound) => ({
      plan: (assignment) => sound.plan(assignment),
      commit: async (plan, results, final) => {
        const outcome = await sound.commit(plan, results, final)
        if (outcome.kind === 'committed' && !outcome.alreadyApplied && remembered !== undefined) {
          const buckets = new Map(remembered.buckets)
          for (const { bucket: id, start, end } of results) {
            buckets.set(id, { origin: buckets.get(id)?.origin ?? start, end })
          }
          remembered = { ...remembered, buckets }
        }
        return outcome
      },
    }),
  }
}

function endsFromProperties(version: ReadVersion): ReadVersion {
  const text = version.table.properties.get(propertyKeys.progress)
  if (text === undefined) return version
  const parsed: unknown = JSON.parse(text)
  if (typeof parsed !== 'object' || parsed === null || !('ends' in parsed)) return version
  if (!Array.isArray(parsed.ends)) return version
  const ends = new Map<Bucket, ReturnType<typeof offset>>()
  for (const each of parsed.ends as readonly unknown[]) {
    if (!Array.isArray(each)) continue
    const [, id, end] = each as readonly unknown[]
    ends.set(bucket(Number(id)), offset(BigInt(String(end))))
  }
  return withEnds(version, ends)
}

function newestListed(version: ReadVersion): ReadVersion {
  const own = [...version.table.snapshots.values()].filter((each) =>
    each.summary.has(summaryKeys.commitId),
  )
  const newest = own.reduce<SnapshotEntry | undefined>(
    (best, each) => (best === undefined || each.sequence > best.sequence ? each : best),
    undefined,
  )
  const text = newest?.summary.get(summaryKeys.ledger)
  if (text === undefined || newest === undefined) return version
  const ledger = decodeLedger(text, 'the newest of the list')
  return { ...version, progress: { kind: 'found', ledger, snapshot: newest } }
}

/** A lake whose loads are those of another, and whose swaps are its own. */
function lakeWith(lake: LakeTable, swap: LakeTable['swap']): LakeTable {
  return {
    name: lake.name,
    load: () => lake.load(),
    headerLedger: (snapshot) => lake.headerLedger(snapshot),
    dataEnds: (table) => lake.dataEnds(table),
    liveFiles: (table) => lake.liveFiles(table),
    swap,
  }
}

function conflictIsFinal(lake: LakeTable): LakeTable {
  return lakeWith(lake, async (base, change) => {
    const first = await lake.swap(base, change)
    if (first.kind !== 'unknown') return first
    const second = await lake.swap(base, change)
    if (second.kind !== 'rejected') return second
    throw new SluiceError('COMMIT_CONFLICT', 'the version is taken')
  })
}

function eagerDelete(lake: LakeTable, store: ObjectStore): LakeTable {
  return lakeWith(lake, async (base, change) => {
    const outcome = await lake.swap(base, change)
    if (outcome.kind === 'unknown') {
      for (const file of change.snapshot?.files ?? []) {
        await store.remove(file.location).catch(() => undefined)
      }
    }
    return outcome
  })
}

function swapOnNewest(lake: LakeTable): LakeTable {
  return lakeWith(lake, async (base, change) => {
    const outcome = await lake.swap(base, change)
    if (outcome.kind !== 'rejected') return outcome
    const newest: LoadedTable = await lake.load()
    const id = change.snapshot?.id
    // Its own commit is not taken for another's: only the base is not what it was judged on.
    if (id !== undefined && newest.snapshots.has(id)) return outcome
    return lake.swap(newest, change)
  })
}

function checkThenPut(store: ObjectStore): ObjectStore {
  return {
    ...store,
    createIfAbsent: async (location, body) => {
      if ((await store.size(location)) !== undefined) return { kind: 'rejected', reason: 'exists' }
      const writer = await store.open(location)
      await writer.write(body)
      try {
        await writer.finish()
        return { kind: 'applied' }
      } catch (cause) {
        return { kind: 'unknown', cause }
      }
    },
  }
}

function derivedCommitId(): Seams {
  let epoch = 0
  return {
    commitIds: (_, held) => ({
      bits128: () => `${held()?.incarnation ?? 0}e${epoch}e`.padEnd(32, '1'),
    }),
    held: (held) => ({ ...held, fenceFirst: false }),
    committer: (sound) => ({
      plan: (assignment) => sound.plan({ ...assignment, takeOver: false }),
      commit: (plan, results, final) => {
        epoch = plan.assignment.epoch
        return sound.commit(plan, results, final)
      },
    }),
  }
}

type Source = Parameters<NonNullable<Seams['source']>>[0]

function bound(source: Source): Source {
  return {
    tables: () => source.tables(),
    table: (id) => source.table(id),
    ranges: (id) => source.ranges(id),
    read: (id, of, start, stop) => source.read(id, of, start, stop),
    pin: (id, of, start) => source.pin(id, of, start),
    inputs: (id, ends) => source.inputs(id, ends),
    committed: (id, ends) => {
      source.committed(id, ends)
    },
  }
}

function allOf(buckets: number): BucketEnds {
  return new Map(
    Array.from({ length: buckets }, (_, each) => [bucket(each), offset(2n ** 62n)] as const),
  )
}
