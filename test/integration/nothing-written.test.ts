import assert from 'node:assert/strict'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Int32, Table, tableToIPC, Utf8, vectorFromArray } from 'apache-arrow'
import { type CliRun, runCli, withWarehouse } from '../unit/cli/lake-fixture.ts'

const arrow = new Table({
  id: vectorFromArray([1, 2, 3], new Int32()),
  user: vectorFromArray(['a', null, 'c'], new Utf8()),
})

type Column = { readonly name: string; readonly type: string }
const column = (name: string, type: string): Column => ({ name, type })

async function tier(
  folder: string,
  name: string,
  content: string | Uint8Array,
  columns: readonly Column[],
  ...options: readonly string[]
): Promise<CliRun> {
  writeFileSync(join(folder, name), content)
  writeFileSync(join(folder, 'schema.json'), JSON.stringify({ columns }))
  const lake = join(folder, 'lake')
  const path = join(folder, name)
  const schema = join(folder, 'schema.json')
  return await runCli(
    ['tier', path, '--warehouse', lake, '--table', 'demo.t', '--schema', schema, ...options],
    { folder },
  )
}

const refused: readonly (readonly [string, string | Uint8Array, readonly Column[], RegExp])[] = [
  [
    'a.arrow',
    tableToIPC(arrow, 'file'),
    [column('id', 'SMALLINT'), column('user', 'STRING')],
    /id is INT, column id of demo\.t is SMALLINT/,
  ],
  [
    'unknown.arrow',
    tableToIPC(arrow, 'stream'),
    [column('id', 'BIGINT')],
    /field "user" is not a column of demo\.t/,
  ],
  [
    'missing.arrow',
    tableToIPC(arrow, 'file'),
    [column('id', 'BIGINT'), column('user', 'STRING'), column('at', 'DATE NOT NULL')],
    /at is missing, column at of demo\.t is DATE NOT NULL/,
  ],
  [
    'a.csv',
    'id\n1\n',
    [column('id', 'BIGINT'), column('user', 'STRING NOT NULL')],
    /a\.csv line 1: user is missing, column user of demo\.t is NOT NULL/,
  ],
]
for (const [name, content, columns, message] of refused) {
  test(`writes nothing for ${name}, whose columns do not fit the schema`, async () => {
    await withWarehouse(async (folder) => {
      mkdirSync(join(folder, 'lake'))
      const { exit, err } = await tier(folder, name, content, columns)
      assert.notEqual(exit, 0)
      assert.match(err, message)
      assert.equal(existsSync(join(folder, 'lake', 'demo')), false)
    })
  })
}

test('sets a record without a bucket key aside, and tiers the others', async () => {
  await withWarehouse(async (folder) => {
    const text = '{"id":1,"user":"a"}\n{"id":2,"user":""}\n{"id":3}\n{"id":4,"user":"d"}\n'
    const columns = [column('id', 'BIGINT'), column('user', 'STRING')]
    const key = ['--bucket-key', 'user', '--json'] as const
    const stopped = await tier(folder, 'a.ndjson', text, columns, ...key)
    assert.equal(stopped.exit, 3, stopped.err)
    const first = JSON.parse(stopped.out) as { rows: unknown; error: { message: string } }
    assert.equal(first.rows, 1)
    assert.match(first.error.message, /line 2: user is empty, column user of demo\.t is the bucket/)
    const aside = ['--on-bad-record', 'quarantine'] as const
    const passed = await tier(folder, 'a.ndjson', text, columns, ...key, ...aside)
    assert.equal(passed.exit, 0, passed.err)
    const second = JSON.parse(passed.out) as { rows: unknown; quarantined: unknown }
    assert.deepEqual([second.rows, second.quarantined], [1, 2])
  })
})
