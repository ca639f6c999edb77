import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { extname, join } from 'node:path'
import { describe, test } from 'node:test'
import { isSluiceError } from '../../../src/core/errors.ts'
import { isJsonObject, parseJson, stringifyJson } from '../../../src/core/json64.ts'
import { bytes, openRocks, skipWithoutRocksDb } from '../../support/rocksdb.ts'
import { scratchFolder } from '../../support/scratch.ts'

const families = ['rows']

/** A number that no process has any more. */
async function endedProcess(): Promise<number> {
  const child = fork(
    join(import.meta.dirname, `../../support/nothing${extname(import.meta.filename)}`),
  )
  await new Promise((resolve) => child.once('exit', resolve))
  assert.ok(child.pid !== undefined)
  return child.pid
}

describe('a RocksDB store is open once', { skip: skipWithoutRocksDb() }, () => {
  const inUse = (error: unknown): boolean => {
    assert.ok(isSluiceError(error, 'STORE_UNAVAILABLE'), String(error))
    assert.match(error.message, /open already/)
    assert.equal(error.effect, 'none')
    return true
  }

  test('also while it gives up RocksDBs own lock for a checkpoint', async (t) => {
    const folder = scratchFolder(t)
    const path = join(folder, 'store')
    const store = await openRocks(path, families)
    const rows = await store.columnFamily('rows')
    await store.put(rows, bytes('key'), bytes('value'))
    for (let round = 0; round < 10; round += 1) {
      await store.put(rows, bytes('key'), bytes(`value ${round}`))
      const checkpoint = store.checkpoint(join(folder, `checkpoint ${round}`))
      const tries = Array.from({ length: 20 }, () =>
        assert.rejects(openRocks(path, families), inUse),
      )
      await Promise.all([checkpoint, ...tries])
    }
    await store.put(rows, bytes('key'), bytes('later'))
    await store.close()
    assert.ok(!existsSync(join(path, 'SLUICE.lock')))
    await (await openRocks(path, families)).close()
  })

  test('a lock of a process that is gone is taken over, by one of many', async (t) => {
    const path = join(scratchFolder(t), 'store')
    await (await openRocks(path, families)).close()
    const lock = join(path, 'SLUICE.lock')
    const holder = { host: hostname(), pid: await endedProcess(), begun: '1', token: '1' }
    writeFileSync(lock, stringifyJson(holder))
    const tries = await Promise.allSettled(
      Array.from({ length: 10 }, () => openRocks(path, families)),
    )
    const open = tries.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    assert.equal(open.length, 1)
    const held = parseJson(readFileSync(lock), { name: lock })
    assert.ok(isJsonObject(held))
    assert.equal(held['pid'], process.pid)
    for (const store of open) await store.close()
  })

  test('a number that another process got since holds nothing', async (t) => {
    const path = join(scratchFolder(t), 'store')
    await (await openRocks(path, families)).close()
    const lock = join(path, 'SLUICE.lock')
    const begun = process.platform === 'linux' ? 'another moment' : ''
    writeFileSync(lock, stringifyJson({ host: hostname(), pid: process.pid, begun, token: '0' }))
    if (begun === '') await assert.rejects(openRocks(path, families), inUse)
    else await (await openRocks(path, families)).close()
  })

  test('nobody can say whether a process of another machine is gone', async (t) => {
    const path = join(scratchFolder(t), 'store')
    await (await openRocks(path, families)).close()
    const lock = join(path, 'SLUICE.lock')
    writeFileSync(lock, stringifyJson({ host: 'elsewhere', pid: 1, begun: '1', token: '1' }))
    await assert.rejects(openRocks(path, families), (error) => {
      assert.ok(isSluiceError(error, 'STORE_UNAVAILABLE'))
      assert.match(error.fix ?? '', /elsewhere/)
      assert.ok(error.fix?.includes(lock))
      return true
    })
    assert.ok(existsSync(lock))
  })
})
