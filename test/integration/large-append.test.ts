import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Binary, Table, vectorFromArray } from 'apache-arrow'
import { openEmbeddedSource, openLake, startTiering } from '../../src/index.ts'
import { withWarehouse } from '../unit/cli/lake-fixture.ts'

const mebibyte = 2 ** 20

/** Bytes that do not compress, the same in each run. */
function noise(bytes: number): Uint8Array {
  const blocks = Array.from({ length: Math.ceil(bytes / 64) }, (_, i) =>
    createHash('sha512').update(String(i)).digest(),
  )
  return Buffer.concat(blocks).subarray(0, bytes)
}

test('one large append becomes several files when the target size is small', async () => {
  await withWarehouse(async (folder) => {
    await using lake = await openLake({ warehouse: folder })
    await using source = await openEmbeddedSource({ resumeFrom: lake })
    const table = await source.createTable('demo.large', {
      columns: { v: 'BYTES NOT NULL' },
      buckets: 1,
      properties: { 'iceberg.write.target-file-size-bytes': '2097152' },
    })
    await using job = startTiering({ source, lake })
    const bytes = noise(24 * mebibyte)
    const values = Array.from({ length: 96 }, (_, i) =>
      bytes.subarray((i * mebibyte) / 4, ((i + 1) * mebibyte) / 4),
    )
    await table.append(new Table({ v: vectorFromArray(values, new Binary()) }))
    const { rounds } = await job.drain()
    assert.equal(rounds.length, 1)

    const sizes = readdirSync(join(folder, 'demo', 'large', 'data'), { recursive: true })
      .map(String)
      .filter((name) => name.endsWith('.parquet'))
      .map((name) => statSync(join(folder, 'demo', 'large', 'data', name)).size)
    assert.ok(sizes.length >= 3, `${String(sizes.length)} files`)
    // A file ends with the batch of the log, of up to 8 MiB, that fills it.
    assert.ok(sizes.every((size) => size <= 9 * mebibyte))

    const hash = createHash('sha256')
    for await (const { v } of (await lake.table('demo.large')).rows()) {
      assert.ok(v instanceof Uint8Array)
      hash.update(v)
    }
    assert.equal(hash.digest('hex'), createHash('sha256').update(bytes).digest('hex'))
  })
})
