import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Row } from '../../../src/core/columns/rows.ts'
import type { Field } from '../../../src/core/schema/types.ts'
import { KeyedWorld, type WorldChange } from '../../support/keyed-world.ts'

const fields: readonly Field[] = [
  { name: 'id', type: { kind: 'bigint', nullable: false } },
  { name: 'name', type: { kind: 'string', nullable: true } },
]

const upsert = (id: number, name: string | null): WorldChange => [
  'upsert',
  { id: BigInt(id), name },
]
const remove = (id: number): WorldChange => ['delete', { id: BigInt(id), name: null }]

function byId(rows: readonly Row[]): readonly string[] {
  return rows
    .map((row) => `${String(row['id'] as bigint)} ${(row['name'] as string | null) ?? 'null'}`)
    .sort()
}

for (const formatVersion of [2, 3] as const) {
  describe(`rounds of a primary-key table, format ${formatVersion}`, () => {
    test('the lake has one row for each key, after every round', async (t) => {
      const world = await KeyedWorld.create({
        fields,
        primaryKey: ['id'],
        buckets: 2,
        formatVersion,
      })
      t.after(() => world.close())
      await world.change([upsert(1, 'a'), upsert(2, 'b'), upsert(3, 'c')])
      assert.equal((await world.round()).kind, 'committed')
      assert.deepEqual(byId(await world.rows()), ['1 a', '2 b', '3 c'])
      await world.change([upsert(1, 'A'), remove(2), upsert(4, 'd'), upsert(4, 'D')])
      assert.equal((await world.round()).kind, 'committed')
      assert.deepEqual(byId(await world.rows()), ['1 A', '3 c', '4 D'])
      await world.change([remove(1), upsert(1, 'again'), remove(3)])
      assert.equal((await world.round()).kind, 'committed')
      assert.deepEqual(byId(await world.rows()), ['1 again', '4 D'])
      await world.change([remove(9)])
      assert.equal((await world.round()).kind, 'nothing', 'the delete of nothing is nothing')
    })

    test('a process that begins again goes on from the lake', async (t) => {
      const world = await KeyedWorld.create({
        fields,
        primaryKey: ['id'],
        buckets: 2,
        formatVersion,
      })
      t.after(() => world.close())
      await world.change([upsert(1, 'a'), upsert(2, 'b')])
      await world.round()
      await world.change([upsert(1, 'lost with the process')])
      await world.restart()
      await world.change([upsert(1, 'A'), remove(2), upsert(3, 'c')])
      assert.equal((await world.round()).kind, 'committed')
      assert.deepEqual(byId(await world.rows()), ['1 A', '3 c'])
    })
  })
}

test('random histories with restarts are the fold of their changes after every round', async () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.constant('change' as const) },
    { weight: 1, arbitrary: fc.constant('restart' as const) },
  )
  const change = fc
    .tuple(fc.integer({ min: 1, max: 12 }), fc.option(fc.string({ maxLength: 4 }), { nil: null }))
    .chain(([id, name]) => fc.constantFrom(upsert(id, name), upsert(id, name), remove(id)))
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(2 as const, 3 as const),
      fc.array(fc.tuple(step, fc.array(change, { minLength: 1, maxLength: 12 })), {
        minLength: 1,
        maxLength: 12,
      }),
      async (formatVersion, steps) => {
        const world = await KeyedWorld.create({
          fields,
          primaryKey: ['id'],
          buckets: 2,
          formatVersion,
        })
        try {
          const model = new Map<bigint, Row>()
          for (const [what, changes] of steps) {
            if (what === 'restart') await world.restart()
            await world.change(changes)
            for (const [op, row] of changes) {
              const id = row['id'] as bigint
              if (op === 'upsert') model.set(id, row)
              else model.delete(id)
            }
            const { kind } = await world.round()
            assert.ok(kind === 'committed' || kind === 'nothing', kind)
            assert.deepEqual(byId(await world.rows()), byId([...model.values()]))
          }
        } finally {
          await world.close()
        }
      },
    ),
    { numRuns: 25 },
  )
})
