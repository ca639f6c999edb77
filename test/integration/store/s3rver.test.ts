import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryProbeCache } from '../../support/lying-store.ts'
import { startS3rver } from '../../support/s3rver.ts'
import { openStore } from '../../../src/catalog/store/open-store.ts'
import { isSluiceError } from '../../../src/core/errors.ts'
import { seededChance, systemClock, systemIds } from '../../../src/core/system.ts'

test('refuses a real server that ignores conditional headers, before anything is written', async () => {
  const server = await startS3rver()
  try {
    const cache = memoryProbeCache()
    const opened = await openStore('s3://unsafe/lake', {
      ports: { clock: systemClock, chance: seededChance(1), ids: systemIds },
      s3: {
        endpoint: server.endpoint,
        credentials: () => Promise.resolve({ accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' }),
      },
      probe: cache,
    })
    await assert.rejects(opened.requireSafe(), (error) => {
      assert.ok(isSluiceError(error, 'STORE_UNSAFE'), String(error))
      assert.equal(error.details['check'], 'second-create')
      assert.match(error.message, /^s3:\/\/unsafe: /)
      return true
    })
    assert.equal(await cache.passedAt({ endpoint: server.endpoint, bucket: 'unsafe' }), undefined)
  } finally {
    await server.stop()
  }
})
