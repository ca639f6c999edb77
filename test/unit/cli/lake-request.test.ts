import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { nameForLake } from '../../../src/cli/location.ts'
import { runCli, withWarehouse } from './lake-fixture.ts'

for (const command of ['verify', 'sweep', 'progress']) {
  test(`${command} says where a folder is meant and a name was given`, async () => {
    const alone = await runCli([command, 'l3'])
    assert.equal(alone.exit, 2)
    assert.match(alone.err, /^error: "l3" is a name; a lake is a location\n/)
    assert.ok(alone.err.includes(`  fix    sluice ${command} ./l3\n`), alone.err)
    const both = await runCli([command, 'l3', 'demo.flights'], {
      environment: { SLUICE_WAREHOUSE: './lake' },
    })
    assert.equal(both.exit, 2)
    assert.ok(both.err.includes(`  fix    sluice ${command} ./l3 demo.flights\n`), both.err)
    const table = await runCli([command, 'demo.flights'])
    assert.ok(table.err.includes(`  fix    sluice ${command} ./lake demo.flights\n`), table.err)
    const more = await runCli([command, 'l3', 'demo.flights', 'c.d'])
    assert.ok(more.err.includes(`${command} takes a lake and one table, not also "c.d"`), more.err)
  })
}

test('a folder whose name looks like a table is still the folder that is there', async () => {
  await withWarehouse(async (folder) => {
    await mkdir(join(folder, 'lake.v2'))
    const given = { command: 'verify', rest: undefined, folder }
    assert.equal(nameForLake('lake.v2', given).fix, 'sluice verify ./lake.v2')
    assert.equal(nameForLake('lake.v3', given).fix, 'sluice verify ./lake lake.v3')
    assert.equal(nameForLake('a b', given).fix, "sluice verify './a b'")
  })
})
