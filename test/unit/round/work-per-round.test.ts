import assert from 'node:assert/strict'
import { test } from 'node:test'
import { batchBytes } from '../../../src/core/columns/column.ts'
import { rowsToBatch } from '../../../src/core/columns/rows.ts'
import type { Bucket, Offset } from '../../../src/core/ids.ts'
import { planSplits } from '../../../src/sink/round/plan-splits.ts'
import { EmbeddedSource } from '../../../src/source/embedded/embedded-source.ts'
import { stillClock } from '../../property/source/embedded-world.ts'

const rowsPerRound = 1000
const fields = [
  { name: 'id', type: { kind: 'bigint', nullable: false } },
  { name: 'name', type: { kind: 'string', nullable: true } },
] as const

test('T-15 costs per round what was written, not what there is', async () => {
  const source = new EmbeddedSource({ clock: stillClock, logMemoryBytes: 2 ** 24 })
  const table = source.createTable({
    name: 'demo.rounds',
    bucketCount: 4,
    freshnessMs: 1000,
    schema: { fields },
  })
  const ends = new Map<Bucket, Offset>()
  const work: { readonly bytes: number; readonly rows: number; readonly held: number }[] = []
  for (let round = 0; round < 1000; round += 1) {
    const rows = Array.from({ length: rowsPerRound }, (_, i) => {
      const id = round * rowsPerRound + i
      return { id, name: `record ${String(id).padStart(9, '0')}` }
    })
    await source.append(table.id, rowsToBatch(fields, rows))
    const held = source.heldBytes
    let bytes = 0
    let read = 0
    for (const split of planSplits(table.name, await source.ranges(table.id), ends)) {
      const batches = source.read(table.id, split.bucket, split.start, split.stop)
      for await (const { records } of batches) {
        bytes += batchBytes(records)
        read += records.length
      }
      ends.set(split.bucket, split.stop)
    }
    source.committed(table.id, ends)
    work.push({ bytes, rows: read, held })
  }
  assert.ok(work.every(({ rows }) => rows === rowsPerRound))
  const [first, tenth, last] = [work[0], work[9], work[999]]
  assert.ok(first !== undefined && tenth !== undefined && last !== undefined)
  for (const later of [tenth, last]) {
    assert.ok(Math.abs(later.bytes / first.bytes - 1) <= 0.01, `${later.bytes} of ${first.bytes}`)
    // What is in the lake is held no longer, so memory does not follow history either.
    assert.ok(later.held <= 2 * first.held, `${later.held} of ${first.held}`)
  }
})
