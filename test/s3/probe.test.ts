import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { openStore } from '../../src/catalog/store/open-store.ts'
import { probeConditionalWrites } from '../../src/catalog/store/probe-conditional.ts'
import { isSluiceError } from '../../src/core/errors.ts'
import { seededChance, systemClock, systemIds } from '../../src/core/system.ts'
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'
import { checkThenWriteStore, memoryProbeCache } from '../support/lying-store.ts'
import {
  minioProgram,
  type S3Server,
  startMinio,
  startWeed,
  storeOf,
} from '../support/s3-server.ts'

const ports = { clock: systemClock, chance: seededChance(1), ids: systemIds }

function describeServer(name: string, start: () => Promise<S3Server>): void {
  describe(`the probe at ${name}`, () => {
    let server: S3Server
    let proxy: FaultProxy
    before(async () => {
      server = await start()
      proxy = await startFaultProxy(server.endpoint)
    })
    after(async () => {
      await proxy[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    })

    test('passes, leaves nothing behind, and is not repeated within a day', async () => {
      const credentials = () => Promise.resolve(server.credentials)
      const open = async () => {
        const opened = await openStore(`s3://${server.bucket}/lake`, {
          ports,
          s3: { endpoint: proxy.endpoint, credentials },
          probe,
        })
        await opened.requireSafe()
        return opened
      }
      const probe = memoryProbeCache()
      const { store, warehouse } = await open()
      assert.deepEqual(await store.list(`${warehouse}/`), [])
      proxy.plan([])
      await open()
      assert.deepEqual(proxy.seen(), [])
    })

    test('is not misled by replies that are lost', async () => {
      const store = storeOf({ ...server, endpoint: proxy.endpoint })
      proxy.plan([
        { operation: 'create', fault: 'reset-after', nth: 1 },
        { operation: 'create', fault: 'reset-after', nth: 4 },
        { operation: 'create', fault: '409', nth: 6 },
      ])
      await probeConditionalWrites(store, `s3://${server.bucket}/lossy`, systemIds)
      assert.equal(proxy.seen().filter(({ fault }) => fault !== undefined).length, 3)
    })

    test('refuses a client that looks first and writes then', async () => {
      const store = checkThenWriteStore(storeOf(server), () => systemClock.sleep(50))
      await assert.rejects(
        probeConditionalWrites(store, `s3://${server.bucket}/unsafe`, systemIds),
        (error) => {
          assert.ok(isSluiceError(error, 'STORE_UNSAFE'), String(error))
          assert.equal(error.details['check'], 'race')
          assert.match(error.message, /[2-4] of 4 writers created the same key at once/)
          return true
        },
      )
    })
  })
}

describeServer('SeaweedFS', startWeed)
const minio = minioProgram()
if (minio !== undefined) describeServer('MinIO', () => startMinio(minio))
