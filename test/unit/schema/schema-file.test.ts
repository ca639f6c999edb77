import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { formatType } from '../../../src/core/schema/format-type.ts'
import { parseSchemaFile } from '../../../src/core/schema/schema-file.ts'

const columns = (...list: string[]): string => `{"columns": [${list.join(', ')}]}`
const column = (name: string, type: string): string => `{"name": "${name}", "type": "${type}"}`

describe('parseSchemaFile', () => {
  test('reads the example of the interface', () => {
    const text = `{"columns": [{"name": "id", "type": "BIGINT NOT NULL"}, {"name": "total", "type": "DECIMAL(12, 2)", "comment": "euro"}, {"name": "tags", "type": "ARRAY<STRING NOT NULL>"}],
 "primary_key": ["id"], "bucket_key": ["id"], "bucket_count": 4, "partition_key": [], "properties": {"table.datalake.freshness": "1min"}}`
    const file = parseSchemaFile(text, 's.json')
    assert.deepEqual(
      file.fields.map(({ name, type, comment }) => [name, formatType(type), comment]),
      [
        ['id', 'BIGINT NOT NULL', undefined],
        ['total', 'DECIMAL(12, 2)', 'euro'],
        ['tags', 'ARRAY<STRING NOT NULL>', undefined],
      ],
    )
    assert.deepEqual(file.primaryKey, ['id'])
    assert.deepEqual(file.bucketKey, ['id'])
    assert.equal(file.bucketCount, 4)
    assert.equal(file.partitionKey, undefined)
    assert.deepEqual(file.properties, { 'table.datalake.freshness': '1min' })
  })

  test('primary-key columns are NOT NULL by themselves', () => {
    const text = `{"columns": [${column('id', 'BIGINT')}], "primary_key": ["id"]}`
    const { fields } = parseSchemaFile(text, 's.json')
    assert.equal(fields[0]?.type.nullable, false)
  })

  const refused: readonly (readonly [string, string])[] = [
    [
      '{"columns": [\n{"name": "a", "type": "BIGNIT"}]}',
      's.json:2:24: type "BIGNIT" is not known. Did you mean BIGINT?',
    ],
    [columns(column('a', 'INTEGER')), 's.json:1:37: type "INTEGER" is called INT in Fluss'],
    [
      columns(column('a', 'ARRAY<VARCHAR(10)>')),
      's.json:1:43: type "VARCHAR" is called STRING in Fluss',
    ],
    ['{"colums": []}', 's.json:1:2: "colums" is not known in the file. Did you mean columns?'],
    [
      '{"columns": [{"name": "a", "typ": "INT"}]}',
      's.json:1:28: "typ" is not known in a column. Did you mean type?',
    ],
    ['{"columns": []}', 's.json:1:13: a table has at least one column'],
    ['{}', 's.json:1:1: "columns" is missing'],
    ['{"columns": [', 's.json:1:14: not JSON: a value expected, the file ends'],
    ['{"columns": [], "columns": []}', 's.json:1:17: "columns" appears twice'],
    [
      columns(column('a', 'INT'), column('A', 'INT')),
      's.json:1:53: columns "a" and "A" differ only by case',
    ],
    [
      columns(column('__offset', 'INT')),
      's.json:1:23: column name "__offset" is kept for Sluice\'s own __offset',
    ],
    [
      columns(column('__Bucket', 'INT')),
      's.json:1:23: column name "__Bucket" is kept for Sluice\'s own __bucket',
    ],
    [
      columns(column('t', 'TIMESTAMP(9)')),
      's.json:1:23: column "t" is TIMESTAMP(9); format version 2 holds microseconds, so declare 6 digits or "allow_precision_loss": true',
    ],
    [
      `{"columns": [${column('a', 'ROW<x INT>')}], "primary_key": ["a"]}`,
      's.json:1:68: primary key "a" is ROW; a key must be BOOLEAN, an integer, DECIMAL, STRING, BYTES, DATE, TIME or TIMESTAMP',
    ],
    [
      `{"columns": [${column('a', 'DOUBLE')}], "bucket_key": ["a"]}`,
      's.json:1:63: bucket key "a" is DOUBLE; a bucket key must be INT, BIGINT, DECIMAL, STRING, BYTES, DATE, TIME or TIMESTAMP',
    ],
    [
      `{"columns": [${column('abc', 'INT')}], "bucket_key": ["abd"]}`,
      's.json:1:62: bucket key "abd" is not a column. Did you mean abc?',
    ],
    [
      `{"columns": [${column('a', 'INT')}], "bucket_count": 5000}`,
      's.json:1:61: "bucket_count" is a number from 1 to 4096',
    ],
  ]
  for (const [text, message] of refused) {
    test(`refuses ${text.slice(0, 60)}`, () => {
      assert.throws(() => parseSchemaFile(text, 's.json'), { code: 'SCHEMA_UNSUPPORTED', message })
    })
  }

  test('allows the loss of digits where a column says so', () => {
    const text =
      '{"columns": [{"name": "t", "type": "TIMESTAMP(9)", "allow_precision_loss": true}]}'
    assert.equal(parseSchemaFile(text, 's.json').fields[0]?.allowPrecisionLoss, true)
  })
})
