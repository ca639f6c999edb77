import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import type { KvCursor, KvStore } from '../../../src/source/kv/ports.ts'
import { bytes, openRocks, rocksStores, skipWithoutRocksDb, textOf } from '../../support/rocksdb.ts'
import { scratchFolder } from '../../support/scratch.ts'

const skip = skipWithoutRocksDb()
const notLinux =
  process.platform === 'linux' ? false : 'only Linux lists the descriptors of a process'

function descriptors(): number {
  return readdirSync('/proc/self/fd').length
}

/** In memory where the machine has a folder for it: each family is written through to the disk. */
function memoryFolder(context: Pick<TestContext, 'after'>): string {
  if (!existsSync('/dev/shm')) return scratchFolder(context)
  const folder = mkdtempSync('/dev/shm/sluice-kv-')
  context.after(() => {
    rmSync(folder, { recursive: true, force: true })
  })
  return folder
}

async function usedDescriptors(store: KvStore): Promise<number> {
  return (await store.usage()).descriptors
}

describe('limits of a RocksDB store', { skip }, () => {
  for (const [count, expected] of [
    [20, 46],
    [200, 406],
    [1_000, 2_006],
  ] as const) {
    test(`C-34 ${count} families with one file each hold ${expected} descriptors`, {
      skip: notLinux,
    }, async (t) => {
      const folder = join(memoryFolder(t), 'store')
      const names = Array.from({ length: count }, (_, at) => `state-${at}`)
      // The self-test of the binding is over before anything is counted.
      await (await openRocks(join(folder, '..', 'first'), [])).close()
      const before = descriptors()
      const store = await openRocks(folder, names)
      const batch = store.batch()
      for (const family of store.families().slice(1)) batch.put(family, bytes('k'), bytes('v'))
      await store.write(batch)
      await store.flush(store.families().slice(1))
      assert.equal(descriptors() - before, expected)
      assert.equal(await usedDescriptors(store), expected)
      assert.equal(store.openHandles, count + 1)
      await store.close()
      assert.equal(descriptors(), before)
    })
  }

  test('C-34 maxOpenFiles bounds the files, and families come on top', {
    skip: notLinux,
  }, async (t) => {
    const folder = join(scratchFolder(t), 'store')
    const names = Array.from({ length: 60 }, (_, at) => `state-${at}`)
    const open = (): Promise<KvStore> =>
      openRocks(folder, names, { stores: rocksStores({ rocksDb: { maxOpenFiles: 20 } }) })
    const first = await open()
    for (const family of first.families().slice(1)) await first.put(family, bytes('k'), bytes('v'))
    await first.flush()
    await first.close()
    const before = descriptors()
    const store = await open()
    for (const family of store.families().slice(1)) {
      assert.equal(textOf(await store.get(family, bytes('k'))), 'v')
    }
    const bounded = 61 + 10 + 5
    assert.equal(await usedDescriptors(store), bounded)
    assert.ok(descriptors() - before <= bounded, `${descriptors() - before} of ${bounded}`)
    await store.close()
  })

  test('does not keep a log without end for a family that is hardly written to', async (t) => {
    const folder = join(scratchFolder(t), 'store')
    const stores = rocksStores({ rocksDb: { walBytesMax: 2 ** 20 } })
    const store = await openRocks(folder, ['rows', 'meta'], { stores })
    const [rows, meta] = [await store.columnFamily('rows'), await store.columnFamily('meta')]
    let most = 0
    for (let at = 0; at < 128; at += 1) {
      const batch = store.batch().put(meta, bytes('applied'), bytes(`${at}`))
      for (let key = 0; key < 64; key += 1) {
        batch.put(rows, bytes(`${at}-${key}`), new Uint8Array(1_024))
      }
      await store.write(batch)
      const logs = readdirSync(folder).filter((name) => name.endsWith('.log'))
      const sizes = logs.map((name) => statSync(join(folder, name)).size)
      most = Math.max(
        most,
        sizes.reduce((sum, size) => sum + size, 0),
      )
    }
    assert.ok(most > 2 ** 19 && most < 2 ** 21, `${most} bytes of logs`)
    await store.close()
  })

  test('C-22 counts a buffer that a scan keeps alive, and does not flush it for nothing', async (t) => {
    const flushed: unknown[] = []
    const stores = rocksStores({
      memoryBytes: 64 * 2 ** 20,
      journal: {
        note: ({ event, fields }) => {
          if (event === 'kv.flush.forced') flushed.push(fields)
        },
      },
    })
    const store = await openRocks(join(scratchFolder(t), 'store'), ['rows'], { stores })
    const rows = await store.columnFamily('rows')
    const bufferBytes = async (): Promise<number> => (await store.usage()).writeBufferBytes
    const value = new Uint8Array(200).fill(7)
    for (let at = 0; at < 50; at += 1) {
      const batch = store.batch()
      for (let key = at * 1_000; key < (at + 1) * 1_000; key += 1) {
        batch.put(rows, bytes(`key-${String(key).padStart(8, '0')}`), value)
      }
      await store.write(batch)
    }
    const data = 50_000 * (12 + 200)
    assert.ok((await bufferBytes()) > data)
    const cursor = store.scan(rows)
    const first = await cursor.next(1)
    assert.equal(first?.keys.length, 1)
    await store.flush([rows])
    const held = await bufferBytes()
    assert.ok(held > data, `${held} is held while the scan is open`)
    await cursor.close()
    const after = await bufferBytes()
    assert.ok(after < 2 ** 20, `${after} is held when it is closed`)
    assert.deepEqual(flushed, [])
    await store.close()
  })

  test('C-22 writers wait for the scan that keeps too much alive, and go on when it closes', async (t) => {
    const stores = rocksStores({
      memoryBytes: 16 * 2 ** 20,
      familyOptions: { writeBufferSize: 2 ** 20 },
    })
    const store = await openRocks(join(scratchFolder(t), 'store'), ['rows'], { stores })
    const rows = await store.columnFamily('rows')
    const value = new Uint8Array(1_000).fill(7)
    const write = async (round: number): Promise<void> => {
      const batch = store.batch()
      for (let key = 0; key < 500; key += 1) batch.put(rows, bytes(`${round}-${key}`), value)
      await store.write(batch)
    }
    const cursors: KvCursor[] = []
    let written = 0
    let isDone = false
    const scans = { areOver: false }
    // Each scan keeps the buffer alive that was written to when it began.
    const writing = (async () => {
      for (let round = 0; round < 40; round += 1) {
        await write(round)
        written += 1
        if (!scans.areOver) {
          const cursor = store.scan(rows)
          await cursor.next(1)
          cursors.push(cursor)
        }
      }
      isDone = true
    })()
    let seen = -1
    while (seen !== written) {
      seen = written
      await new Promise((resolve) => setTimeout(resolve, 1_000))
    }
    assert.ok(!isDone, `all ${written} batches were written past the limit`)
    assert.ok((await store.usage()).writeBufferBytes <= 8 * 2 ** 20)
    scans.areOver = true
    for (const cursor of cursors) await cursor.close()
    await writing
    assert.equal(written, 40)
    await store.close()
  })
})
