import assert from 'node:assert/strict'
import { readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { isSluiceError } from '../../../src/core/errors.ts'
import { seededChance } from '../../../src/core/system.ts'
import type { KvStore } from '../../../src/source/kv/ports.ts'
import { parseManifest, readManifest } from '../../../src/source/kv/rocksdb/manifest.ts'
import { bytes, openRocks, skipWithoutRocksDb } from '../../support/rocksdb.ts'
import { scratchFolder } from '../../support/scratch.ts'

const skip = skipWithoutRocksDb()
const states = ['counter', 'window', 'attributes']

async function family(store: KvStore, name: string): ReturnType<KvStore['columnFamily']> {
  return store.columnFamily(name)
}

async function put(store: KvStore, name: string, key: string, value = 'v'): Promise<void> {
  await store.put(await family(store, name), bytes(key), bytes(value))
}

function tables(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.sst'))
    .sort()
}

/** What each family says of its files, through the binding alone. */
async function tablesByFamily(folder: string, names: string[]): Promise<Map<string, number[]>> {
  type Session = {
    getProperty(name: string): Promise<string>
  }
  type Raw = {
    ready(): Promise<void>
    close(options: object): Promise<void>
    columnFamily(name: string): Session
  }
  const RocksDB = createRequire(import.meta.url)('rocksdb-native') as new (
    folder: string,
    options: object,
  ) => Raw
  const raw = new RocksDB(folder, { columnFamilies: names.slice(1) })
  await raw.ready()
  const found = new Map<string, number[]>()
  for (const name of names) {
    const text = await raw.columnFamily(name).getProperty('rocksdb.sstables')
    found.set(
      name,
      [...text.matchAll(/^ (\d+):/gm)].map(([, number]) => Number(number)),
    )
  }
  await raw.close({ force: true })
  return found
}

describe('the files of a RocksDB store', { skip }, () => {
  test('C-02 each family has its own write buffer and its own files', async (t) => {
    const store = await openRocks(join(scratchFolder(t), 'store'), ['a', 'b'])
    const usage = async (name: string): Promise<{ buffer: number; files: number }> => {
      const found = (await store.usage()).families.find((each) => each.name === name)
      assert.ok(found !== undefined)
      return { buffer: found.writeBufferBytes, files: found.files }
    }
    const before = { a: await usage('a'), b: await usage('b') }
    const a = await family(store, 'a')
    const value = new Uint8Array(1024).fill(7)
    for (let at = 0; at < 3 * 1024; at += 1) {
      await store.put(a, bytes(`key-${String(at).padStart(8, '0')}`), value)
    }
    assert.ok((await usage('a')).buffer >= before.a.buffer + 3 * 2 ** 20)
    assert.deepEqual(await usage('b'), before.b)
    await store.flush([a])
    assert.equal((await usage('a')).files, before.a.files + 1)
    assert.equal((await usage('b')).files, 0)
    assert.ok((await usage('a')).buffer < 1024 * 1024)
    await store.close()
  })

  test('C-03 C-12 mixes numbered files of all families in one folder, in one sequence', async (t) => {
    const folder = join(scratchFolder(t), 'store')
    const store = await openRocks(folder, states)
    const numbers: number[] = []
    for (const round of ['first', 'second']) {
      for (const name of states) {
        const before = tables(folder)
        await put(store, name, round)
        await store.flush([await family(store, name)])
        const made = tables(folder).filter((each) => !before.includes(each))
        assert.equal(made.length, 1)
        numbers.push(Number(made[0]?.replace('.sst', '')))
      }
    }
    assert.deepEqual(
      numbers,
      [...numbers].sort((a, b) => a - b),
    )
    assert.equal(new Set(numbers).size, 6)
    await store.close()
    for (const name of readdirSync(folder)) {
      assert.ok(statSync(join(folder, name)).isFile(), `${name} lies directly in the folder`)
      for (const state of states) assert.ok(!name.includes(state), name)
    }
  })

  test('C-13 the manifest, and only it, maps files to families', async (t) => {
    const folder = join(scratchFolder(t), 'store')
    const store = await openRocks(folder, states)
    for (const name of states) {
      await put(store, name, 'key')
      await store.flush()
    }
    await put(store, 'window', 'other')
    await store.close()
    const names = ['default', ...states]
    const said = await tablesByFamily(folder, names)
    const all = [...said.values()].flat()
    assert.equal(new Set(all).size, all.length, 'no file is of two families')
    assert.deepEqual(
      all.map((number) => `${String(number).padStart(6, '0')}.sst`).sort(),
      tables(folder),
    )
    const manifest = await readManifest(folder)
    assert.ok(manifest !== undefined)
    for (const { name, files } of manifest.families) {
      assert.deepEqual([...files.keys()].sort(), said.get(name)?.sort(), name)
    }
    assert.deepEqual(
      manifest.families.map(({ name }) => name),
      names,
    )

    renameSync(join(folder, manifest.name), join(folder, '..', manifest.name))
    await assert.rejects(openRocks(folder, states), (error) => {
      assert.ok(isSluiceError(error, 'DATA_CORRUPT'))
      assert.ok(error.message.includes(manifest.name), error.message)
      return true
    })
  })

  test('C-13 a store without CURRENT is refused, and no new one begun over it', async (t) => {
    const folder = join(scratchFolder(t), 'store')
    const store = await openRocks(folder, states)
    for (const name of states) await put(store, name, 'key')
    await store.flush()
    await store.close()
    renameSync(join(folder, 'CURRENT'), join(folder, '..', 'CURRENT'))
    await assert.rejects(openRocks(folder, states), (error) => {
      assert.ok(isSluiceError(error, 'DATA_CORRUPT'))
      assert.match(error.message, /CURRENT/)
      return true
    })
    assert.deepEqual(
      readdirSync(folder).filter((name) => name === 'CURRENT'),
      [],
      'nothing was begun over what is there',
    )
  })

  test('C-13 a manifest altered anywhere is read, or refused with its name', async (t) => {
    const folder = join(scratchFolder(t), 'store')
    const store = await openRocks(folder, states)
    for (const name of states) await put(store, name, 'key')
    await store.flush()
    await store.close()
    const name = readFileSync(join(folder, 'CURRENT'), 'utf8').trim()
    const whole = readFileSync(join(folder, name))
    const chance = seededChance(7)
    for (let round = 0; round < 2_000; round += 1) {
      const altered = Buffer.from(whole.subarray(0, chance.below(whole.length + 1)))
      for (let at = 0; at < 3 && altered.length > 0; at += 1) {
        altered.writeUInt8(chance.below(256), chance.below(altered.length))
      }
      try {
        parseManifest(altered, folder, name)
      } catch (error) {
        assert.ok(isSluiceError(error, 'DATA_CORRUPT'), String(error))
        assert.ok(error.message.includes(name))
      }
    }
  })

  test('C-14 holds CURRENT, a manifest, options, numbered files, logs and one note of ours', async (t) => {
    const folder = join(scratchFolder(t), 'store')
    const store = await openRocks(folder, states)
    await put(store, 'counter', 'key')
    await store.flush()
    await put(store, 'counter', 'later')
    await store.close()
    const names = readdirSync(folder).filter((name) => name !== 'SLUICE')
    for (const name of names) {
      assert.match(
        name,
        /^(CURRENT|IDENTITY|LOCK|LOG.*|SESSION_ID|MANIFEST-\d{6}|OPTIONS-\d{6}|\d{6}\.(sst|log))$/,
      )
    }
    for (const kind of [/^CURRENT$/, /^MANIFEST-/, /^OPTIONS-/, /\.sst$/, /\.log$/]) {
      assert.ok(
        names.some((name) => kind.test(name)),
        String(kind),
      )
    }
    assert.match(readFileSync(join(folder, 'CURRENT'), 'utf8'), /^MANIFEST-\d{6}\n$/)
  })

  test('keeps its journals of earlier opens from piling up', async (t) => {
    const folder = join(scratchFolder(t), 'store')
    for (let at = 0; at < 4; at += 1) await (await openRocks(folder, states)).close()
    const old = readdirSync(folder).filter((name) => name.startsWith('LOG.old'))
    assert.ok(old.length <= 1, old.join())
  })

  test('refuses a folder that holds something else, and leaves it as it is', async (t) => {
    const folder = scratchFolder(t)
    const other = join(folder, 'letter.txt')
    writeFileSync(other, 'dear all')
    await assert.rejects(openRocks(folder, states), (error) => {
      assert.ok(isSluiceError(error, 'LOCATION_REFUSED'))
      assert.match(error.message, /letter\.txt/)
      return true
    })
    assert.deepEqual(readdirSync(folder), ['letter.txt'])
  })
})
