import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { fileCatalog } from '../../../src/catalog/iceberg/file-catalog.ts'
import { numberedRegister } from '../../../src/catalog/register/numbered.ts'
import { memoryStore } from '../../../src/catalog/store/memory-store.ts'
import type { ObjectStore } from '../../../src/catalog/store/object-store.ts'
import { isSluiceError, SluiceError } from '../../../src/core/errors.ts'
import { millis } from '../../../src/core/ids.ts'
import { systemIds } from '../../../src/core/system.ts'

const clock = { now: () => millis(1) }

test('a number that is taken and cannot be read back leaves the outcome open', async () => {
  const sound = memoryStore(clock)
  const store: ObjectStore = {
    ...sound,
    createIfAbsent: async (location, body) => {
      await sound.createIfAbsent(location, body)
      return { kind: 'rejected', reason: 'exists' }
    },
    read: () => Promise.reject(new SluiceError('STORE_UNAVAILABLE', 'no answer')),
  }
  const outcome = await numberedRegister(store, 'file:///lake/t').create(1, Buffer.from('{}'))
  equal(outcome.kind, 'unknown')
})

test('a version that would fill a hole below another one is refused, one that was overtaken is not', async () => {
  const store = memoryStore(clock)
  const register = numberedRegister(store, 'file:///lake/t')
  await register.create(1, Buffer.from('{}'))
  const above = 'file:///lake/t/metadata/v3.metadata.json'
  await store.createIfAbsent(above, Buffer.from('{}'))
  await rejects(
    register.create(2, Buffer.from('{"late":1}')),
    (error) =>
      isSluiceError(error, 'DATA_CORRUPT') &&
      error.effect === 'none' &&
      error.message ===
        '/lake/t/metadata/v2.metadata.json: missing, and /lake/t/metadata/v3.metadata.json is there',
  )
  equal(await store.size('file:///lake/t/metadata/v2.metadata.json'), undefined)
  await store.createIfAbsent('file:///lake/t/metadata/v2.metadata.json', Buffer.from('{}'))
  equal((await register.create(2, Buffer.from('{"late":1}'))).kind, 'rejected')
})

test('a hint that a killed writer left behind is mended by the next writer, and by no reader', async () => {
  const store = memoryStore(clock)
  const catalog = fileCatalog({ store, warehouse: 'file:///lake', clock, ids: systemIds })
  const name = ['demo', 't']
  await catalog.create({
    name,
    schema: { fields: [{ name: 'n', type: { kind: 'bigint', nullable: false } }] },
    bucketCount: 1,
    properties: new Map(),
  })
  const metadata = 'file:///lake/demo/t/metadata'
  const hint = async (): Promise<string> =>
    Buffer.from((await store.read(`${metadata}/version-hint.text`)) ?? []).toString()
  equal(await hint(), '1')
  // It was killed between its swap and the hint.
  const first = await store.read(`${metadata}/v1.metadata.json`)
  await store.createIfAbsent(`${metadata}/v2.metadata.json`, first ?? Buffer.of())

  await (await catalog.open(name))?.load()
  equal(await hint(), '1')
  await catalog.open(name, 'write')
  equal(await hint(), '2')
  // A hint beyond the newest version is not one that was left behind.
  await store.putHint(`${metadata}/version-hint.text`, Buffer.from('7'))
  await catalog.open(name, 'write')
  equal(await hint(), '7')
})

test('a version whose creation landed without an answer is in the hint', async () => {
  const sound = memoryStore(clock)
  const store: ObjectStore = {
    ...sound,
    createIfAbsent: async (location, body) => {
      await sound.createIfAbsent(location, body)
      return { kind: 'unknown', cause: new Error('no answer') }
    },
  }
  const register = numberedRegister(store, 'file:///lake/t')
  deepEqual(await register.create(1, Buffer.from('{}')), { kind: 'applied' })
  const hint = await sound.read('file:///lake/t/metadata/version-hint.text')
  equal(Buffer.from(hint ?? []).toString(), '1')
})

test('M25 a version that landed before others does not take the hint back when it is sent again', async () => {
  const store = memoryStore(clock)
  const [late, other] = [1, 2].map(() => numberedRegister(store, 'file:///lake/t'))
  await late?.create(1, Buffer.from('{"v":1}'))
  await late?.create(2, Buffer.from('{"v":2}'))
  await other?.create(3, Buffer.from('{"v":3}'))
  deepEqual(await late?.create(2, Buffer.from('{"v":2}')), { kind: 'applied' })
  const hint = await store.read('file:///lake/t/metadata/version-hint.text')
  equal(Buffer.from(hint ?? []).toString(), '3')
})

test('a version older than one that was seen is not taken for the newest', async () => {
  const sound = memoryStore(clock)
  let isStale = false
  const hides = (location: string): boolean => isStale && location.endsWith('/v2.metadata.json')
  const store: ObjectStore = {
    ...sound,
    size: (location) => (hides(location) ? Promise.resolve(undefined) : sound.size(location)),
    list: async (prefix) => (await sound.list(prefix)).filter((each) => !hides(each.location)),
  }
  const catalog = fileCatalog({ store, warehouse: 'file:///lake', clock, ids: systemIds })
  const { table } = await catalog.create({
    name: ['demo', 't'],
    schema: { fields: [{ name: 'n', type: { kind: 'bigint', nullable: false } }] },
    bucketCount: 1,
    properties: new Map(),
  })
  const outcome = await table.swap(await table.load(), { setProperties: new Map([['a', 'b']]) })
  equal(outcome.kind, 'applied')
  isStale = true
  await rejects(table.load(), (error) => isSluiceError(error, 'STORE_UNAVAILABLE'))
  isStale = false
  deepEqual((await table.load()).properties.get('a'), 'b')
})
