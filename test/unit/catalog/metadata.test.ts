import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import {
  readMetadata,
  snapshotSchemaId,
  type TableMetadata,
  writeMetadata,
} from '../../../src/catalog/iceberg/format/metadata.ts'
import { isSluiceError } from '../../../src/core/errors.ts'
import { snapshotId } from '../../../src/core/ids.ts'
import { isJsonObject, parseJson, stringifyJson } from '../../../src/core/json64.ts'

/** What a Fluss 0.9 cluster wrote for a table with one snapshot, with members of a later version. */
const written =
  '{"format-version":2,"table-uuid":"dfca9acf-144c-4e2e-9fde-6bfda4a7870b","location":"file:///wh/demo/log_keyed","last-sequence-number":1,"last-updated-ms":1796077773587,"last-column-id":3,"current-schema-id":0,"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"__bucket","required":true,"type":"int"},{"id":2,"name":"__offset","required":true,"type":"long"},{"id":3,"name":"__timestamp","required":true,"type":"timestamptz","initial-default":7}]}],"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[{"name":"__bucket","transform":"identity","source-id":1,"field-id":1000}]}],"last-partition-id":1000,"default-sort-order-id":1,"sort-orders":[{"order-id":1,"fields":[{"transform":"identity","source-id":2,"direction":"asc","null-order":"nulls-first"}]}],"properties":{"fluss.table.datalake.freshness":"30s"},"current-snapshot-id":3105213559702531413,"refs":{"main":{"snapshot-id":3105213559702531413,"type":"branch"}},"snapshots":[{"sequence-number":1,"snapshot-id":3105213559702531413,"timestamp-ms":1796077773587,"summary":{"operation":"append","commit-user":"__fluss_lake_tiering"},"manifest-list":"file:/wh/demo/log_keyed/metadata/snap-3105213559702531413-1-47b38277.avro","schema-id":0}],"statistics":[],"partition-statistics":[],"snapshot-log":[{"timestamp-ms":1796077773587,"snapshot-id":3105213559702531413}],"metadata-log":[],"a-later-member":{"x":[9007199254740993]}}'

const read = (text: string): TableMetadata => readMetadata(Buffer.from(text), 'v2.metadata.json')
const without = (...keys: readonly string[]): string => {
  const json = parseJson(written, { name: 'v2' })
  assert.ok(isJsonObject(json))
  return stringifyJson(
    Object.fromEntries(Object.entries(json).filter(([key]) => !keys.includes(key))),
  )
}
const head = snapshotId(3105213559702531413n)

test('metadata of a Fluss cluster is read whole and written back byte for byte', () => {
  const metadata = read(written)
  assert.equal(metadata.head, head)
  assert.equal(metadata.lastSequence, 1n)
  assert.equal(metadata.snapshots.get(head)?.summary.get('commit-user'), '__fluss_lake_tiering')
  assert.equal(snapshotSchemaId(metadata, head), 0)
  assert.equal(Buffer.from(writeMetadata(metadata)).toString(), written)
  assert.deepEqual(readMetadata(gzipSync(written), 'v2.gz.metadata.json').json, metadata.json)
})

test('what other writers leave out is taken for absent', () => {
  const bare = read(
    without(
      'refs',
      'properties',
      'snapshot-log',
      'metadata-log',
      'statistics',
      'partition-statistics',
      'table-uuid',
    ),
  )
  assert.equal(bare.head, head, 'the current snapshot, as there is no branch')
  assert.equal(bare.properties.size, 0)
  for (const none of ['-1', 'null']) {
    const text = without('refs', 'current-snapshot-id').replace(
      '{"format-version"',
      `{"current-snapshot-id":${none},"format-version"`,
    )
    assert.equal(read(text).head, undefined)
  }
})

test('format 1 has its schema and spec in other places', () => {
  const metadata = read(
    '{"format-version":1,"location":"/wh/t","last-updated-ms":5,"last-column-id":1,"schema":{"type":"struct","fields":[{"id":1,"name":"a","required":false,"type":"int"}]},"partition-spec":[{"name":"a","transform":"identity","source-id":1}],"snapshots":[]}',
  )
  assert.equal(metadata.schemas.size, 1)
  assert.deepEqual(metadata.specs.get(0)?.fields, [
    { name: 'a', transform: 'identity', sourceId: 1, fieldId: 1000 },
  ])
})

test('damage is named', () => {
  const damages: readonly (readonly [string, RegExp])[] = [
    [without('location'), /^v2\.metadata\.json: "location" is missing$/],
    [written.replace('"last-updated-ms":1796077773587', '"last-updated-ms":"x"'), /whole number/],
    [written.replace('"format-version":2', '"format-version":9'), /format version 9 is not known/],
    [without('snapshots'), /snapshot 3105213559702531413 is not listed/],
    [written.slice(0, 500), /not JSON from byte 500 on \(file is cut\)/],
    ['[]', /not a JSON object/],
    ['', /not JSON from byte 0 on \(file is cut\)/],
  ]
  for (const [text, message] of damages) {
    assert.throws(
      () => read(text),
      (error) => isSluiceError(error, 'DATA_CORRUPT') && message.test(error.message),
      String(message),
    )
  }
})
