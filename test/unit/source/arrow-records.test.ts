import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type DataType as ArrowType,
  Dictionary,
  Field as ArrowField,
  Float32,
  Int16,
  Int32,
  Int64,
  Int8,
  List,
  Struct,
  Table,
  TimestampMillisecond,
  TimestampSecond,
  Utf8,
  type Vector,
  vectorFromArray,
} from 'apache-arrow'
import { batchToRows, type Row } from '../../../src/core/columns/rows.ts'
import { parseType } from '../../../src/core/schema/parse-type.ts'
import type { Field } from '../../../src/core/schema/types.ts'
import { readArrow } from '../../../src/source/embedded/arrow-records.ts'

const fieldsOf = (columns: Readonly<Record<string, string>>): readonly Field[] =>
  Object.entries(columns).map(([name, text]) => ({ name, type: parseType(text) }))

function valuesOf(type: string, vector: Vector): readonly unknown[] {
  const fields = fieldsOf({ v: type })
  const rows = readArrow(fields, new Table({ v: vector })).flatMap((each): readonly Row[] => [
    ...batchToRows(fields, each),
  ])
  return rows.map((row) => row['v'])
}

const field = <Type extends ArrowType>(name: string, type: Type): ArrowField<Type> =>
  new ArrowField(name, type, true)

describe('Arrow records', () => {
  const widened: readonly (readonly [string, string, Vector, readonly unknown[]])[] = [
    ['int8', 'BIGINT', vectorFromArray([-128, null, 127], new Int8()), [-128n, null, 127n]],
    ['int16', 'BIGINT', vectorFromArray([-32768, 32767], new Int16()), [-32768n, 32767n]],
    ['int32', 'BIGINT', vectorFromArray([-(2 ** 31), 5], new Int32()), [-2147483648n, 5n]],
    ['int32', 'DOUBLE', vectorFromArray([2147483647], new Int32()), [2147483647]],
    ['int64', 'DECIMAL(20, 1)', vectorFromArray([-7n], new Int64()), ['-7.0']],
    ['float32', 'DOUBLE', vectorFromArray([0.5, null], new Float32()), [0.5, null]],
    [
      'seconds',
      'TIMESTAMP(6)',
      vectorFromArray([1000, null], new TimestampSecond()),
      [1_000_000n, null],
    ],
    ['milliseconds', 'TIMESTAMP(6)', vectorFromArray([-1], new TimestampMillisecond()), [-1000n]],
    [
      'a dictionary',
      'STRING',
      vectorFromArray(['a', 'b', null, 'a'], new Dictionary(new Utf8(), new Int32())),
      ['a', 'b', null, 'a'],
    ],
    [
      'nullable parts',
      'ARRAY<BIGINT NOT NULL>',
      vectorFromArray([[1, 2], null, []], new List(field('item', new Int32()))),
      [[1n, 2n], null, []],
    ],
    [
      'a row without a nullable field',
      'ROW<a BIGINT NOT NULL, b STRING>',
      vectorFromArray([{ a: 1 }, null], new Struct([field('a', new Int32())])),
      [{ a: 1n, b: null }, null],
    ],
  ]
  for (const [what, type, vector, values] of widened) {
    test(`become ${type} from ${what}`, () => {
      assert.deepEqual(valuesOf(type, vector), values)
    })
  }

  const refused: readonly (readonly [string, Vector, RegExp])[] = [
    ['SMALLINT', vectorFromArray([1], new Int32()), /is INT, the table has SMALLINT$/],
    ['DOUBLE', vectorFromArray([1n], new Int64()), /is BIGINT, the table has DOUBLE$/],
    [
      'TIMESTAMP(0)',
      vectorFromArray([1], new TimestampMillisecond()),
      /is TIMESTAMP\(3\), the table has TIMESTAMP\(0\)$/,
    ],
    [
      'ARRAY<BIGINT NOT NULL>',
      vectorFromArray([[1], [null]], new List(field('item', new Int32()))),
      /holds a null in row 1, the table has ARRAY<BIGINT NOT NULL>$/,
    ],
  ]
  for (const [type, vector, message] of refused) {
    test(`are refused where a value would not fit: ${message.source}`, () => {
      assert.throws(() => valuesOf(type, vector), { code: 'RECORD_REFUSED', message })
    })
  }

  test('may lack a nullable column, and name the row of a null over all batches', () => {
    const fields = fieldsOf({ id: 'BIGINT NOT NULL', note: 'STRING' })
    const good = new Table({ id: vectorFromArray([1, 2], new Int32()) })
    const bad = new Table({ id: vectorFromArray([3, null], new Int32()) })
    const [batch] = readArrow(fields, good)
    assert.ok(batch !== undefined)
    assert.deepEqual(batchToRows(fields, batch), [
      { id: 1n, note: null },
      { id: 2n, note: null },
    ])
    assert.throws(() => readArrow(fields, good.concat(bad)), {
      code: 'RECORD_REFUSED',
      message: /"id" holds a null in row 3, the table has BIGINT NOT NULL$/,
    })
  })
})
