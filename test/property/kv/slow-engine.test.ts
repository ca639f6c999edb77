import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { EngineStore, KvEngine } from '../../../src/source/kv/engine.ts'
import { memoryEngine } from '../../../src/source/kv/memory/memory-engine.ts'
import { inWorld, mib } from '../../integration/kv/engine-under-test.ts'
import { kvFilesInMemory } from '../../support/kv-files.ts'

/** Passes of the event loop a call takes before it is done, and after, before it answers. */
type Delay = readonly [number, number]

async function pass(count: number): Promise<void> {
  for (let at = 0; at < count; at += 1) await Promise.resolve()
}

/** The memory engine, whose calls are done and answered some time after they are made. */
function slowEngine(delays: readonly Delay[]): {
  readonly engine: KvEngine
  readonly overlaps: () => number
} {
  const memory = memoryEngine({ files: kvFilesInMemory() })
  let calls = 0
  let changing = 0
  let overlaps = 0
  const later = async <Value>(run: () => Value | Promise<Value>): Promise<Value> => {
    const [before, behind] = delays[calls % Math.max(1, delays.length)] ?? [1, 1]
    calls += 1
    await pass(before)
    const value = await run()
    await pass(behind)
    return value
  }
  const change = async <Value>(run: () => Value | Promise<Value>): Promise<Value> => {
    if (changing > 0) overlaps += 1
    changing += 1
    try {
      return await later(run)
    } finally {
      changing -= 1
    }
  }
  const open = async (opening: Parameters<KvEngine['open']>[0]): Promise<EngineStore> => {
    const store = await memory.open(opening)
    return {
      get: (...given) => later(() => store.get(...given)),
      getMany: (...given) => later(() => store.getMany(...given)),
      scan: (...given) => store.scan(...given),
      snapshot: () => later(() => store.snapshot()),
      put: (...given) => change(() => store.put(...given)),
      write: (batch) => change(() => store.write(batch)),
      flush: (family) => change(() => store.flush(family)),
      create: (...given) => change(() => store.create(...given)),
      drop: (family) => change(() => store.drop(family)),
      checkpoint: (folder) => change(() => store.checkpoint(folder)),
      heldBytes: () => store.heldBytes(),
      buffers: () => later(() => store.buffers()),
      files: () => store.files(),
      descriptors: () => 0,
      close: () => store.close(),
    }
  }
  return { engine: { ...memory, open }, overlaps: () => overlaps }
}

const key = fc.constantFrom('a', 'b', 'c')
const step = fc.oneof(
  fc.record({ kind: fc.constant('put' as const), key, value: fc.nat({ max: 99 }) }),
  fc.record({ kind: fc.constant('batch' as const), key, value: fc.nat({ max: 99 }) }),
  fc.record({ kind: fc.constant('delete' as const), key, value: fc.constant(0) }),
  fc.record({
    kind: fc.constantFrom('get' as const, 'many' as const, 'flush' as const, 'settle' as const),
    key,
    value: fc.constant(0),
  }),
)
const delay = fc.tuple(fc.nat({ max: 12 }), fc.nat({ max: 60 }))

test('writes that nobody waits for end in their order, and the cache never keeps what they replaced', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 60, size: 'max' }),
      fc.array(delay, { minLength: 1, maxLength: 20 }),
      fc.constantFrom('off' as const, 'shared' as const, 'per-family' as const),
      async (steps, delays, cache) => {
        const { engine, overlaps } = slowEngine(delays)
        const under = { name: 'memory' as const, engine }
        await inWorld(under, { cache, memoryBytes: mib }, async ({ stores }) => {
          const store = await stores.open({ folder: 'a', families: { rows: {} } })
          const [, rows] = store.families()
          assert.ok(rows !== undefined)
          const model = new Map<string, string>()
          const running: unknown[] = []
          const settle = async (): Promise<void> => {
            await Promise.all(running.splice(0))
            for (let look = 0; look < 2; look += 1) {
              for (const name of ['a', 'b', 'c']) {
                const found = await store.get(rows, Buffer.from(name))
                const text = found === undefined ? undefined : Buffer.from(found).toString()
                assert.equal(text, model.get(name))
              }
            }
          }
          for (const { kind, key: name, value } of steps) {
            const at = Buffer.from(name)
            const put = Buffer.from(`${value}`)
            if (kind === 'put') running.push(store.put(rows, at, put))
            if (kind === 'batch') {
              running.push(store.write(store.batch().delete(rows, at).put(rows, at, put)))
            }
            if (kind === 'put' || kind === 'batch') model.set(name, `${value}`)
            if (kind === 'delete') {
              running.push(store.delete(rows, at))
              model.delete(name)
            }
            if (kind === 'get') running.push(store.get(rows, at))
            if (kind === 'many') running.push(store.getMany(rows, [at, at, Buffer.from('b')]))
            if (kind === 'flush') running.push(store.flush())
            if (kind === 'settle') await settle()
          }
          await settle()
          assert.equal(overlaps(), 0)
        })
      },
    ),
    { numRuns: 300 },
  )
})
