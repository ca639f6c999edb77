import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isSluiceError } from '../../../src/core/errors.ts'
import { type JsonValue, parseJson, stringifyJson } from '../../../src/core/json64.ts'

const limits = { name: 'v7.metadata.json' }
const parse = (text: string | Uint8Array): JsonValue => parseJson(text, limits)

function failure(text: string | Uint8Array): { message: string; byte: unknown } {
  try {
    parse(text)
  } catch (error) {
    assert.ok(isSluiceError(error, 'DATA_CORRUPT'))
    return { message: error.message, byte: error.details['byte'] }
  }
  throw new Error(`${String(text)} was taken`)
}

test('integers that a number cannot hold become bigints, others stay numbers', () => {
  assert.equal(parse('9007199254740991'), 9007199254740991)
  assert.equal(parse('9007199254740992'), 9007199254740992n)
  assert.equal(parse('-9223372036854775808'), -(2n ** 63n))
  assert.equal(parse('9223372036854775807'), 2n ** 63n - 1n)
  assert.equal(parse('1.5e3'), 1500)
  assert.ok(Object.is(parse('-0'), -0))
})

test('every int64 survives being written and read', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (value) => {
      const back = parse(stringifyJson({ id: value }))
      assert.equal(stringifyJson(back), `{"id":${value.toString()}}`)
    }),
  )
})

test('what JSON.parse reads without large integers is read the same', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 6 }), fc.constantFrom('', ' ', '\n\t'), (text, space) => {
      const expected: unknown = JSON.parse(text)
      const got = parse(space + text + space)
      // The exact parser keeps large integers and the sign of zero; compare by the loose form.
      assert.deepEqual(JSON.parse(stringifyJson(got)), expected)
    }),
  )
})

test('every finite number survives being written and read, and stays a number', () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
      assert.ok(Object.is(parse(stringifyJson(value)), value))
    }),
  )
})

test('keys of the prototype are data', () => {
  const value = parse('{"__proto__":{"polluted":1},"constructor":2}')
  assert.equal(stringifyJson(value), '{"__proto__":{"polluted":1},"constructor":2}')
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined)
  const bare = parse('{"a":1}')
  assert.ok(typeof bare === 'object' && bare !== null)
  for (const name of Object.getOwnPropertyNames(Object.prototype)) assert.ok(!(name in bare), name)
})

test('an error names the byte where the text stops being JSON', () => {
  assert.deepEqual(failure('{"a":1,'), {
    message: 'v7.metadata.json: not JSON from byte 7 on (file is cut)',
    byte: 7,
  })
  assert.equal(failure('{"ä":x}').byte, 6, 'bytes, not characters')
  assert.equal(failure('').byte, 0)
  assert.equal(failure('[1,]').byte, 3)
  assert.equal(failure('[01]').byte, 2)
  assert.equal(failure('{"a":1}}').byte, 7)
  assert.equal(failure('"ab\\x"').byte, 3)
  assert.equal(failure('"a\\\\\\u12"').byte, 4)
  assert.equal(failure('"a\nb"').byte, 2)
  assert.equal(failure('{"a":1,"a":2}').byte, 7)
  assert.equal(failure('nul').byte, 0)
  assert.equal(failure('1e999').byte, 0)
  assert.match(failure(`${' '.repeat(4096)}{`).message, /byte 4,097/)
})

test('bytes that are not UTF-8 are refused, and U+FFFD itself is not', () => {
  assert.equal(failure(Uint8Array.of(0x22, 0x61, 0xff, 0x22)).byte, 2)
  assert.equal(parse(Buffer.from('"\ufffd"')), '\ufffd')
})

test('deep nesting ends in an error and not in a stack overflow', () => {
  assert.match(failure('['.repeat(100_000)).message, /nested more than 200 deep/)
})
