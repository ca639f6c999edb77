import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import {
  openEmbeddedSource,
  openLake,
  type S3Options,
  startTiering,
  tier,
} from '../../src/index.ts'
import { requireWhole } from '../support/audit.ts'
import { type S3Server, startWeed, storeOf } from '../support/s3-server.ts'
import { startS3rver } from '../support/s3rver.ts'
import { scratchFolder } from '../support/scratch.ts'

describe('the library on S3', () => {
  let server: S3Server
  let s3: S3Options
  before(async () => {
    server = await startWeed()
    const credentials = () => Promise.resolve(server.credentials)
    s3 = { endpoint: server.endpoint, credentials }
  })
  after(async () => {
    await server[Symbol.asyncDispose]()
  })

  test('appends, tiers and reads back with credentials that the program provides', async () => {
    const warehouse = `s3a://${server.bucket}/library/`
    const lake = await openLake({ warehouse, s3 })
    assert.equal(lake.warehouse, `s3://${server.bucket}/library`)
    const source = await openEmbeddedSource({ resumeFrom: lake })
    const clicks = await source.createTable('web.clicks', {
      columns: { id: 'BIGINT', url: 'STRING' },
    })
    const job = startTiering({ source, lake })
    await clicks.append(Array.from({ length: 500 }, (_, id) => ({ id: BigInt(id), url: '/' })))
    await job.drain()
    const ids = []
    for await (const row of (await lake.table('web.clicks')).rows()) ids.push(Number(row['id']))
    assert.deepEqual(
      ids.sort((a, b) => a - b),
      Array.from({ length: 500 }, (_, id) => id),
    )
    await job.close()
    await source.close()
    await requireWhole(storeOf(server), lake.warehouse, 500)
  })

  test('tiers a file into the lake that it was given', async (t) => {
    const path = join(scratchFolder(t), 'a.ndjson')
    writeFileSync(path, '{"id":1}\n{"id":2}\n')
    const lake = await openLake({ warehouse: `s3://${server.bucket}/file`, s3 })
    assert.equal((await tier(path, { lake, table: 'demo.a' })).rows, 2n)
    assert.equal((await tier(path, { lake, table: 'demo.a' })).rows, 0n)
    await requireWhole(storeOf(server), lake.warehouse, 2)
  })
})

test('the library refuses to write to a store that ignores conditional writes', async () => {
  const unsafe = await startS3rver()
  try {
    const keys = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' }
    const credentials = () => Promise.resolve(keys)
    const s3 = { endpoint: unsafe.endpoint, credentials }
    const lake = await openLake({ warehouse: 's3://unsafe/lake', s3 })
    const source = await openEmbeddedSource({ resumeFrom: lake })
    await assert.rejects(source.createTable('a.b', { columns: { id: 'BIGINT' } }), {
      code: 'STORE_UNSAFE',
    })
    await source.close()
    const store = storeOf({ endpoint: unsafe.endpoint, bucket: 'unsafe', credentials: keys })
    assert.deepEqual(await store.list('s3://unsafe/'), [])
  } finally {
    await unsafe.stop()
  }
})
