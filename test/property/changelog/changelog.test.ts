import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Row } from '../../../src/core/columns/rows.ts'
import { Bucket, type Change, lastRow, row } from '../../unit/changelog/support.ts'

const changes: fc.Arbitrary<Change> = fc
  .tuple(
    fc.constantFrom<'put' | 'delete'>('put', 'put', 'put', 'delete'),
    fc.integer({ min: 1, max: 6 }),
    fc.option(fc.string({ unit: 'grapheme', maxLength: 3 }), { nil: null }),
    fc.constantFrom('x', 'y', null),
  )
  .map(([op, id, name, status]) =>
    op === 'put' ? ['put', row(id, name, status)] : ['delete', row(id, null, null)],
  )

/** What the puts and deletes alone come to. */
function folded(history: readonly Change[]): ReadonlyMap<bigint, Row> {
  const rows = new Map<bigint, Row>()
  for (const [op, each] of history) {
    const id = each['id'] as bigint
    if (op === 'put') rows.set(id, each)
    else rows.delete(id)
  }
  return rows
}

/** What the changelog comes to when it is applied to nothing. */
function replayed(log: readonly (readonly [string, Row])[]): ReadonlyMap<bigint, Row> {
  const rows = new Map<bigint, Row>()
  for (const [symbol, each] of log) {
    const id = each['id'] as bigint
    if (symbol === '+I' || symbol === '+U') rows.set(id, each)
    else if (symbol === '-D') rows.delete(id)
  }
  return rows
}

for (const image of ['full', 'wal'] as const) {
  test(`T-16, T-18: at every prefix the changelog (${image}) is the state, and the state the fold`, () => {
    fc.assert(
      fc.property(fc.array(fc.array(changes, { maxLength: 8 }), { maxLength: 12 }), (batches) => {
        const bucket = new Bucket({ ...lastRow, image })
        const history: Change[] = []
        for (const batch of batches) {
          const from = bucket.log.length
          const ends = bucket.apply(batch)
          batch.forEach((_, at) => {
            assert.deepEqual(
              replayed(bucket.log.slice(0, ends[at] ?? from)),
              folded([...history, ...batch.slice(0, at + 1)]),
            )
          })
          history.push(...batch)
          assert.equal(bucket.rows.size, folded(history).size)
        }
      }),
    )
  })
}

test('T-17: what goes away is said as it was: -U and -D hold the row there was', () => {
  fc.assert(
    fc.property(fc.array(changes, { maxLength: 60 }), (batch) => {
      const bucket = new Bucket()
      bucket.apply(batch)
      const rows = new Map<bigint, Row>()
      for (const [symbol, each] of bucket.log) {
        const id = each['id'] as bigint
        if (symbol === '-U' || symbol === '-D') assert.deepEqual(each, rows.get(id))
        if (symbol === '+I') assert.ok(!rows.has(id))
        if (symbol === '-D') rows.delete(id)
        if (symbol === '+I' || symbol === '+U') rows.set(id, each)
      }
    }),
  )
})
