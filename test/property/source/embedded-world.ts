import assert from 'node:assert/strict'
import { columnBuilder } from '../../../src/core/columns/builder.ts'
import type { ColumnBatch } from '../../../src/core/columns/column.ts'
import { type Bucket, millis, type Offset, offset } from '../../../src/core/ids.ts'
import type { Clock } from '../../../src/core/ports.ts'
import { EmbeddedSource } from '../../../src/source/embedded/embedded-source.ts'
import type { InputsProgress, SourceTable } from '../../../src/source/ports.ts'

export const stillClock: Clock = {
  now: () => millis(1_000),
  monotonic: () => millis(0),
  sleep: () => Promise.resolve(),
}

/** One required BIGINT column `n` with the numbers given. */
export function numbers(values: readonly number[]): ColumnBatch {
  const builder = columnBuilder({ kind: 'bigint', nullable: false })
  assert.ok(builder.layout === 'int64')
  for (const value of values) builder.appendSafe(value)
  return { length: values.length, columns: [builder.finish()] }
}

export function valuesOf(batch: ColumnBatch): readonly number[] {
  const column = batch.columns[0]
  assert.ok(column?.layout === 'int64')
  return Array.from(column.values, Number)
}

export type World = { readonly source: EmbeddedSource; readonly table: SourceTable }

/** What survives a crash: the rows of each bucket, and the progress committed with them. */
export type Lake = {
  readonly rows: number[][]
  ends: Map<Bucket, Offset>
  inputs: InputsProgress
}

export function emptyLake(buckets: number): Lake {
  return { rows: Array.from({ length: buckets }, () => []), ends: new Map(), inputs: new Map() }
}

export function openWorld(
  lake: Lake,
  options: { readonly byKey: boolean; readonly logMemoryBytes?: number },
): World {
  const source = new EmbeddedSource({
    clock: stillClock,
    logMemoryBytes: options.logMemoryBytes ?? 2 ** 30,
    readBytesMax: 4096,
  })
  const table = source.createTable(
    {
      name: 'demo.numbers',
      schema: { fields: [{ name: 'n', type: { kind: 'bigint', nullable: false } }] },
      bucketCount: lake.rows.length,
      freshnessMs: 1_000,
      ...(options.byKey ? { bucketKey: 'n' } : {}),
    },
    { ends: new Map(lake.ends), inputs: lake.inputs },
  )
  return { source, table }
}

/** Commits a share of what each bucket has, as a round that was cut would: rows, ends and inputs at once. */
export async function commitShares(
  { source, table }: World,
  lake: Lake,
  shares: readonly number[],
): Promise<void> {
  const ends = new Map(lake.ends)
  for (const { bucket, end } of await source.ranges(table.id)) {
    const start = lake.ends.get(bucket) ?? offset(0n)
    const share = Math.min(1, shares[bucket % shares.length] ?? 1)
    const stop = offset(start + BigInt(Math.round(Number(end - start) * share)))
    if (stop === start) continue
    let next = start
    for await (const batch of source.read(table.id, bucket, start, stop)) {
      assert.equal(batch.baseOffset, next, 'offsets have no gap')
      lake.rows[bucket]?.push(...valuesOf(batch.records))
      next = offset(next + BigInt(batch.records.length))
    }
    assert.equal(next, stop)
    assert.equal(BigInt(lake.rows[bucket]?.length ?? 0), stop, 'rows are as many as offsets')
    ends.set(bucket, stop)
  }
  lake.inputs = source.inputs(table.id, ends)
  lake.ends = ends
}
