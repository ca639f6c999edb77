import { deepEqual, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { bucket, offset } from '../../../src/core/ids.ts'
import { planSplits } from '../../../src/sink/round/plan-splits.ts'
import type { BucketEnds, BucketRange } from '../../../src/source/ports.ts'

function ranges(
  ...ends: readonly (number | readonly [earliest: number, end: number])[]
): BucketRange[] {
  return ends.map((range, i) => {
    const [earliest, end] = typeof range === 'number' ? [0, range] : range
    return { bucket: bucket(i), earliest: offset(BigInt(earliest)), end: offset(BigInt(end)) }
  })
}

function lake(...ends: readonly (number | undefined)[]): BucketEnds {
  return new Map(
    ends.flatMap((end, i) =>
      end === undefined ? [] : [[bucket(i), offset(BigInt(end))] as const],
    ),
  )
}

function plan(logs: readonly BucketRange[], ends: BucketEnds): string[] {
  return planSplits('demo.clicks', logs, ends).map(
    (split) => `${split.bucket}:[${split.start},${split.stop})${split.isFirst ? ' first' : ''}`,
  )
}

test('T-02 plans one split per bucket that has something new', () => {
  const logs = ranges(1000, 1200, 950, 1100)
  deepEqual(plan(logs, lake(990, 1190, 945, 1090)), [
    '0:[990,1000)',
    '1:[1190,1200)',
    '2:[945,950)',
    '3:[1090,1100)',
  ])
  deepEqual(plan(logs, lake(990, 1190, 950, 1090)), [
    '0:[990,1000)',
    '1:[1190,1200)',
    '3:[1090,1100)',
  ])
  deepEqual(plan(logs, lake(1000, 1200, 950, 1100)), [])
})

test('T-14 reads exactly what came since the last commit', () => {
  deepEqual(plan(ranges(100), lake(undefined)), ['0:[0,100) first'])
  deepEqual(plan(ranges(100), lake(100)), [])
  deepEqual(plan(ranges(350), lake(100)), ['0:[100,350)'])
})

test('T-13 a bucket without an end starts at the oldest record, which is not an end of 0', () => {
  deepEqual(plan(ranges([40, 100]), lake(undefined)), ['0:[40,100) first'])
  deepEqual(plan(ranges(100), lake(0)), ['0:[0,100)'])
  deepEqual(plan(ranges(0, [7, 7]), lake(undefined, undefined)), [])
})

test('stops when the log has lost records that are not in the lake', () => {
  throws(() => plan(ranges(10, [60, 100]), lake(10, 50)), {
    code: 'LOG_TRUNCATED',
    message: 'demo.clicks bucket 1: the log has lost 10 records after offset 50',
    details: { table: 'demo.clicks', bucket: 1, lakeEnd: 50n, earliest: 60n, missing: 10n },
  })
  // The same where nothing new has come: what is lost is lost.
  throws(() => plan(ranges([60, 60]), lake(50)), { code: 'LOG_TRUNCATED' })
})

test('stops when the lake holds more than the log ever had', () => {
  throws(() => plan(ranges(99), lake(100)), {
    code: 'SOURCE_BEHIND',
    message: 'demo.clicks bucket 0: the lake ends at offset 100, the log at 99',
  })
})

test('stops when the lake holds a bucket that the table does not have', () => {
  throws(() => plan(ranges(1, 1), lake(1, 1, 1)), {
    code: 'TABLE_REPLACED',
    message: 'demo.clicks: the lake holds bucket 2, the table has 2 buckets',
  })
})
