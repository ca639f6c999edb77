import { deepEqual, equal, rejects } from 'node:assert/strict'
import { describe, test } from 'node:test'
import { columnBuilder, finishBatch } from '../../../src/core/columns/builder.ts'
import type { ColumnBatch } from '../../../src/core/columns/column.ts'
import { isSluiceError } from '../../../src/core/errors.ts'
import { bucket, epoch, incarnation, millis, type TableId } from '../../../src/core/ids.ts'
import { silentJournal } from '../../../src/core/ports.ts'
import { seededChance } from '../../../src/core/system.ts'
import { type HeldTable, holdTable } from '../../../src/sink/committer/held-table.ts'
import { lakeCommitter } from '../../../src/sink/committer/lake-committer.ts'
import { readVersion } from '../../../src/sink/committer/progress.ts'
import type { Assignment, RoundPlan, SplitResult } from '../../../src/sink/ports.ts'
import { EmbeddedSource } from '../../../src/source/embedded/embedded-source.ts'
import { FakeLake } from '../../support/fake-lake.ts'

const name = 'demo.clicks'
const type = { kind: 'bigint', nullable: false } as const
const schema = { fields: [{ name: 'id', type }] }
const clock = { now: () => millis(0), monotonic: () => millis(0), sleep: () => Promise.resolve() }

function ids(): { bits128: () => string } {
  let last = 0
  return {
    bits128: () => {
      last += 1
      return last.toString(16).padStart(2, '0').repeat(16)
    },
  }
}

function records(from: number, count: number): ColumnBatch {
  const builder = columnBuilder(type)
  if (builder.layout === 'int64')
    for (let i = 0; i < count; i += 1) builder.append(BigInt(from + i))
  return finishBatch([builder])
}

/** A process that feeds the table: its log, and what it holds. */
async function open(
  lake: FakeLake,
  drawIds = ids(),
  more: Partial<Parameters<typeof lakeCommitter>[0]> = {},
) {
  const source = new EmbeddedSource({ clock, logMemoryBytes: 1 << 20 })
  const version = await readVersion(lake, `embedded:${name}`)
  const resumed = version.progress.kind === 'found' ? version.progress.ledger : undefined
  const table = source.createTable(
    { name, schema, bucketCount: 2, freshnessMs: 60_000 },
    resumed === undefined
      ? undefined
      : {
          ends: new Map([...resumed.buckets].map(([bucket, { end }]) => [bucket, end])),
          inputs: resumed.inputs,
        },
  )
  const held = holdTable(table.id, lake, table.sourceId, version)
  const heldById = new Map<TableId, HeldTable>([[table.id, held]])
  const committer = lakeCommitter({
    source,
    clock,
    chance: seededChance(1),
    ids: drawIds,
    journal: silentJournal,
    held: (id) => heldById.get(id),
    ...more,
  })
  let lastEpoch = 0
  const assign = (takeOver = false): Assignment => {
    lastEpoch += 1
    return { table: table.id, incarnation: incarnation(1), epoch: epoch(lastEpoch), takeOver }
  }
  return { source, table, held, committer, assign }
}

/** Every split read to its end. */
function readAll(plan: RoundPlan): readonly SplitResult[] {
  return plan.splits.map(({ bucket, start, stop }) => ({
    bucket,
    start,
    end: stop,
    files: [],
    rows: Number(stop - start),
  }))
}

describe('lakeCommitter', () => {
  test('nothing new writes nothing, not even a fence', async () => {
    const lake = new FakeLake()
    const { committer, assign } = await open(lake)
    const plan = await committer.plan(assign(true))
    deepEqual(plan.splits, [])
    equal(lake.versions.length, 1)
  })

  test('a round moves ends, and the next process goes on from them without a fence if it was final', async () => {
    const lake = new FakeLake()
    const first = await open(lake)
    await first.source.append(first.table.id, records(0, 100), {})
    const plan = await first.committer.plan(first.assign())
    equal((await first.committer.commit(plan, readAll(plan), true)).kind, 'committed')
    equal(lake.versions.length, 2)

    const second = await open(lake)
    equal(second.held.incarnation, 2)
    equal(second.held.fenceFirst, false)
    await second.source.append(second.table.id, records(100, 50), {})
    const next = await second.committer.plan(second.assign())
    deepEqual(
      next.splits.map(({ start, stop, isFirst }) => [start, stop, isFirst]),
      [[100n, 150n, false]],
    )
    equal(lake.versions.length, 2)
  })

  test('a holder that may still write is fenced before progress is read', async () => {
    const lake = new FakeLake()
    const old = await open(lake)
    await old.source.append(old.table.id, records(0, 100), {})
    const whole = await old.committer.plan(old.assign())
    await old.committer.commit(whole, readAll(whole), false)
    await old.source.append(old.table.id, records(100, 10), {})
    const late = await old.committer.plan(old.assign())

    const young = await open(lake, { bits128: () => 'f'.repeat(32) })
    equal(young.held.fenceFirst, true)
    await young.source.append(young.table.id, records(100, 20), {})
    await young.committer.plan(young.assign())
    equal(lake.versions.length, 3)

    const end = await old.committer.commit(late, readAll(late), false)
    equal(end.kind === 'rejected' && end.error.code, 'COMMIT_FENCED')
    equal(end.kind === 'rejected' && end.error.effect, 'none')
    equal(
      end.kind === 'rejected' && end.error.state,
      'our last commit is in the lake; the round in flight added nothing',
    )
    await rejects(old.committer.plan(old.assign()), (error) =>
      isSluiceError(error, 'COMMIT_FENCED'),
    )
  })

  test('a log that was opened on another commit than the newest is not planned', async () => {
    const lake = new FakeLake()
    const one = await open(lake)
    const two = await open(lake, { bits128: () => 'e'.repeat(32) })
    await one.source.append(one.table.id, records(0, 100), {})
    await two.source.append(two.table.id, records(500, 100), {})
    const plan = await one.committer.plan(one.assign())
    await one.committer.commit(plan, readAll(plan), true)
    // Both read the same highest token, so the second one finds its own token on another's commit.
    await rejects(two.committer.plan(two.assign()), (error) =>
      isSluiceError(error, 'COMMIT_FENCED'),
    )
    // With a higher epoch of the same incarnation it is not fenced, and must still not go on.
    two.assign()
    await rejects(two.committer.plan(two.assign()), (error) => isSluiceError(error, 'COMMIT_STALE'))
    equal(lake.versions.length, 2)
  })

  test('a bucket that read nothing keeps its absent end', async () => {
    const lake = new FakeLake()
    const { source, table, committer, assign } = await open(lake)
    await source.append(table.id, records(0, 2048), {})
    const plan = await committer.plan(assign())
    equal(plan.splits.length, 2)
    const [first, second] = readAll(plan)
    if (first === undefined || second === undefined) throw new Error('two splits were planned')
    const unread = { ...second, end: second.start, rows: 0 }
    await committer.commit(plan, [first, unread], false)
    const version = await readVersion(lake, table.sourceId)
    deepEqual(version.progress.kind === 'found' && [...version.progress.ledger.buckets.keys()], [
      first.bucket,
    ])
  })

  test('a commit whose reply was lost moves the log on when it is found', async () => {
    const lake = new FakeLake()
    const { source, table, committer, assign } = await open(lake)
    await source.append(table.id, records(0, 10), {})
    const plan = await committer.plan(assign())
    lake.fates = ['lose-reply']
    const end = await committer.commit(plan, readAll(plan), false)
    equal(end.kind === 'committed' && end.alreadyApplied, true)
    equal(source.endsAt(table.id, new Map()), true)
  })

  test('a table that was rolled back behind the log is not skipped over', async () => {
    const lake = new FakeLake()
    const { source, table, committer, assign } = await open(lake)
    await source.append(table.id, records(0, 10), {})
    const one = await committer.plan(assign())
    await committer.commit(one, readAll(one), false)
    const before = lake.newest.head
    await source.append(table.id, records(10, 10), {})
    const two = await committer.plan(assign())
    await committer.commit(two, readAll(two), false)
    lake.edit({ head: before })
    await source.append(table.id, records(20, 10), {})
    await rejects(committer.plan(assign()), (error) => isSluiceError(error, 'COMMIT_STALE'))
  })

  test('a bucket whose first rows were rolled away does not begin where the log does', async () => {
    const lake = new FakeLake()
    const { source, table, committer, assign } = await open(lake)
    // By place: 1,024 records for one bucket, then 1,024 for the other.
    await source.append(table.id, records(0, 1024), {})
    const one = await committer.plan(assign())
    await committer.commit(one, readAll(one), false)
    const before = lake.newest.head
    await source.append(table.id, records(1024, 1024), {})
    const two = await committer.plan(assign())
    await committer.commit(two, readAll(two), false)
    lake.edit({ head: before })
    await source.append(table.id, records(2048, 2048), {})
    await rejects(committer.plan(assign()), (error) => isSluiceError(error, 'COMMIT_STALE'))
  })

  test('a round that was planned before a rollback does not land after it', async () => {
    const lake = new FakeLake()
    const { source, table, committer, assign } = await open(lake)
    await source.append(table.id, records(0, 1024), {})
    const one = await committer.plan(assign())
    await committer.commit(one, readAll(one), false)
    const before = lake.newest.head
    await source.append(table.id, records(1024, 1024), {})
    const two = await committer.plan(assign())
    await committer.commit(two, readAll(two), false)
    await source.append(table.id, records(2048, 1024), {})
    const three = await committer.plan(assign())
    lake.edit({ head: before })
    const end = await committer.commit(three, readAll(three), false)
    equal(end.kind === 'rejected' && end.error.code, 'COMMIT_STALE')
  })

  test('two processes that claimed the same number do not take turns on different buckets', async () => {
    const lake = new FakeLake()
    const drawIds = ids()
    const first = await open(lake, drawIds)
    const second = await open(lake, drawIds)
    await first.source.append(first.table.id, records(0, 1024), {})
    await second.source.append(second.table.id, records(0, 2048), {})
    second.assign()
    const ours = await first.committer.plan(first.assign())
    const theirs = await second.committer.plan(second.assign())
    equal((await first.committer.commit(ours, readAll(ours), false)).kind, 'committed')
    // Cut before its first bucket was read, and under a later epoch than the commit in the lake.
    const read = readAll(theirs).filter(({ bucket }) => bucket === 1)
    const end = await second.committer.commit(theirs, read, false)
    equal(end.kind === 'rejected' && end.error.code, 'COMMIT_STALE')
  })

  test('files of a round over twelve hours old are looked for before it commits (F-33)', async () => {
    let now = 0
    const slow = { ...clock, monotonic: () => millis(now) }
    const location = 'file:///lake/demo/clicks/data/a.parquet'
    const commitAfter = async (hours: number, bytes: number | undefined): Promise<string> => {
      const lake = new FakeLake()
      const { source, table, committer, assign } = await open(lake, ids(), {
        clock: slow,
        store: { size: () => Promise.resolve(bytes) },
      })
      await source.append(table.id, records(0, 10), {})
      const plan = await committer.plan(assign())
      now += hours * 3_600_000
      const file = {
        location,
        bucket: bucket(0),
        rows: 10,
        bytes: 99,
        metrics: [],
        splitOffsets: [],
      }
      const results = readAll(plan).map((result) => ({ ...result, files: [file] }))
      try {
        return (await committer.commit(plan, results, false)).kind
      } catch (error) {
        return isSluiceError(error) ? error.code : String(error)
      }
    }
    equal(await commitAfter(11, undefined), 'committed')
    equal(await commitAfter(12, 99), 'committed')
    equal(await commitAfter(12, undefined), 'COMMIT_STALE')
    equal(await commitAfter(12, 98), 'COMMIT_STALE')
  })

  test('a later life of the coordinator outranks the one before, though its epochs start anew (I-11)', async () => {
    const lake = new FakeLake()
    const { source, table, committer } = await open(lake)
    const assignment = (life: number): Assignment => ({
      table: table.id,
      incarnation: incarnation(life),
      epoch: epoch(1),
      takeOver: false,
    })
    const claims: string[] = []
    for (const life of [1, 2]) {
      await source.append(table.id, records(0, 10), {})
      const plan = await committer.plan(assignment(life))
      await committer.commit(plan, readAll(plan), false)
      const { claim } = await readVersion(lake, table.sourceId)
      claims.push(`${String(claim?.token.incarnation)}.${String(claim?.token.epoch)}`)
    }
    deepEqual(claims, ['1.1', '2.1'])
  })
})
