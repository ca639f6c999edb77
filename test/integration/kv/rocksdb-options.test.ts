import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { isSluiceError } from '../../../src/core/errors.ts'
import {
  bytes,
  openRocks,
  rocksStores,
  skipWithoutRocksDb,
  textOf,
  warningsOf,
} from '../../support/rocksdb.ts'
import { scratchFolder } from '../../support/scratch.ts'

/** What RocksDB itself wrote down of the options of a family. */
function optionsOf(folder: string, family: string): Map<string, string> {
  const names = readdirSync(folder).filter((name) => name.startsWith('OPTIONS-'))
  const text = readFileSync(join(folder, names.sort().at(-1) ?? ''), 'utf8')
  const found = new Map<string, string>()
  let isWanted = false
  for (const line of text.split('\n')) {
    if (line.startsWith('[')) isWanted = line.includes(`"${family}"`)
    const [, name, value] = /^\s+(\w+)=(.*)$/.exec(line) ?? []
    if (isWanted && name !== undefined && value !== undefined) found.set(name, value)
  }
  return found
}

describe('options of families in RocksDB', { skip: skipWithoutRocksDb() }, () => {
  test('C-25 applies buffer and count of the example, and says that it cannot the trigger', async (t) => {
    const folder = join(scratchFolder(t), 'store')
    const journal = warningsOf()
    const stores = rocksStores({
      journal,
      memoryBytes: 4 * 2 ** 30,
      optionsFactory: (family, current) =>
        family === 'rows'
          ? {
              writeBufferSize: current.writeBufferSize * 2,
              maxWriteBufferNumber: 4,
              level0FileNumCompactionTrigger: 8,
            }
          : {},
    })
    const store = await openRocks(folder, ['rows', 'meta'], { stores })
    const rows = await store.columnFamily('rows')
    assert.deepEqual(rows.effectiveOptions, {
      writeBufferSize: 134_217_728,
      maxWriteBufferNumber: 4,
      level0FileNumCompactionTrigger: 'not supported',
      blockSize: 8_192,
      filter: 'bloom',
    })
    await store.close()
    const written = optionsOf(folder, 'rows')
    assert.equal(written.get('write_buffer_size'), '134217728')
    assert.equal(written.get('max_write_buffer_number'), '4')
    assert.equal(optionsOf(folder, 'meta').get('write_buffer_size'), '67108864')
    assert.equal(journal.messages.length, 1)
    assert.match(journal.messages[0] ?? '', /"rows".*level0FileNumCompactionTrigger.*not supported/)
  })

  test('C-26 block size, filter and buffer differ per family, as its OPTIONS file says', async (t) => {
    const folder = join(scratchFolder(t), 'store')
    const store = await openRocks(folder, {
      counter: { blockSize: 4_096, filter: 'ribbon', writeBufferSize: 2 ** 20 },
      window: { blockSize: 32_768, filter: 'none' },
      rows: {},
    })
    await store.close()
    const [counter, window, rows] = ['counter', 'window', 'rows'].map((name) =>
      optionsOf(folder, name),
    )
    assert.equal(counter?.get('block_size'), '4096')
    assert.match(counter.get('filter_policy') ?? '', /ribbonfilter/)
    assert.equal(counter.get('write_buffer_size'), '1048576')
    assert.equal(window?.get('block_size'), '32768')
    assert.equal(window.get('filter_policy'), 'nullptr')
    assert.equal(rows?.get('block_size'), '8192')
    assert.match(rows.get('filter_policy') ?? '', /bloomfilter:10/)
    // The binding would give each family a cache of its own.
    for (const each of [counter, window, rows]) assert.equal(each.get('no_block_cache'), 'true')
  })

  test('C-26 options of a family may differ from those of the open before', async (t) => {
    const folder = join(scratchFolder(t), 'store')
    const first = await openRocks(folder, { rows: { blockSize: 4_096 } })
    await first.put(await first.columnFamily('rows'), bytes('key'), bytes('value'))
    await first.close()
    const second = await openRocks(folder, { rows: { blockSize: 65_536, filter: 'none' } })
    const rows = await second.columnFamily('rows')
    assert.equal(textOf(await second.get(rows, bytes('key'))), 'value')
    await second.close()
    assert.equal(optionsOf(folder, 'rows').get('block_size'), '65536')
  })

  test('C-26 refuses an option that is none, which the binding would ignore', async (t) => {
    const folder = join(scratchFolder(t), 'store')
    const unknown: object = { blockCacheSize: 1 }
    await assert.rejects(openRocks(folder, { rows: unknown }), (error) => {
      assert.ok(isSluiceError(error, 'CONFIG_INVALID'))
      assert.match(error.message, /blockCacheSize/)
      return true
    })
    assert.throws(() => readdirSync(folder), /ENOENT/)
  })
})
