import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  decimalValue,
  int32Value,
  int64Value,
  readDecimalValue,
  readInt32Value,
  readInt64Value,
} from '../../../src/catalog/iceberg/format/single-value.ts'

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

test('single values have the bytes of the Iceberg specification', () => {
  assert.equal(hex(int32Value(34)), '22000000')
  assert.equal(hex(int64Value(-1n)), 'ffffffffffffffff')
  assert.equal(hex(decimalValue(0n)), '00')
  assert.equal(hex(decimalValue(1420n)), '058c')
  assert.equal(hex(decimalValue(127n)), '7f')
  assert.equal(hex(decimalValue(128n)), '0080', 'a sign bit of its own')
  assert.equal(hex(decimalValue(-128n)), '80')
  assert.equal(hex(decimalValue(-129n)), 'ff7f')
})

test('single values are read back', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(10n ** 38n), max: 10n ** 38n }), (value) => {
      assert.equal(readDecimalValue(decimalValue(value)), value)
      const long = BigInt.asIntN(64, value)
      assert.equal(readInt64Value(int64Value(long)), long)
      const int = Number(BigInt.asIntN(32, value))
      assert.equal(readInt32Value(int32Value(int)), int)
      assert.equal(readInt64Value(int32Value(int)), BigInt(int), 'a widened column')
    }),
  )
})
