import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { userInfo } from 'node:os'
import { describe, test } from 'node:test'
import type { LakeTable } from '../../../src/catalog/ports.ts'
import { localStore, locationOf } from '../../../src/catalog/store/local-store.ts'
import { isSluiceError } from '../../../src/core/errors.ts'
import { bucket, offset } from '../../../src/core/ids.ts'
import { silentJournal } from '../../../src/core/ports.ts'
import { seededChance, systemClock, systemIds } from '../../../src/core/system.ts'
import { openTableFolder } from '../../../src/library/open-table.ts'
import { type Decision, recordDecision } from '../../../src/sink/committer/override.ts'
import { listOf } from '../../support/cli.ts'
import { ForeignLake, upTo } from '../../support/foreign-lake.ts'

const source = 'embedded:demo.clicks'
const place = ['progress', './lake', 'demo.clicks']
const why = ['--reason', 'history was expired by mistake']

/** Records 0 to 2999, and a history that cannot prove it: rows of 2 buckets end at 1976 and 1024. */
async function lost(context: ConstructorParameters<typeof ForeignLake>[0]): Promise<ForeignLake> {
  const lake = new ForeignLake(context)
  equal((await lake.tier(2000)).exit, 0)
  equal((await lake.tier(3000)).exit, 0)
  const [, first] = await lake.others.lineage()
  const [newest] = await lake.others.lineage()
  // The branch goes back and forth with a foreign commit between, so nothing is proven.
  await lake.others.rollback(first ?? 0n)
  await lake.others.append()
  await lake.others.cherryPick(newest ?? 0n)
  equal((await lake.tier(3500)).exit, 3)
  return lake
}

async function ends(lake: ForeignLake): Promise<readonly string[]> {
  const { buckets } = await lake.document(place)
  return listOf(buckets).flatMap(({ bucket: at, rows }) =>
    rows === null ? [] : [`${Number(at).toString()}=${Number(rows).toString()}`],
  )
}

function opened(lake: ForeignLake): Promise<LakeTable> {
  const table = { name: ['demo', 'clicks'], folder: locationOf(lake.table) }
  return openTableFolder(table, localStore(systemIds), { clock: systemClock, ids: systemIds })
}

const ports = {
  clock: systemClock,
  chance: seededChance(1),
  ids: systemIds,
  journal: silentJournal,
}

describe('sluice progress', () => {
  test('says what lineage, property and rows say, and that all is well', async (t) => {
    const lake = new ForeignLake(t)
    equal((await lake.tier(3000)).exit, 0)
    const run = await lake.run(place)
    equal(run.exit, 0, run.err)
    match(run.out, /^demo\.clicks: found in the lineage\n/)
    match(run.out, /lineage {3}snapshot \d+ \(round 1\)\n/)
    match(run.out, /input {5}clicks\.ndjson \(sha256:[0-9a-f]+…?\)?/)
    const document = await lake.document(place)
    equal(document['verdict'], 'found')
    deepEqual(document['buckets'], [
      { bucket: 0, lineage: 1976, property: 1976, rows: 1976 },
      { bucket: 1, lineage: 1024, property: 1024, rows: 1024 },
    ])
  })

  test('tells a rollback, a proven copy, a fresh and a replaced table apart', async (t) => {
    const verdictOf = async (lake: ForeignLake): Promise<unknown> => {
      const { verdict, by, reason } = await lake.document(place)
      return [verdict, by ?? reason ?? null]
    }
    const lake = new ForeignLake(t)
    equal((await lake.create()).exit, 0)
    deepEqual(await verdictOf(lake), ['fresh', null])
    equal((await lake.tier(2000)).exit, 0)
    equal((await lake.tier(3000)).exit, 0)
    const [newest, first] = await lake.others.lineage()
    await lake.others.rollback(first ?? 0n)
    deepEqual(await verdictOf(lake), ['rolled-back', null])
    await lake.others.rollback(newest ?? 0n)
    await lake.others.append()
    await lake.others.expire(1)
    deepEqual(await verdictOf(lake), ['found', 'parent-expired'])
    await lake.others.append()
    await lake.others.expire(1)
    deepEqual(await verdictOf(lake), ['found', 'rows'])
    await lake.others.replace()
    deepEqual(await verdictOf(lake), ['replaced', 'branch-missing'])
  })

  test('ends with 1 and the evidence where progress is lost', async (t) => {
    const lake = await lost(t)
    const run = await lake.run(place)
    equal(run.exit, 1)
    match(run.out, /^demo\.clicks: PROGRESS_LOST \(cherry-picked\)\n/)
    match(run.out, /fix {7}roll back, or go by the rows: --set 0=1976 --set 1=1024 --reason TEXT/)
  })

  test('refuses a gap to skip: this source has none', async (t) => {
    const lake = await lost(t)
    const run = await lake.run([...place, '--skip-gap', '0'])
    equal(run.exit, 2)
    match(run.err, /--fluss/)
  })
})

describe('an operator decides', () => {
  test('by the rows: tier goes on from there, once', async (t) => {
    const lake = await lost(t)
    deepEqual(await ends(lake), ['0=1976', '1=1024'])
    const set = ['--set', '0=1976', '--set', '1=1024', ...why]
    const run = await lake.run([...place, ...set])
    equal(run.exit, 0, run.err)
    match(run.out, /^recorded in demo\.clicks as snapshot \d+\n/)
    equal(run.out.includes('as new'), false)
    match(run.out, /override after round 2 by .*: history was expired by mistake/)
    const head = await lake.others.metadata()
    const entry = [...head.snapshots.values()].find(({ id }) => id === head.head)
    equal(entry?.summary.get('sluice.kind'), 'override')
    equal(entry.summary.get('sluice.by'), userInfo().username)
    match(entry.summary.get('sluice.token') ?? '', /^\[0,3,0\]$/)
    equal((await lake.tier(3500)).exit, 0)
    deepEqual(await lake.numbers(), upTo(3500))
    equal(new Set(await lake.places()).size, 3500)
    const again = await lake.run([...place, ...set])
    equal(again.exit, 2)
    match(again.err, /its progress is known/)
  })

  test('where positions of inputs do not fit the ends, inputs are taken as new', async (t) => {
    const lake = await lost(t)
    await lake.others.overwrite({ copies: 1 })
    const given = await ends(lake)
    equal(given.length, 1)
    const run = await lake.run([...place, ...given.flatMap((each) => ['--set', each]), ...why])
    equal(run.exit, 0, run.err)
    match(run.out, /inputs will be taken as new/)
    const before = (await lake.numbers()).length
    equal((await lake.tier(3500)).exit, 0)
    equal((await lake.numbers()).length, before + 3500)
  })

  test('an empty table that was replaced begins again', async (t) => {
    const lake = new ForeignLake(t)
    equal((await lake.tier(2000)).exit, 0)
    await lake.others.replace()
    equal((await lake.tier(2000)).exit, 3)
    equal((await lake.run([...place, '--set', '0=0', ...why])).exit, 0)
    equal((await lake.tier(2000)).exit, 0)
    deepEqual(await lake.numbers(), upTo(2000))
  })

  test('not without a reason, a bucket that has rows, or against the rows', async (t) => {
    const lake = await lost(t)
    const before = (await lake.others.metadata()).json
    const refusals: readonly (readonly [readonly string[], RegExp])[] = [
      [['--set', '0=1976', '--set', '1=1024'], /--set needs --reason TEXT/],
      [['--set', '0=1976', ...why], /bucket 1 has rows and is not set/],
      [['--set', '0=1976', '--set', '1=1024', '--set', '2=0', ...why], /there is no bucket 2/],
      [['--set', '0=1977', '--set', '1=1024', ...why], /offsets 1976 to 1976 are in no row/],
      [['--set', '0=1975', '--set', '1=1024', ...why], /1975 to 1975 are in rows and would be/],
      [['--set', '0:1976', ...why], /is not BUCKET=OFFSET/],
      [['--set', '0=1', '--set', '0=2', ...why], /bucket 0 is set twice/],
    ]
    for (const [args, message] of refusals) {
      const run = await lake.run([...place, ...args])
      equal(run.exit, 2, `${args.join(' ')}: ${run.out}`)
      match(run.err, message)
    }
    deepEqual((await lake.others.metadata()).json, before)
  })

  test('against the rows with --force, which declares what is in no row', async (t) => {
    const lake = await lost(t)
    const set = ['--set', '0=2000', '--set', '1=1024', ...why, '--force']
    const run = await lake.run([...place, ...set])
    equal(run.exit, 0, run.err)
    match(run.out, /bucket 0: offsets \[1,976, 2,000\) are declared to be in no row/)
    equal((await lake.run([...place])).exit, 0)
  })

  test('on one history only: a commit of others in between refuses it', async (t) => {
    const lake = await lost(t)
    const table = await opened(lake)
    const meddling: LakeTable = {
      name: table.name,
      load: () => table.load(),
      headerLedger: (snapshot) => table.headerLedger(snapshot),
      dataEnds: (version) => table.dataEnds(version),
      liveFiles: (version) => table.liveFiles(version),
      swap: async (base, change) => {
        await lake.others.append()
        return table.swap(base, change)
      },
    }
    await recordDecision(meddling, source, decision, ports).then(
      () => {
        ok(false, 'it was recorded')
      },
      (error: unknown) => {
        ok(isSluiceError(error, 'COMMIT_STALE'), String(error))
      },
    )
    equal((await lake.run(place)).exit, 1)
  })

  test('and a lost reply is found, not repeated', async (t) => {
    const lake = await lost(t)
    const table = await opened(lake)
    const lossy: LakeTable = {
      name: table.name,
      load: () => table.load(),
      headerLedger: (snapshot) => table.headerLedger(snapshot),
      dataEnds: (version) => table.dataEnds(version),
      liveFiles: (version) => table.liveFiles(version),
      swap: async (base, change) => {
        await table.swap(base, change)
        return { kind: 'unknown', cause: 'no reply' }
      },
    }
    const { snapshotId } = await recordDecision(lossy, source, decision, ports)
    const [head] = await lake.others.lineage()
    equal(head, snapshotId)
    equal((await lake.tier(3500)).exit, 0)
    deepEqual(await lake.numbers(), upTo(3500))
  })
})

const decision: Decision = {
  ends: new Map([
    [bucket(0), offset(1976n)],
    [bucket(1), offset(1024n)],
  ]),
  by: 'somebody',
  reason: 'a test',
  force: false,
}
