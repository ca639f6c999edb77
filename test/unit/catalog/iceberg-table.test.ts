import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LakeTable } from '../../../src/catalog/ports.ts'
import { isSluiceError, type SluiceError } from '../../../src/core/errors.ts'
import { append, applied, bigId, dataFile, definition, folder, lakeInMemory } from './support.ts'
import type { Lake } from './support.ts'

async function newTable(): Promise<{ lake: Lake; table: LakeTable }> {
  const lake = lakeInMemory()
  const { table } = await lake.catalog.create(definition())
  return { lake, table }
}

async function refusal(work: Promise<unknown>): Promise<SluiceError> {
  try {
    await work
  } catch (error) {
    assert.ok(isSluiceError(error))
    return error
  }
  throw new Error('nothing was refused')
}

function overwrite(lake: Lake, location: string, text: string): Promise<void> {
  return lake.store.putHint(location, Buffer.from(text))
}

test('a new table is loaded with its columns, buckets and place', async () => {
  const { table } = await newTable()
  const loaded = await table.load()
  assert.equal(loaded.head, undefined)
  assert.equal(loaded.location, folder)
  assert.equal(loaded.bucketCount, 4)
  assert.equal(loaded.bucketKey, undefined)
  assert.equal(loaded.lastSequence, 0n)
  assert.deepEqual(
    loaded.fields.map(({ id, name }) => [id, name]),
    [
      [1, 'id'],
      [2, 'note'],
      [3, '__bucket'],
      [4, '__offset'],
      [5, '__timestamp'],
    ],
  )
})

test('a keyed table knows its key and count from the partition spec', async () => {
  const lake = lakeInMemory()
  const { table } = await lake.catalog.create(definition({ bucketKey: 'id', bucketCount: 7 }))
  const loaded = await table.load()
  assert.equal(loaded.bucketKey, 'id')
  assert.equal(loaded.bucketCount, 7)
})

test('a swap replaces exactly its base, once', async () => {
  const { lake, table } = await newTable()
  const base = await table.load()
  lake.now += 1000
  const first = applied(await table.swap(base, append(bigId, [dataFile(0, 10)])))
  assert.equal(first.head, bigId)
  assert.deepEqual(await table.swap(base, append(bigId + 1n, [dataFile(1, 5)])), {
    kind: 'rejected',
  })
  const loaded = await table.load()
  assert.equal(loaded.token, first.token, 'the version of the reply is the one that is read')
  assert.notEqual(loaded.token, base.token)
  assert.equal(loaded.snapshots.size, 1)
  assert.equal(loaded.snapshots.get(loaded.head ?? first.head)?.committedAt, lake.now)
})

test('of two processes one swaps and the other is rejected', async () => {
  const { lake, table } = await newTable()
  const other = await lake.catalog.open(['demo', 'clicks'])
  assert.ok(other !== undefined)
  const [base, sameBase] = [await table.load(), await other.load()]
  assert.equal(base.token, sameBase.token)
  const outcomes = await Promise.all([
    table.swap(base, append(bigId, [])),
    other.swap(sameBase, append(bigId + 1n, [])),
  ])
  assert.deepEqual(outcomes.map(({ kind }) => kind).sort(), ['applied', 'rejected'])
})

test('a property fence is a version that makes older bases fail', async () => {
  const { table } = await newTable()
  const base = await table.load()
  const fenced = applied(
    await table.swap(base, { setProperties: new Map([['sluice.token', '0.2.1']]) }),
  )
  assert.equal(fenced.properties.get('sluice.token'), '0.2.1')
  assert.equal(fenced.head, undefined)
  assert.deepEqual(await table.swap(base, append(bigId, [])), { kind: 'rejected' })
})

test('another attempt of a round writes a new list and uses its manifest again', async () => {
  const { lake, table } = await newTable()
  const other = await lake.catalog.open(['demo', 'clicks'])
  assert.ok(other !== undefined)
  const base = await table.load()
  applied(await other.swap(await other.load(), append(bigId, [dataFile(3, 1)])))
  const change = append(bigId + 1n, [dataFile(0, 10)])
  assert.equal((await table.swap(base, change)).kind, 'rejected')
  const manifests = (): number => names(lake).filter((name) => name.endsWith('-m0.avro')).length
  const before = manifests()
  applied(await table.swap(await table.load(), change))
  assert.equal(manifests(), before)
  const lists = names(lake).filter((name) => name.includes(`snap-${String(bigId + 1n)}-`))
  assert.equal(lists.length, 2)
})

test('the ledger in the header of a manifest list is read back', async () => {
  const { table } = await newTable()
  const large = JSON.stringify(Array.from({ length: 90_000 }, (_, at) => at * 7919))
  const first = applied(
    await table.swap(await table.load(), append(bigId, [], { headerLedger: '{"v":1}' })),
  )
  const second = applied(await table.swap(first, append(bigId + 1n, [], { headerLedger: large })))
  const [a, b] = [...second.snapshots.values()]
  assert.ok(a !== undefined && b !== undefined)
  assert.equal(await table.headerLedger(a), '{"v":1}')
  assert.equal(await table.headerLedger(b), large)
  const without = applied(await table.swap(second, append(bigId + 2n, [])))
  const c = [...without.snapshots.values()].at(-1)
  assert.ok(c !== undefined)
  const error = await refusal(table.headerLedger(c))
  assert.equal(error.code, 'DATA_CORRUPT')
  assert.match(error.message, /its header has no ledger/)
})

test('a damaged newest version is named with its byte, and no older one is taken', async () => {
  const { lake, table } = await newTable()
  applied(await table.swap(await table.load(), append(bigId, [])))
  const location = `${folder}/metadata/v2.metadata.json`
  const whole = Buffer.from((await lake.store.read(location)) ?? []).toString()
  await overwrite(lake, location, whole.slice(0, 100))
  const error = await refusal(table.load())
  assert.equal(error.code, 'DATA_CORRUPT')
  assert.equal(
    error.message,
    '/lake/demo/clicks/metadata/v2.metadata.json: not JSON from byte 100 on (file is cut)',
  )
  assert.equal(error.state, 'nothing was changed; v1 is whole')
  assert.match(error.fix ?? '', /will not go back to v1 by itself/)
  await overwrite(lake, `${folder}/metadata/v1.metadata.json`, '{')
  assert.equal((await refusal(table.load())).state, 'nothing was changed; v1 is not whole')
})

test('a manifest list that is gone stops the swap before the register is asked', async () => {
  const { lake, table } = await newTable()
  const first = applied(await table.swap(await table.load(), append(bigId, [])))
  const list = [...first.snapshots.values()][0]?.manifestList ?? ''
  await lake.store.remove(list)
  const error = await refusal(table.swap(first, append(bigId + 1n, [])))
  assert.equal(error.code, 'DATA_CORRUPT')
  assert.equal((await table.load()).token, first.token)
})

test('tables of other formats, without buckets, or moved, are not written', async () => {
  const edits: readonly (readonly [string, string, string])[] = [
    [
      '"transform":"identity","source-id":3,',
      '"transform":"void","source-id":3,',
      'TABLE_MISMATCH',
    ],
    ['"location":"file:///lake/', '"location":"file:///old/', 'LOCATION_REFUSED'],
    ['"type":"string"', '"type":"variant"', 'SCHEMA_UNSUPPORTED'],
  ]
  const location = `${folder}/metadata/v1.metadata.json`
  for (const [from, to, code] of edits) {
    const { lake, table } = await newTable()
    const text = Buffer.from((await lake.store.read(location)) ?? []).toString()
    assert.ok(text.includes(from), from)
    await overwrite(lake, location, text.replace(from, to))
    assert.equal((await refusal(table.load())).code, code)
  }
  const { lake, table } = await newTable()
  const text = Buffer.from((await lake.store.read(location)) ?? []).toString()
  await overwrite(lake, location, text.replace('"format-version":2', '"format-version":1'))
  const loaded = await table.load()
  const error = await refusal(table.swap(loaded, append(bigId, [])))
  assert.equal(error.code, 'TABLE_MISMATCH')
  assert.equal(error.message, 'demo.clicks is an Iceberg format 1 table; Sluice writes 2 and 3')
})

test('a table that was dropped is missing', async () => {
  const { lake, table } = await newTable()
  for (const name of names(lake)) await lake.store.remove(name)
  assert.equal((await refusal(table.load())).code, 'TABLE_MISSING')
})

test('the hint follows the versions upwards and holds digits only', async () => {
  const { lake, table } = await newTable()
  applied(await table.swap(await table.load(), append(bigId, [])))
  const hint = await lake.store.read(`${folder}/metadata/version-hint.text`)
  assert.equal(Buffer.from(hint ?? []).toString(), '2')
})

function names(lake: Lake): readonly string[] {
  return [...lake.store.objects.keys()]
}
