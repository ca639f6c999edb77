import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  folderOfPart,
  normalizeLocation,
  partOfFolder,
  tableFolder,
} from '../../../src/catalog/iceberg/location.ts'
import { checkTableName } from '../../../src/core/table-name.ts'
import { isSluiceError } from '../../../src/core/errors.ts'
import { definition, lakeInMemory, warehouse } from './support.ts'

const isPart = (part: string): boolean => {
  try {
    checkTableName(['ns', part])
    return true
  } catch {
    return false
  }
}
const parts = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }).filter(isPart)

test('a created table is opened, listed and not created again', async () => {
  const { catalog } = lakeInMemory()
  assert.equal(await catalog.open(['demo', 'clicks']), undefined)
  assert.equal((await catalog.create(definition())).created, true)
  assert.equal((await catalog.create(definition())).created, false)
  assert.notEqual(await catalog.open(['demo', 'clicks']), undefined)
  await catalog.create(definition({ name: ['demo', 'eu', 'Flight.Data'] }))
  assert.deepEqual(await catalog.list(), [
    ['demo', 'clicks'],
    ['demo', 'eu', 'Flight.Data'],
  ])
})

test('of two creators one creates and both get the table', async () => {
  const { catalog } = lakeInMemory()
  const made = await Promise.all([catalog.create(definition()), catalog.create(definition())])
  assert.deepEqual(made.map(({ created }) => created).sort(), [false, true])
  const [a, b] = await Promise.all(made.map(({ table }) => table.load()))
  assert.equal(a?.uuid, b?.uuid)
})

test('names that could share a folder with an existing table are refused', async () => {
  const { catalog } = lakeInMemory()
  await catalog.create(definition())
  const refused: readonly (readonly [readonly string[], RegExp])[] = [
    [['demo', 'Clicks'], /demo\.clicks differs only by case/],
    [['DEMO', 'other'], /demo\.clicks differs only by case/],
    [['demo', 'clicks', 'data'], /would lie in the folder of the other/],
    [['_sluice', 'clicks'], /is Sluice's own/],
  ]
  for (const [name, message] of refused) {
    await assert.rejects(
      catalog.create(definition({ name })),
      (error) => isSluiceError(error, 'NAME_INVALID') && message.test(error.message),
      name.join('.'),
    )
  }
  await catalog.create(definition({ name: ['demo', 'caf\u00e9'] }))
  await assert.rejects(catalog.create(definition({ name: ['demo', 'cafe\u0301'] })), {
    code: 'NAME_INVALID',
  })
  assert.equal((await catalog.list()).length, 2)
})

test('a folder with a table of another catalog is left alone', async () => {
  const { catalog, store } = lakeInMemory()
  const name = '00000-6f1c3c8e-6a0b-4d2f-9f6e-1f1f1f1f1f1f.metadata.json'
  await store.putHint(`${warehouse}/demo/clicks/metadata/${name}`, Buffer.from('{}'))
  await assert.rejects(catalog.open(['demo', 'clicks']), { code: 'TABLE_EXISTS' })
  await assert.rejects(catalog.create(definition()), { code: 'TABLE_EXISTS' })
  assert.deepEqual(await catalog.list(), [])
})

test('every part of a name has a folder of its own that no path can escape from', () => {
  assert.equal(folderOfPart('Flight.Data-1_x ü'), 'Flight.Data-1_x ü')
  assert.equal(folderOfPart('a"b%c~d'), 'a~22b~25c~7Ed')
  assert.equal(folderOfPart('..'), '~2E.')
  assert.equal(folderOfPart('.hidden'), '~2Ehidden')
  assert.equal(folderOfPart('€'), '~E2~82~AC')
  fc.assert(
    fc.property(parts, parts, (left, right) => {
      const folder = folderOfPart(left)
      assert.equal(partOfFolder(folder), left)
      assert.match(folder, /^[^./\\%?#"][^/\\%?#"]*$/)
      assert.equal(folder === folderOfPart(right), left === right)
    }),
  )
})

test('a name whose folder would be too long is refused', () => {
  assert.throws(() => tableFolder(warehouse, ['demo', '"'.repeat(90)]), { code: 'NAME_INVALID' })
})

test('locations of other writers are brought into one form', () => {
  const forms = new Map([
    ['/a/b c', 'file:///a/b c'],
    ['file:/a/b', 'file:///a/b'],
    ['file:///a/b/', 'file:///a/b'],
    ['file://localhost/a', 'file:///a'],
    ['s3a://bucket/x', 's3://bucket/x'],
    ['s3://bucket/x/', 's3://bucket/x'],
  ])
  for (const [from, to] of forms) assert.equal(normalizeLocation(from), to)
})
