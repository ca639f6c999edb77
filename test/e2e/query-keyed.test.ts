import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { openLake } from '../../src/index.ts'
import type { Row } from '../../src/core/columns/rows.ts'
import type { Field } from '../../src/core/schema/types.ts'
import { sluice } from '../support/cli.ts'
import { KeyedWorld, type WorldChange } from '../support/keyed-world.ts'

const fields: readonly Field[] = [
  { name: 'id', type: { kind: 'bigint', nullable: false } },
  { name: 'name', type: { kind: 'string', nullable: true } },
]
const upsert = (id: number, name: string): WorldChange => ['upsert', { id: BigInt(id), name }]
const remove = (id: number): WorldChange => ['delete', { id: BigInt(id), name: null }]

for (const formatVersion of [2, 3] as const) {
  test(`query and the library read a primary-key table of format ${formatVersion}`, async (t) => {
    const world = await KeyedWorld.create({
      fields,
      primaryKey: ['id'],
      buckets: 2,
      formatVersion,
    })
    t.after(() => world.close())
    await world.change([upsert(1, 'a'), upsert(2, 'b'), upsert(3, 'c'), upsert(4, 'd')])
    await world.round()
    await world.change([upsert(1, 'A'), remove(2)])
    await world.round()
    await world.change([upsert(1, 'AA'), upsert(5, 'e')])
    await world.round()
    const asked = await sluice(
      ['query', './lake', 'select id, name from demo.customers order by id', '--csv'],
      { cwd: world.folder },
    )
    assert.equal(asked.exit, 0, asked.stderr)
    assert.equal(asked.stdout.replaceAll('\r', ''), 'id,name\n1,AA\n3,c\n4,d\n5,e\n')

    const lake = await openLake({ warehouse: join(world.folder, 'lake') })
    t.after(() => lake.close())
    const rows: Row[] = []
    for await (const row of (await lake.table('demo.customers')).rows()) rows.push(row)
    const sorted = rows.map((row) => [row['id'], row['name']]).sort()
    assert.deepEqual(sorted, [
      [1n, 'AA'],
      [3n, 'c'],
      [4n, 'd'],
      [5n, 'e'],
    ])
  })
}
