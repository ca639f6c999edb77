import assert from 'node:assert/strict'
import { basename, dirname, normalize } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { partOfFolder, tableFolder } from '../../../src/catalog/iceberg/location.ts'
import { isSluiceError } from '../../../src/core/errors.ts'
import { checkTableName, parseTableName } from '../../../src/core/table-name.ts'

const base = '/srv/lake'
/** Text out of what breaks paths, and out of anything. */
const nasty = fc.oneof(
  fc.string({
    unit: fc.constantFrom('.', '..', '/', '\\', '~', '%', '2', 'e', 'E', ' ', ':', 'é', '\0'),
  }),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom(
    '..',
    '.',
    '~2E~2E',
    '%2e%2e',
    '%2f',
    'CON',
    'nul.txt',
    'a.',
    'a ',
    '-rf',
    '__proto__',
  ),
)

function isName(parts: readonly string[]): boolean {
  try {
    checkTableName(parts)
    tableFolder(base, parts)
    return true
  } catch (error) {
    assert.ok(isSluiceError(error, 'NAME_INVALID'), String(error))
    return false
  }
}

const names = fc.array(nasty, { minLength: 2, maxLength: 3 }).filter(isName)

test('S-05 the folder of every name that is taken lies below the warehouse, one level for each part', () => {
  fc.assert(
    fc.property(names, (parts) => {
      const folder = tableFolder(base, parts)
      assert.equal(normalize(folder), folder, 'nothing in it is resolved away')
      assert.ok(folder.startsWith(`${base}/`))
      let at = folder
      for (const part of [...parts].reverse()) {
        const name = basename(at)
        assert.ok(!/[/\\\0:%\p{Cc}]/u.test(name), name)
        assert.ok(!name.startsWith('.') && !name.endsWith(' ') && Buffer.byteLength(name) <= 255)
        assert.equal(partOfFolder(name), part)
        at = dirname(at)
      }
      assert.equal(at, base)
    }),
    { numRuns: 2_000 },
  )
})

test('S-05 different names have different folders', () => {
  fc.assert(
    fc.property(names, names, (one, other) => {
      const isSame = one.join('\0') === other.join('\0')
      assert.equal(tableFolder(base, one) === tableFolder(base, other), isSame)
    }),
    { numRuns: 2_000 },
  )
})

test('S-05 whatever is typed for a name is a name below the warehouse, or refused as one', () => {
  fc.assert(
    fc.property(nasty, (text) => {
      try {
        assert.ok(isName(parseTableName(text)) || Buffer.byteLength(text) > 80)
      } catch (error) {
        assert.ok(isSluiceError(error, 'NAME_INVALID'), String(error))
      }
    }),
    { numRuns: 2_000 },
  )
})
