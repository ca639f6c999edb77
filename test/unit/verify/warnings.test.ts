import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { before, test } from 'node:test'
import { deflateRawSync } from 'node:zlib'
import { fileCatalog } from '../../../src/catalog/iceberg/file-catalog.ts'
import type { DataFile } from '../../../src/catalog/ports.ts'
import { bucket, millis, snapshotId } from '../../../src/core/ids.ts'
import { rowsToBatch } from '../../../src/core/columns/rows.ts'
import { systemIds } from '../../../src/core/system.ts'
import { verifyLake } from '../../../src/verify/verify-lake.ts'
import { at, big, encode, kindsOf, Lake, type Loose, type Original, tieredLake } from './support.ts'

let original: Original
before(async () => {
  original = await tieredLake()
})

const longBound = (value: bigint): Uint8Array => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64LE(value)
  return bytes
}

/** Adds a snapshot as another writer would: without a ledger. */
async function appendForeign(
  lake: Lake,
  row: { readonly bucket: number; readonly offset: bigint } | undefined,
): Promise<void> {
  const store = lake.store()
  const clock = { now: () => millis(4_000_000_000_000) }
  const catalog = fileCatalog({
    store,
    warehouse: lake.root,
    ids: systemIds,
    clock,
  })
  const table = await catalog.open(['demo', 't'])
  assert.ok(table)
  const base = await table.load()
  const fields = base.fields.filter(({ name }) => row !== undefined || !name.startsWith('__'))
  const system = { __bucket: row?.bucket ?? 0, __offset: row?.offset ?? 0n, __timestamp: 0n }
  const who = { first: 'x', age: 1n }
  const user = { id: 0n, name: 'foreign', score: 0.5, tags: [], who }
  const batch = rowsToBatch(fields, [row === undefined ? user : { ...user, ...system }])
  const body = await encode(fields, [batch])
  const location = `${lake.folder}/data/foreign.parquet`
  await store.createIfAbsent(location, body)
  const file: DataFile = {
    location,
    bucket: bucket(row?.bucket ?? 0),
    rows: 1,
    bytes: body.length,
    metrics:
      row === undefined
        ? []
        : [
            {
              fieldId: at(fields, 6).id,
              columnBytes: 8,
              valueCount: 1,
              nullCount: 0,
              lower: longBound(row.offset),
              upper: longBound(row.offset),
            },
          ],
    splitOffsets: [4],
  }
  const outcome = await table.swap(base, {
    snapshot: { id: snapshotId(77n), operation: 'append', summary: new Map(), files: [file] },
    setProperties: new Map(),
  })
  assert.equal(outcome.kind, 'applied')
  for (const [key, { body: bytes }] of store.objects) lake.files.set(key, bytes)
}

test('FOREIGN: rows of another writer without our columns are left out', async () => {
  const lake = new Lake(original)
  await appendForeign(lake, undefined)
  for (const level of ['metadata', 'files', 'rows'] as const) {
    const report = await lake.verify(level)
    assert.deepEqual(report.faults, [], level)
    assert.deepEqual(
      report.warnings.map(({ kind, snapshotIds }) => [kind, snapshotIds]),
      [['FOREIGN', [77n]]],
    )
    assert.equal(report.rows, 101n)
    assert.equal(report.snapshotsChecked, 3)
  }
})

test('OVERLAP: another writer appended an offset that is there', async () => {
  const lake = new Lake(original)
  await appendForeign(lake, { bucket: 0, offset: 3n })
  const report = await lake.verify('metadata')
  assert.deepEqual(kindsOf(report), ['OVERLAP'])
  assert.deepEqual([report.faults[0]?.start, report.faults[0]?.end], [3n, 4n])
  assert.ok(report.faults[0]?.snapshotIds?.includes(77n))
})

test('rows of another writer beyond the end are not ours to judge', async () => {
  const lake = new Lake(original)
  await appendForeign(lake, { bucket: 0, offset: 3000n })
  assert.deepEqual(kindsOf(await lake.verify('metadata')), [])
})

test('ORPHAN: files that nothing refers to, but not while a manifest is unreadable', async () => {
  const lake = new Lake(original)
  lake.files.set(`${lake.folder}/data/id_bucket=0/left.parquet`, Buffer.from('x'))
  lake.files.set(`${lake.folder}/metadata/left-m0.avro`, Buffer.from('xyz'))
  const report = await lake.verify('files')
  assert.deepEqual(report.faults, [])
  assert.deepEqual(report.warnings, [
    {
      kind: 'ORPHAN',
      paths: ['data/id_bucket=0/left.parquet', 'metadata/left-m0.avro'],
      found: '2',
      detail: '2 files (4 B) that no snapshot refers to, of rounds in flight or given up',
    },
  ])
  lake.files.delete(at(lake.manifests(), 0))
  assert.deepEqual((await lake.verify('files')).warnings, [])
})

test('ORPHAN: a version above a hole, and the one below it is audited as tier goes by it', async () => {
  const lake = new Lake(original)
  const { metadataAt } = lake
  const head = lake.snapshots().at(-1)?.['snapshot-id']
  const stray = metadataAt.replace(/\d+(?=\.metadata)/, (number) => String(Number(number) + 2))
  lake.files.set(stray, Buffer.from('{ cut'))
  for (const level of ['metadata', 'rows'] as const) {
    const report = await lake.verify(level)
    assert.deepEqual(report.faults, [])
    assert.equal(report.snapshotId, head)
    assert.deepEqual(report.warnings, [
      {
        kind: 'ORPHAN',
        paths: [stray.slice(lake.folder.length + 1)],
        detail:
          `it lies above a hole in the numbers, and ${metadataAt.slice(lake.folder.length + 1)} ` +
          'below it is the newest; move it away before the hole is filled',
      },
    ])
  }
})

test('EXPIRED: what is left of the history is judged, the ends still hold', async () => {
  const lake = new Lake(original)
  lake.edit((metadata) => void lake.snapshots(metadata).shift())
  const report = await lake.verify()
  assert.deepEqual(report.faults, [])
  assert.equal(report.snapshotsChecked, 1)
  assert.equal(report.snapshotsSkipped, 1n)
  assert.deepEqual(
    report.warnings.map(({ kind }) => kind),
    // The manifest list of the expired snapshot is nobody's now.
    ['ORPHAN', 'EXPIRED'],
  )
})

test('EXPIRED: with all own snapshots gone the copy counts where the data proves it', async () => {
  const lake = new Lake(original)
  await appendForeign(lake, { bucket: 0, offset: 0n })
  lake.edit((metadata) => {
    const snapshots = lake.snapshots(metadata)
    snapshots.splice(0, 2)
  })
  const proven = await lake.verify('metadata')
  assert.equal(
    proven.lakeEnds.reduce((sum, { end }) => sum + end, 0n),
    100n,
  )
  // The foreign row doubles an offset, which the proven ends make visible.
  assert.deepEqual(kindsOf(proven), ['OVERLAP'])

  lake.edit((metadata) => {
    const all = metadata['properties'] as Loose
    const copy = JSON.parse(String(all['sluice.progress'])) as {
      ends: unknown[][]
      snapshot: string
    }
    copy.snapshot = '5'
    copy.ends = copy.ends.map(([partition, which]) => [partition, which, '7'])
    all['sluice.progress'] = JSON.stringify(copy)
  })
  assert.deepEqual(kindsOf(await lake.verify('metadata')), ['PROGRESS'])
})

test('PROGRESS: the branch is gone although the table was tiered', async () => {
  const lake = new Lake(original)
  lake.edit((metadata) => {
    metadata['snapshots'] = []
    metadata['refs'] = {}
    delete metadata['current-snapshot-id']
  })
  const report = await lake.verify('metadata')
  assert.deepEqual(kindsOf(report), ['PROGRESS'])
  assert.match(report.faults[0]?.detail ?? '', /the branch is gone/)
})

test('CLOCK: a snapshot older than its parent', async () => {
  const lake = new Lake(original)
  lake.edit((metadata) => {
    const [first, second] = lake.snapshots(metadata)
    if (first !== undefined) first['timestamp-ms'] = Number(big(second?.['timestamp-ms'])) + 5
    metadata['last-updated-ms'] = first?.['timestamp-ms']
  })
  const report = await lake.verify('metadata')
  assert.deepEqual(report.faults, [])
  assert.deepEqual(
    report.warnings.map(({ kind, detail }) => [kind, detail]),
    [['CLOCK', 'it is 5 ms older than its parent']],
  )
})

test('a lake that was moved, or copied, is judged by what lies beside its metadata', async () => {
  const moved = new Lake(original)
  const files = new Map<string, Uint8Array>()
  for (const [location, body] of moved.files) {
    files.set(location.replace(moved.root, 'file:///elsewhere/lake'), body)
  }
  const there = new Lake({ root: 'file:///elsewhere/lake', files })
  assert.deepEqual(await there.verify(), await moved.verify())
  // With the original beside it, a fault of the copy is still the copy's.
  for (const [location, body] of moved.files) there.files.set(location, body)
  const list = String(there.snapshots().at(-1)?.['manifest-list'])
  const [data = ''] = moved.dataFiles(String(moved.avro(list)[0]?.['manifest_path']))
  there.files.delete(data.replace(moved.root, there.root))
  assert.deepEqual(kindsOf(await there.verify('files')), ['MISSING_FILE'])
})

test('a table folder, a metadata file and a warehouse lead to the same report', async () => {
  const lake = new Lake(original)
  const store = lake.store()
  const [whole] = await verifyLake(store, lake.root, { level: 'metadata' })
  for (const location of [lake.folder, `${lake.folder}/`, lake.metadataAt]) {
    const [report] = await verifyLake(store, location, { level: 'metadata' })
    assert.equal(report?.table, 'demo.t')
    assert.deepEqual({ ...report, table: '' }, { ...whole, table: '' })
  }
  await assert.rejects(verifyLake(store, lake.root, { table: ['demo', 'other'] }), {
    code: 'TABLE_MISSING',
    fix: 'tables here: demo.t',
  })
  await assert.rejects(verifyLake(store, 'file:///nowhere'), { code: 'TABLE_MISSING' })
})

test('a store that does not answer is no verdict', async () => {
  const lake = new Lake(original)
  const down = new Error('down')
  const store = { ...lake.store(), readRange: () => Promise.reject(down) }
  await assert.rejects(verifyLake(store, lake.root), down)
})

test('a ledger in the header of the manifest list is read and held to its digest', async () => {
  for (const pack of [
    (text: string) => text,
    (text: string) => `deflate:${deflateRawSync(text).toString('base64')}`,
  ]) {
    const lake = new Lake(original)
    lake.edit((metadata) => {
      const snapshot = at(lake.snapshots(metadata), 1)
      const summary = snapshot['summary'] as Loose
      const text = String(summary['sluice.ledger'])
      const digest = createHash('sha256').update(text).digest('hex')
      summary['sluice.ledger'] = `manifest-list;sha256=${digest}`
      const header = new Map([['sluice.ledger', pack(text)]])
      lake.editAvro(String(snapshot['manifest-list']), () => undefined, header)
    })
    const report = await lake.verify()
    assert.deepEqual(report.faults, [])
    assert.equal(report.lakeEnds.length, 2)
    lake.edit((metadata) => {
      const summary = at(lake.snapshots(metadata), 1)['summary'] as Loose
      summary['sluice.ledger'] = `manifest-list;sha256=${'0'.repeat(64)}`
    })
    const spoiled = await lake.verify('metadata')
    assert.deepEqual(kindsOf(spoiled), ['UNREADABLE'])
    assert.match(spoiled.faults[0]?.detail ?? '', /not the one of the summary/)
  }
})

test('metadata that names files of another store, or no end of bytes, ends in faults', async () => {
  const lake = new Lake(original)
  lake.edit((metadata) => {
    at(lake.snapshots(metadata), 0)['manifest-list'] = 's3://other/list.avro'
  })
  assert.deepEqual(kindsOf(await lake.verify()), ['MISSING_FILE'])
  const empty = new Lake(original)
  empty.files.set(at(empty.manifests(), 0), new Uint8Array(0))
  assert.deepEqual(kindsOf(await empty.verify()), ['UNREADABLE'])
})
