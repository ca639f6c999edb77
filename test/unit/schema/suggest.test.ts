import assert from 'node:assert/strict'
import { test } from 'node:test'
import { didYouMean, nearest } from '../../../src/core/suggest.ts'

test('suggests the nearest name, and none that is far', () => {
  const options = ['--table', '--buckets', '--warehouse']
  assert.equal(nearest('--tabel', options), '--table')
  assert.equal(nearest('--bucket', options), '--buckets')
  assert.equal(nearest('--WAREHOUSE', options), '--warehouse')
  assert.equal(nearest('--quiet', options), undefined)
  assert.equal(nearest('x', []), undefined)
  assert.equal(didYouMean('flights.njson', ['flights.ndjson']), '. Did you mean flights.ndjson?')
  assert.equal(didYouMean('zzz', ['flights.ndjson']), '')
})
