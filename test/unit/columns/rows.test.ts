import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { batchToRows, rowsToBatch, type Value } from '../../../src/core/columns/rows.ts'
import { fieldsOf } from '../ingest/support.ts'

const one = (type: string, value: Value): Value | undefined => {
  const fields = fieldsOf({ v: type })
  return batchToRows(fields, rowsToBatch(fields, [{ v: value }]))[0]?.['v']
}

const formatted = (value: Value): string =>
  typeof value === 'object' ? JSON.stringify(value) : String(value)

describe('rowsToBatch', () => {
  const taken: readonly (readonly [string, Value, Value])[] = [
    ['BIGINT', 5, 5n],
    ['BIGINT', -(2n ** 63n), -(2n ** 63n)],
    ['DECIMAL(5, 2)', '1.5', '1.50'],
    ['DECIMAL(5, 2)', 7n, '7.00'],
    ['DATE', '1970-01-02', 1],
    ['DATE', -1, -1],
    ['TIMESTAMP', '1969-12-31T23:59:59.999999', -1n],
    ['TIMESTAMP', 5n, 5n],
    ['TIMESTAMP_LTZ', '1970-01-01T01:00:00+01:00', 0n],
    ['TIMESTAMP_LTZ', new Date(1500), 1_500_000n],
    ['TIME(3)', '00:00:01.5', 1_500_000n],
    ['DOUBLE', 5n, 5],
    ['CHAR(1)', '😀', '😀'],
  ]
  for (const [type, value, found] of taken) {
    test(`${type} takes ${typeof value} ${formatted(value)}`, () => {
      assert.deepEqual(one(type, value), found)
    })
  }

  const refused: readonly (readonly [string, Value, string])[] = [
    [
      'BIGINT',
      2 ** 53,
      'row 0: v is 9007199254740992, column v is BIGINT (not a safe integer; use a bigint)',
    ],
    ['BIGINT', 2n ** 63n, 'row 0: v is 9223372036854775808n, column v is BIGINT (beyond 64 bits)'],
    ['BIGINT', 'x', 'row 0: v is "x", column v is BIGINT'],
    ['TINYINT', 128, 'row 0: v is 128, column v is TINYINT (outside -128 to 127)'],
    ['INT NOT NULL', null, 'row 0: v is null, column v is INT NOT NULL'],
    ['STRING', '\ud800', 'row 0: v is "\\ud800", column v is STRING (half of a surrogate pair)'],
    [
      'TIMESTAMP',
      new Date(0),
      'row 0: v is "1970-01-01T00:00:00.000Z", column v is TIMESTAMP(6) (a Date is an instant)',
    ],
    ['TIMESTAMP(3)', 1n, 'row 0: v is 1n, column v is TIMESTAMP(3) (more than 3 fraction digits)'],
    ['DATE', '2001-02-30', 'row 0: v is "2001-02-30", column v is DATE (days, or YYYY-MM-DD)'],
    ['ARRAY<INT>', [1, 'x'], 'row 0: v[1] is "x", column v is ARRAY<INT>'],
    ['ROW<a INT>', { b: 1 }, 'row 0: v is {"b":1}, column v is ROW<a INT> (it has no field "b")'],
    [
      'DECIMAL(3, 1)',
      '1.25',
      'row 0: v is "1.25", column v is DECIMAL(3, 1) (more than 1 fraction digits)',
    ],
  ]
  for (const [type, value, message] of refused) {
    test(`refuses: ${message.slice(7, 70)}`, () => {
      assert.throws(() => one(type, value), { code: 'RECORD_REFUSED', message })
    })
  }

  test('names the row, and a column that is not there', () => {
    const fields = fieldsOf({ name: 'STRING' })
    assert.throws(() => rowsToBatch(fields, [{ name: 'x' }, { nam: 'y' }]), {
      code: 'RECORD_REFUSED',
      message: 'row 1: "nam" is not a column. Did you mean name?',
    })
    assert.equal(rowsToBatch(fields, [{}, {}]).length, 2)
  })
})
