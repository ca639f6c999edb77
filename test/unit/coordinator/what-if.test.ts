import { deepEqual, equal, match } from 'node:assert/strict'
import { test } from 'node:test'
import {
  bytesSinceCommit,
  freshnessForTarget,
  lagRange,
  roundSeconds,
} from '../../../src/coordinator/what-if.ts'

const mb = 1_000_000
const perReader = { bytesPerSecondPerReader: 30 * mb }

test('T-71 predicts a round from data, buckets and rate', () => {
  equal(roundSeconds({ bytes: 14_400 * mb, buckets: 16, readers: 16, ...perReader }), 30)
  equal(roundSeconds({ bytes: 36_000 * mb, buckets: 12, readers: 16, ...perReader }), 100)
  equal(roundSeconds({ bytes: 14_400 * mb, buckets: 16, readers: 4, ...perReader }), 120)
})

test('T-71 the data of a round is what was written since the last commit', () => {
  const seconds = [60, 120].map((since) => {
    const bytes = bytesSinceCommit(240 * mb, since)
    return roundSeconds({ bytes, buckets: 16, readers: 16, ...perReader })
  })
  deepEqual(seconds, [30, 60])
})

test('T-47 plans ten minutes with seven of freshness', () => {
  const plan = freshnessForTarget(600, 90)
  deepEqual(plan.kind === 'reachable' && [plan.freshness, plan.peak, plan.period], [420, 600, 510])
  match(plan.advice, /margin/)
})

test('T-47 says that a target of two rounds or less is not reachable', () => {
  for (const target of [180, 100]) {
    const plan = freshnessForTarget(target, 90)
    equal(plan.kind, 'unreachable')
    match(plan.advice, /not reachable, needs rounds under .*target\/2/)
  }
})

test('T-44 T-45 the lag of an idle job swings between R and F + 2R', () => {
  deepEqual(lagRange(300, 90), { floor: 90, peak: 480, period: 390 })
})
