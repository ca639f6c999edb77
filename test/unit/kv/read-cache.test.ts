import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CachedReads } from '../../../src/source/kv/cached-reads.ts'
import type { EngineStore } from '../../../src/source/kv/engine.ts'
import { entryOverheadBytes, ReadCache } from '../../../src/source/kv/read-cache.ts'
import { bytes } from './support.ts'

const a = 1
const b = 2
const value = bytes('value')
/** Keys of these tests have two or three bytes; all are counted as three. */
const entryBytes = entryOverheadBytes + 3 + value.length

function cacheOf(scope: 'shared' | 'per-family', entries: number): ReadCache {
  const cache = new ReadCache({ scope, bytesMax: entries * entryBytes })
  cache.addFamily(a)
  cache.addFamily(b)
  return cache
}

/** Reads keys such as `a1`, filling the cache as a store does, and counts the hits. */
function play(cache: ReadCache, names: readonly string[]): number {
  let hits = 0
  for (const name of names) {
    const family = name.startsWith('a') ? a : b
    const key = bytes(name.padEnd(3))
    if (cache.get(family, key) !== undefined) hits += 1
    else cache.fill(cache.expect(family, key), value)
  }
  return hits
}

function has(cache: ReadCache, name: string): boolean {
  return cache.get(name.startsWith('a') ? a : b, bytes(name.padEnd(3))) !== undefined
}

function range(family: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => `${family}${at + 1}`)
}

const hot = range('a', 8)
const reads = [...hot, 'b1', ...hot, 'b2', ...hot, 'b3']

describe('a shared read cache', () => {
  test('C-15 gives the hot family the larger part', () => {
    const cache = cacheOf('shared', 10)
    assert.equal(reads.length, 27)
    assert.equal(play(cache, reads), 16)
    assert.equal(cache.bytes, 10 * entryBytes)
    play(cache, ['b4'])
    assert.deepEqual(
      [...hot, 'b1', 'b2', 'b3', 'b4'].filter((name) => !has(cache, name)),
      ['b1', 'b2'],
    )
  })

  test('C-15 holds a1…a8, b2 and b3 after the reads: b1 is out', () => {
    const cache = cacheOf('shared', 10)
    play(cache, reads)
    assert.deepEqual(
      [...hot, 'b1', 'b2', 'b3'].filter((name) => !has(cache, name)),
      ['b1'],
    )
  })

  test('C-16 lets one family push another out', () => {
    const cache = cacheOf('shared', 10)
    const hits = play(cache, [...range('a', 5), ...range('b', 10), ...range('a', 5)])
    assert.equal(hits, 0)
  })
})

describe('a read cache per family', () => {
  test('C-16 isolates families, and wastes what the cold one has', () => {
    assert.equal(play(cacheOf('per-family', 10), reads), 0)
    const cache = cacheOf('per-family', 10)
    const hits = play(cache, [...range('a', 5), ...range('b', 10), ...range('a', 5)])
    assert.equal(hits, 5)
  })

  test('divides its room anew when a family comes or goes', () => {
    const cache = cacheOf('per-family', 10)
    play(cache, range('a', 5))
    cache.addFamily(3)
    assert.equal(range('a', 5).filter((name) => has(cache, name)).length, 3)
    cache.removeFamily(b)
    assert.equal(cache.bytes, 3 * entryBytes)
    assert.equal(cache.get(b, bytes('b1 ')), undefined)
  })
})

describe('a read cache', () => {
  test('knows that a key is not there', () => {
    const cache = cacheOf('shared', 10)
    cache.fill(cache.expect(a, bytes('k')), undefined)
    assert.deepEqual(cache.get(a, bytes('k'))?.value, undefined)
    assert.ok(cache.get(a, bytes('k')) !== undefined)
    assert.equal(cache.get(b, bytes('k')), undefined)
  })

  test('does not keep what is larger than all its room, and keeps the rest', () => {
    const cache = cacheOf('shared', 10)
    play(cache, range('a', 5))
    cache.fill(cache.expect(b, bytes('large')), new Uint8Array(11 * entryBytes))
    assert.equal(range('a', 5).filter((name) => has(cache, name)).length, 5)
    assert.equal(cache.get(b, bytes('large')), undefined)
  })

  test('keeps nothing of a read during which its key was written to', () => {
    const cache = cacheOf('shared', 10)
    const old = cache.expect(a, bytes('k'))
    cache.forget(a, bytes('k'))
    cache.fill(old, bytes('old'))
    assert.equal(cache.get(a, bytes('k')), undefined)
    const other = cache.expect(a, bytes('k'))
    cache.forget(b, bytes('k'))
    cache.fill(other, bytes('new'))
    assert.deepEqual(cache.get(a, bytes('k'))?.value, bytes('new'))
  })

  test('forgets a family that is dropped, also what is being read of it', () => {
    const cache = cacheOf('shared', 10)
    play(cache, ['a1', 'b1'])
    const late = cache.expect(b, bytes('b2 '))
    cache.removeFamily(b)
    cache.fill(late, value)
    assert.ok(has(cache, 'a1'))
    assert.ok(!has(cache, 'b1') && !has(cache, 'b2'))
    assert.equal(cache.bytes, entryBytes)
  })

  test('tells keys apart that are no text', () => {
    const cache = cacheOf('shared', 10)
    cache.fill(cache.expect(a, Uint8Array.of(0xc3, 0x28)), bytes('1'))
    assert.equal(cache.get(a, Uint8Array.of(0xc3, 0x29)), undefined)
    assert.equal(cache.get(a, Uint8Array.of(0xff, 0x28)), undefined)
    assert.deepEqual(cache.get(a, Uint8Array.of(0xc3, 0x28))?.value, bytes('1'))
  })
})

/** An engine whose reads and writes end when the test says so. */
function slowEngine(): {
  readonly store: EngineStore
  readonly calls: { readonly keys: number; readonly end: (value?: Uint8Array) => void }[]
  readonly reads: () => number
} {
  const calls: { keys: number; end: (value?: Uint8Array) => void }[] = []
  let reads = 0
  const store = {
    getMany: (_: number, keys: readonly Uint8Array[]) => {
      reads += 1
      return new Promise<(Uint8Array | undefined)[]>((resolve) => {
        calls.push({
          keys: keys.length,
          end: (found) => {
            resolve(keys.map(() => found))
          },
        })
      })
    },
  }
  return { store: store as unknown as EngineStore, calls, reads: () => reads }
}

describe('reads through a cache', () => {
  test('a read that was overtaken by a write leaves nothing behind', async () => {
    const { store, calls, reads: count } = slowEngine()
    const cached = new CachedReads(store, cacheOf('shared', 10))
    const early = cached.get(a, bytes('k'))
    await cached.changing([a], [bytes('k')], () => Promise.resolve())
    calls[0]?.end(bytes('old'))
    assert.deepEqual(await early, bytes('old'))
    const late = cached.get(a, bytes('k'))
    assert.equal(count(), 2)
    calls[1]?.end(bytes('new'))
    assert.deepEqual(await late, bytes('new'))
    assert.deepEqual(cached.get(a, bytes('k')), bytes('new'))
    assert.equal(count(), 2)
  })

  test('a write forgets what it may have changed, also when it fails', async () => {
    const { store, calls } = slowEngine()
    const cache = cacheOf('shared', 10)
    const cached = new CachedReads(store, cache)
    for (const fail of [
      (): Promise<void> => Promise.reject(new Error('disk')),
      (): void => {
        throw new Error('disk')
      },
    ]) {
      const filled = cached.get(a, bytes('k'))
      calls.at(-1)?.end(bytes('old'))
      await filled
      assert.deepEqual(cached.get(a, bytes('k')), bytes('old'))
      await assert.rejects(async () => cached.changing([a], [bytes('k')], fail), /disk/)
      assert.equal(cache.get(a, bytes('k')), undefined)
    }
  })

  test('asks the engine for the keys that are not known, once', async () => {
    const { store, calls } = slowEngine()
    const cached = new CachedReads(store, cacheOf('shared', 10))
    const first = cached.getMany(a, [bytes('k'), bytes('l')])
    calls[0]?.end(bytes('1'))
    await first
    const second = cached.getMany(a, [bytes('m'), bytes('l'), bytes('n'), bytes('k')])
    assert.equal(calls[1]?.keys, 2)
    calls.at(1)?.end(bytes('2'))
    assert.deepEqual(await second, [bytes('2'), bytes('1'), bytes('2'), bytes('1')])
    assert.deepEqual(cached.getMany(a, [bytes('n')]), [bytes('2')])
  })
})
