import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assignFieldIds } from '../../../src/catalog/iceberg/format/field-ids.ts'
import {
  decodeSchema,
  encodeSchema,
  lakeType,
} from '../../../src/catalog/iceberg/format/schema-json.ts'
import { nameMapping } from '../../../src/catalog/iceberg/format/name-mapping.ts'
import { isSluiceError } from '../../../src/core/errors.ts'
import { isJsonObject, parseJson, stringifyJson } from '../../../src/core/json64.ts'
import type { DataType, Field, IdField } from '../../../src/core/schema/types.ts'

const nullable = true
const long: DataType = { kind: 'bigint', nullable }
const text: DataType = { kind: 'string', nullable }

function decoded(fields: string): readonly IdField[] {
  const json = parseJson(`{"type":"struct","schema-id":0,"fields":[${fields}]}`, { name: 'test' })
  assert.ok(isJsonObject(json))
  return decodeSchema(json, 'v1.metadata.json')
}

const nested: readonly Field[] = [
  { name: 'a', type: { kind: 'array', element: long, nullable } },
  {
    name: 'b',
    type: {
      kind: 'row',
      nullable,
      fields: [
        {
          name: 'm',
          type: { kind: 'map', key: { ...text, nullable: false }, value: long, nullable },
        },
        { name: 'x', type: long },
      ],
    },
  },
  { name: 'c', type: long },
]

test('ids go to the fields of a level first, then to the children of each in turn', () => {
  const { fields, lastId } = assignFieldIds(nested)
  const ids = (each: IdField): unknown => [each.name, each.id, each.children.map(ids)]
  // What the Java library gives to the same schema.
  assert.deepEqual(fields.map(ids), [
    ['a', 1, [['element', 4, []]]],
    [
      'b',
      2,
      [
        [
          'm',
          5,
          [
            ['key', 7, []],
            ['value', 8, []],
          ],
        ],
        ['x', 6, []],
      ],
    ],
    ['c', 3, []],
  ])
  assert.equal(lastId, 8)
})

test('types are written as Fluss maps them', () => {
  const kinds: readonly (readonly [DataType, string])[] = [
    [{ kind: 'boolean', nullable }, 'boolean'],
    [{ kind: 'tinyint', nullable }, 'int'],
    [{ kind: 'smallint', nullable }, 'int'],
    [{ kind: 'int', nullable }, 'int'],
    [{ kind: 'bigint', nullable }, 'long'],
    [{ kind: 'float', nullable }, 'float'],
    [{ kind: 'double', nullable }, 'double'],
    [{ kind: 'decimal', precision: 20, scale: 4, nullable }, 'decimal(20, 4)'],
    [{ kind: 'char', length: 3, nullable }, 'string'],
    [{ kind: 'string', nullable }, 'string'],
    [{ kind: 'binary', length: 3, nullable }, 'binary'],
    [{ kind: 'bytes', nullable }, 'binary'],
    [{ kind: 'date', nullable }, 'date'],
    [{ kind: 'time', precision: 3, nullable }, 'time'],
    [{ kind: 'timestamp', precision: 3, nullable }, 'timestamp'],
    [{ kind: 'timestamp_ltz', precision: 3, nullable }, 'timestamptz'],
  ]
  for (const [type, expected] of kinds) {
    const { fields } = assignFieldIds([{ name: 'c', type }])
    const json = encodeSchema(fields, 0)
    assert.equal(
      stringifyJson(json),
      `{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"c","required":false,"type":"${expected}"}]}`,
    )
    assert.deepEqual(decodeSchema(json, 'test')[0]?.type, lakeType(type), type.kind)
  }
})

test('nested types, nullability and comments come back as they were', () => {
  const fields: readonly Field[] = [
    ...nested,
    { name: 'd', type: { ...long, nullable: false }, comment: 'doc "quoted"' },
  ]
  const { fields: withIds } = assignFieldIds(fields)
  assert.deepEqual(decodeSchema(encodeSchema(withIds, 3), 'test'), withIds)
})

test('types of other writers have the nearest column, or a clear refusal', () => {
  const types = (json: string): unknown =>
    decoded(`{"id":1,"name":"c","required":true,"type":${json}}`)[0]?.type
  assert.deepEqual(types('"uuid"'), { kind: 'binary', length: 16, nullable: false })
  assert.deepEqual(types('"fixed[4]"'), { kind: 'binary', length: 4, nullable: false })
  assert.deepEqual(types('"timestamp_ns"'), { kind: 'timestamp', precision: 9, nullable: false })
  assert.deepEqual(types('"decimal(9,2)"'), {
    kind: 'decimal',
    precision: 9,
    scale: 2,
    nullable: false,
  })
  assert.throws(
    () => types('"variant"'),
    (error) =>
      isSluiceError(error, 'SCHEMA_UNSUPPORTED') &&
      error.message === 'v1.metadata.json: column "c" is variant, which Sluice does not know',
  )
})

test('a name mapping names every column and its children', () => {
  assert.equal(
    nameMapping(assignFieldIds(nested.slice(0, 1)).fields),
    '[{"field-id":1,"names":["a"],"fields":[{"field-id":2,"names":["element"]}]}]',
  )
})
