import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isSluiceError } from '../../../src/core/errors.ts'
import {
  checkTableName,
  differsOnlyByCase,
  formatTableName,
  parseTableName,
} from '../../../src/core/table-name.ts'

test('splits at dots and puts a bare name into the namespace default', () => {
  assert.deepEqual(parseTableName('demo.flights'), ['demo', 'flights'])
  assert.deepEqual(parseTableName('a.b.table'), ['a', 'b', 'table'])
  assert.deepEqual(parseTableName('flights'), ['default', 'flights'])
})

test('keeps case, and dots and quotes inside quotes', () => {
  assert.deepEqual(parseTableName('demo."Flight.Data"'), ['demo', 'Flight.Data'])
  assert.deepEqual(parseTableName('demo.`Flight.Data`'), ['demo', 'Flight.Data'])
  assert.deepEqual(parseTableName('"a""b".c'), ['a"b', 'c'])
  assert.deepEqual(parseTableName('Größe.表'), ['Größe', '表'])
})

test('refuses a path as a table name with the message and a name to use', () => {
  assert.throws(() => parseTableName('../../etc'), {
    code: 'NAME_INVALID',
    message: 'table name "../../etc": a part may not be "..", or contain "/"',
    fix: 'namespace.table, for example demo.etc',
  })
})

test('refuses names that are no safe folder names', () => {
  for (const [text, why] of [
    ['', 'a part may not be empty'],
    ['demo..x', 'a part may not be empty'],
    ['demo.', 'a part may not be empty'],
    ['demo.".."', 'a part may not be ".."'],
    ['demo."."', 'a part may not be "."'],
    ['a/b', 'a part may not contain "/"'],
    ['a\\b', 'a part may not contain "\\"'],
    ['demo.a\0b', 'a part may not contain control or bidirectional characters'],
    ['demo.a\u202eb', 'a part may not contain control or bidirectional characters'],
    ['demo."x', 'the " at 6 is not closed'],
    ['"a"b.c', '"." must follow the part that ends at 3'],
    [`demo.${'é'.repeat(128)}`, 'a part may not be longer than 255 bytes'],
    ['a.b.c.d.e.f.g.h.i', 'at most 8 parts'],
  ] as const) {
    assert.throws(
      () => parseTableName(text),
      (error) => {
        assert.ok(isSluiceError(error, 'NAME_INVALID'), text)
        assert.ok(error.message.endsWith(`: ${why}`), error.message)
        assert.ok(!error.message.includes('\0') && !error.message.includes('\u202e'))
        return true
      },
    )
  }
  assert.deepEqual(parseTableName(`demo.${'é'.repeat(127)}`).at(-1)?.length, 127)
})

test('checks parts that did not come from text', () => {
  assert.throws(
    () => {
      checkTableName(['demo', '..'])
    },
    { code: 'NAME_INVALID' },
  )
  assert.throws(
    () => {
      checkTableName(['flights'])
    },
    { code: 'NAME_INVALID' },
  )
  checkTableName(['demo', 'a.b'])
})

test('reads back every name it writes', () => {
  const part = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter((text) => {
    try {
      checkTableName(['x', text])
      return true
    } catch {
      return false
    }
  })
  fc.assert(
    fc.property(fc.array(part, { minLength: 2, maxLength: 8 }), (parts) => {
      assert.deepEqual(parseTableName(formatTableName(parts)), parts)
    }),
    { numRuns: 1000 },
  )
})

test('tells names that would share a folder where case does not count', () => {
  assert.equal(differsOnlyByCase(['demo', 'Flights'], ['demo', 'flights']), true)
  assert.equal(differsOnlyByCase(['demo', 'flights'], ['demo', 'flights']), false)
  assert.equal(differsOnlyByCase(['a', 'bc'], ['ab', 'c']), false)
})
