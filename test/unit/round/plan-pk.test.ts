import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { bucket, offset } from '../../../src/core/ids.ts'
import type { Split } from '../../../src/sink/ports.ts'
import { planSplits } from '../../../src/sink/round/plan-splits.ts'
import type { KvSnapshot } from '../../../src/source/ports.ts'

type LogRange = readonly [earliest: number, end: number]
type Known = readonly (number | undefined)[]

/** What is planned for buckets with these logs, ends in the lake, and offsets of KV snapshots. */
function plan(logs: readonly LogRange[], lake: Known, snapshots: Known): readonly string[] {
  const ranges = logs.map(([earliest, end], at) => ({
    bucket: bucket(at),
    earliest: offset(BigInt(earliest)),
    end: offset(BigInt(end)),
  }))
  const ends = new Map(known(lake))
  const taken = known(snapshots).map(([of, at]): [typeof of, KvSnapshot] => [
    of,
    { id: BigInt(of) + 1n, bucket: of, offset: at },
  ])
  return planSplits('demo.customers', ranges, ends, new Map(taken)).map(shown)
}

function known(offsets: Known) {
  return offsets.flatMap((at, of) =>
    at === undefined ? [] : [[bucket(of), offset(BigInt(at))] as const],
  )
}

function shown(split: Split): string {
  const { kind, bucket: of, start, stop } = split
  return kind === 'snapshot'
    ? `${of}: snapshot at ${stop}, origin ${start}`
    : `${of}: log [${start},${stop})`
}

test('T-19 the first round of a bucket with a KV snapshot is the snapshot and nothing else', () => {
  deepEqual(plan([[0, 20_000]], [undefined], [18_000]), ['0: snapshot at 18000, origin 18000'])
  // Nor does it matter what the log has lost before it.
  deepEqual(plan([[17_000, 20_000]], [undefined], [18_000]), ['0: snapshot at 18000, origin 18000'])
})

test('T-20 later rounds read the changelog from the offset of the snapshot on', () => {
  deepEqual(plan([[0, 20_000]], [18_000], [18_000]), ['0: log [18000,20000)'])
  deepEqual(plan([[0, 20_000]], [18_000], [19_500]), ['0: log [18000,20000)'], 'a newer one')
  deepEqual(plan([[0, 20_000]], [20_000], [19_500]), [])
})

test('T-20 a bucket that is new later starts with a snapshot of its own', () => {
  const logs: readonly LogRange[] = [
    [0, 20_000],
    [0, 300],
  ]
  deepEqual(plan(logs, [18_000, undefined], [18_000, 250]), [
    '0: log [18000,20000)',
    '1: snapshot at 250, origin 250',
  ])
})

test('T-24 snapshot or log is decided bucket by bucket', () => {
  const log: LogRange = [0, 1000]
  deepEqual(
    plan(
      [log, [40, 1000], log, log],
      [undefined, undefined, 1000, 700],
      [900, undefined, 900, 900],
    ),
    ['0: snapshot at 900, origin 900', '1: log [40,1000)', '3: log [700,1000)'],
  )
})

test('T-24 an end of 0 in the lake is an end, and an empty snapshot is a snapshot', () => {
  deepEqual(plan([[0, 10]], [0], [5]), ['0: log [0,10)'])
  deepEqual(plan([[0, 0]], [undefined], [0]), ['0: snapshot at 0, origin 0'])
})
