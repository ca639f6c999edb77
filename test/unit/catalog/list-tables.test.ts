import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { findMetadata, listTables } from '../../../src/catalog/iceberg/list-tables.ts'
import { numberedRegister } from '../../../src/catalog/register/numbered.ts'
import { memoryStore } from '../../../src/catalog/store/memory-store.ts'
import { millis } from '../../../src/core/ids.ts'

const warehouse = 'file:///lake'
const folder = `${warehouse}/demo/t`

test('whatever numbers are there, a lake is read by the version that a writer goes on from', async () => {
  const numbers = fc.uniqueArray(fc.integer({ min: 1, max: 9 }), { minLength: 1 })
  const hints = fc.option(fc.constantFrom('1', '3', '4', '8', 'x'), { nil: undefined })
  await fc.assert(
    fc.asyncProperty(numbers, hints, async (versions, hint) => {
      const store = memoryStore({ now: () => millis(0) })
      const nameOf = (version: number): string =>
        `${folder}/metadata/v${String(version)}.metadata.json`
      for (const version of versions) {
        await store.createIfAbsent(nameOf(version), Buffer.from('{}'))
      }
      if (hint !== undefined) {
        await store.putHint(`${folder}/metadata/version-hint.text`, Buffer.from(hint))
      }
      const head = await numberedRegister(store, folder).head()
      const { location, strays } = (await findMetadata(store, folder)) ?? {}
      equal(location, head?.location)
      const above = versions.filter((version) => version > (head?.version ?? 0))
      deepEqual(
        strays,
        above.sort((a, b) => a - b).map((each) => nameOf(each)),
      )
      const listed = await listTables(store, warehouse)
      deepEqual(
        listed.map((table) => [table.metadata, table.strays]),
        [[location, strays]],
      )
    }),
  )
})
