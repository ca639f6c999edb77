import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isSluiceError } from '../../../src/core/errors.ts'
import { hashKey, KeyTable } from '../../../src/source/kv/memory/key-table.ts'
import { memoryEngine } from '../../../src/source/kv/memory/memory-engine.ts'
import type { FamilyUsage, KvFamily, KvStore } from '../../../src/source/kv/ports.ts'
import { kvFilesInMemory } from '../../support/kv-files.ts'
import { bytes, familyOf, kib, mib, storesInMemory } from './support.ts'

async function usageOf(store: KvStore, name: string): Promise<FamilyUsage> {
  const found = (await store.usage()).families.find((family) => family.name === name)
  assert.ok(found !== undefined)
  return found
}

/** Puts new keys of 24 bytes with values that make an entry 1 KiB. */
async function fill(store: KvStore, family: KvFamily, kibibytes: number): Promise<void> {
  for (let at = 0; at < kibibytes; at += 1) {
    await store.put(family, bytes(`${next}`.padStart(24, '0')), new Uint8Array(kib - 24))
    next += 1
  }
}
let next = 0

describe('the memory engine', () => {
  test('answers at once, also where it flushes', async () => {
    const { stores } = storesInMemory({ memoryBytes: 16 * kib })
    const store = await stores.open({ folder: 'a', families: { rows: {} } })
    const rows = familyOf(store, 'rows')
    for (let at = 0; at < 200; at += 1) {
      assert.equal(store.put(rows, bytes(`${at}`), new Uint8Array(100)), undefined)
      assert.equal(store.write(store.batch().delete(rows, bytes('x'))), undefined)
    }
    assert.ok((await usageOf(store, 'rows')).files > 0)
    assert.equal((store.get(rows, bytes('7')) as Uint8Array).length, 100)
    assert.equal(store.get(rows, bytes('x')), undefined)
    assert.ok(Array.isArray(store.getMany(rows, [bytes('7')])))
    const cursor = store.scan(rows)
    assert.ok(!(cursor.next() instanceof Promise))
    assert.equal(cursor.close(), undefined)
  })

  test('C-03 writes one file for all families of a store', async () => {
    const files = new Map<string, Buffer>()
    const { stores } = storesInMemory({}, memoryEngine({ files: kvFilesInMemory(files) }))
    const store = await stores.open({ folder: 'a', families: { rows: {}, meta: {} } })
    await store.put(familyOf(store, 'rows'), bytes('k'), bytes('v'))
    await store.put(familyOf(store, 'meta'), bytes('k'), bytes('v'))
    const checkpoint = await store.checkpoint('saved')
    assert.deepEqual([...files.keys()], ['saved/checkpoint.kv'])
    assert.equal(checkpoint.files.length, 1)
    assert.deepEqual(checkpoint.files[0]?.families, ['default', 'rows', 'meta'])
    assert.equal((await store.usage()).descriptors, 0)
  })

  test('C-05 keeps keys as they are: a layout of prefixes is larger by exactly the prefixes', async () => {
    const { stores } = storesInMemory()
    const store = await stores.open({ folder: 'a', families: { window: {}, prefixed: {} } })
    let keyBytes = 0
    let prefixBytes = 0
    for (let at = 0; at < 1_000; at += 1) {
      const key = `user-${at * 7}`
      const namespace = `ns-${at % 10}`
      await store.put(familyOf(store, 'window'), bytes(key), bytes(''))
      await store.put(familyOf(store, 'prefixed'), bytes(`window:${key}:${namespace}`), bytes(''))
      keyBytes += key.length
      prefixBytes += 'window:'.length + ':'.length + namespace.length
    }
    assert.equal((await usageOf(store, 'window')).writeBufferBytes, keyBytes)
    assert.equal((await usageOf(store, 'prefixed')).writeBufferBytes, keyBytes + prefixBytes)
  })

  test('C-25 seals at the buffer size, holds four, and merges at eight runs', async () => {
    const { stores } = storesInMemory()
    const store = await stores.open({
      folder: 'a',
      families: {
        rows: {
          writeBufferSize: 128 * kib,
          maxWriteBufferNumber: 4,
          level0FileNumCompactionTrigger: 8,
        },
      },
    })
    const rows = familyOf(store, 'rows')
    await fill(store, rows, 512)
    assert.deepEqual(pick(await usageOf(store, 'rows')), { buffers: 512 * kib, files: 0 })
    await fill(store, rows, 1)
    assert.deepEqual(pick(await usageOf(store, 'rows')), { buffers: kib, files: 4 })
    for (let run = 5; run <= 7; run += 1) {
      await fill(store, rows, 1)
      await store.flush()
      assert.deepEqual(pick(await usageOf(store, 'rows')), { buffers: 0, files: run })
    }
    await fill(store, rows, 512)
    assert.deepEqual(pick(await usageOf(store, 'rows')), { buffers: 512 * kib, files: 7 })
    await store.flush()
    assert.ok((await usageOf(store, 'rows')).files < 8)
  })

  test('keeps a delete while an older run has its key, however small the new runs are', async () => {
    const { stores } = storesInMemory()
    const store = await stores.open({
      folder: 'a',
      families: { rows: { level0FileNumCompactionTrigger: 3 } },
    })
    const rows = familyOf(store, 'rows')
    await fill(store, rows, 500)
    const gone = bytes('gone')
    await store.put(rows, gone, bytes('v'))
    await store.flush()
    await store.delete(rows, gone)
    for (let flush = 0; flush < 6; flush += 1) {
      await store.put(rows, bytes(`new ${flush}`), bytes('v'))
      await store.flush()
      assert.equal(await store.get(rows, gone), undefined)
    }
    assert.ok((await usageOf(store, 'rows')).files >= 2)
  })

  test('is refused when it is full, before anything is applied, and goes on after deletes', async () => {
    const engine = memoryEngine({ files: kvFilesInMemory(), storedBytesMax: 256 * kib })
    const { stores } = storesInMemory({}, engine)
    const store = await stores.open({ folder: 'a', families: { rows: {} } })
    const rows = familyOf(store, 'rows')
    const keys: Uint8Array[] = []
    await assert.rejects(
      async () => {
        for (let at = 0; at < 1_000; at += 1) {
          const key = bytes(`key ${at}`)
          await store.write(store.batch().put(rows, key, new Uint8Array(kib)))
          keys.push(key)
        }
      },
      (error) =>
        isSluiceError(error, 'LIMIT_EXCEEDED') && error.details['storedBytesMax'] === 256 * kib,
    )
    assert.ok(keys.length > 200 && keys.length < 256, `${keys.length}`)
    assert.equal(await store.get(rows, bytes(`key ${keys.length}`)), undefined)
    const batch = store.batch()
    for (const key of keys.slice(0, 100)) batch.delete(rows, key)
    await store.write(batch)
    await store.put(rows, bytes('more'), new Uint8Array(kib))
    assert.equal((await store.get(rows, bytes('more')))?.length, kib)
    assert.equal((await store.get(rows, keys.at(-1) ?? bytes('')))?.length, kib)
  })

  test('counts what only a snapshot still needs', async () => {
    const engine = memoryEngine({ files: kvFilesInMemory(), storedBytesMax: 256 * kib })
    const { stores } = storesInMemory({}, engine)
    const store = await stores.open({ folder: 'a', families: { rows: {} } })
    const rows = familyOf(store, 'rows')
    const overwrite = async (): Promise<void> => {
      for (let at = 0; at < 119; at += 1) {
        await store.put(rows, bytes(`key ${at}`), new Uint8Array(kib).fill(at))
      }
      await store.flush()
    }
    await overwrite()
    const snapshot = await store.snapshot()
    await overwrite()
    await assert.rejects(overwrite, (error) => isSluiceError(error, 'LIMIT_EXCEEDED'))
    await snapshot.release()
    await overwrite()
  })

  test('values stay as they were when their key is written again', async () => {
    const { stores } = storesInMemory()
    const store = await stores.open({ folder: 'a', families: { rows: {} } })
    const rows = familyOf(store, 'rows')
    await store.put(rows, bytes('k'), bytes('old'))
    const old = await store.get(rows, bytes('k'))
    for (let at = 0; at < 2_000; at += 1) await store.put(rows, bytes('k'), bytes(`${at}`))
    await store.flush()
    assert.deepEqual(old, bytes('old'))
  })

  test('gives the room of what was overwritten back', async () => {
    const { stores } = storesInMemory()
    const store = await stores.open({ folder: 'a', families: { rows: { writeBufferSize: mib } } })
    const rows = familyOf(store, 'rows')
    for (let at = 0; at < 5_000; at += 1) {
      await store.put(rows, bytes(`key ${at % 10}`), new Uint8Array(kib))
    }
    await store.flush()
    const { storedBytes, files } = await usageOf(store, 'rows')
    assert.ok(storedBytes < files * 16 * kib, `${storedBytes} in ${files}`)
  })
})

describe('a checkpoint in one file', () => {
  test('C-32 does not open when it is cut anywhere, or a bit of it is turned', async () => {
    const files = new Map<string, Buffer>()
    const { stores } = storesInMemory({}, memoryEngine({ files: kvFilesInMemory(files) }))
    const store = await stores.open({ folder: 'a', families: { rows: {}, meta: {} } })
    await fill(store, familyOf(store, 'rows'), 1)
    await store.put(familyOf(store, 'meta'), bytes('applied'), bytes('7'))
    await store.checkpoint('saved')
    const path = 'saved/checkpoint.kv'
    const whole = files.get(path) ?? Buffer.alloc(0)
    const opens = async (content: Buffer): Promise<boolean> => {
      files.set(path, content)
      try {
        const opened = await stores.open({
          folder: 'b',
          from: 'saved',
          families: { rows: {}, meta: {} },
        })
        await opened.close()
        return true
      } catch (error) {
        assert.ok(isSluiceError(error, 'DATA_CORRUPT'), String(error))
        assert.match(error.message, /saved\/checkpoint\.kv/)
        return false
      }
    }
    assert.ok(await opens(whole))
    for (let end = 0; end < whole.length; end += 1) {
      assert.ok(!(await opens(whole.subarray(0, end))), `cut at ${end}`)
    }
    for (let at = 0; at < whole.length; at += 1) {
      const turned = Buffer.from(whole)
      turned.writeUInt8((turned.at(at) ?? 0) ^ (1 << (at % 8)), at)
      assert.ok(!(await opens(turned)), `bit turned at ${at}`)
    }
    files.delete(path)
    await assert.rejects(stores.open({ folder: 'b', from: 'saved', families: {} }), (error) =>
      isSluiceError(error, 'DATA_CORRUPT'),
    )
  })

  test('holds what is there, and not what was deleted or overwritten', async () => {
    const files = new Map<string, Buffer>()
    const { stores } = storesInMemory({}, memoryEngine({ files: kvFilesInMemory(files) }))
    const store = await stores.open({ folder: 'a', families: { rows: {} } })
    const rows = familyOf(store, 'rows')
    await store.flush()
    for (let at = 0; at < 100; at += 1) await store.put(rows, bytes(`${at}`), new Uint8Array(kib))
    await store.flush()
    for (let at = 0; at < 99; at += 1) await store.delete(rows, bytes(`${at}`))
    await store.put(rows, bytes('99'), bytes('last'))
    const { files: written } = await store.checkpoint('saved')
    assert.ok((written[0]?.bytes ?? 0) < kib)
    const found = await memoryEngine({ files: kvFilesInMemory(files) }).stored({
      folder: 'b',
      from: 'saved',
    })
    assert.deepEqual(found, [
      { name: 'default', bytes: 0 },
      { name: 'rows', bytes: '99last'.length },
    ])
  })
})

describe('a table of keys', () => {
  test('sorts keys as bytes, whatever they have in common', () => {
    const table = new KeyTable(7)
    const keys: Uint8Array[] = []
    for (const prefix of ['', 'common', 'commonprefixof16b', '\u00ff\u00ff']) {
      for (let at = 0; at < 1_500; at += 1) {
        keys.push(Buffer.from(prefix + (at * 7919).toString(at % 3 === 0 ? 36 : 2), 'latin1'))
      }
    }
    keys.push(new Uint8Array(0), Uint8Array.of(0), Uint8Array.of(0, 0), Uint8Array.of(255))
    for (const key of keys) table.put(key, hashKey(key, 7), bytes('v'))
    const expected = [...new Set(keys.map((key) => Buffer.from(key).toString('hex')))].sort()
    const found = [...table.order()].map((at) => Buffer.from(table.key(at)).toString('hex'))
    assert.deepEqual(found, expected)
    for (const key of keys) {
      const hex = Buffer.from(key).toString('hex')
      assert.equal(table.seek(key), expected.indexOf(hex), hex)
    }
  })

  test('tells keys of one hash apart', () => {
    const table = new KeyTable(0)
    const same = 12_345
    for (let at = 0; at < 300; at += 1) table.put(bytes(`${at}`), same, bytes(`v${at}`))
    for (let at = 0; at < 300; at += 1) {
      assert.deepEqual(table.value(table.find(bytes(`${at}`), same)), bytes(`v${at}`))
    }
    assert.equal(table.find(bytes('300'), same), -1)
    assert.equal(table.keys, 300)
  })
})

function pick({ writeBufferBytes, files }: FamilyUsage): {
  readonly buffers: number
  readonly files: number
} {
  return { buffers: writeBufferBytes, files }
}
