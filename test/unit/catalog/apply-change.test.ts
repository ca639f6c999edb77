import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyChange } from '../../../src/catalog/iceberg/apply-change.ts'
import { createTableMetadata } from '../../../src/catalog/iceberg/create-table.ts'
import { jsonObject, withMembers } from '../../../src/catalog/iceberg/format/json-fields.ts'
import {
  readMetadata,
  type TableMetadata,
  viewMetadata,
  writeMetadata,
} from '../../../src/catalog/iceberg/format/metadata.ts'
import type { TableChange } from '../../../src/catalog/ports.ts'
import { millis } from '../../../src/core/ids.ts'
import { type JsonObject, parseJson, stringifyJson } from '../../../src/core/json64.ts'
import { append, bigId, dataFile, definition, folder } from './support.ts'

const created = createTableMetadata(definition(), {
  location: folder,
  random: '00000000000000000000000000000001',
  now: millis(1000),
})

function change(base: TableMetadata, made: TableChange, now = 2000): TableMetadata {
  return applyChange(base, made, {
    baseLocation: `${folder}/metadata/v1.metadata.json`,
    manifestList: made.snapshot === undefined ? undefined : `${folder}/metadata/snap.avro`,
    now: millis(now),
  })
}

function summary(metadata: TableMetadata): Record<string, string> {
  assert.ok(metadata.head !== undefined)
  return Object.fromEntries(metadata.snapshots.get(metadata.head)?.summary ?? [])
}

test('a snapshot counts what it adds and carries the totals on, all as texts', () => {
  const first = change(created, append(bigId, [dataFile(0, 10), dataFile(1, 5), dataFile(1, 6)]))
  assert.deepEqual(summary(first), {
    operation: 'append',
    'sluice.round': '1',
    'added-data-files': '3',
    'added-records': '21',
    'added-files-size': '210',
    'changed-partition-count': '2',
    'total-records': '21',
    'total-files-size': '210',
    'total-data-files': '3',
    'total-delete-files': '0',
    'total-position-deletes': '0',
    'total-equality-deletes': '0',
  })
  const second = change(first, append(bigId + 1n, [dataFile(2, 4)]))
  assert.equal(summary(second)['total-records'], '25')
  assert.equal(summary(second)['total-data-files'], '4')
  assert.equal(summary(second)['added-records'], '4')
  const fence = change(second, append(bigId + 2n, []))
  assert.equal(summary(fence)['total-records'], '25')
  assert.equal(summary(fence)['added-records'], undefined)
  assert.equal(summary(fence)['changed-partition-count'], '0')
})

test('a total that the parent lacks is left out and not begun anew', () => {
  const first = change(created, append(bigId, [dataFile(0, 10)]))
  const text = stringifyJson(first.json).replace('"total-records":"10",', '')
  const base = readMetadata(Buffer.from(text), 'v2')
  const second = change(base, append(bigId + 1n, [dataFile(0, 1)]))
  assert.equal(summary(second)['total-records'], undefined)
  assert.equal(summary(second)['total-data-files'], '2')
})

test('ids and sequence numbers stay exact in the bytes', () => {
  const next = change(created, append(bigId, [dataFile(0, 10)]))
  const text = Buffer.from(writeMetadata(next)).toString()
  assert.match(text, /"current-snapshot-id":6204118930415926535\b/)
  assert.match(text, /"refs":\{"main":\{"snapshot-id":6204118930415926535,"type":"branch"\}\}/)
  assert.match(text, /"snapshot-log":\[\{"timestamp-ms":2000,"snapshot-id":6204118930415926535\}\]/)
  const back = readMetadata(Buffer.from(text), 'v2')
  assert.equal(back.head, bigId)
  assert.equal(back.lastSequence, 1n)
  const huge = viewMetadata(
    withMembers(back.json, jsonObject([['last-sequence-number', 2n ** 60n]])),
    'v2',
  )
  assert.equal(change(huge, append(bigId + 1n, [])).lastSequence, 2n ** 60n + 1n)
})

test('each snapshot names its parent, and each version the one before', () => {
  const first = change(created, append(bigId, []))
  const second = change(first, append(bigId + 1n, []))
  assert.equal([...second.snapshots.values()].at(0)?.parent, undefined)
  assert.equal([...second.snapshots.values()].at(1)?.parent, bigId)
  assert.equal(
    stringifyJson(first.json['metadata-log'] ?? null),
    `[{"timestamp-ms":1000,"metadata-file":"${folder}/metadata/v1.metadata.json"}]`,
  )
})

test('time never goes back, whatever the clock says', () => {
  const first = change(created, append(bigId, []), 5000)
  const second = change(first, append(bigId + 1n, []), 10)
  assert.equal(second.lastUpdatedAt, 5000)
  assert.deepEqual(
    second.snapshotLog.map(({ at }) => at),
    [5000, 5000],
  )
  assert.equal(change(second, { setProperties: new Map() }, 20).lastUpdatedAt, 5000)
})

test('a change of properties alone makes no snapshot and keeps the other properties', () => {
  const next = change(created, { setProperties: new Map([['sluice.token', '0.1.2']]) })
  assert.equal(next.head, undefined)
  assert.equal(next.lastSequence, 0n)
  assert.equal(next.properties.get('sluice.token'), '0.1.2')
  assert.equal(next.properties.get('fluss.bucket.num'), '4')
})

test('retention of main, other branches and unknown members survive', () => {
  const foreign: JsonObject = jsonObject([
    [
      'refs',
      parseJson(
        '{"audit":{"snapshot-id":7,"type":"tag"},"main":{"snapshot-id":7,"type":"branch","max-ref-age-ms":9,"min-snapshots-to-keep":3}}',
        { name: 'refs' },
      ),
    ],
    [
      'snapshots',
      parseJson(
        '[{"snapshot-id":7,"timestamp-ms":1,"manifest-list":"x","summary":{"operation":"append"},"key-id":"k"}]',
        { name: 'snapshots' },
      ),
    ],
    ['current-snapshot-id', 7],
    ['encryption-keys', [jsonObject([['key-id', 'k']])]],
  ])
  const base = viewMetadata(withMembers(created.json, foreign), 'v2')
  const next = change(base, append(bigId, []))
  assert.equal(
    stringifyJson(next.json['refs'] ?? null),
    `{"audit":{"snapshot-id":7,"type":"tag"},"main":{"snapshot-id":${String(bigId)},"type":"branch","max-ref-age-ms":9,"min-snapshots-to-keep":3}}`,
  )
  assert.equal(stringifyJson(next.json['encryption-keys'] ?? null), '[{"key-id":"k"}]')
  assert.match(stringifyJson(next.json['snapshots'] ?? null), /"key-id":"k"/)
})

test('the metadata log is bounded by the property, by 100 without one', () => {
  let limited = change(created, {
    setProperties: new Map([['write.metadata.previous-versions-max', '2']]),
  })
  let free = created
  for (let round = 0; round < 105; round += 1) {
    limited = change(limited, { setProperties: new Map() })
    free = change(free, { setProperties: new Map() })
  }
  const lengthOf = (metadata: TableMetadata): unknown => {
    const log = metadata.json['metadata-log']
    return Array.isArray(log) ? log.length : log
  }
  assert.equal(lengthOf(limited), 2)
  assert.equal(lengthOf(free), 100)
})

test('a snapshot id that is listed is never used again', () => {
  const first = change(created, append(bigId, []))
  assert.throws(() => change(first, append(bigId, [])), { code: 'INVARIANT_BROKEN' })
})
