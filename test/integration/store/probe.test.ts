import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { localStore, locationOf } from '../../../src/catalog/store/local-store.ts'
import { memoryStore } from '../../../src/catalog/store/memory-store.ts'
import type { ObjectStore } from '../../../src/catalog/store/object-store.ts'
import { openStore } from '../../../src/catalog/store/open-store.ts'
import { probeUnlessKnown } from '../../../src/catalog/store/probe-cache.ts'
import { cacheFolder, fileProbeCache } from '../../../src/catalog/store/probe-cache-store.ts'
import { probeConditionalWrites } from '../../../src/catalog/store/probe-conditional.ts'
import { isSluiceError, type SluiceError } from '../../../src/core/errors.ts'
import { millis } from '../../../src/core/ids.ts'
import { seededChance, systemClock, systemIds } from '../../../src/core/system.ts'
import {
  checkThenWriteStore,
  lastBodyStore,
  staleListStore,
  unconditionalStore,
} from '../../support/lying-store.ts'

const warehouse = 's3://demo/lake'

async function refusalOf(store: ObjectStore): Promise<SluiceError> {
  try {
    await probeConditionalWrites(store, warehouse, systemIds)
  } catch (error) {
    if (isSluiceError(error)) return error
    throw error
  }
  assert.fail('the probe passed')
}

/** Runs every create as if its reply were lost, `count` times. */
function losingStore(inner: ObjectStore, count: number): ObjectStore {
  let left = count
  return {
    ...inner,
    async createIfAbsent(location, body, options) {
      const outcome = await inner.createIfAbsent(location, body, options)
      left -= 1
      return left >= 0 ? { kind: 'unknown', cause: 'lost' } : outcome
    },
  }
}

describe('the probe of conditional writes', () => {
  test('passes a store in memory and a local folder, and leaves nothing behind', async () => {
    const memory = memoryStore(systemClock)
    await probeConditionalWrites(memory, warehouse, systemIds)
    assert.equal(memory.objects.size, 0)
    const folder = await mkdtemp(join(tmpdir(), 'sluice-probe-'))
    try {
      const local = localStore(systemIds)
      await probeConditionalWrites(local, locationOf(folder), systemIds)
      assert.deepEqual(await local.list(`${locationOf(folder)}/`), [])
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  test('refuses a store that looks first and writes then, which one writer never notices', async () => {
    const memory = memoryStore(systemClock)
    const store = checkThenWriteStore(memory)
    assert.equal((await store.createIfAbsent(`${warehouse}/x`, Buffer.from('1'))).kind, 'applied')
    assert.equal((await store.createIfAbsent(`${warehouse}/x`, Buffer.from('2'))).kind, 'rejected')
    const error = await refusalOf(store)
    assert.equal(error.code, 'STORE_UNSAFE')
    assert.equal(error.details['check'], 'race')
    assert.equal(
      error.message,
      's3://demo: 4 of 4 writers created the same key at once; this store does not make conditional writes atomic',
    )
    assert.equal(error.fix, 'use a REST catalog, or a store that passes sluice doctor')
    assert.deepEqual([...memory.objects.keys()], [`${warehouse}/x`])
  })

  test('refuses a store that ignores conditions', async () => {
    const error = await refusalOf(unconditionalStore(memoryStore(systemClock)))
    assert.equal(error.code, 'STORE_UNSAFE')
    assert.equal(error.details['check'], 'second-create')
    assert.match(error.message, /ignores conditional writes/)
  })

  test('refuses a store whose list is late', async () => {
    const error = await refusalOf(staleListStore(memoryStore(systemClock)))
    assert.equal(error.code, 'STORE_UNSAFE')
    assert.equal(error.details['check'], 'list')
    assert.match(error.message, /1 of 3 keys were missing/)
  })

  test('refuses a store where the winner finds the bytes of another writer', async () => {
    const error = await refusalOf(lastBodyStore(memoryStore(systemClock)))
    assert.equal(error.code, 'STORE_UNSAFE')
    assert.equal(error.details['check'], 'winner')
  })

  test('does not take lost replies for an answer', async () => {
    await probeConditionalWrites(losingStore(memoryStore(systemClock), 3), warehouse, systemIds)
    const error = await refusalOf(losingStore(memoryStore(systemClock), 1_000))
    assert.equal(error.code, 'STORE_UNAVAILABLE')
  })
})

describe('the memory of the probe', () => {
  const hour = 60 * 60 * 1000
  const start = 1_800_000_000_000

  test('asks a store once a day and keeps only a pass', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-cache-'))
    try {
      const cache = fileProbeCache(join(folder, 'deep', 'sluice'), systemIds)
      let creates = 0
      const memory = memoryStore(systemClock)
      const counting: ObjectStore = {
        ...memory,
        createIfAbsent: (...call) => {
          creates += 1
          return memory.createIfAbsent(...call)
        },
      }
      const probeAt = async (time: number, endpoint = 'http://a', store = counting) => {
        const before = creates
        const clock = { now: () => millis(time) }
        const probed = { endpoint, bucket: 'demo', warehouse }
        await probeUnlessKnown(store, probed, { clock, ids: systemIds, cache })
        return creates > before
      }
      const lying = unconditionalStore(counting)
      await assert.rejects(probeAt(start, 'http://a', lying), /ignores conditional writes/)
      assert.equal(await probeAt(start), true, 'a failure is not kept')
      assert.equal(await probeAt(start + 23 * hour), false)
      assert.equal(await probeAt(start + 23 * hour, 'http://b'), true, 'another endpoint')
      assert.equal(await probeAt(start + 25 * hour), true, 'a day later')
      assert.equal(await probeAt(start), true, 'a clock that was set back')
      for (const file of await readdir(join(folder, 'deep', 'sluice'))) {
        await writeFile(join(folder, 'deep', 'sluice', file), 'passed at')
      }
      assert.equal(await probeAt(start), true, 'a file that is cut')
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  test('is lost without harm where it cannot be written', async () => {
    const cache = fileProbeCache(join(process.execPath, 'no-folder'), systemIds)
    await cache.remember({ endpoint: 'e', bucket: 'b' }, millis(1))
    assert.equal(await cache.passedAt({ endpoint: 'e', bucket: 'b' }), undefined)
  })

  test('is where the XDG rules put it', () => {
    assert.equal(cacheFolder({ XDG_CACHE_HOME: '/var/cache/me' }), '/var/cache/me/sluice')
    assert.equal(cacheFolder({ XDG_CACHE_HOME: 'relative' }), join(homedir(), '.cache/sluice'))
    assert.equal(cacheFolder({}), join(homedir(), '.cache/sluice'))
  })
})

describe('openStore', () => {
  const ports = { clock: systemClock, chance: seededChance(1), ids: systemIds }

  test('chooses the store by the location and gives it its one form', async () => {
    const opened = await openStore('s3a://demo/lake/', { ports, s3: { region: 'eu-west-1' } })
    assert.equal(opened.warehouse, 's3://demo/lake')
    assert.equal((await openStore('/tmp/lake', { ports })).warehouse, 'file:///tmp/lake')
    await assert.rejects(openStore('gs://demo/lake', { ports }), { code: 'LOCATION_REFUSED' })
    await assert.rejects(openStore('s3://key:secret@demo/lake', { ports }), (error) => {
      return isSluiceError(error, 'LOCATION_REFUSED') && !error.message.includes('secret')
    })
  })

  test('refuses an endpoint that is more than a place, without repeating it', async () => {
    for (const endpoint of [
      'http://user:hunter2@host',
      'http://host/?token=hunter2',
      'ftp://h',
      'x',
    ]) {
      await assert.rejects(openStore('s3://demo/lake', { ports, s3: { endpoint } }), (error) => {
        return isSluiceError(error, 'CONFIG_INVALID') && !error.message.includes('hunter2')
      })
    }
  })
})
