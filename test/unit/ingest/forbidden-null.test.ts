import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Value, rowsToBatch } from '../../../src/core/columns/rows.ts'
import { parseType } from '../../../src/core/schema/parse-type.ts'
import { firstForbiddenNull } from '../../../src/source/ingest/widen.ts'

/** Row of the first null that `wanted` forbids, in a column that was read as `read`. */
function first(read: string, wanted: string, values: readonly Value[]): number {
  const fields = [{ name: 'x', type: parseType(read) }]
  const batch = rowsToBatch(
    fields,
    values.map((x) => ({ x })),
  )
  const [column] = batch.columns
  assert.ok(column !== undefined)
  return firstForbiddenNull(column, parseType(wanted))
}

test('a null is found wherever the type forbids it', () => {
  const row = (value: Value): Value => ({ a: value })
  assert.equal(first('INT', 'INT NOT NULL', [1, null]), 1)
  assert.equal(first('ARRAY<INT>', 'ARRAY<INT NOT NULL>', [[1], [], [2, null]]), 2)
  const maps = [new Map([['k', 1]]), new Map([['k', null]])]
  assert.equal(first('MAP<STRING, INT>', 'MAP<STRING, INT NOT NULL>', maps), 1)
  const rows = [row({ b: 1 }), row({ b: null })]
  assert.equal(first('ROW<a ROW<b INT>>', 'ROW<a ROW<b INT NOT NULL>>', rows), 1)
  const lists = [row([1]), row([null])]
  assert.equal(first('ROW<a ARRAY<INT>>', 'ROW<a ARRAY<INT NOT NULL>>', lists), 1)
  const deep = [[row(1)], null, [row(1), row(null)]]
  assert.equal(first('ARRAY<ROW<a INT>>', 'ARRAY<ROW<a INT NOT NULL>>', deep), 2)
})

test('what lies below a null is not missed', () => {
  assert.equal(first('ROW<a INT>', 'ROW<a INT NOT NULL>', [null, { a: 1 }]), -1)
  const rows = [{ a: null }, null, { a: { b: 1 } }]
  assert.equal(first('ROW<a ROW<b INT>>', 'ROW<a ROW<b INT NOT NULL>>', rows), -1)
  assert.equal(first('ARRAY<INT>', 'ARRAY<INT NOT NULL>', [null, [], [1]]), -1)
})
