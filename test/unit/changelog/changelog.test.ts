import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Row } from '../../../src/core/columns/rows.ts'
import { isSluiceError } from '../../../src/core/errors.ts'
import { Bucket, type Change, lastRow, row } from './support.ts'

const put = (...given: Parameters<typeof row>): Change => ['put', row(...given)]
const remove = (id: number): Change => ['delete', row(id, null, null)]
const before = (...given: Parameters<typeof row>): Change => ['before', row(...given)]

function short(bucket: Bucket): readonly string[] {
  return bucket.log.map(([symbol, { id, name, status }]) =>
    [symbol, (id as bigint).toString(), name ?? '-', status ?? '-'].map(String).join(' '),
  )
}

describe('the changelog', () => {
  test('T-17: the article’s seven events, one offset each, leave three rows', () => {
    const bucket = new Bucket()
    bucket.apply([put(1, 'Alice', 'active'), put(2, 'Bob', 'active'), put(3, 'Carol', 'trial')])
    bucket.apply([put(3, 'Carol', 'active')])
    bucket.apply([remove(2)])
    bucket.apply([put(4, 'Dan', 'active')])
    assert.deepEqual(short(bucket), [
      '+I 1 Alice active',
      '+I 2 Bob active',
      '+I 3 Carol trial',
      '-U 3 Carol trial',
      '+U 3 Carol active',
      '-D 2 Bob active',
      '+I 4 Dan active',
    ])
    assert.equal(bucket.rows.size, 3)
  })

  test('a batch is taken in order: several changes of one key are several events', () => {
    const bucket = new Bucket()
    const ends = bucket.apply([put(1, 'a', 'x'), put(1, 'a', 'y'), remove(1), remove(1)])
    assert.deepEqual(short(bucket), ['+I 1 a x', '-U 1 a x', '+U 1 a y', '-D 1 a y'])
    assert.deepEqual(ends, [1, 3, 4, 4], 'the delete of nothing takes no offset')
    assert.equal(bucket.rows.size, 0)
  })

  test('rewriting an equal row is an update, as in Fluss', () => {
    const bucket = new Bucket()
    bucket.apply([put(1, 'a', 'x'), put(1, 'a', 'x')])
    assert.deepEqual(short(bucket), ['+I 1 a x', '-U 1 a x', '+U 1 a x'])
  })

  test('the row before an update and the row after it are one update', () => {
    const bucket = new Bucket()
    bucket.apply([put(1, 'a', 'x'), before(1, 'a', 'x'), put(1, 'a', 'y')])
    assert.deepEqual(short(bucket), ['+I 1 a x', '-U 1 a x', '+U 1 a y'])
  })

  test('the row before an update of another key deletes', () => {
    const bucket = new Bucket()
    bucket.apply([put(1, 'a', 'x'), before(1, 'a', 'x'), put(2, 'a', 'x')])
    assert.deepEqual(short(bucket), ['+I 1 a x', '-D 1 a x', '+I 2 a x'])
  })

  test('image wal has the row after an update alone, and does not look for the one before', () => {
    const bucket = new Bucket({ ...lastRow, image: 'wal' })
    bucket.apply([put(1, 'a', 'x'), put(1, 'a', 'y'), remove(1), remove(2)])
    assert.deepEqual(short(bucket), ['+U 1 a x', '+U 1 a y', '-D 1 a y'])
  })
})

describe('merge engines', () => {
  test('first_row keeps the first row; later ones and deletes are nothing', () => {
    const bucket = new Bucket({
      engine: { kind: 'first_row' },
      image: 'full',
      deletes: 'ignore',
    })
    const ends = bucket.apply([put(1, 'a', 'x'), put(1, 'b', 'y'), remove(1)])
    assert.deepEqual(short(bucket), ['+I 1 a x'])
    assert.deepEqual(ends, [1, 1, 1])
  })

  test('versioned takes a row whose version is not lower; no version is the lowest', () => {
    const bucket = new Bucket({
      engine: { kind: 'versioned', column: 'version' },
      image: 'full',
      deletes: 'ignore',
    })
    bucket.apply([put(1, 'a', 'x', 5), put(1, 'b', 'y', 4), put(1, 'c', 'z', 5)])
    bucket.apply([put(1, 'd', 'w'), put(2, 'e', 'v'), put(2, 'f', 'u', -1)])
    assert.deepEqual(short(bucket), [
      '+I 1 a x',
      '-U 1 a x',
      '+U 1 c z',
      '+I 2 e v',
      '-U 2 e v',
      '+U 2 f u',
    ])
  })

  test('deletes that are disabled are refused, and nothing of their batch counts', () => {
    const bucket = new Bucket({ ...lastRow, deletes: 'disable' })
    assert.throws(
      () => bucket.apply([put(1, 'a', 'x'), remove(1)]),
      (error) => isSluiceError(error, 'RECORD_REFUSED') && error.details['row'] === 1,
    )
    assert.equal(bucket.log.length, 0)
  })
})

describe('columns that keep their values', () => {
  const keepStatus = (without: 'null' | 'refuse'): Parameters<Bucket['apply']>[1] => ({
    columns: [undefined, undefined, Uint8Array.of(0b1), undefined],
    without,
  })

  test('come from the row there is', () => {
    const bucket = new Bucket()
    bucket.apply([put(1, 'a', 'x')])
    bucket.apply([put(1, 'b', null)], keepStatus('refuse'))
    assert.deepEqual(short(bucket).slice(1), ['-U 1 a x', '+U 1 b x'])
  })

  test('also from one of the same batch, and are null or refused where there is none', () => {
    const bucket = new Bucket()
    bucket.apply([put(1, 'b', null)], keepStatus('null'))
    assert.deepEqual(short(bucket), ['+I 1 b -'])
    assert.throws(
      () => bucket.apply([put(2, 'b', null)], keepStatus('refuse')),
      (error) =>
        isSluiceError(error, 'RECORD_REFUSED') &&
        error.details['reason'] === 'no-old-value' &&
        error.details['column'] === 'status',
    )
    const second: Row = row(3, 'b', null)
    bucket.apply([put(3, 'a', 'x'), ['put', second]], {
      columns: [undefined, undefined, Uint8Array.of(0b10), undefined],
      without: 'refuse',
    })
    assert.deepEqual(short(bucket).at(-1), '+U 3 b x')
  })
})
