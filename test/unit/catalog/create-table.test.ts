import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTableMetadata } from '../../../src/catalog/iceberg/create-table.ts'
import type { TableMetadata } from '../../../src/catalog/iceberg/format/metadata.ts'
import { isSluiceError } from '../../../src/core/errors.ts'
import { millis } from '../../../src/core/ids.ts'
import { stringifyJson } from '../../../src/core/json64.ts'
import type { TableDefinition } from '../../../src/catalog/ports.ts'
import type { DataType } from '../../../src/core/schema/types.ts'
import { definition } from './support.ts'

const at = {
  location: 'file:///lake/demo/log_keyed',
  random: 'ffffffffffffffffffffffffffffffff',
  now: millis(1_796_077_710_511),
}

function create(changes: Partial<TableDefinition>): TableMetadata {
  return createTableMetadata(definition(changes), at)
}

const nullable = true
const events: TableDefinition['schema'] = {
  fields: [
    { name: 'event_id', type: { kind: 'bigint', nullable: false } },
    { name: 'event_time', type: { kind: 'timestamp_ltz', precision: 3, nullable } },
    { name: 'user_id', type: { kind: 'int', nullable } },
    { name: 'kind', type: { kind: 'string', nullable } },
    { name: 'amount', type: { kind: 'decimal', precision: 15, scale: 2, nullable } },
    { name: 'payload', type: { kind: 'string', nullable } },
  ],
}

test('a keyed table is laid out as a Fluss cluster lays it out', () => {
  const { json } = create({ schema: events, bucketKey: 'user_id' })
  // Metadata that a Fluss 0.9 cluster wrote for this table.
  const expected = {
    schemas:
      '[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"event_id","required":true,"type":"long"},{"id":2,"name":"event_time","required":false,"type":"timestamptz"},{"id":3,"name":"user_id","required":false,"type":"int"},{"id":4,"name":"kind","required":false,"type":"string"},{"id":5,"name":"amount","required":false,"type":"decimal(15, 2)"},{"id":6,"name":"payload","required":false,"type":"string"},{"id":7,"name":"__bucket","required":true,"type":"int"},{"id":8,"name":"__offset","required":true,"type":"long"},{"id":9,"name":"__timestamp","required":true,"type":"timestamptz"}]}]',
    'last-column-id': '9',
    'partition-specs':
      '[{"spec-id":0,"fields":[{"name":"user_id_bucket","transform":"bucket[4]","source-id":3,"field-id":1000}]}]',
    'last-partition-id': '1000',
    'default-sort-order-id': '1',
    'sort-orders':
      '[{"order-id":1,"fields":[{"transform":"identity","source-id":8,"direction":"asc","null-order":"nulls-first"}]}]',
    'last-sequence-number': '0',
  }
  for (const [key, text] of Object.entries(expected)) {
    assert.equal(stringifyJson(json[key] ?? null), text, key)
  }
})

test('a table without a key is partitioned by the bucket column, and says how many there are', () => {
  const { json, properties } = create({ schema: events })
  assert.equal(
    stringifyJson(json['partition-specs'] ?? null),
    '[{"spec-id":0,"fields":[{"name":"__bucket","transform":"identity","source-id":7,"field-id":1000}]}]',
  )
  assert.equal(properties.get('fluss.bucket.num'), '4')
})

test('ids of nested columns count as column ids', () => {
  const tags: DataType = { kind: 'array', element: { kind: 'string', nullable }, nullable }
  const { json } = create({ schema: { fields: [{ name: 'tags', type: tags }] } })
  assert.equal(json['last-column-id'], 5)
})

test('properties are named as Fluss names them', () => {
  const { properties } = create({
    properties: new Map([
      ['table.datalake.freshness', '30s'],
      ['iceberg.write.target-file-size-bytes', '1048576'],
      ['iceberg.write.parquet.compression-codec', 'snappy'],
    ]),
  })
  assert.deepEqual(Object.fromEntries(properties), {
    'fluss.table.datalake.freshness': '30s',
    'write.target-file-size-bytes': '1048576',
    'write.parquet.compression-codec': 'snappy',
    'fluss.bucket.num': '4',
  })
})

test('the uuid is a version 4 uuid of the drawn bits', () => {
  assert.equal(create({}).uuid, 'ffffffff-ffff-4fff-bfff-ffffffffffff')
})

test('what cannot be laid out is refused by name', () => {
  const refusals: readonly (readonly [Partial<TableDefinition>, string, string])[] = [
    [{ bucketKey: 'nope' }, 'SCHEMA_UNSUPPORTED', 'bucket key "nope" is not a column'],
    [
      { schema: { fields: [{ name: 'f', type: { kind: 'double', nullable } }] }, bucketKey: 'f' },
      'SCHEMA_UNSUPPORTED',
      'bucket key "f" is DOUBLE, which has no bucket hash',
    ],
    [
      {
        schema: {
          fields: [...events.fields, { name: 'user_id_bucket', type: { kind: 'int', nullable } }],
        },
        bucketKey: 'user_id',
      },
      'SCHEMA_UNSUPPORTED',
      'column "user_id_bucket" has the name that the buckets of "user_id" need',
    ],
    [
      { schema: { fields: [{ name: '__Offset', type: { kind: 'int', nullable } }] } },
      'SCHEMA_UNSUPPORTED',
      'column "__Offset" has a name that Sluice adds',
    ],
    [
      { properties: new Map([['iceberg.write.metadata.compression-codec', 'gzip']]) },
      'CONFIG_INVALID',
      'iceberg.write.metadata.compression-codec: "gzip" would hide versions of the table',
    ],
  ]
  for (const [changes, code, message] of refusals) {
    assert.throws(
      () => create(changes),
      (error) => isSluiceError(error) && error.code === code && error.message === message,
      message,
    )
  }
})
