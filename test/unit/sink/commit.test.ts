import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, test } from 'node:test'
import { SluiceError } from '../../../src/core/errors.ts'
import {
  bucket,
  type CommitId,
  commitId,
  epoch,
  incarnation,
  millis,
  offset,
  snapshotId,
  tableId,
} from '../../../src/core/ids.ts'
import { silentJournal } from '../../../src/core/ports.ts'
import { seededChance } from '../../../src/core/system.ts'
import { fenceChange, roundChange, snapshotOf } from '../../../src/sink/committer/changes.ts'
import { type CommitEnd, type CommitJob, commit } from '../../../src/sink/committer/commit.ts'
import type { HeldTable } from '../../../src/sink/committer/held-table.ts'
import { judge, type CommitClaim } from '../../../src/sink/committer/judge.ts'
import { findOwn } from '../../../src/sink/committer/lineage.ts'
import { readVersion } from '../../../src/sink/committer/progress.ts'
import { FakeLake } from '../../support/fake-lake.ts'

const source = 'embedded:demo.clicks'
const ports = {
  clock: { now: () => millis(0), monotonic: () => millis(0), sleep: () => Promise.resolve() },
  chance: seededChance(1),
  journal: silentJournal,
}
const id = (digit: string): CommitId => commitId(digit.repeat(32))

function holder(lake: FakeLake, incarnationNumber: number): HeldTable {
  return {
    id: tableId(1n),
    lake,
    sourceId: source,
    tableUuid: lake.newest.uuid,
    incarnation: incarnation(incarnationNumber),
    drawn: new Set(),
    resumedFrom: undefined,
    landed: [],
    fenceFirst: false,
  }
}

type Round = { start: bigint | undefined; end: bigint; commit: string; epoch?: number }

async function plan(lake: FakeLake, held: HeldTable, round: Round): Promise<CommitJob> {
  const planned = await readVersion(lake, source)
  const token = {
    generation: 0,
    incarnation: held.incarnation,
    epoch: epoch(round.epoch ?? 1),
  }
  const ranges = [
    {
      bucket: bucket(0),
      start: offset(round.start ?? 0n),
      end: offset(round.end),
      isFirst: round.start === undefined,
    },
  ]
  const commitName = id(round.commit)
  const claim: CommitClaim = {
    commit: commitName,
    snapshotId: snapshotOf(commitName),
    token,
    tableUuid: planned.table.uuid,
    planHead: planned.table.head,
    schemaId: planned.table.schemaId,
    specId: planned.table.specId,
    ranges,
    drawn: held.drawn,
  }
  return {
    held,
    claim,
    planned,
    build: (base) =>
      roundChange(base, {
        commit: commitName,
        token,
        source,
        ranges,
        files: [],
        final: false,
        forceFinished: false,
        inputs: () => new Map(),
      }),
  }
}

/** Commits in the lineage, oldest first. */
function landed(lake: FakeLake): string[] {
  const commits: string[] = []
  let at = lake.newest.head
  while (at !== undefined) {
    const snapshot = lake.newest.snapshots.get(at)
    commits.unshift(snapshot?.summary.get('sluice.commit-id')?.[0] ?? '?')
    at = snapshot?.parent
  }
  return commits
}

function codeOf(end: CommitEnd): string {
  return end.kind === 'committed' ? 'committed' : `${end.kind} ${end.error.code}`
}

describe('commit', () => {
  test('commits once although the reply was lost (B-11, F-06)', async () => {
    const lake = new FakeLake()
    const job = await plan(lake, holder(lake, 1), { start: undefined, end: 10n, commit: 'a' })
    lake.fates = ['lose-reply']
    const end = await commit(job, ports)
    equal(end.kind === 'committed' && end.alreadyApplied, true)
    deepEqual(landed(lake), ['a'])
  })

  test('sends a request that vanished again, on the same base', async () => {
    const lake = new FakeLake()
    const job = await plan(lake, holder(lake, 1), { start: undefined, end: 10n, commit: 'a' })
    lake.fates = ['vanish', 'vanish']
    equal(codeOf(await commit(job, ports)), 'committed')
    deepEqual(landed(lake), ['a'])
  })

  test('is unknown, with effect unknown, while its base is the newest version', async () => {
    const lake = new FakeLake()
    const job = await plan(lake, holder(lake, 1), { start: undefined, end: 10n, commit: 'a' })
    lake.fates = ['vanish', 'vanish', 'vanish', 'vanish', 'vanish']
    const end = await commit(job, ports)
    equal(codeOf(end), 'unknown COMMIT_UNKNOWN')
    equal(end.kind === 'unknown' && end.error.effect, 'unknown')
  })

  test('a doubtful attempt is dead once its number is taken by another', async () => {
    const lake = new FakeLake()
    const job = await plan(lake, holder(lake, 1), { start: undefined, end: 10n, commit: 'a' })
    const other = await plan(lake, holder(lake, 2), { start: undefined, end: 12n, commit: 'b' })
    lake.fates = ['vanish']
    const sleep = async (): Promise<void> => {
      await commit(other, ports)
    }
    const end = await commit(job, { ...ports, clock: { ...ports.clock, sleep } })
    equal(codeOf(end), 'rejected COMMIT_FENCED')
    equal(end.kind === 'rejected' && end.error.effect, 'none')
    deepEqual(landed(lake), ['b'])
  })

  test('keeps its files in doubt when "taken" was the answer and nothing can be read', async () => {
    const lake = new FakeLake()
    const job = await plan(lake, holder(lake, 1), { start: undefined, end: 10n, commit: 'a' })
    // It landed; the answer came from a second copy of the request, and then reads fail for good.
    lake.swap = (_base, change) => {
      lake.apply(change)
      return Promise.resolve({ kind: 'rejected' })
    }
    lake.load = () => Promise.reject(new SluiceError('DATA_CORRUPT', 'v2: cut'))
    equal(codeOf(await commit(job, ports)), 'unknown COMMIT_UNKNOWN')
  })

  test('keeps its files in doubt when its snapshot may have been expired', async () => {
    const lake = new FakeLake()
    const job = await plan(lake, holder(lake, 1), { start: undefined, end: 10n, commit: 'a' })
    lake.fates = ['lose-reply']
    // It landed; another engine appended to it, and a tool expired everything but that.
    const sleep = (): Promise<void> => {
      const id = snapshotId(77n)
      const foreign = {
        id,
        parent: lake.newest.head,
        sequence: 2n,
        committedAt: millis(0),
        operation: 'append',
        summary: new Map([['operation', 'append']]),
        manifestList: 'none',
      }
      lake.edit({ head: id, snapshots: new Map([[id, foreign]]) })
      return Promise.resolve()
    }
    const end = await commit(job, { ...ports, clock: { ...ports.clock, sleep } })
    equal(codeOf(end), 'unknown COMMIT_UNKNOWN')
  })

  test('looks once more when its last attempt had no answer', async () => {
    const lake = new FakeLake()
    const job = await plan(lake, holder(lake, 1), { start: undefined, end: 10n, commit: 'a' })
    lake.fates = ['vanish', 'vanish', 'vanish', 'vanish', 'lose-reply']
    equal(codeOf(await commit(job, ports)), 'committed')
  })

  test('says committed, not fenced, when it landed and was overtaken (order of questions)', async () => {
    const lake = new FakeLake()
    const old = holder(lake, 1)
    const job = await plan(lake, old, { start: undefined, end: 10n, commit: 'a' })
    lake.fates = ['lose-reply']
    const overtake = {
      ...ports,
      clock: {
        ...ports.clock,
        sleep: async () => {
          const next = await plan(lake, holder(lake, 2), { start: 10n, end: 20n, commit: 'b' })
          await commit(next, ports)
        },
      },
    }
    equal(codeOf(await commit(job, overtake)), 'committed')
    deepEqual(landed(lake), ['a', 'b'])
  })

  test('T-34 fluss #2648: a check before the commit is not enough, the version judged is the one replaced', async () => {
    const lake = new FakeLake()
    const late = await plan(lake, holder(lake, 1), { start: undefined, end: 10n, commit: 'a' })
    const next = await plan(lake, holder(lake, 2), { start: undefined, end: 10n, commit: 'b' })
    equal(codeOf(await commit(next, ports)), 'committed')
    equal(codeOf(await commit(late, ports)), 'rejected COMMIT_FENCED')
    deepEqual(landed(lake), ['b'])
  })

  test('rows stay single by continuity alone when an old epoch commits first', async () => {
    const lake = new FakeLake()
    const newer = await plan(lake, holder(lake, 2), { start: undefined, end: 12n, commit: 'b' })
    const older = await plan(lake, holder(lake, 1), { start: undefined, end: 10n, commit: 'a' })
    equal(codeOf(await commit(older, ports)), 'committed')
    equal(codeOf(await commit(newer, ports)), 'rejected COMMIT_STALE')
    deepEqual(landed(lake), ['a'])
  })

  test('an absent end is not 0: a first range on a bucket that has an end is stale', async () => {
    const lake = new FakeLake()
    await commit(
      await plan(lake, holder(lake, 1), { start: undefined, end: 0n, commit: 'a' }),
      ports,
    )
    const again = await plan(lake, holder(lake, 2), { start: undefined, end: 5n, commit: 'b' })
    equal(codeOf(await commit(again, ports)), 'rejected COMMIT_STALE')
  })

  test('equal tokens of two processes are settled by the swap', async () => {
    const lake = new FakeLake()
    const one = await plan(lake, holder(lake, 1), { start: undefined, end: 10n, commit: 'a' })
    const two = await plan(lake, holder(lake, 1), { start: undefined, end: 10n, commit: 'b' })
    equal(codeOf(await commit(one, ports)), 'committed')
    const end = await commit(two, ports)
    equal(codeOf(end), 'rejected COMMIT_FENCED')
    ok(end.kind === 'rejected')
    equal(
      end.error.message,
      'demo.clicks: another sluice started at the same time, claimed epoch 1.1 as this one did, and came first',
    )
    equal(end.error.state, 'this process committed nothing; the round in flight added nothing')
  })

  test('a fence stops every commit that is bound to an older version', async () => {
    const lake = new FakeLake()
    const zombie = await plan(lake, holder(lake, 1), { start: undefined, end: 10n, commit: 'a' })
    const token = { generation: 0, incarnation: incarnation(2), epoch: epoch(1) }
    lake.apply(fenceChange(token, id('f')))
    const end = await commit(zombie, ports)
    equal(codeOf(end), 'rejected COMMIT_FENCED')
    equal(
      end.kind === 'rejected' && end.error.message,
      'demo.clicks: another sluice took the table over (epoch 2.1 after our 1.1)',
    )
    deepEqual(landed(lake), [])
  })

  test('the token does not go back with a rollback, the ends do (P-4)', async () => {
    const lake = new FakeLake()
    const held = holder(lake, 3)
    await commit(await plan(lake, held, { start: undefined, end: 10n, commit: 'a' }), ports)
    const before = lake.newest.head
    await commit(await plan(lake, held, { start: 10n, end: 20n, commit: 'b', epoch: 2 }), ports)
    lake.edit({ head: before })
    const version = await readVersion(lake, source)
    equal(version.claim?.token.epoch, 2)
    ok(version.progress.kind === 'found')
    equal(version.progress.ledger.buckets.get(bucket(0))?.end, 10n)
    const stale = await plan(lake, holder(lake, 2), { start: 10n, end: 20n, commit: 'c' })
    equal(codeOf(await commit(stale, ports)), 'rejected COMMIT_FENCED')
  })

  test('a commit that was rolled away says so and keeps its files', async () => {
    const lake = new FakeLake()
    const job = await plan(lake, holder(lake, 1), { start: undefined, end: 10n, commit: 'a' })
    await commit(job, ports)
    lake.edit({ head: undefined })
    equal(judge(await readVersion(lake, source), job.claim).kind, 'rolled-back')
  })

  test('a table made anew under the same name gets nothing of the old round', async () => {
    const lake = new FakeLake()
    const job = await plan(lake, holder(lake, 1), { start: undefined, end: 10n, commit: 'a' })
    lake.edit({ uuid: 'uuid-2' })
    equal(codeOf(await commit(job, ports)), 'rejected TABLE_REPLACED')
  })
})

describe('findOwn', () => {
  test('is lost when the branch is gone or the chain is broken, and never fresh', async () => {
    const lake = new FakeLake()
    const held = holder(lake, 1)
    await commit(await plan(lake, held, { start: undefined, end: 10n, commit: 'a' }), ports)
    const whole = lake.newest
    lake.edit({ head: undefined })
    deepEqual(findOwn(lake.newest, source), { kind: 'lost', reason: 'branch-missing' })

    const foreign = snapshotId(77n)
    lake.edit({
      head: foreign,
      snapshots: new Map([
        [
          foreign,
          {
            id: foreign,
            parent: whole.head,
            sequence: 2n,
            committedAt: millis(0),
            operation: 'append',
            summary: new Map([['operation', 'append']]),
            manifestList: 'none',
          },
        ],
      ]),
    })
    equal(findOwn(lake.newest, source).kind, 'lost')
    lake.edit({ snapshots: new Map([...whole.snapshots, ...lake.newest.snapshots]) })
    equal(findOwn(lake.newest, source).kind, 'found')
  })
})
