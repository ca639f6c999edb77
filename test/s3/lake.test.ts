import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { fileCatalog } from '../../src/catalog/iceberg/file-catalog.ts'
import type { LakeTable, TableChange, TableDefinition } from '../../src/catalog/ports.ts'
import type { ObjectStore } from '../../src/catalog/store/object-store.ts'
import { snapshotId } from '../../src/core/ids.ts'
import { systemClock, systemIds } from '../../src/core/system.ts'
import { type Fault, type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'
import { type S3Server, startWeed, storeOf } from '../support/s3-server.ts'

const definition: TableDefinition = {
  name: ['demo', 'clicks'],
  schema: { fields: [{ name: 'id', type: { kind: 'bigint', nullable: false } }] },
  bucketCount: 2,
  properties: new Map(),
}

function change(id: bigint, who: string): TableChange {
  return {
    snapshot: {
      id: snapshotId(id),
      operation: 'append',
      summary: new Map([['sluice.commit-id', who]]),
      files: [],
    },
    setProperties: new Map(),
  }
}

describe('a lake on S3', () => {
  let server: S3Server
  let proxy: FaultProxy
  before(async () => {
    server = await startWeed()
    proxy = await startFaultProxy(server.endpoint)
  })
  after(async () => {
    await proxy[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  const catalogOver = (store: ObjectStore, warehouse: string) =>
    fileCatalog({ store, warehouse, clock: systemClock, ids: systemIds })
  const faultyStore = (): ObjectStore => storeOf({ ...server, endpoint: proxy.endpoint })

  test('holds tables by s3 locations, found again by name and in the list', async () => {
    const warehouse = `s3://${server.bucket}/named`
    const { table, created } = await catalogOver(storeOf(server), `${warehouse}/`).create(
      definition,
    )
    assert.equal(created, true)
    assert.equal((await table.load()).location, `${warehouse}/demo/clicks`)
    const other = catalogOver(storeOf(server), `s3a://${server.bucket}/named`)
    assert.deepEqual(await other.list(), [['demo', 'clicks']])
    assert.equal((await other.create(definition)).created, false)
    const found = await other.open(['demo', 'clicks'])
    assert.equal((await found?.load())?.uuid, (await table.load()).uuid)
    assert.equal(await other.open(['demo', 'nothing']), undefined)
  })

  test('takes each commit once, though replies to half of them are lost', async () => {
    const warehouse = `s3://${server.bucket}/lossy`
    const { table } = await catalogOver(faultyStore(), warehouse).create(definition)
    const faults: readonly (Fault | undefined)[] = [
      'reset-after',
      undefined,
      '500-after',
      'doubled',
    ]
    for (const [at, fault] of faults.entries()) {
      const base = await table.load()
      // Manifests are created by the same request, under names of their own.
      proxy.plan(fault === undefined ? [] : [{ operation: 'create', fault, times: 99 }])
      const id = BigInt(at + 1)
      let outcome = await table
        .swap(base, change(id, `round ${at}`))
        .catch((error: unknown) => error)
      proxy.plan([])
      if (!isApplied(outcome)) outcome = await settle(table, id, `round ${at}`)
      assert.ok(isApplied(outcome), `${String(fault)} ends as a commit`)
    }
    const { snapshots, head } = await table.load()
    assert.deepEqual([...snapshots.keys()], [1n, 2n, 3n, 4n])
    assert.equal(head, 4n)
  })

  test('gives each version to one of writers that race for it', async () => {
    const warehouse = `s3://${server.bucket}/raced`
    await catalogOver(storeOf(server), warehouse).create(definition)
    const tables = await Promise.all(
      [1, 2, 3].map(() => catalogOver(storeOf(server), warehouse).open(definition.name)),
    )
    const writers = tables.filter((table) => table !== undefined)
    for (let round = 0n; round < 3n; round += 1n) {
      const bases = await Promise.all(writers.map((table) => table.load()))
      const outcomes = await Promise.all(
        writers.map((table, at) => {
          const base = bases[at]
          assert.ok(base !== undefined)
          return table.swap(base, change(round * 10n + BigInt(at + 1), `writer ${at}`))
        }),
      )
      const kinds = outcomes.map(({ kind }) => kind).sort()
      assert.deepEqual(kinds, ['applied', 'rejected', 'rejected'])
    }
    const loaded = await writers[0]?.load()
    assert.equal(loaded?.snapshots.size, 3)
    let walked = 0
    for (let id = loaded.head; id !== undefined; walked += 1) id = loaded.snapshots.get(id)?.parent
    assert.equal(walked, 3, 'the lineage is one line')
  })
})

function isApplied(outcome: unknown): boolean {
  return (
    typeof outcome === 'object' &&
    outcome !== null &&
    'kind' in outcome &&
    outcome.kind === 'applied'
  )
}

/** What a committer does after a doubt: looks for its own snapshot, else tries again. */
async function settle(table: LakeTable, id: bigint, who: string): Promise<unknown> {
  const head = await table.load()
  const own = head.snapshots.get(snapshotId(id))
  if (own?.summary.get('sluice.commit-id') === who) return { kind: 'applied' }
  return table.swap(head, change(id, who))
}
