import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, test } from 'node:test'
import { constants, deflateRawSync, gzipSync } from 'node:zlib'
import { readAvro, writeAvro, avroCodec } from '../../../src/catalog/iceberg/format/avro.ts'
import { readMetadata } from '../../../src/catalog/iceberg/format/metadata.ts'
import { parquetBatches } from '../../../src/core/columns/parquet-in.ts'
import { rowsToBatch } from '../../../src/core/columns/rows.ts'
import { isSluiceError } from '../../../src/core/errors.ts'
import type { IdField } from '../../../src/core/schema/types.ts'
import { loadZstd } from '../../../src/sink/parquet/codec.ts'
import { columnarEncoder } from '../../../src/sink/parquet/columnar.ts'
import { decompressed } from '../../../src/source/ingest/decompress.ts'
import { openAvro } from '../../../src/verify/avro.ts'

/*
 * Few bytes that stand for many. They are made without the many: a piece is said again and again.
 */

const zstdHead = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38])

/** One zstd frame of blocks of 128 KiB of one byte, four bytes each. */
function zstdBomb(blocks: number): Buffer {
  const parts = Array.from({ length: blocks }, (_, at) => {
    const isLast = at === blocks - 1
    const header = (131_072 << 3) | (1 << 1) | (isLast ? 1 : 0)
    return Buffer.from([header & 0xff, (header >> 8) & 0xff, (header >> 16) & 0xff, 0x20])
  })
  return Buffer.concat([zstdHead, ...parts])
}

/** A deflate stream of so many MiB of zeros. */
function deflateBomb(megabytes: number): Buffer {
  const piece = deflateRawSync(Buffer.alloc(1 << 20), { finishFlush: constants.Z_SYNC_FLUSH })
  const last = deflateRawSync(Buffer.alloc(1 << 20))
  return Buffer.concat([...Array.from({ length: megabytes - 1 }, () => piece), last])
}

/** A file whose one block of records is these packed bytes. */
function avroOf(codec: string, packed: Buffer): Buffer {
  const schema = {
    type: 'record',
    name: 'test',
    fields: [{ name: 'a', type: 'long', 'field-id': 1 }],
  }
  const sync = '000102030405060708090a0b0c0d0e0f'
  const whole = Buffer.from(
    writeAvro(avroCodec(schema), [{ a: 1n }], { metadata: new Map([['avro.codec', codec]]), sync }),
  )
  const mark = Buffer.from(sync, 'hex')
  const header = whole.subarray(0, whole.indexOf(mark) + mark.length)
  return Buffer.concat([header, Buffer.from([2]), zigzag(packed.length), packed, mark])
}

/** One column of one page. */
async function parquetOf(rows: number): Promise<Buffer> {
  const fields: readonly IdField[] = [
    { id: 1, name: 'id', type: { kind: 'bigint', nullable: false }, children: [] },
  ]
  const pieces: Uint8Array[] = []
  const sink = {
    write: (bytes: Uint8Array) => Promise.resolve(void pieces.push(Uint8Array.from(bytes))),
  }
  const file = columnarEncoder(loadZstd).open(fields, sink, {
    ...{ rowGroupBytes: 1 << 20, pageBytes: 1 << 20, compression: 'zstd', compressionLevel: 1 },
    metadata: new Map(),
  })
  await file.write(
    rowsToBatch(
      fields,
      Array.from({ length: rows }, (_, at) => ({ id: BigInt(at * 7_919) })),
    ),
  )
  await file.close()
  return Buffer.concat(pieces)
}

function endOfNumber(bytes: Uint8Array, from: number): number {
  let at = from
  while ((bytes[at] ?? 0) >= 0x80) at += 1
  return at + 1
}

function zigzag(value: number): Buffer {
  const bytes: number[] = []
  let rest = value * 2
  for (; rest > 0x7f; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80)
  return Buffer.from([...bytes, rest])
}

/** Given up for its size, and not for what it would have said. */
function isTooLarge(error: unknown): boolean {
  assert.ok(isSluiceError(error, 'DATA_CORRUPT'), String(error))
  const reason = `${error.message} ${error.cause instanceof Error ? error.cause.message : ''}`
  assert.match(reason, /more than \d+ bytes|over \d+ bytes|larger than \d+ bytes/)
  return true
}

describe('S-08 S-15 what unfolds without an end', () => {
  const bombs: readonly (readonly [string, Buffer])[] = [
    ['zstandard', zstdBomb(8 * 1024)],
    ['deflate', deflateBomb(400)],
  ]
  for (const [codec, bomb] of bombs) {
    test(`is no block of a manifest (${codec})`, () => {
      assert.ok(bomb.length < 500_000, 'half a megabyte stands for hundreds')
      const file = avroOf(codec, bomb)
      assert.throws(() => readAvro(file, 'bomb.avro'), isTooLarge)
      assert.throws(() => [...openAvro(file).records()], isTooLarge)
    })
  }

  test('is no metadata', () => {
    const piece = gzipSync(Buffer.alloc(1 << 20, ' '))
    const bomb = Buffer.concat(Array.from({ length: 400 }, () => piece))
    assert.ok(bomb.length < 500_000)
    assert.throws(() => readMetadata(bomb, 'v1.gz.metadata.json'), isTooLarge)
  })

  test('is no page of Parquet, whose size is not taken on its word', async () => {
    const file = await parquetOf(10_000)
    // The header of the first page: its kind, its size when unpacked, and as stored.
    const unpacked = 4 + 3
    const stored = endOfNumber(file, unpacked) + 1
    for (const at of [unpacked, stored]) {
      const forged = Buffer.concat([
        file.subarray(0, at),
        Buffer.from([0xfe, 0xff, 0xff, 0xff, 0x0f]),
        file.subarray(endOfNumber(file, at)),
      ])
      const before = process.memoryUsage().rss
      await assert.rejects(
        async () => {
          for await (const batch of parquetBatches(new Blob([forged]), 'x.parquet')) {
            assert.fail(`${batch.numRows} rows`)
          }
        },
        (error) => isSluiceError(error, 'DATA_CORRUPT'),
      )
      assert.ok(process.memoryUsage().rss - before < 512 << 20)
    }
  })

  test('is read from an input in small steps, and no step is held with all that follow', async () => {
    const bomb = zstdBomb(16_000)
    assert.ok(bomb.length < 65_536, 'one piece of a file')
    const before = process.memoryUsage().arrayBuffers
    const stored = Readable.from([bomb])
    const chunks = decompressed(stored, 'zstd', 'bomb.zst')
    const first = await chunks.next()
    assert.equal(first.done, false)
    const held = process.memoryUsage().arrayBuffers - before
    assert.ok(held < 256 << 20, `${held} bytes are held for the first of them`)
    await chunks.return()
  })
})
