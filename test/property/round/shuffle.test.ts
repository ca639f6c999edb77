import { equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import type { Chance } from '../../../src/core/ports.ts'
import { seededChance } from '../../../src/core/system.ts'
import { shuffle } from '../../../src/sink/round/shuffle.ts'
import { fixedOrder } from '../../support/tiering-world.ts'

const buckets = [0, 1, 2, 3]

/** How far counts are from being even, as the sum of squares that has a χ² distribution. */
function chiSquare(counts: readonly number[]): number {
  const expected = counts.reduce((a, b) => a + b) / counts.length
  return counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)
}

/** How often the reader at each place got bucket 0: readers take splits in their order. */
function heavyBucketPerReader(chance: Chance): number[] {
  const counts = [0, 0, 0, 0]
  for (let round = 0; round < 4_000; round += 1) {
    const reader = shuffle(buckets, chance).indexOf(0)
    counts[reader] = (counts[reader] ?? 0) + 1
  }
  return counts
}

test('T-08 spreads the heavy bucket evenly over readers', () => {
  const counts = heavyBucketPerReader(seededChance(1))
  for (const count of counts) ok(Math.abs(count - 1_000) <= 110, String(counts))
  ok(chiSquare(counts) < 16.27, String(counts))
})

test('T-08 all 24 orders come about equally often', () => {
  const chance = seededChance(1)
  const counts = new Map<string, number>()
  for (let round = 0; round < 24_000; round += 1) {
    const name = shuffle(buckets, chance).join('')
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  equal(counts.size, 24)
  ok(chiSquare([...counts.values()]) < 49.73)
})

test('T-08 the measure finds a shuffle that does not shuffle', () => {
  ok(chiSquare(heavyBucketPerReader(fixedOrder)) > 16.27)
})
