import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { refuseEqualityDeletes } from '../../../src/catalog/iceberg/scan-rows.ts'
import { scanTable } from '../../../src/catalog/iceberg/scan.ts'
import { writeManifestList } from '../../../src/catalog/iceberg/format/manifest-list.ts'
import { isSluiceError } from '../../../src/core/errors.ts'
import { millis } from '../../../src/core/ids.ts'
import type { Lake } from './support.ts'
import { append, applied, bigId, dataFile, definition, folder, lakeInMemory } from './support.ts'

/** Two snapshots of the table, ten seconds apart. */
async function twoSnapshots(): Promise<Lake> {
  const lake = lakeInMemory()
  const { table } = await lake.catalog.create(definition())
  lake.now = 10_000
  const first = applied(
    await table.swap(await table.load(), append(bigId, [dataFile(0, 10), dataFile(1, 5)])),
  )
  lake.now = 1_800_000_000_000
  applied(await table.swap(first, append(bigId + 1n, [dataFile(3, 7)])))
  return lake
}

test('a scan lists the live files of the newest snapshot with what is known of them', async () => {
  const lake = await twoSnapshots()
  const scan = await scanTable(lake.store, folder)
  assert.equal(scan.snapshot?.id, bigId + 1n)
  assert.equal(scan.metadata, `${folder}/metadata/v3.metadata.json`)
  assert.deepEqual(
    scan.files.map(({ rows, sequence, snapshot, partition }) => [
      rows,
      sequence,
      snapshot,
      partition.get(1000),
    ]),
    [
      [7, 2n, bigId + 1n, 3],
      [10, 1n, bigId, 0],
      [5, 1n, bigId, 1],
    ],
  )
  assert.equal(scan.files[0]?.resolved, dataFile(3, 7).location)
  assert.equal(scan.moved, undefined)
  assert.deepEqual(scan.deleteFiles, [])
  refuseEqualityDeletes(scan)
})

test('an empty table scans to no files', async () => {
  const lake = lakeInMemory()
  await lake.catalog.create(definition())
  const scan = await scanTable(lake.store, folder)
  assert.equal(scan.snapshot, undefined)
  assert.deepEqual(scan.files, [])
  assert.equal(scan.fields.length, 5)
})

test('a scan goes back to a snapshot or a time', async () => {
  const lake = await twoSnapshots()
  const rows = async (point: Parameters<typeof scanTable>[2]): Promise<number> => {
    const { files } = await scanTable(lake.store, folder, point)
    return files.reduce((sum, file) => sum + file.rows, 0)
  }
  assert.equal(await rows({ snapshot: bigId }), 15)
  assert.equal(await rows({ asOf: millis(1_750_000_000_000) }), 15)
  assert.equal(await rows({ asOf: millis(1_800_000_000_000) }), 22)
  for (const point of [{ snapshot: 5n }, { snapshot: -1n }, { asOf: millis(5) }]) {
    await assert.rejects(rows(point), { code: 'CONFIG_INVALID' })
  }
})

test('metadata under the names of other catalogs, gzipped too, is found and read', async () => {
  const lake = await twoSnapshots()
  const body = (await lake.store.read(`${folder}/metadata/v3.metadata.json`)) ?? Buffer.alloc(0)
  for (const version of ['v1', 'v2', 'v3']) {
    await lake.store.remove(`${folder}/metadata/${version}.metadata.json`)
  }
  const old = `${folder}/metadata/00009-b.metadata.json`
  const newest = `${folder}/metadata/00010-a.gz.metadata.json`
  await lake.store.putHint(old, Buffer.from('not looked at'))
  await lake.store.putHint(newest, gzipSync(body))
  const scan = await scanTable(lake.store, folder)
  assert.equal(scan.metadata, newest)
  assert.equal(scan.files.length, 3)
  assert.equal((await scanTable(lake.store, newest)).files.length, 3)
  await lake.store.putHint(newest, gzipSync(body).subarray(0, 50))
  await assert.rejects(scanTable(lake.store, folder), { code: 'DATA_CORRUPT' })
})

test('a lake that was moved is read where it now lies, and says so', async () => {
  const lake = await twoSnapshots()
  const to = 'file:///backup/clicks'
  for (const [location, { body }] of [...lake.store.objects]) {
    await lake.store.putHint(location.replace(folder, to), body)
  }
  const copied = await scanTable(lake.store, to)
  assert.equal(copied.moved, undefined, 'while the original is there, it is what is read')
  for (const location of [...lake.store.objects.keys()]) {
    if (location.startsWith(folder)) await lake.store.remove(location)
  }
  const scan = await scanTable(lake.store, to)
  assert.deepEqual(scan.moved, { from: folder, to })
  assert.deepEqual(
    scan.files.map(({ resolved }) => resolved.startsWith(`${to}/data/`)),
    [true, true, true],
  )
  assert.equal(scan.files[0]?.location, dataFile(3, 7).location, 'as the manifest says')
})

test('equality deletes are not passed over', async () => {
  const lake = await twoSnapshots()
  const scan = await scanTable(lake.store, folder)
  const [file] = scan.files
  assert.ok(file !== undefined)
  assert.throws(
    () => {
      refuseEqualityDeletes({ ...scan, deleteFiles: [{ ...file, content: 'equality-deletes' }] })
    },
    (error) =>
      isSluiceError(error, 'TABLE_MISMATCH') &&
      error.message.endsWith('the table has 1 equality delete file, which Sluice does not read'),
  )
})

test('a manifest that is gone is named', async () => {
  const lake = await twoSnapshots()
  const list = (await scanTable(lake.store, folder)).snapshot?.manifestList ?? ''
  const body = writeManifestList(
    [
      {
        location: `${folder}/metadata/gone.avro`,
        bytes: 1,
        specId: 0,
        content: 'data',
        sequence: 1n,
        minSequence: 1n,
        addedSnapshotId: bigId,
        addedFiles: 1,
        existingFiles: 0,
        deletedFiles: 0,
        addedRows: 1,
        existingRows: 0,
        deletedRows: 0,
        partitions: undefined,
      },
    ],
    { snapshotId: bigId, parentId: undefined, sequence: 1n, sync: '0'.repeat(32) },
  )
  await lake.store.putHint(list, body)
  await assert.rejects(
    scanTable(lake.store, folder),
    (error) =>
      isSluiceError(error, 'DATA_CORRUPT') &&
      error.message === '/lake/demo/clicks/metadata/gone.avro: the manifest is not there',
  )
})

test('a place without a table is said to have none', async () => {
  const lake = await twoSnapshots()
  await assert.rejects(scanTable(lake.store, 'file:///lake/demo'), { code: 'TABLE_MISSING' })
})
