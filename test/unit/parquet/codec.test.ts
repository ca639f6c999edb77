import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decompress } from 'fzstd'
import { findZstd, zstdCodec } from '../../../src/sink/parquet/codec.ts'
import { isSluiceError } from '../../../src/core/errors.ts'

const source = new TextEncoder().encode('Sluice '.repeat(10_000))

for (const name of ['node:zlib', '@toondepauw/node-zstd', '@bokuweb/zstd-wasm'] as const) {
  test(`${name} compresses to what another implementation reads, or is absent`, async () => {
    const zstd = await findZstd(name).catch((error: unknown) => {
      assert.ok(isSluiceError(error, 'DEPENDENCY_MISSING'))
      return undefined
    })
    if (zstd === undefined) return
    for (const level of [1, 3]) {
      const codec = zstdCodec(zstd, level)
      const first = codec.compress(source)
      const second = codec.compress(source.subarray(7, 70))
      assert.ok(first.length < 500)
      assert.deepEqual(decompress(new Uint8Array(first)), source)
      assert.deepEqual(decompress(new Uint8Array(second)), source.slice(7, 70))
    }
  })
}
