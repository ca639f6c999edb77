import { deepEqual, equal, ok } from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { locationOf } from '../../../src/catalog/store/local-store.ts'
import { isSluiceError } from '../../../src/core/errors.ts'
import { openEmbeddedSource } from '../../../src/library/api/embedded-source.ts'
import { openLake } from '../../../src/library/api/lake.ts'
import { startTiering } from '../../../src/library/api/tiering-job.ts'
import { ForeignWriter } from '../../support/foreign-writer.ts'
import { scratchFolder } from '../../support/scratch.ts'

type Running = {
  readonly others: ForeignWriter
  /** Appends some records and waits until they are in the lake. */
  readonly add: (count: number) => Promise<void>
}

/** A process that goes on tiering while others work on its table. */
async function running(context: TestContext, use: (at: Running) => Promise<void>): Promise<void> {
  const warehouse = join(scratchFolder(context), 'lake')
  const lake = await openLake({ warehouse })
  const source = await openEmbeddedSource({ resumeFrom: lake })
  const table = await source.createTable('demo.clicks', { columns: { n: 'BIGINT' }, buckets: 2 })
  const job = startTiering({ source, lake })
  let next = 0
  try {
    await use({
      others: new ForeignWriter(locationOf(join(warehouse, 'demo/clicks'))),
      add: async (count) => {
        const rows = Array.from({ length: count }, (_, at) => ({ n: BigInt(next + at) }))
        next += count
        await table.append(rows)
        await job.drain()
      },
    })
  } finally {
    await job.close().catch(() => undefined)
    await source.close()
  }
}

async function stops(work: Promise<void>, code: 'TABLE_REPLACED' | 'COMMIT_STALE'): Promise<void> {
  await work.then(
    () => {
      ok(false, 'it went on')
    },
    (error: unknown) => {
      ok(isSluiceError(error, code), String(error))
    },
  )
}

test('a table dropped and made anew under a running process: TABLE_REPLACED', async (t) => {
  await running(t, async ({ others, add }) => {
    await add(100)
    await others.dropAndRecreate()
    const before = (await others.metadata()).json
    await stops(add(100), 'TABLE_REPLACED')
    deepEqual((await others.metadata()).json, before)
  })
})

test('also before the first round of the process', async (t) => {
  await running(t, async ({ others, add }) => {
    await others.dropAndRecreate()
    const before = (await others.metadata()).json
    await stops(add(100), 'TABLE_REPLACED')
    deepEqual((await others.metadata()).json, before)
  })
})

test('a table replaced under its UUID: TABLE_REPLACED', async (t) => {
  await running(t, async ({ others, add }) => {
    await add(100)
    await others.replace()
    const before = (await others.metadata()).json
    await stops(add(100), 'TABLE_REPLACED')
    deepEqual((await others.metadata()).json, before)
  })
})

test('a rollback under a running process stops it; nothing goes on top', async (t) => {
  await running(t, async ({ others, add }) => {
    await add(100)
    const [first] = await others.lineage()
    await add(100)
    await others.rollback(first ?? 0n)
    const before = (await others.metadata()).json
    await stops(add(100), 'COMMIT_STALE')
    deepEqual((await others.metadata()).json, before)
  })
})

test('commits of others under a running process stay, and it goes on', async (t) => {
  await running(t, async ({ others, add }) => {
    await add(100)
    const theirs = await others.append({ copies: 1 })
    await add(100)
    const ids = await others.lineage()
    equal(ids.length, 3)
    equal(ids[1], theirs)
  })
})
