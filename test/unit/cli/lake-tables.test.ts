import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { mentions } from '../../../src/cli/lake-tables.ts'
import { appendFile, createTable, runCli, withWarehouse } from './lake-fixture.ts'

const cases: readonly (readonly [sql: string, name: readonly string[], mentioned: boolean])[] = [
  ['select count(*) from demo.f', ['demo', 'f'], true],
  ['select count(*) from demo.flights', ['demo', 'f'], false],
  ['select count(*) from demo.flights', ['demo', 'light'], false],
  ['select delay_f from demo.flights', ['demo', 'f'], false],
  ['FROM Demo . Flights', ['demo', 'flights'], true],
  ['from "demo"."flights"', ['demo', 'flights'], true],
  ['from memory.demo.flights', ['demo', 'flights'], true],
  ['from other.flights', ['demo', 'flights'], false],
  ['from a.b join c.d using (id)', ['c', 'b'], false],
  ['use demo; from flights', ['demo', 'flights'], true],
  ['from flights', ['default', 'flights'], true],
  ['from "default".flights', ['default', 'flights'], true],
  ['from demo."Flight.Data"', ['demo', 'Flight.Data'], true],
  ['from demo."FlightxData"', ['demo', 'Flight.Data'], false],
  ['from "a.b".c', ['a', 'b', 'c'], true],
  ['from demo."say ""hi"""', ['demo', 'say "hi"'], true],
  ['from demo."a$b-c"', ['demo', 'a$b-c'], true],
  ['from demo.größe', ['demo', 'größ'], false],
  ['from demo.größe', ['demo', 'größe'], true],
]

for (const [sql, name, mentioned] of cases) {
  test(`${sql} ${mentioned ? 'may mean' : 'does not mean'} ${name.join('.')}`, () => {
    assert.equal(mentions(sql, name), mentioned)
  })
}

test('a table whose name is part of a word is neither read nor told of', async () => {
  await withWarehouse(async (folder) => {
    const flights = await createTable(folder, ['demo', 'flights'], { n: 'BIGINT' })
    await appendFile(flights, 7n, "select 1, 0, 0, timestamptz '2026-01-01 00:00:00Z'")
    await createTable(folder, ['demo', 'f'], { n: 'BIGINT' })
    // What is wrong with another table is no matter of this one.
    const broken = join(folder, 'demo/f/metadata/v1.metadata.json')
    await writeFile(broken, '{')
    const of = await runCli(['query', folder, 'select n from demo.flights', '--snapshot', '7'])
    assert.equal(of.exit, 0, of.err)
    assert.match(of.err, /named 1 file;/)
  })
})
