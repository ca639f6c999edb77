import assert from 'node:assert/strict'
import type { ObjectStore } from '../../src/catalog/store/object-store.ts'
import { verifyLake } from '../../src/verify/verify-lake.ts'

/**
 * Fails unless the lake's one table holds this many rows, by an audit that shares no code with the
 * writer: offsets of every bucket without gap or overlap, read from the data files.
 */
export async function requireWhole(
  store: ObjectStore,
  warehouse: string,
  rows: number,
): Promise<void> {
  const [report, ...more] = await verifyLake(store, warehouse)
  assert.equal(more.length, 0, 'one table')
  assert.deepEqual(report?.faults, [])
  assert.deepEqual(report.declaredGaps, [])
  assert.equal(report.rows, BigInt(rows))
}
