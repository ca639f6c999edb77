import assert from 'node:assert/strict'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { formatTableName } from '../../../src/core/table-name.ts'
import { appendFile, createTable, runCli, withWarehouse } from './lake-fixture.ts'

test('reads a table back as a box, as CSV and as JSON with every digit', async () => {
  await withWarehouse(async (folder) => {
    const table = await createTable(folder, ['demo', 'Flight.Data'], {
      id: 'BIGINT NOT NULL',
      'A "b"': 'STRING',
      total: 'DECIMAL(38, 2)',
      at: 'TIMESTAMP_LTZ(6)',
      tags: 'ARRAY<STRING>',
      who: 'ROW<name STRING, ids ARRAY<BIGINT>>',
      counts: 'MAP<STRING, INT>',
      raw: 'BYTES',
      f: 'FLOAT',
    })
    await appendFile(
      table,
      4_611_686_018_427_387_905n,
      `values (9223372036854775807, 'x,"y"', 123456789012345678901234567890123456.78,
        timestamptz '2026-11-30 14:02:00.000001Z', ['a', NULL], {'name': 'n', 'ids': [-9223372036854775808]},
        map {'k': 1}, '\\x00\\xFF'::blob, 0.1, 0, 7, timestamptz '2026-11-30 14:02:01Z')`,
    )
    const sql =
      'select id, "A ""b""", total, "at", tags, who, counts, raw, f from demo."Flight.Data"'

    const json = await runCli(['query', folder, sql, '--json'])
    assert.equal(json.exit, 0, json.err)
    assert.ok(json.out.includes('[9223372036854775807,'), json.out)
    const document = JSON.parse(json.out) as Record<string, unknown>
    assert.equal(document['schema'], 'sluice.query/1')
    assert.deepEqual(document['snapshot_ids'], { 'demo."Flight.Data"': '4611686018427387905' })
    const [row] = document['rows'] as unknown[][]
    assert.deepEqual(row?.slice(1), [
      'x,"y"',
      '123456789012345678901234567890123456.78',
      '2026-11-30T14:02:00.000001Z',
      ['a', null],
      // JSON.parse rounds what the text has in full.
      { name: 'n', ids: [-9223372036854776000] },
      [{ key: 'k', value: 1 }],
      'AP8=',
      0.10000000149011612,
    ])
    assert.ok(json.out.includes('"ids":[-9223372036854775808]'))
    assert.match(
      String(document['reader']),
      /^Sluice's metadata reader named 1 file; DuckDB [\d.]+ read the Parquet$/,
    )

    const quoted = await runCli(['query', folder, sql, '--json', '--json-bigint', 'string'])
    assert.ok(quoted.out.includes('["9223372036854775807",'))

    const csv = await runCli(['query', folder, sql, '--csv'])
    assert.equal(
      csv.out,
      'id,"A ""b""",total,at,tags,who,counts,raw,f\n' +
        '9223372036854775807,"x,""y""",123456789012345678901234567890123456.78,' +
        "2026-11-30T14:02:00.000001Z,\"['a', NULL]\",\"{'name': 'n', 'ids': [-9223372036854775808]}\"," +
        "{'k': 1},\\x00\\xFF,0.1\n",
    )

    const box = await runCli(['query', folder, `select id, __offset o from demo."flight.data"`])
    assert.equal(
      box.out,
      '┌─────────────────────┬───┐\n' +
        '│                  id │ o │\n' +
        '├─────────────────────┼───┤\n' +
        '│ 9223372036854775807 │ 7 │\n' +
        '└─────────────────────┴───┘\n',
    )
    assert.match(box.err, /^1 row {3}snapshot 4611686018427387905 {3}[\d.]+ s\n/)
    assert.match(box.err, /Sluice's metadata reader named 1 file; DuckDB/)
  })
})

test('gives an empty table its columns and types', async () => {
  await withWarehouse(async (folder) => {
    await createTable(folder, ['demo', 'none'], {
      id: 'BIGINT',
      r: 'ROW<a INT, b MAP<STRING, BYTES>>',
    })
    const { exit, out } = await runCli(['query', folder, 'select id, r from demo.none', '--json'])
    assert.equal(exit, 0)
    const document = JSON.parse(out) as Record<string, unknown>
    assert.deepEqual(document['columns'], [
      { name: 'id', type: 'BIGINT' },
      { name: 'r', type: 'STRUCT("a" INTEGER, "b" MAP(VARCHAR, BLOB))' },
    ])
    assert.deepEqual(document['rows'], [])
    assert.deepEqual(document['snapshot_ids'], { 'demo.none': null })
    const box = await runCli(['query', folder, 'select id from demo.none'])
    assert.match(box.err, /^0 rows {3}/)
  })
})

test('reads an older snapshot, the state as of a time, and a lake that was moved', async () => {
  await withWarehouse(async (folder) => {
    const before = join(folder, 'before [1]')
    const after = join(folder, 'after *')
    const { mkdir } = await import('node:fs/promises')
    await mkdir(before)
    const table = await createTable(before, ['default', 't'], { id: 'INT' })
    await appendFile(table, 11n, `values (1, 0, 0, timestamptz '2026-11-30 00:00:00Z')`)
    await appendFile(table, 12n, `values (2, 0, 1, timestamptz '2026-11-30 00:00:00Z')`)
    const count = async (at: string, ...more: string[]): Promise<string> =>
      (await runCli(['query', at, 'select count(*) n from t', '--csv', ...more])).out
    assert.equal(await count(before), 'n\n2\n')
    assert.equal(await count(before, '--snapshot', '11'), 'n\n1\n')
    assert.equal(await count(before, '--as-of', '2999-01-01T00:00:00Z'), 'n\n2\n')
    assert.equal(await count(join(before, 'default', 't')), 'n\n2\n')
    assert.equal(
      await count(join(before, 'default', 't', 'metadata', 'v2.metadata.json')),
      'n\n1\n',
    )

    await rename(before, after)
    const moved = await runCli(['query', after, 'select id from "default".t order by 1', '--csv'])
    assert.equal(moved.out, 'id\n1\n2\n', moved.err)
    assert.match(
      moved.err,
      /note {2}default\.t was moved from \/.*before \[1\].*; it is read from \/.*after \*/,
    )

    const missing = await runCli(['query', after, 'from t', '--snapshot', '99'])
    assert.equal(missing.exit, 2)
    assert.match(missing.err, /the table has no snapshot 99/)
    const old = await runCli(['query', after, 'from t', '--as-of', '2001-01-01'])
    assert.equal(old.exit, 2)
    assert.match(old.err, /no snapshot as old as 2001-01-01/)
  })
})

test('shows what DuckDB says about a query, with the tables there are', async () => {
  await withWarehouse(async (folder) => {
    await createTable(folder, ['demo', 'flights'], { id: 'INT' })
    const wrong = await runCli(['query', folder, 'selec 1 from demo.flights'])
    assert.equal(wrong.exit, 2)
    assert.match(
      wrong.err,
      /^error: Parser Error: syntax error at or near "selec"\n {2}where {2}LINE 1: selec 1/,
    )
    const missing = await runCli(['query', folder, 'from demo.flight'])
    assert.match(missing.err, /fix {4}tables here: demo\.flights/)
    const json = await runCli(['query', folder, 'from nope', '--json'])
    const document = JSON.parse(json.out) as Record<string, Record<string, unknown>>
    assert.equal(document['schema'], 'sluice.query/1')
    assert.equal(document['ok'], false)
    assert.equal(document['error']?.['code'], 'CONFIG_INVALID')
    assert.equal(document['error']['exit'], 2)
  })
})

test('refuses tables that DuckDB could not tell apart, and reads each by its folder', async () => {
  await withWarehouse(async (folder) => {
    const pairs = [
      [['a.b', 'rows'], ['a', 'b', 'rows'], `"a.b".rows`],
      [['default', 'lines'], ['main', 'lines'], 'lines'],
    ] as const
    for (const [index, [one, other, sql]] of pairs.entries()) {
      const base = BigInt(10 * index)
      const tables = [
        await createTable(folder, one, { id: 'INT' }),
        await createTable(folder, other, { id: 'INT' }),
      ]
      for (const [at, table] of tables.entries()) {
        const id = base + BigInt(at) + 1n
        await appendFile(
          table,
          id,
          `values (${String(id)}, 0, 0, timestamptz '2026-11-30 00:00:00Z')`,
        )
      }
      const both = await runCli(['query', folder, `select id from ${sql}`, '--csv'])
      assert.equal(both.exit, 2)
      assert.equal(both.out, '')
      assert.match(both.err, /would be one view of DuckDB\n {2}fix {4}name the folder of one/)
      assert.ok(
        both.err.includes(formatTableName(one)) && both.err.includes(formatTableName(other)),
      )
      for (const [at, table] of tables.entries()) {
        const { location } = await table.load()
        const alone = await runCli([
          'query',
          location,
          `select id from ${sqlOf(location)}`,
          '--csv',
        ])
        assert.equal(alone.out, `id\n${String(base + BigInt(at) + 1n)}\n`, alone.err)
      }
    }
  })
})

/** A table that is named by its folder has the folder above as its namespace. */
function sqlOf(location: string): string {
  const [namespace = '', table = ''] = location.split('/').slice(-2)
  return `"${decodeURIComponent(namespace)}".${table}`
}

test('takes the lake from the environment and the SQL from stdin', async () => {
  await withWarehouse(async (folder) => {
    await createTable(folder, ['demo', 'flights'], { id: 'INT' })
    const environment = { SLUICE_WAREHOUSE: folder }
    const one = await runCli(['query', 'select count(*) n from demo.flights', '--csv'], {
      environment,
    })
    assert.equal(one.out, 'n\n0\n', one.err)
    const two = await runCli(['query', folder, '-', '--csv'], {
      stdin: 'select 1 as n;\nselect 2 as n',
    })
    assert.equal(two.out, 'n\n2\n')
    const none = await runCli(['query', folder])
    assert.match(none.err, /error: query needs SQL/)
    const name = await runCli(['query', 'lake', 'select 1'])
    assert.match(
      name.err,
      /error: "lake" is a name; a lake is a location\n {2}fix {4}sluice query \.\/lake 'select 1'\n/,
    )
    const alone = await runCli(['query', 'lake'])
    assert.match(alone.err, /fix {4}sluice query \.\/lake 'select …'\n/)
    const nothing = await runCli(['query', join(folder, 'nope'), 'select 1'])
    assert.equal(nothing.exit, 3)
    assert.match(nothing.err, /nope: no Iceberg table here or below/)
  })
})
