import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { memoryEngine } from '../../../src/source/kv/memory/memory-engine.ts'
import { WriteBuffers } from '../../../src/source/kv/write-buffers.ts'
import { kvFilesInMemory } from '../../support/kv-files.ts'

const limit = 8_192

test('C-21 every family flushed had the largest buffer, the older one of two, and the sum stays below', async () => {
  const write = fc.record({
    family: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.nat({ max: 4 })),
    bytes: fc.integer({ min: 0, max: 3_000 }),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(write, { maxLength: 200, size: 'max' }), async (writes) => {
      const engine = memoryEngine({ files: kvFilesInMemory() })
      const options = { ...engine.defaults, level0FileNumCompactionTrigger: 2 }
      const families = ['default', 'b', 'c', 'd', 'e'].map((name) => ({ name, options }))
      const store = await engine.open({ folder: 'a', storeId: 'x', families })
      const sizes = families.map(() => 0)
      const buffers = new WriteBuffers({
        engine,
        store,
        bytesMax: limit,
        onForcedFlush: ({ family, flushable }) => {
          assert.equal(flushable, sizes[family])
          assert.equal(family, sizes.indexOf(Math.max(...sizes)))
          sizes[family] = 0
        },
      })
      for (const [at, { family, bytes }] of writes.entries()) {
        const key = Uint8Array.of(at)
        await buffers.admit(bytes + 1)
        await store.put(family, key, new Uint8Array(bytes))
        sizes[family] = (sizes[family] ?? 0) + bytes + 1
        const sum = sizes.reduce((total, size) => total + size, 0)
        assert.equal(await store.heldBytes(), sum)
        assert.ok(sum <= limit)
      }
    }),
    { numRuns: 200 },
  )
})
