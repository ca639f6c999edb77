import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isSluiceError } from '../../../src/core/errors.ts'
import type { KvStore } from '../../../src/source/kv/ports.ts'
import {
  bytes,
  type EngineUnderTest,
  familyOf,
  inWorld,
  kib,
  mib,
  read,
} from './engine-under-test.ts'

/** What stores take of the memory of the process: read caches and write buffers. */
export function describeMemory(under: EngineUnderTest): void {
  describe(`${under.name}: read cache`, () => {
    test('C-17 has half of the budget of its store, whatever the number of families', async () => {
      for (const count of [1, 7]) {
        await inWorld(under, { cache: 'shared', memoryBytes: 4 * mib }, async (world) => {
          const names = Array.from({ length: count }, (_, at) => `f${at}`)
          const store = await world.stores.open({
            folder: world.folder('a'),
            families: Object.fromEntries(names.map((name) => [name, {}])),
          })
          for (let at = 0; at < 700; at += 1) {
            const family = familyOf(store, names[at % count] ?? '')
            await store.put(family, bytes(`key ${at}`), new Uint8Array(8 * kib))
            await store.get(family, bytes(`key ${at}`))
          }
          const { cacheBytes } = await store.usage()
          assert.ok(cacheBytes <= 2 * mib, `${cacheBytes}`)
          assert.ok(cacheBytes > 1.9 * mib, `${cacheBytes}`)
        })
      }
    })

    test('C-17 follows the budget when another store opens and closes', async () => {
      await inWorld(
        under,
        { cache: 'shared', memoryBytes: 4 * mib },
        async ({ stores, folder }) => {
          const store = await stores.open({ folder: folder('a'), families: { rows: {} } })
          const rows = familyOf(store, 'rows')
          const fill = async (): Promise<number> => {
            for (let at = 0; at < 300; at += 1)
              await store.get(rows, new Uint8Array(16 * kib).fill(at))
            return (await store.usage()).cacheBytes
          }
          assert.ok((await fill()) > mib)
          const whole = store.batchBytesMax
          const other = await stores.open({ folder: folder('b'), families: { rows: {} } })
          assert.ok((await store.usage()).cacheBytes <= mib)
          assert.equal(store.batchBytesMax, whole / 2)
          assert.ok((await fill()) <= mib)
          await other.close()
          assert.equal(store.batchBytesMax, whole)
        },
      )
    })

    test('never serves what was there before a write, with reads and writes under way', async () => {
      for (const cache of ['shared', 'per-family'] as const) {
        await inWorld(under, { cache }, async ({ stores, folder }) => {
          const store = await stores.open({ folder: folder('a'), families: { rows: {} } })
          const rows = familyOf(store, 'rows')
          const key = bytes('k')
          for (let at = 0; at < 100; at += 1) {
            const early = [store.get(rows, key), store.getMany(rows, [key])]
            const written =
              at % 5 === 4 ? store.delete(rows, key) : store.put(rows, key, bytes(`${at}`))
            const late = store.get(rows, key)
            await written
            const expected = at % 5 === 4 ? undefined : `${at}`
            assert.equal(await read(store, rows, 'k'), expected)
            await Promise.all([...early, late])
            assert.equal(await read(store, rows, 'k'), expected)
            assert.equal(await read(store, rows, 'k'), expected)
          }
        })
      }
    })
  })

  describe(`${under.name}: write buffers`, () => {
    test('C-21 lets the family that is written most pay for it', async () => {
      await inWorld(under, { memoryBytes: 32 * mib }, async ({ stores, folder, notes }) => {
        const names = ['a', 'b', 'c', 'd', 'e']
        const store = await stores.open({
          folder: folder('a'),
          families: Object.fromEntries(names.map((name) => [name, {}])),
        })
        await writeShares(store, { names, shares: [80, 5, 5, 5, 5], bytes: 64 * mib })
        const victims = notes
          .filter(({ event }) => event === 'kv.flush.forced')
          .map(({ fields }) => fields?.['family'])
        assert.ok(victims.length >= 3, `${victims.length} flushes`)
        // With flushes of one size its part of them would come to its part of the writes, 80 %, from
        // above. RocksDB takes memory in pieces of 1 MiB, of which the small families hold one each.
        const greedy = victims.filter((name) => name === 'a').length
        assert.ok(greedy >= victims.length * 0.75, victims.join())
      })
    })

    test('C-20 keeps the write buffers of all families below the limit', async () => {
      await inWorld(under, { memoryBytes: 32 * mib }, async ({ stores, folder }) => {
        const names = ['a', 'b', 'c', 'd', 'e']
        const store = await stores.open({
          folder: folder('a'),
          families: Object.fromEntries(names.map((name) => [name, {}])),
        })
        const peak = await writeShares(store, {
          names,
          shares: [20, 20, 20, 20, 20],
          bytes: 64 * mib,
        })
        assert.ok(peak <= 16 * mib, `${peak}`)
        assert.ok(peak >= 8 * mib, `${peak}`)
      })
    })

    test('C-20 refuses a batch that is larger than the buffers allow, and says the limit', async () => {
      await inWorld(under, { memoryBytes: 4 * mib }, async ({ stores, folder }) => {
        const store = await stores.open({ folder: folder('a'), families: { rows: {} } })
        const rows = familyOf(store, 'rows')
        await store.put(rows, bytes('k'), bytes('v'))
        const batch = store.batch().delete(rows, bytes('k'))
        while (batch.bytes <= store.batchBytesMax) {
          batch.put(rows, bytes(`key ${batch.operations}`), new Uint8Array(64 * kib))
        }
        await assert.rejects(
          async () => store.write(batch),
          (error) =>
            isSluiceError(error, 'LIMIT_EXCEEDED') &&
            error.details['batchBytesMax'] === store.batchBytesMax &&
            /kv\.memory\.size/.test(error.fix ?? ''),
        )
        assert.equal(await read(store, rows, 'k'), 'v')
        assert.equal(await read(store, rows, 'key 1'), undefined)
      })
    })
  })
}

type Shares = {
  readonly names: readonly string[]
  /** Of 100 batches. */
  readonly shares: readonly number[]
  readonly bytes: number
}

/** Writes batches of 64 KiB and answers the most the write buffers came to. */
async function writeShares(
  store: KvStore,
  { names, shares, bytes: most }: Shares,
): Promise<number> {
  const turns = names.flatMap((name, at) => Array.from({ length: shares[at] ?? 0 }, () => name))
  let peak = 0
  let written = 0
  for (let turn = 0; written < most; turn += 1) {
    // A stride that has no factor in common with 100 mixes the families evenly.
    const family = familyOf(store, turns[(turn * 37) % turns.length] ?? '')
    const batch = store.batch()
    for (let at = 0; at < 64; at += 1) {
      batch.put(family, bytes(`key ${turn * 64 + at}`), new Uint8Array(kib).fill(at))
    }
    written += batch.bytes
    await store.write(batch)
    if (turn % 8 === 0) peak = Math.max(peak, (await store.usage()).writeBufferBytes)
  }
  return peak
}
