import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { batchBytes } from '../../../src/core/columns/column.ts'
import { batchToRows, rowsToBatch } from '../../../src/core/columns/rows.ts'
import { isSluiceError } from '../../../src/core/errors.ts'
import { bucket, millis, offset } from '../../../src/core/ids.ts'
import { BucketLog } from '../../../src/source/embedded/bucket-log.ts'
import { numbers, valuesOf } from '../../property/source/embedded-world.ts'

function logOf(...sizes: readonly number[]): BucketLog {
  const log = new BucketLog({ table: 'demo.numbers', bucket: bucket(2), start: offset(0n) })
  for (const size of sizes) append(log, size)
  return log
}

function append(log: BucketLog, size: number): void {
  const from = Number(log.end)
  const values = Array.from({ length: size }, (_, i) => from + i)
  log.append(numbers(values), millis(from), { bytes: size, segments: 0 })
}

function read(log: BucketLog, start: bigint, stop: bigint, bytesMax = 2 ** 20): number[] {
  let next = start
  const values: number[] = []
  for (const { baseOffset, records } of log.read(offset(start), offset(stop), bytesMax)) {
    assert.equal(baseOffset, next)
    next += BigInt(records.length)
    values.push(...valuesOf(records))
  }
  return values
}

const upTo = (from: number, to: number): number[] =>
  Array.from({ length: to - from }, (_, i) => from + i)

describe('BucketLog', () => {
  test('T-13 gives contiguous offsets from 0 on', () => {
    const log = logOf(100)
    assert.deepEqual(log.range, { bucket: 2, earliest: 0n, end: 100n })
    append(log, 250)
    assert.deepEqual(log.range, { bucket: 2, earliest: 0n, end: 350n })
    assert.deepEqual(read(log, 0n, 350n), upTo(0, 350))
  })

  test('T-14 reads exactly what was appended since', () => {
    const log = logOf(100)
    assert.deepEqual(read(log, 0n, 100n), upTo(0, 100))
    assert.deepEqual(read(log, 100n, log.end), [])
    append(log, 250)
    assert.deepEqual(read(log, 100n, 350n), upTo(100, 350))
  })

  test('reads any range, in slices of bounded size', () => {
    const log = logOf(3, 1, 64, 7)
    for (let start = 0; start <= 75; start += 5) {
      for (let stop = start; stop <= 75; stop += 7) {
        assert.deepEqual(read(log, BigInt(start), BigInt(stop), 80), upTo(start, stop))
      }
    }
    const slices = [...log.read(offset(0n), offset(75n), 80)]
    assert.ok(slices.every(({ records }) => records.length <= 10))
    assert.equal([...log.read(offset(0n), offset(75n), 1)].length, 75)
  })

  test('bounds what one large append gives, also where sizes of records differ', () => {
    const log = logOf()
    const sizes = Array.from({ length: 3000 }, (_, i) => (i % 97 === 0 ? 9_000 : i % 5))
    const fields = [{ name: 'v', type: { kind: 'bytes', nullable: false } }] as const
    const records = rowsToBatch(
      fields,
      sizes.map((size) => ({ v: new Uint8Array(size) })),
    )
    log.append(records, millis(0), { bytes: batchBytes(records), segments: 0 })
    const bytesMax = 20_000
    const slices = [...log.read(offset(0n), log.end, bytesMax)].map((each) => each.records)
    assert.ok(slices.length >= batchBytes(records) / bytesMax)
    assert.ok(slices.every((slice) => batchBytes(slice) <= bytesMax))
    const found = slices.flatMap((slice) =>
      batchToRows(fields, slice).map(({ v }) => (v instanceof Uint8Array ? v.length : -1)),
    )
    assert.deepEqual(found, sizes)
  })

  test('tells when the log took the records', () => {
    const times = [...logOf(2, 3).read(offset(1n), offset(4n), 100)].map((each) => each.committedAt)
    assert.deepEqual(times, [0, 2])
  })

  test('trims whole segments below the committed end only', () => {
    const log = logOf(10, 10, 10)
    assert.equal(log.trim(), 0)
    log.commit(offset(25n))
    assert.equal(log.trim(), 20)
    assert.deepEqual(log.range, { bucket: 2, earliest: 20n, end: 30n })
    log.commit(offset(5n))
    assert.equal(log.committed, 25n)
  })

  test('keeps what is pinned until the last pin is released', () => {
    const log = logOf(10, 10, 10)
    const first = log.pin(offset(5n))
    const second = log.pin(offset(12n))
    log.commit(offset(30n))
    assert.equal(log.trim(), 0)
    assert.deepEqual(read(log, 5n, 30n), upTo(5, 30))
    first.release()
    first.release()
    assert.equal(log.trim(), 10)
    second.release()
    assert.equal(log.trim(), 20)
    assert.equal(log.range.earliest, 30n)
  })

  test('refuses an offset that is trimmed, also in the middle of a read', () => {
    const log = logOf(10, 10)
    const reading = log.read(offset(0n), offset(20n), 2 ** 20)
    assert.equal(reading.next().done, false)
    log.commit(offset(20n))
    log.trim()
    const truncated = (error: unknown): boolean => {
      assert.ok(isSluiceError(error, 'LOG_TRUNCATED'))
      assert.equal(error.details['earliest'], 20n)
      return true
    }
    assert.throws(() => reading.next(), truncated)
    assert.throws(() => read(log, 0n, 5n), truncated)
    assert.throws(() => log.pin(offset(19n)), truncated)
  })

  test('refuses to read or commit what it has not seen', () => {
    const log = logOf(10)
    const behind = (error: unknown): boolean => isSluiceError(error, 'SOURCE_BEHIND')
    assert.throws(() => read(log, 0n, 11n), behind)
    assert.throws(() => {
      log.commit(offset(11n))
    }, behind)
  })

  test('frees shared memory with the last of its segments', () => {
    const log = logOf()
    const holding = { bytes: 80, segments: 0 }
    log.append(numbers([1]), millis(0), holding)
    log.append(numbers([2]), millis(0), holding)
    log.commit(offset(1n))
    assert.equal(log.trim(), 0)
    log.commit(offset(2n))
    assert.equal(log.trim(), 80)
  })
})
