import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, describe, test, type TestContext } from 'node:test'
import { compareRows, readInput } from '../engines/engines.ts'
import { listOf } from '../support/cli.ts'
import { ForeignLake, upTo } from '../support/foreign-lake.ts'
import { tortureColumns } from '../support/torture-columns.ts'
import { tortureTable, writeTable } from '../support/torture-table.ts'
import type { CliRun } from '../unit/cli/lake-fixture.ts'
import { Spark } from './spark.ts'

const month = 30 * 86_400_000

describe('Spark with a hadoop catalog over a lake of Sluice', () => {
  let spark: Spark
  before(async () => {
    spark = await Spark.start()
  })
  after(() => spark.close())

  test('reads a tiered table of every type it knows as it is in the input', async (t) => {
    const { lake, catalog } = await shared(t)
    // Spark has no time of day.
    const columns = tortureColumns.filter(({ type }) => !type.startsWith('TIME('))
    const { schema, input } = await writeTable(lake.folder, 'every', tortureTable(columns, 61))
    const into = ['--warehouse', './lake', '--table', 'demo.every', '--schema', schema]
    good(await lake.run(['tier', input, ...into]))
    const folder = join(lake.folder, 'lake/demo/every')
    const expected = await readInput({ files: [input], table: folder })
    const actual = await spark.rows(`${catalog}.demo.every`, folder)
    deepEqual(compareRows(expected, actual).differences, [])
    equal(actual.digest, expected.digest)
    equal(actual.rows, 61)
  })

  test('appends rows of its own: tier goes on, and rows of both are there once', async (t) => {
    const at = await shared(t)
    good(await at.lake.tier(2000))
    // Without an offset, as Fluss writes it, and far behind the end.
    await insert(at, [900_001, 0, -1], [900_002, 1, 5_000_000])
    const run = good(await at.lake.tier(3000))
    match(run.err, /demo\.clicks has 1 newer snapshot of other writers\. Without a catalog only/)
    await insert(at, [900_003, 0, -1])
    match(good(await at.lake.tier(3500)).err, /has 1 newer snapshot of other writers/)
    deepEqual(await numbers(at), [...upTo(3500), 900_001, 900_002, 900_003])
    deepEqual(await at.lake.numbers(), await numbers(at))
    deepEqual(await warnings(at), ['FOREIGN', 'FOREIGN'])
  })

  test('compacts data files and manifests: tier goes on, and no row changes', async (t) => {
    const at = await shared(t)
    await tiered(at)
    const [files] = await call(at, 'rewrite_data_files', "options => map('rewrite-all', 'true')")
    equal(files?.[0], '4')
    await call(at, 'rewrite_manifests')
    deepEqual(await numbers(at), upTo(3000))
    good(await at.lake.tier(3500))
    deepEqual(await numbers(at), upTo(3500))
    equal(new Set(await at.lake.places()).size, 3500)
    deepEqual(await warnings(at), ['FOREIGN', 'FOREIGN'])
  })

  test('deletes rows of ours: they stay away, and tier goes on', async (t) => {
    const at = await shared(t)
    await tiered(at)
    await spark.sql(`DELETE FROM ${at.table} WHERE n >= 2990 OR n = 7`)
    good(await at.lake.tier(3500))
    const left = upTo(3500).filter((n) => n !== 7 && (n < 2990 || n >= 3000))
    deepEqual(await numbers(at), left)
    deepEqual(await warnings(at), ['FOREIGN'])
  })

  describe('expires snapshots', () => {
    test('and ours is the head: nothing changes', async (t) => {
      const at = await shared(t)
      await tiered(at)
      await expire(at)
      equal((await at.lake.others.lineage()).length, 1)
      good(await at.lake.tier(3500))
      deepEqual(await numbers(at), upTo(3500))
      await warnings(at)
    })

    test('and ours was the parent of its append: proven by that, whatever the rows', async (t) => {
      const at = await shared(t)
      await tiered(at)
      await insert(at, [900_001, 0, 5_000_000])
      await expire(at)
      good(await at.lake.tier(3500))
      deepEqual(await numbers(at), [...upTo(3500), 900_001])
      ok((await warnings(at)).includes('EXPIRED'))
    })

    test('and two of its own are on top: proven by rows that end where ours did', async (t) => {
      const at = await shared(t)
      await tiered(at)
      await insert(at, [900_001, 0, -1])
      await call(at, 'rewrite_data_files', "options => map('rewrite-all', 'true')")
      await expire(at)
      deepEqual(await proof(at), ['found', 'rows'])
      good(await at.lake.tier(3500))
      deepEqual(await numbers(at), [...upTo(3500), 900_001])
      await warnings(at)
    })

    test('and rows end elsewhere: PROGRESS_LOST with the evidence, until decided', async (t) => {
      const at = await shared(t)
      await tiered(at)
      await insert(at, [900_001, 0, 5_000_000])
      await insert(at, [900_002, 1, -1])
      await expire(at)
      const before = (await at.lake.others.metadata()).json
      const run = await at.lake.tier(3500)
      equal(run.exit, 3, run.err)
      match(run.err, /code {3}PROGRESS_LOST /)
      deepEqual((await at.lake.others.metadata()).json, before)
      deepEqual(await proof(at), ['lost', 'chain-broken'])
      const { buckets } = await at.lake.document(['progress', './lake', 'demo.clicks'])
      deepEqual(
        listOf(buckets).map(({ property, rows }) => [property, rows]),
        [
          [1976, 5_000_001],
          [1024, 1024],
        ],
      )
      const set = ['--set', '0=1976', '--set', '1=1024', '--force', '--reason', 'rows of Spark']
      good(await at.lake.run(['progress', './lake', 'demo.clicks', ...set]))
      good(await at.lake.tier(3500))
      deepEqual(await numbers(at), [...upTo(3500), 900_001, 900_002])
    })
  })

  test('rolls back: tier reads again what went away, and all is there once', async (t) => {
    const at = await shared(t)
    await tiered(at)
    const [newest, first] = await at.lake.others.lineage()
    const to = `snapshot_id => ${String(first)}`
    await call(at, 'rollback_to_snapshot', to)
    deepEqual(await numbers(at), upTo(2000))
    const run = good(await at.lake.tier(3500))
    match(run.err, new RegExp(`rolled back from snapshot ${String(newest)}`))
    deepEqual(await numbers(at), upTo(3500))
    equal(new Set(await at.lake.places()).size, 3500)
    deepEqual(await warnings(at), [])

    // Back once more, below a commit of its own this time.
    await call(at, 'rollback_to_snapshot', to)
    await insert(at, [900_001, 0, -1])
    match(good(await at.lake.tier(4000)).err, /rolled back from snapshot/)
    deepEqual(await numbers(at), [...upTo(4000), 900_001])
    deepEqual(await warnings(at), ['FOREIGN'])
  })

  test('removes orphans, of old versions too, and nothing that Sluice needs', async (t) => {
    const at = await shared(t)
    const { lake } = at
    // So many inputs do not fit a summary: their ledger is in the manifest list's header.
    const inputs = upTo(24).map((each) => join(lake.folder, `input-${String(each)}.ndjson`))
    const tier = async (records: number): Promise<void> => {
      for (const [each, file] of inputs.entries()) {
        const lines = upTo(records).map((record) => `{"n":${String(each * 100 + record)}}\n`)
        writeFileSync(file, lines.join(''))
      }
      const into = ['--warehouse', './lake', '--table', 'demo.clicks', '--buckets', '2']
      good(await lake.run(['tier', ...inputs, ...into]))
    }
    const rows = (records: number): readonly number[] =>
      upTo(24).flatMap((each) => upTo(records).map((record) => each * 100 + record))
    await tier(1)
    await tier(2)
    const { head, snapshots } = await lake.others.metadata()
    const summary = head === undefined ? undefined : snapshots.get(head)?.summary
    match(summary?.get('sluice.ledger') ?? '', /^manifest-list;sha256=/)

    await spark.sql(
      `ALTER TABLE ${at.table} SET TBLPROPERTIES ('write.metadata.previous-versions-max' = '1')`,
    )
    await insert(at, [900_001, 0, -1])
    const leftovers = ['data/__bucket=0/00000-crash.parquet', 'metadata/crash-m0.avro']
    for (const name of leftovers) {
      mkdirSync(dirname(join(lake.table, name)), { recursive: true })
      writeFileSync(join(lake.table, name), 'left by a crash')
    }
    ageAll(lake.table)
    const removed = (await call(at, 'remove_orphan_files')).map(([location]) => location ?? '')
    for (const name of leftovers) {
      ok(
        removed.some((location) => location.endsWith(name)),
        removed.join(),
      )
      equal(existsSync(join(lake.table, name)), false)
    }
    t.diagnostic(`removed: ${removed.map((each) => each.split('/clicks/')[1]).join(', ')}`)
    await tier(3)
    deepEqual(await numbers(at), [...rows(3), 900_001])
    deepEqual(await warnings(at), ['FOREIGN'])
  })

  test('writes files that sweep keeps, those of older snapshots and statistics too', async (t) => {
    const at = await shared(t)
    const { lake } = at
    await tiered(at)
    await insert(at, [900_001, 0, -1])
    await spark.sql(`DELETE FROM ${at.table} WHERE n = 7`)
    await call(at, 'rewrite_data_files', "options => map('rewrite-all', 'true')")
    await call(at, 'rewrite_manifests')
    await call(at, 'compute_table_stats')
    await call(at, 'compute_partition_stats')
    good(await lake.tier(3500))
    const leftover = join(lake.table, 'data/__bucket=0/00000-crash.parquet')
    writeFileSync(leftover, 'left by a crash')
    ageAll(lake.table)
    const before = files(lake.table)
    ok(before.some((name) => name.endsWith('.stats')))
    good(await lake.run(['sweep', './lake', '--delete']))
    deepEqual(
      files(lake.table),
      before.filter((name) => name !== leftover),
    )
    deepEqual(await numbers(at), [...upTo(3500).filter((n) => n !== 7), 900_001])
    const [older] = await spark.sql(
      `SELECT count(*) FROM ${at.table} VERSION AS OF ${String((await lake.others.lineage()).at(-1))}`,
    )
    deepEqual(older, ['2000'])
  })

  type Shared = { readonly lake: ForeignLake; readonly catalog: string; readonly table: string }

  async function shared(context: TestContext): Promise<Shared> {
    const lake = new ForeignLake(context)
    const catalog = await spark.catalog(join(lake.folder, 'lake'))
    return { lake, catalog, table: `${catalog}.demo.clicks` }
  }

  /** Adds rows of `n`, bucket and offset in one commit of Spark. */
  async function insert(
    { table }: Shared,
    ...rows: readonly (readonly [number, number, number])[]
  ): Promise<void> {
    const values = rows.map((row) => `(${row.join(', ')}, TIMESTAMP '2026-01-01 00:00:00')`)
    await spark.sql(
      `INSERT INTO ${table} (n, __bucket, __offset, __timestamp) VALUES ${values.join(', ')}`,
    )
  }

  function call({ catalog }: Shared, procedure: string, ...more: readonly string[]) {
    const args = ["table => 'demo.clicks'", ...more].join(', ')
    return spark.sql(`CALL ${catalog}.system.${procedure}(${args})`)
  }

  async function expire(at: Shared): Promise<void> {
    await call(
      at,
      'expire_snapshots',
      "older_than => TIMESTAMP '2100-01-01 00:00:00'",
      'retain_last => 1',
    )
  }

  /** Every `n` that Spark reads, ascending. */
  async function numbers({ table }: Shared): Promise<readonly number[]> {
    const rows = await spark.sql(`SELECT n FROM ${table} ORDER BY n`)
    return rows.map(([n]) => Number(n))
  }
})

function good(run: CliRun): CliRun {
  equal(run.exit, 0, run.err)
  return run
}

/** Two rounds of ours: records 0 to 2999. */
async function tiered({ lake }: { readonly lake: ForeignLake }): Promise<void> {
  good(await lake.tier(2000))
  good(await lake.tier(3000))
}

/** The kinds of warnings of `sluice verify`, which must find no fault. */
async function warnings({ lake }: { readonly lake: ForeignLake }): Promise<readonly unknown[]> {
  const run = await lake.run(['verify', './lake'])
  equal(run.exit, 0, run.out)
  const { tables } = await lake.document(['verify', './lake'])
  const [table] = listOf(tables)
  ok(table !== undefined)
  deepEqual(table['faults'], [])
  return listOf(table['warnings']).flatMap(({ kind }) => (kind === 'ORPHAN' ? [] : [kind]))
}

/** What `sluice progress` goes by. */
async function proof({ lake }: { readonly lake: ForeignLake }): Promise<readonly unknown[]> {
  const { verdict, by, reason } = await lake.document(['progress', './lake', 'demo.clicks'])
  return [verdict, by ?? reason]
}

/** Every file below a folder, ascending. */
function files(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .flatMap((entry) => (entry.isFile() ? [join(entry.parentPath, entry.name)] : []))
    .sort()
}

/** Makes every file below a folder a month old. */
function ageAll(folder: string): void {
  const at = (Date.now() - month) / 1000
  for (const file of files(folder)) utimesSync(file, at, at)
}
