import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSluiceError } from '../../../src/core/errors.ts'
import { chooseEncoder } from '../../../src/sink/parquet/index.ts'
import { withIds } from '../../property/parquet/rows.ts'

const flat = withIds([{ kind: 'int', nullable: true }])
const nested = withIds([
  { kind: 'array', element: { kind: 'int', nullable: true }, nullable: true },
])

test('the encoder is the one named, or else the fastest that can', () => {
  assert.equal(chooseEncoder(undefined, nested).name, 'columnar')
  assert.equal(chooseEncoder('parquet-wasm', nested).name, 'parquet-wasm')
  assert.equal(chooseEncoder('parquetjs-lite', flat).name, 'parquetjs-lite')
})

test('an encoder that cannot write the columns says which and why', () => {
  assert.throws(
    () => chooseEncoder('parquetjs-lite', nested),
    (error) =>
      isSluiceError(error, 'SCHEMA_UNSUPPORTED') && /parquetjs-lite.*c0/.test(error.message),
  )
})
