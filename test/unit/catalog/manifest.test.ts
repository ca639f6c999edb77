import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { avroCodec, readAvro, writeAvro } from '../../../src/catalog/iceberg/format/avro.ts'
import {
  type ColumnMetrics,
  type ManifestEntry,
  readManifest,
  writeManifest,
} from '../../../src/catalog/iceberg/format/manifest.ts'
import {
  type ManifestFile,
  readLedger,
  readManifestList,
  writeManifestList,
} from '../../../src/catalog/iceberg/format/manifest-list.ts'
import { jsonObject } from '../../../src/catalog/iceberg/format/json-fields.ts'
import type { PartitionSpec } from '../../../src/catalog/iceberg/format/partition-spec.ts'
import { bigId } from './support.ts'

const sync = '000102030405060708090a0b0c0d0e0f'
const spec: PartitionSpec = {
  specId: 3,
  fields: [{ name: '1.user-é_bucket', transform: 'bucket[4]', sourceId: 1, fieldId: 1000 }],
}
const context = {
  schemaId: 5,
  schema: jsonObject([
    ['type', 'struct'],
    ['fields', []],
  ]),
  fields: [],
  spec,
  formatVersion: 2,
  content: 'data' as const,
  sync,
}
/** Null prototypes, which the arbitrary also makes, are not equal to plain objects. */
const plain = { noNullPrototype: true }
const count = fc.option(fc.maxSafeNat(), { nil: undefined })
const bound = fc.option(fc.uint8Array({ maxLength: 16 }), { nil: undefined })
const metrics: fc.Arbitrary<ColumnMetrics> = fc
  .record({
    fieldId: fc.nat(),
    columnBytes: fc.maxSafeNat(),
    valueCount: count,
    nullCount: count,
    nanCount: count,
    lower: bound,
    upper: bound,
  })
  .map(defined)
const entries: fc.Arbitrary<ManifestEntry> = fc.record(
  {
    status: fc.constantFrom('existing', 'added', 'deleted'),
    snapshotId: fc.option(fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }), { nil: undefined }),
    sequence: fc.option(fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }), { nil: undefined }),
    fileSequence: fc.option(fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }), { nil: undefined }),
    file: fc.record(
      {
        content: fc.constant('data' as const),
        location: fc.string(),
        format: fc.constant('PARQUET'),
        partition: fc.nat(4096).map((bucket) => new Map([[1000, bucket]])),
        rows: fc.maxSafeNat(),
        bytes: fc.maxSafeNat(),
        metrics: fc
          .uniqueArray(metrics, { selector: ({ fieldId }) => fieldId, maxLength: 5 })
          .map((columns) => columns.sort((a, b) => a.fieldId - b.fieldId)),
        splitOffsets: fc.array(fc.maxSafeNat(), { maxLength: 3 }),
        equalityIds: fc.constant([]),
        sortOrderId: fc.constant(1),
      },
      plain,
    ),
  },
  plain,
)

test('manifests are read back as they were written', () => {
  fc.assert(
    fc.property(fc.array(entries, { maxLength: 8 }), (written) => {
      assert.deepEqual(readManifest(writeManifest(written, context), 'm0.avro'), written)
    }),
  )
})

test('a manifest says in its header what engines need to prune and project', () => {
  const { metadata, schema } = readAvro(writeManifest([], context), 'm0.avro')
  const texts = new Map([...metadata].map(([key, value]) => [key, Buffer.from(value).toString()]))
  assert.equal(texts.get('schema'), '{"type":"struct","fields":[]}')
  assert.equal(
    texts.get('partition-spec'),
    '[{"name":"1.user-é_bucket","transform":"bucket[4]","source-id":1,"field-id":1000}]',
    'the fields alone, not the spec',
  )
  assert.equal(texts.get('partition-spec-id'), '3')
  assert.equal(texts.get('schema-id'), '5')
  assert.equal(texts.get('format-version'), '2')
  assert.equal(texts.get('content'), 'data')
  const text = JSON.stringify(schema)
  assert.match(text, /"name":"_1_x2Euser_x2D_xE9_bucket"/, "Iceberg's escaping of names")
  assert.match(text, /"name":"k117_v118"/)
  assert.equal(text.match(/"logicalType":"map"/g)?.length, 6)
})

const manifests: fc.Arbitrary<ManifestFile> = fc.record(
  {
    location: fc.string(),
    bytes: fc.maxSafeNat(),
    specId: fc.nat(9),
    content: fc.constantFrom('data', 'deletes'),
    sequence: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
    minSequence: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
    addedSnapshotId: fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }),
    addedFiles: fc.nat(),
    existingFiles: fc.nat(),
    deletedFiles: fc.nat(),
    addedRows: fc.maxSafeNat(),
    existingRows: fc.maxSafeNat(),
    deletedRows: fc.maxSafeNat(),
    partitions: fc.option(
      fc.array(
        fc
          .record({
            containsNull: fc.boolean(),
            containsNan: fc.option(fc.boolean(), { nil: undefined }),
            lower: bound,
            upper: bound,
          })
          .map(defined),
        { maxLength: 3 },
      ),
      { nil: undefined },
    ),
  },
  plain,
)

test('manifest lists are read back as they were written', () => {
  fc.assert(
    fc.property(fc.array(manifests, { maxLength: 8 }), (written) => {
      const bytes = writeManifestList(written, list())
      assert.deepEqual(readManifestList(bytes, 'snap.avro'), written)
    }),
  )
})

test('lists of format 1 and with the older names of counts are read', () => {
  const codec = avroCodec({
    type: 'record',
    name: 'manifest_file',
    fields: [
      { name: 'manifest_path', type: 'string' },
      { name: 'manifest_length', type: 'long' },
      { name: 'partition_spec_id', type: 'int' },
      { name: 'added_snapshot_id', type: ['null', 'long'] },
      { name: 'added_data_files_count', type: ['null', 'int'] },
      { name: 'something_new', type: 'string' },
    ],
  })
  const record = {
    manifest_path: 'a.avro',
    manifest_length: 5n,
    partition_spec_id: 0,
    added_snapshot_id: bigId,
    added_data_files_count: 7,
    something_new: 'x',
  }
  const [manifest] = readManifestList(
    writeAvro(codec, [record], { metadata: new Map(), sync }),
    'l',
  )
  assert.equal(manifest?.addedFiles, 7)
  assert.equal(manifest.addedSnapshotId, bigId)
  assert.equal(manifest.sequence, 0n)
  assert.equal(manifest.content, 'data')
  assert.throws(() => writeManifestList([manifest], list()), { code: 'TABLE_MISMATCH' })
})

test('a ledger of any size lives in the header, read without the manifests', () => {
  const small = '{"v":1,"note":"é"}'
  const large = JSON.stringify({ ends: Array.from({ length: 40_000 }, (_, at) => [at, at * 7]) })
  for (const ledger of [small, large]) {
    const bytes = writeManifestList([], list(ledger))
    assert.ok(bytes.length < 300_000)
    assert.deepEqual(readLedger(bytes, 'snap.avro'), { ledger })
  }
  const bytes = writeManifestList([], list(large))
  assert.equal(readLedger(bytes.subarray(0, 1000), 'snap.avro'), undefined, 'more is needed')
  assert.deepEqual(readLedger(writeManifestList([], list()), 'snap.avro'), { ledger: undefined })
})

function list(ledger?: string): Parameters<typeof writeManifestList>[1] {
  return {
    snapshotId: bigId,
    parentId: undefined,
    sequence: 9n,
    sync,
    ...(ledger === undefined ? {} : { ledger }),
  }
}

/** Without the members that are undefined, as readers leave them out. */
function defined<T extends object>(value: T): { [Key in keyof T]: Exclude<T[Key], undefined> } {
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return Object.fromEntries(members) as { [Key in keyof T]: Exclude<T[Key], undefined> }
}
