import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { localStore, locationOf } from '../../../src/catalog/store/local-store.ts'
import { isPlainFile } from '../../../src/catalog/store/plain-file.ts'
import { isSluiceError } from '../../../src/core/errors.ts'
import { systemIds } from '../../../src/core/system.ts'
import { deleteOrphans, findOrphans } from '../../../src/sink/sweeper/sweep.ts'
import { ForeignLake, upTo } from '../../support/foreign-lake.ts'

const day = 86_400_000
const older = { olderThanMs: 3 * day, force: false }

/** Every file below the table's folder, ascending. */
function files(lake: ForeignLake): readonly string[] {
  const entries = readdirSync(lake.table, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(lake.table.length + 1))
    .sort()
}

/** Makes a file, or an old one of one that is there. */
function aged(lake: ForeignLake, path: string, days: number): string {
  const full = join(lake.table, path)
  if (!existsSync(full)) {
    mkdirSync(join(full, '..'), { recursive: true })
    writeFileSync(full, 'left by a crash')
  }
  const at = (Date.now() - days * day) / 1000
  utimesSync(full, at, at)
  return path
}

function ageAll(lake: ForeignLake): void {
  for (const path of files(lake)) aged(lake, path, 30)
}

/** Two rounds of ours, a foreign commit, and everything a month old. */
async function oldLake(context: Parameters<typeof makeLake>[0]): Promise<ForeignLake> {
  const lake = await makeLake(context)
  ageAll(lake)
  return lake
}

async function makeLake(
  context: ConstructorParameters<typeof ForeignLake>[0],
): Promise<ForeignLake> {
  const lake = new ForeignLake(context)
  equal((await lake.tier(2000)).exit, 0)
  equal((await lake.tier(3000)).exit, 0)
  return lake
}

const leftovers = [
  'data/__bucket=0/00000-crash-1.parquet',
  'metadata/0b5f3c1e-crash-m0.avro',
  'metadata/snap-7-crash.avro',
  'metadata/.sluice-0123456789abcdef.tmp',
]

describe('sweep', () => {
  test('lists what a crash left, deletes nothing, and says so', async (t) => {
    const lake = await oldLake(t)
    for (const path of leftovers) aged(lake, path, 4)
    aged(lake, 'data/__bucket=1/00000-running.parquet', 1)
    const before = files(lake)
    const run = await lake.run(['sweep', './lake', 'demo.clicks'])
    equal(run.exit, 0, run.err)
    match(run.out, /^demo\.clicks: 4 files, 60 B that nothing refers to, older than 3d\n/)
    for (const path of leftovers) ok(run.out.includes(path), path)
    match(run.out, /kept: .*1 too young/)
    match(run.err, /nothing was deleted/)
    deepEqual(files(lake), before)
  })

  test('with --delete removes exactly these, and the table reads as before', async (t) => {
    const lake = await oldLake(t)
    const before = files(lake)
    for (const path of leftovers) aged(lake, path, 4)
    const young = aged(lake, 'data/__bucket=1/00000-running.parquet', 1)
    const document = await lake.document(['sweep', './lake', '--delete'])
    deepEqual(
      {
        schema: document['schema'],
        ok: document['ok'],
        table: document['table'],
        dry_run: document['dry_run'],
        file_count: document['file_count'],
        bytes: document['bytes'],
      },
      {
        schema: 'sluice.sweep/1',
        ok: true,
        table: 'demo.clicks',
        dry_run: false,
        file_count: 4,
        bytes: 60,
      },
    )
    deepEqual(files(lake), [...before, young].sort())
    deepEqual(await lake.numbers(), upTo(3000))
    equal((await lake.run(['verify', './lake'])).exit, 0)
    if (existsSync(join(process.cwd(), 'node_modules/@duckdb/node-api'))) {
      const sql = 'select count(*) as c, count(distinct n) as d from demo.clicks'
      const { rows } = await lake.document(['query', './lake', sql])
      deepEqual(rows, [[3000, 3000]])
    }
    equal((await lake.tier(3500)).exit, 0)
    deepEqual(await lake.numbers(), upTo(3500))
  })

  test('spares files of older, rolled-away and rewritten snapshots, and statistics', async (t) => {
    const lake = await makeLake(t)
    const [newest, first] = await lake.others.lineage()
    await lake.others.rollback(first ?? 0n)
    await lake.others.compact()
    await lake.others.overwrite({ copies: 1 })
    const statistics = 'metadata/20260101-stats.puffin'
    await lake.others.addStatistics(statistics)
    aged(lake, statistics, 30)
    ageAll(lake)
    const before = files(lake)
    const run = await lake.run(['sweep', './lake', '--delete'])
    equal(run.exit, 0, run.err)
    deepEqual(files(lake), before)
    await lake.others.rollback(newest ?? 0n)
    deepEqual(await lake.numbers(), upTo(3000))
  })

  test('takes files of snapshots that were expired, and no version', async (t) => {
    const lake = await makeLake(t)
    await lake.others.compact()
    await lake.others.expire(1)
    ageAll(lake)
    const versions = files(lake).filter((path) => path.endsWith('.metadata.json'))
    const all = files(lake).length
    equal((await lake.run(['sweep', './lake', '--delete'])).exit, 0)
    ok(files(lake).length < all)
    deepEqual(
      files(lake).filter((path) => path.endsWith('.metadata.json')),
      versions,
    )
    deepEqual(await lake.numbers(), upTo(3000))
  })

  test('ends when any metadata cannot be read, and deletes nothing', async (t) => {
    for (const suffix of ['-m0.avro', 'snap-']) {
      for (const damage of ['cut', 'gone'] as const) {
        const lake = await oldLake(t)
        for (const path of leftovers) aged(lake, path, 4)
        const victim = files(lake).find((path) => path.includes(suffix) && !path.includes('crash'))
        ok(victim !== undefined)
        const full = join(lake.table, victim)
        if (damage === 'gone') await rm(full)
        else writeFileSync(full, 'Obj')
        const before = files(lake)
        const run = await lake.run(['sweep', './lake', '--delete'])
        equal(run.exit, 3, `${victim} ${damage}: ${run.out}`)
        match(run.err, /code {3}DATA_CORRUPT/)
        deepEqual(files(lake), before)
      }
    }
  })

  test('spares a file that became referenced after it was found', async (t) => {
    const lake = await oldLake(t)
    for (const path of leftovers) aged(lake, path, 4)
    const ports = { store: localStore(systemIds), ids: systemIds, isPlainFile }
    const found = await findOrphans(locationOf(lake.table), older, ports)
    equal(found.orphans.length, 4)
    const [data = ''] = leftovers
    await lake.others.adopt(data)
    const swept = await deleteOrphans(found, ports)
    equal(swept.orphans.length, 3)
    equal(swept.kept.get('spared'), 1)
    ok(files(lake).includes(data))
  })

  test('does not delete from a table that took the place of the one it looked at', async (t) => {
    const lake = await oldLake(t)
    for (const path of leftovers) aged(lake, path, 4)
    const ports = { store: localStore(systemIds), ids: systemIds, isPlainFile }
    const found = await findOrphans(locationOf(lake.table), older, ports)
    await lake.others.dropAndRecreate()
    for (const path of leftovers) aged(lake, path, 4)
    await deleteOrphans(found, ports).then(
      () => {
        ok(false, 'it deleted')
      },
      (error: unknown) => {
        ok(isSluiceError(error, 'TABLE_REPLACED'))
      },
    )
    for (const path of leftovers) ok(files(lake).includes(path))
  })

  test('never goes through a link, neither one it finds nor one put in later', async (t) => {
    const lake = await oldLake(t)
    const outside = join(lake.folder, 'outside')
    mkdirSync(outside)
    const treasure = join(outside, 'lost.parquet')
    writeFileSync(treasure, 'not ours')
    utimesSync(treasure, 1, 1)
    symlinkSync(outside, join(lake.table, 'data/linked'))
    symlinkSync(treasure, join(lake.table, 'data/link.parquet'))
    const path = aged(lake, 'data/later/lost.parquet', 9)
    const ports = { store: localStore(systemIds), ids: systemIds, isPlainFile }
    const found = await findOrphans(locationOf(lake.table), older, ports)
    deepEqual(
      found.orphans.map(({ location }) => location),
      [locationOf(join(lake.table, path))],
    )
    await rename(join(lake.table, 'data/later'), join(lake.table, 'moved'))
    symlinkSync(outside, join(lake.table, 'data/later'))
    const swept = await deleteOrphans(found, ports)
    equal(swept.orphans.length, 0)
    equal(swept.kept.get('changed'), 1)
    ok(existsSync(treasure))
    ok(existsSync(join(lake.table, 'moved/lost.parquet')))
  })

  test('refuses to take young files without --force, and takes them with it', async (t) => {
    const lake = await makeLake(t)
    const path = aged(lake, 'data/__bucket=0/00000-crash-1.parquet', 0.2)
    const refused = await lake.run(['sweep', './lake', '--delete', '--older-than', '1h'])
    equal(refused.exit, 2)
    match(refused.err, /younger than 24h .*\n {2}fix {4}stop every writer and add --force/)
    const run = await lake.run(['sweep', './lake', '--delete', '--older-than', '1h', '--force'])
    equal(run.exit, 0, run.err)
    equal(files(lake).includes(path), false)
    deepEqual(await lake.numbers(), upTo(3000))
  })

  test('refuses a table whose newest metadata another engine may have written', async (t) => {
    for (const name of ['v9.gz.metadata.json', '00009-5f2c.metadata.json', 'v9.metadata.json']) {
      const lake = await oldLake(t)
      for (const path of leftovers) aged(lake, path, 4)
      aged(lake, `metadata/${name}`, 4)
      const before = files(lake)
      const run = await lake.run(['sweep', './lake', 'demo.clicks', '--delete'])
      equal(run.exit, 3, run.out)
      match(run.err, /code {3}TABLE_MISMATCH/)
      deepEqual(files(lake), before)
    }
  })
})
