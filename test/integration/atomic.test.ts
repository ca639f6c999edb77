import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tableFromArrays } from 'apache-arrow'
import { openEmbeddedSource, openLake, startTiering } from '../../src/index.ts'
import { rowsToBatch } from '../../src/core/columns/rows.ts'
import { bucketsOf } from '../../src/source/bucketing/buckets.ts'
import { withWarehouse } from '../unit/cli/lake-fixture.ts'

const rounds = 50
const buckets = 4
const rowsInBucket = 1000
const rowsInRound = buckets * rowsInBucket

/** For each bucket an INT that hashes to it. */
function keyOfEachBucket(): readonly number[] {
  const fields = [{ name: 'k', type: { kind: 'int', nullable: false } }] as const
  const candidates = Array.from({ length: 100 }, (_, k) => k)
  const [column] = rowsToBatch(
    fields,
    candidates.map((k) => ({ k })),
  ).columns
  assert.ok(column !== undefined)
  const found = bucketsOf(column, buckets, 'iceberg')
  return Array.from({ length: buckets }, (_, bucket) => found.indexOf(bucket))
}

test('T-12 shows a round whole or not at all', async () => {
  await withWarehouse(async (folder) => {
    await using lake = await openLake({ warehouse: folder })
    await using source = await openEmbeddedSource({ resumeFrom: lake })
    const table = await source.createTable('demo.atomic', {
      columns: { id: 'INT NOT NULL', k: 'INT NOT NULL' },
      buckets,
      bucketKey: 'k',
      freshness: '1h',
    })
    await using job = startTiering({ source, lake })
    const keys = keyOfEachBucket()
    const k = Int32Array.from({ length: rowsInRound }, (_, i) => keys[i % buckets] ?? 0)
    let isWriting = true

    const write = async (): Promise<void> => {
      try {
        for (let round = 0; round < rounds; round += 1) {
          const id = Int32Array.from({ length: rowsInRound }, (_, i) => round * rowsInRound + i)
          const { ends } = await table.append(tableFromArrays({ id, k }))
          assert.equal(ends.size, buckets)
          await job.drain()
        }
      } finally {
        isWriting = false
      }
    }
    /** Another reader: it knows the place of the lake and nothing else. */
    const count = async (): Promise<number> => {
      await using other = await openLake({ warehouse: folder })
      let rows = 0
      for await (const batch of (await other.table('demo.atomic')).batches({ columns: ['id'] })) {
        rows += batch.numRows
      }
      return rows
    }
    const counts: number[] = []
    const read = async (): Promise<void> => {
      while (isWriting) counts.push(await count())
      counts.push(await count())
    }
    await Promise.all([write(), read()])

    assert.deepEqual(
      counts.filter((each) => each % rowsInRound !== 0),
      [],
    )
    assert.deepEqual(
      counts,
      [...counts].sort((a, b) => a - b),
    )
    assert.equal(counts.at(-1), rounds * rowsInRound)
    assert.ok(new Set(counts).size > 5, `the reader saw ${String(new Set(counts).size)} states`)

    // Each round is one snapshot that adds all buckets.
    let snapshots = 0
    for await (const { summary } of (await lake.table('demo.atomic')).snapshots()) {
      assert.equal(summary['added-records'], String(rowsInRound))
      snapshots += 1
    }
    assert.equal(snapshots, rounds)
  })
})
