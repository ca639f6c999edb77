import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ForeignLake, upTo } from '../../support/foreign-lake.ts'
import type { CliRun } from '../../unit/cli/lake-fixture.ts'

function good(run: CliRun): CliRun {
  equal(run.exit, 0, run.err)
  return run
}

/** Ended with this code, and the table is as it was. */
async function refused(
  lake: ForeignLake,
  run: () => Promise<CliRun>,
  code: string,
): Promise<CliRun> {
  const { others } = lake
  const before = (await others.metadata()).json
  const end = await run()
  equal(end.exit, 3, `${end.out}${end.err}`)
  match(end.err, new RegExp(`code {3}${code} `))
  deepEqual((await others.metadata()).json, before)
  return end
}

/** Two rounds of ours: records 0 to 2999. */
async function tiered(lake: ForeignLake): Promise<void> {
  good(await lake.tier(2000))
  good(await lake.tier(3000))
}

describe('the lineage has a snapshot of ours', () => {
  test('below the commits of others: it goes on, and their rows stay', async (t) => {
    const lake = new ForeignLake(t)
    await tiered(lake)
    await lake.others.append({ copies: 1 })
    await lake.others.compact()
    await lake.others.append()
    const theirs = (await lake.numbers()).length
    ok(theirs > 3000)
    const run = good(await lake.tier(3500))
    match(run.err, /demo\.clicks has 3 newer snapshots of other writers/)
    equal(run.err.split('of other writers').length, 2)
    equal((await lake.numbers()).length, theirs + 500)
    equal(good(await lake.tier(3600)).err.includes('other writers'), false)
  })

  test('and the property is older, or was taken away: the snapshot wins', async (t) => {
    const lake = new ForeignLake(t)
    good(await lake.tier(2000))
    const old = (await lake.others.metadata()).properties.get('sluice.progress')
    good(await lake.tier(3000))
    await lake.others.setProperty('sluice.progress', old)
    good(await lake.tier(3500))
    deepEqual(await lake.numbers(), upTo(3500))
    await lake.others.setProperty('sluice.progress', undefined)
    good(await lake.tier(4000))
    deepEqual(await lake.numbers(), upTo(4000))
    ok((await lake.others.metadata()).properties.has('sluice.progress'))
  })

  test('after a rollback: says so, reads again what went away, and nothing twice', async (t) => {
    const lake = new ForeignLake(t)
    await tiered(lake)
    const [newest, first] = await lake.others.lineage()
    await lake.others.rollback(first ?? 0n)
    deepEqual(await lake.numbers(), upTo(2000))
    const run = good(await lake.tier(3500))
    match(run.err, new RegExp(`rolled back from snapshot ${String(newest)}`))
    deepEqual(await lake.numbers(), upTo(3500))
    equal(new Set(await lake.places()).size, 3500)
  })

  test('after a rollback with a foreign commit on top: the same', async (t) => {
    const lake = new ForeignLake(t)
    await tiered(lake)
    const [, first] = await lake.others.lineage()
    await lake.others.rollback(first ?? 0n)
    await lake.others.append()
    match(good(await lake.tier(3500)).err, /rolled back from/)
    deepEqual(await lake.numbers(), upTo(3500))
  })

  test('after a rollback and the way back: as if nothing had been', async (t) => {
    const lake = new ForeignLake(t)
    await tiered(lake)
    const [newest, first] = await lake.others.lineage()
    await lake.others.rollback(first ?? 0n)
    await lake.others.rollback(newest ?? 0n)
    const run = good(await lake.tier(3500))
    equal(run.err.includes('rolled back'), false)
    deepEqual(await lake.numbers(), upTo(3500))
  })

  test('after a rollback to a state whose input is gone: refused before anything is read', async (t) => {
    const lake = new ForeignLake(t)
    await tiered(lake)
    const [, first] = await lake.others.lineage()
    await lake.others.rollback(first ?? 0n)
    lake.write(3500, 7)
    const run = (): Promise<CliRun> =>
      lake.run(['tier', lake.input, '--warehouse', './lake', '--table', 'demo.clicks'])
    await refused(lake, run, 'INPUT_CHANGED')
  })

  test('a listed snapshot in no lineage is ignored (staged, WAP)', async (t) => {
    const lake = new ForeignLake(t)
    await tiered(lake)
    const [newest] = await lake.others.lineage()
    await lake.others.append({ copies: 1 })
    await lake.others.rollback(newest ?? 0n)
    good(await lake.tier(3500))
    deepEqual(await lake.numbers(), upTo(3500))
  })

  test('after expiry of everything but the head: nothing changes', async (t) => {
    const lake = new ForeignLake(t)
    await tiered(lake)
    await lake.others.expire(1)
    good(await lake.tier(3500))
    deepEqual(await lake.numbers(), upTo(3500))
  })
})

describe('our snapshots have expired below the commits of others', () => {
  test('and the recorded one is the very parent that is gone: it goes on', async (t) => {
    const lake = new ForeignLake(t)
    await tiered(lake)
    await lake.others.append({ copies: 1, silent: true })
    await lake.others.expire(1)
    const there = (await lake.numbers()).length
    good(await lake.tier(3500))
    equal((await lake.numbers()).length, there + 500)
  })

  test('and the rows end where the property says: it goes on', async (t) => {
    const lake = new ForeignLake(t)
    await tiered(lake)
    await lake.others.compact()
    await lake.others.append()
    await lake.others.expire(1)
    good(await lake.tier(3500))
    deepEqual(await lake.numbers(), upTo(3500))
    equal(new Set(await lake.places()).size, 3500)
  })

  test('and rows are gone, or do not say where they end: PROGRESS_LOST', async (t) => {
    for (const change of ['overwrite', 'silent'] as const) {
      const lake = new ForeignLake(t)
      await tiered(lake)
      if (change === 'overwrite') await lake.others.overwrite({ copies: 1 })
      else await lake.others.append({ copies: 1, silent: true })
      await lake.others.append()
      await lake.others.expire(1)
      const end = await refused(lake, () => lake.tier(3500), 'PROGRESS_LOST')
      match(end.err, /was expired by another tool/)
    }
  })

  test('after a rollback, with a higher sequence number on top: never trusted', async (t) => {
    const lake = new ForeignLake(t)
    await tiered(lake)
    const [, first] = await lake.others.lineage()
    await lake.others.rollback(first ?? 0n)
    await lake.others.append()
    await lake.others.append()
    await lake.others.expire(1)
    await refused(lake, () => lake.tier(3500), 'PROGRESS_LOST')
  })

  test('and there is no property: PROGRESS_LOST', async (t) => {
    const lake = new ForeignLake(t)
    await tiered(lake)
    await lake.others.append()
    await lake.others.expire(1)
    await lake.others.setProperty('sluice.progress', undefined)
    await refused(lake, () => lake.tier(3500), 'PROGRESS_LOST')
  })
})

describe('no snapshot of ours is left in a whole history', () => {
  test('never tiered, with commits of others: it begins', async (t) => {
    const lake = new ForeignLake(t)
    good(await lake.create())
    await lake.others.append()
    good(await lake.tier(2000))
    deepEqual(await lake.numbers(), upTo(2000))
  })

  test('rolled back to before the first commit: PROGRESS_LOST, never from 0', async (t) => {
    const lake = new ForeignLake(t)
    good(await lake.create())
    const before = await lake.others.append()
    await tiered(lake)
    await lake.others.rollback(before)
    await refused(lake, () => lake.tier(3500), 'PROGRESS_LOST')
  })

  test('replaced with data under the same UUID: PROGRESS_LOST', async (t) => {
    const lake = new ForeignLake(t)
    await tiered(lake)
    await lake.others.replace({ copies: 1 })
    await refused(lake, () => lake.tier(3500), 'PROGRESS_LOST')
  })

  test('replaced empty under the same UUID, or its branch dropped: TABLE_REPLACED', async (t) => {
    const lake = new ForeignLake(t)
    await tiered(lake)
    await lake.others.replace()
    await refused(lake, () => lake.tier(3500), 'TABLE_REPLACED')
  })

  test('cherry-picked rows of ours without their ledger: PROGRESS_LOST', async (t) => {
    const lake = new ForeignLake(t)
    await tiered(lake)
    const [newest, first] = await lake.others.lineage()
    await lake.others.rollback(first ?? 0n)
    await lake.others.append()
    await lake.others.cherryPick(newest ?? 0n)
    equal((await lake.numbers()).length, 3000)
    const end = await refused(lake, () => lake.tier(3500), 'PROGRESS_LOST')
    match(end.err, /cherry-picked/)
  })

  test('dropped and made anew with the old properties: TABLE_REPLACED', async (t) => {
    const lake = new ForeignLake(t)
    await tiered(lake)
    await lake.others.dropAndRecreate('kept')
    await refused(lake, () => lake.tier(3500), 'TABLE_REPLACED')
  })

  test('dropped and made anew without a trace: an empty table, filled from the beginning', async (t) => {
    const lake = new ForeignLake(t)
    await tiered(lake)
    await lake.others.dropAndRecreate()
    good(await lake.tier(3500))
    deepEqual(await lake.numbers(), upTo(3500))
  })
})
