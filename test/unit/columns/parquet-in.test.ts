import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromArrow } from '../../../src/core/columns/arrow.ts'
import { parquetBatches } from '../../../src/core/columns/parquet-in.ts'
import { batchToRows, type Row, rowsToBatch } from '../../../src/core/columns/rows.ts'
import type { IdField } from '../../../src/core/schema/types.ts'
import { loadZstd } from '../../../src/sink/parquet/codec.ts'
import { columnarEncoder } from '../../../src/sink/parquet/columnar.ts'

const fields: readonly IdField[] = [
  { id: 1, name: 'id', type: { kind: 'bigint', nullable: false }, children: [] },
  { id: 2, name: 'text', type: { kind: 'string', nullable: true }, children: [] },
]

/** A file of four row groups. */
async function sample(): Promise<{ readonly rows: readonly Row[]; readonly file: Uint8Array }> {
  const pieces: Uint8Array[] = []
  const sink = {
    write: (bytes: Uint8Array) => Promise.resolve(void pieces.push(Uint8Array.from(bytes))),
  }
  const file = columnarEncoder(loadZstd).open(fields, sink, {
    rowGroupBytes: 1 << 20,
    pageBytes: 4096,
    compression: 'zstd',
    compressionLevel: 1,
    metadata: new Map([['k', 'v']]),
  })
  const rows = Array.from({ length: 40_000 }, (_, at) => ({
    id: 2n ** 60n + BigInt(at),
    text: at % 3 === 0 ? null : `text ${String(at % 100)}`,
  }))
  for (let from = 0; from < rows.length; from += 10_000) {
    await file.write(rowsToBatch(fields, rows.slice(from, from + 10_000)))
    await file.flush()
  }
  await file.close()
  return { rows, file: Buffer.concat(pieces) }
}

async function read(file: Uint8Array): Promise<Row[]> {
  const rows: Row[] = []
  for await (const batch of parquetBatches(new Blob([new Uint8Array(file)]), 'x.parquet')) {
    const taken = fromArrow(batch)
    assert.equal(batch.schema.fields[0]?.metadata.get('PARQUET:field_id'), '1')
    rows.push(...batchToRows(taken.fields, taken.batch))
  }
  return rows
}

test('reads every row group of a file, each from its own part of it', async () => {
  const { rows, file } = await sample()
  assert.deepEqual(await read(file), rows)
})

test('damage anywhere is an error that can be caught, never the end of the process', async () => {
  const { file } = await sample()
  for (let at = 4; at < file.length - 64; at += Math.ceil(file.length / 25)) {
    const spoiled = Uint8Array.from(file)
    spoiled.fill(0x5a, at, at + 64)
    await read(spoiled).catch((error: unknown) => {
      assert.ok(error instanceof Error && 'code' in error, String(error))
      assert.ok(['DATA_CORRUPT', 'RECORD_REFUSED', 'INPUT_UNREADABLE'].includes(String(error.code)))
    })
    await assert.rejects(read(file.subarray(0, at)), { code: 'DATA_CORRUPT' })
  }
})
