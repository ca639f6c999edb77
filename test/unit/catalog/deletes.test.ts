import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readManifest } from '../../../src/catalog/iceberg/format/manifest.ts'
import { readManifestList } from '../../../src/catalog/iceberg/format/manifest-list.ts'
import { readMetadata } from '../../../src/catalog/iceberg/format/metadata.ts'
import type {
  DeleteFile,
  LakeTable,
  LiveDelete,
  LoadedTable,
  TableChange,
} from '../../../src/catalog/ports.ts'
import { isSluiceError } from '../../../src/core/errors.ts'
import { stringifyJson } from '../../../src/core/json64.ts'
import {
  append,
  applied,
  dataFile,
  definition,
  folder,
  type Lake,
  lakeInMemory,
} from './support.ts'

const keyed = { bucketKey: 'id', primaryKey: ['id'] }

function positions(dataFile: string, rows: number, at = 1, bucket = 0): DeleteFile {
  return {
    content: 'position-deletes',
    specId: 0,
    partition: new Map([[1000, bucket]]),
    location: `${folder}/data/deletes-${String(at)}.parquet`,
    bytes: 100,
    rows,
    dataFile,
    blob: undefined,
    equalityIds: [],
    metrics: [],
  }
}

function vector(dataFile: string, rows: number, at: number): DeleteFile {
  return {
    ...positions(dataFile, rows, at),
    content: 'deletion-vector',
    location: `${folder}/data/deletes-${String(at)}.puffin`,
    blob: { offset: 4, bytes: 50 },
  }
}

async function made(formatVersion: 2 | 3): Promise<{ lake: Lake; table: LakeTable }> {
  const lake = lakeInMemory()
  const { table } = await lake.catalog.create(definition({ ...keyed, formatVersion }))
  return { lake, table }
}

async function put(table: LakeTable, change: TableChange): Promise<LoadedTable> {
  return applied(await table.swap(await table.load(), change))
}

function summaryOf(table: LoadedTable): Record<string, string> {
  const head = table.head === undefined ? undefined : table.snapshots.get(table.head)
  return Object.fromEntries(head?.summary ?? [])
}

async function manifestsAt(lake: Lake, table: LoadedTable): Promise<readonly ManifestView[]> {
  const head = table.head === undefined ? undefined : table.snapshots.get(table.head)
  assert.ok(head !== undefined)
  const list = readManifestList((await lake.store.read(head.manifestList)) ?? Buffer.of(), 'list')
  return Promise.all(
    list.map(async (manifest) => ({
      manifest,
      entries: readManifest((await lake.store.read(manifest.location)) ?? Buffer.of(), 'manifest'),
    })),
  )
}

type ManifestView = {
  readonly manifest: ReturnType<typeof readManifestList>[number]
  readonly entries: ReturnType<typeof readManifest>
}

test('a primary-key table names its key as identifier, and asks others to merge on read', async () => {
  const { lake, table } = await made(2)
  const loaded = await table.load()
  assert.deepEqual(loaded.primaryKey, ['id'])
  for (const operation of ['delete', 'update', 'merge']) {
    assert.equal(loaded.properties.get(`write.${operation}.mode`), 'merge-on-read')
  }
  const body = await lake.store.read(`${folder}/metadata/v1.metadata.json`)
  const { json } = readMetadata(body ?? Buffer.of(), 'v1')
  assert.match(stringifyJson(json['schemas'] ?? null), /"identifier-field-ids":\[1\]/)
})

test('a key that may be null, or is no column, makes no table', async () => {
  const lake = lakeInMemory()
  const cases = [
    ['note', 'primary key "note" may be null'],
    ['nobody', 'primary key "nobody" is not a column'],
  ] as const
  for (const [column, message] of cases) {
    await assert.rejects(
      lake.catalog.create(definition({ bucketKey: 'id', primaryKey: [column] })),
      (error) => isSluiceError(error, 'SCHEMA_UNSUPPORTED') && error.message === message,
    )
  }
})

describe('format 2', () => {
  test('deletes go into a manifest of their own and are counted', async () => {
    const { lake, table } = await made(2)
    const file = dataFile(0, 10)
    await put(table, append(1n, [file]))
    const next = await put(
      table,
      append(2n, [dataFile(1, 5)], {
        operation: 'overwrite',
        deletes: [positions(file.location, 3)],
      }),
    )
    assert.deepEqual(summaryOf(next), {
      operation: 'overwrite',
      'sluice.round': '1',
      'added-data-files': '1',
      'added-records': '5',
      'added-files-size': '150',
      'added-delete-files': '1',
      'added-position-delete-files': '1',
      'added-position-deletes': '3',
      'changed-partition-count': '2',
      'total-records': '15',
      'total-files-size': '250',
      'total-data-files': '2',
      'total-delete-files': '1',
      'total-position-deletes': '3',
      'total-equality-deletes': '0',
    })
    const manifests = await manifestsAt(lake, next)
    assert.deepEqual(
      manifests.map(({ manifest }) => [manifest.content, manifest.sequence]),
      [
        ['data', 2n],
        ['deletes', 2n],
        ['data', 1n],
      ],
    )
    const [entry] = manifests[1]?.entries ?? []
    assert.equal(entry?.file.content, 'position-deletes')
    assert.equal(entry.file.referencedDataFile, file.location)
    const live = await table.liveFiles(next)
    assert.deepEqual(
      live.deletes.map(({ content, dataFile, rows, sequence }) => [
        content,
        dataFile,
        rows,
        sequence,
      ]),
      [['position-deletes', file.location, 3, 2n]],
    )
    assert.deepEqual(
      live.data.map(({ location, bucket, rows }) => [location, bucket, rows]),
      [
        [dataFile(1, 5).location, 1, 5],
        [file.location, 0, 10],
      ],
    )
  })

  test('dropped deletes stay one snapshot as deleted, and their neighbors keep their numbers', async () => {
    const { lake, table } = await made(2)
    const [a, b] = [dataFile(0, 10), dataFile(1, 10)]
    await put(table, append(1n, [a, b]))
    const two = await put(
      table,
      append(2n, [], {
        operation: 'delete',
        deletes: [positions(a.location, 3, 1), positions(b.location, 2, 2, 1)],
      }),
    )
    const [old] = (await table.liveFiles(two)).deletes.filter(
      (each) => each.dataFile === a.location,
    )
    assert.ok(old !== undefined)
    const three = await put(
      table,
      append(3n, [], {
        operation: 'delete',
        deletes: [positions(a.location, 5, 3)],
        droppedDeletes: [old],
      }),
    )
    assert.equal(summaryOf(three)['removed-position-deletes'], '3')
    assert.equal(summaryOf(three)['total-position-deletes'], '7')
    assert.equal(summaryOf(three)['total-delete-files'], '2')
    const rewritten = (await manifestsAt(lake, three)).find(({ entries }) =>
      entries.some(({ status }) => status === 'deleted'),
    )
    assert.deepEqual(
      rewritten?.entries.map(({ status, snapshotId, sequence, fileSequence, file }) => [
        status,
        snapshotId,
        sequence,
        fileSequence,
        file.referencedDataFile,
      ]),
      [
        ['deleted', 3n, 2n, 2n, a.location],
        ['existing', 2n, 2n, 2n, b.location],
      ],
    )
    assert.equal(rewritten.manifest.sequence, 3n)
    assert.equal(rewritten.manifest.minSequence, 2n)
    assert.deepEqual(
      (await table.liveFiles(three)).deletes.map((each) => [each.dataFile, each.rows]).sort(),
      [
        [a.location, 5],
        [b.location, 2],
      ].sort(),
    )
  })

  test('a manifest of nothing but deleted entries is not carried on', async () => {
    const { lake, table } = await made(2)
    const file = dataFile(0, 10)
    await put(table, append(1n, [file]))
    const two = await put(
      table,
      append(2n, [], { operation: 'delete', deletes: [positions(file.location, 1)] }),
    )
    const droppedDeletes = (await table.liveFiles(two)).deletes
    await put(
      table,
      append(3n, [], {
        operation: 'delete',
        deletes: [positions(file.location, 2, 2)],
        droppedDeletes,
      }),
    )
    const four = await put(table, append(4n, []))
    assert.deepEqual(
      (await manifestsAt(lake, four)).map(({ manifest }) => [manifest.content, manifest.sequence]),
      [
        ['deletes', 3n],
        ['data', 1n],
      ],
    )
  })

  test('a delete that is not in the base cannot be dropped: the commit is stale', async () => {
    const { table } = await made(2)
    const file = dataFile(0, 10)
    const base = await put(table, append(1n, [file]))
    const ghost: LiveDelete = {
      ...positions(file.location, 1, 9),
      sequence: 1n,
      snapshot: base.head!,
    }
    await assert.rejects(
      table.swap(base, append(2n, [], { operation: 'delete', droppedDeletes: [ghost] })),
      (error) => isSluiceError(error, 'COMMIT_STALE'),
    )
  })
})

describe('format 3', () => {
  test('rows get ids in the order of the manifest list (spec, "Row lineage")', async () => {
    const { lake, table } = await made(3)
    const first = await put(table, append(1n, [dataFile(0, 10), dataFile(1, 5)]))
    const second = await put(table, append(2n, [dataFile(2, 7)]))
    const rowIds = async (loaded: LoadedTable): Promise<readonly unknown[]> =>
      (await manifestsAt(lake, loaded)).map(({ manifest }) => manifest.firstRowId)
    assert.deepEqual(await rowIds(first), [0n])
    assert.deepEqual(await rowIds(second), [15n, 0n])
    const body = await lake.store.read(`${folder}/metadata/v3.metadata.json`)
    const { json } = readMetadata(body ?? Buffer.of(), 'v3')
    assert.equal(stringifyJson(json['next-row-id'] ?? null), '22')
    const snapshots = stringifyJson(json['snapshots'] ?? null)
    assert.match(snapshots, /"first-row-id":0,"added-rows":15/)
    assert.match(snapshots, /"first-row-id":15,"added-rows":7/)
  })

  test('vectors name their blob, and the one that is replaced goes in the same commit', async () => {
    const { lake, table } = await made(3)
    const file = dataFile(0, 10)
    await put(table, append(1n, [file]))
    const two = await put(
      table,
      append(2n, [], { operation: 'delete', deletes: [vector(file.location, 1, 1)] }),
    )
    const { deletes } = await table.liveFiles(two)
    assert.deepEqual(
      deletes.map(({ content, blob, dataFile }) => [content, blob, dataFile]),
      [['deletion-vector', { offset: 4, bytes: 50 }, file.location]],
    )
    const three = await put(
      table,
      append(3n, [], {
        operation: 'delete',
        deletes: [vector(file.location, 2, 2)],
        droppedDeletes: deletes,
      }),
    )
    assert.deepEqual(
      (await table.liveFiles(three)).deletes.map(({ location, rows }) => [location, rows]),
      [[`${folder}/data/deletes-2.puffin`, 2]],
    )
    const summary = summaryOf(three)
    assert.equal(summary['added-dvs'], '1')
    assert.equal(summary['removed-dvs'], '1')
    assert.equal(summary['total-delete-files'], '1')
    assert.equal(summary['total-position-deletes'], '2')
    const formats = (await manifestsAt(lake, three)).map(({ entries }) =>
      entries.map(({ file }) => file.format),
    )
    assert.deepEqual(formats, [['PUFFIN'], ['PUFFIN'], ['PARQUET']])
  })
})
