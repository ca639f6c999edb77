import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Table, tableFromArrays, tableToIPC } from 'apache-arrow'
import { batchToRows, type Row } from '../../../src/core/columns/rows.ts'
import { isSluiceError } from '../../../src/core/errors.ts'
import { bucket, offset } from '../../../src/core/ids.ts'
import { EmbeddedSource } from '../../../src/source/embedded/embedded-source.ts'
import { type LogTable, logTable } from '../../../src/source/embedded/log-table.ts'
import type { SourceTable } from '../../../src/source/ports.ts'
import { stillClock } from '../../property/source/embedded-world.ts'

type World = {
  readonly source: EmbeddedSource
  readonly table: SourceTable
  readonly log: LogTable
}

function open(logMemoryBytes = 2 ** 24): World {
  const source = new EmbeddedSource({ clock: stillClock, logMemoryBytes })
  const table = source.createTable({
    name: 'demo.clicks',
    bucketCount: 1,
    freshnessMs: 1000,
    schema: {
      fields: [
        { name: 'id', type: { kind: 'bigint', nullable: false } },
        { name: 'score', type: { kind: 'double', nullable: true } },
      ],
    },
  })
  return { source, table, log: logTable(source, table) }
}

async function rowsIn({ source, table }: World): Promise<Row[]> {
  const rows: Row[] = []
  const [range] = await source.ranges(table.id)
  for await (const { records } of source.read(table.id, bucket(0), offset(0n), range!.end)) {
    rows.push(...batchToRows(table.schema.fields, records))
  }
  return rows
}

async function* feed(count: number, bad?: number): AsyncGenerator<Row> {
  for (let i = 0; i < count; i += 1) {
    await Promise.resolve()
    yield { id: i === bad ? 'no number' : i, score: null }
  }
}

const ids = (rows: readonly Row[]): readonly unknown[] => rows.map((row) => row['id'])

describe('LogTable.append', () => {
  test('takes one row, or several, and tells the end', async () => {
    const world = open()
    assert.deepEqual(await world.log.append({ id: 1n, score: 0.5 }), {
      table: 'demo.clicks',
      ends: new Map([[0, 1n]]),
    })
    const { ends } = await world.log.append([{ id: 2n }, { id: 3, score: null }])
    assert.deepEqual(ends, new Map([[0, 3n]]))
    assert.deepEqual(await rowsIn(world), [
      { id: 1n, score: 0.5 },
      { id: 2n, score: null },
      { id: 3n, score: null },
    ])
    assert.deepEqual((await world.log.append([])).ends, new Map())
  })

  test('refuses an array whole', async () => {
    const world = open()
    await assert.rejects(world.log.append([{ id: 1n }, { id: null }]), (error) => {
      assert.ok(isSluiceError(error, 'RECORD_REFUSED'))
      assert.equal(error.details['row'], 1)
      return true
    })
    assert.deepEqual(await rowsIn(world), [])
  })

  test('takes an async iterable in chunks and says how many rows it took', async () => {
    const world = open()
    await world.log.append(feed(2500))
    assert.deepEqual(
      ids(await rowsIn(world)),
      Array.from({ length: 2500 }, (_, i) => BigInt(i)),
    )
    await assert.rejects(world.log.append(feed(3000, 2100)), (error) => {
      assert.ok(isSluiceError(error, 'RECORD_REFUSED'))
      assert.deepEqual([error.details['accepted'], error.details['row']], [2048, 2100])
      return true
    })
    assert.equal((await rowsIn(world)).length, 4548)
  })

  test('passes on that the iterable itself failed', async () => {
    const world = open()
    async function* broken(): AsyncGenerator<Row> {
      yield* feed(1500)
      throw new Error('connection reset')
    }
    await assert.rejects(world.log.append(broken()), (error) => {
      assert.ok(isSluiceError(error, 'INPUT_UNREADABLE'))
      assert.match(error.message, /connection reset/)
      assert.equal(error.details['accepted'], 1024)
      return true
    })
  })

  test('can be ended while the iterable gives nothing', async () => {
    const world = open()
    const stop = new AbortController()
    async function* silent(): AsyncGenerator<Row> {
      yield { id: 1n }
      await new Promise(() => undefined)
    }
    const appending = world.log.append(silent(), { signal: stop.signal })
    stop.abort()
    await assert.rejects(appending, (error) => {
      assert.ok(isSluiceError(error, 'STOPPED'))
      assert.equal(error.details['accepted'], 0)
      return true
    })
  })

  test('takes Arrow tables, batches and streams, with columns in any order', async () => {
    const arrow = tableFromArrays({
      score: Float64Array.of(0.5, 1.5),
      id: BigInt64Array.of(1n, 2n),
    })
    const rows = [
      { id: 1n, score: 0.5 },
      { id: 2n, score: 1.5 },
    ]
    for (const records of [arrow, arrow.batches[0]!, tableToIPC(arrow, 'stream')]) {
      const world = open()
      await world.log.append(records)
      assert.deepEqual(await rowsIn(world), rows)
    }
    // Two batches: taken together.
    const world = open()
    assert.deepEqual((await world.log.append(arrow.concat(arrow))).ends, new Map([[0, 4n]]))
    assert.deepEqual(await rowsIn(world), [...rows, ...rows])
  })

  test('refuses Arrow data of another shape', async () => {
    const world = open()
    const id = BigInt64Array.of(1n)
    const cases: readonly [Uint8Array | Table, string, RegExp][] = [
      [
        tableFromArrays({ score: Float64Array.of(1) }),
        'RECORD_REFUSED',
        /"id" is missing, the table has BIGINT NOT NULL/,
      ],
      [tableFromArrays({ id, score: id }), 'RECORD_REFUSED', /is BIGINT, the table has DOUBLE/],
      [
        tableFromArrays({ id, score: Float64Array.of(1), more: id }),
        'RECORD_REFUSED',
        /"more" is not a column/,
      ],
      [Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8), 'INPUT_UNREADABLE', /Arrow IPC/],
    ]
    for (const [records, code, message] of cases) {
      await assert.rejects(world.log.append(records), (error) => {
        assert.ok(isSluiceError(error))
        assert.equal(error.code, code)
        assert.match(error.message, message)
        return true
      })
    }
    assert.deepEqual(await rowsIn(world), [])
  })

  test('carries the position of a feed, also over chunks', async () => {
    const world = open()
    const { source, table, log } = world
    const at = (end: bigint) =>
      source.inputs(table.id, new Map([[bucket(0), offset(end)]])).get('feed')
    await log.append({ id: 1n }, { input: { id: 'feed', position: 'lsn 1' } })
    await log.append(feed(1500), { input: { id: 'feed', position: 'lsn 2' } })
    assert.equal(at(0n), undefined)
    assert.equal(at(1n)?.position, 'lsn 1')
    const partly = at(1500n)
    assert.deepEqual([partly?.position, partly?.extra], ['lsn 1', new Map([[bucket(0), 1499n]])])
    const wholly = at(1501n)
    assert.deepEqual([wholly?.position, wholly?.records, wholly?.extra.size], ['lsn 2', 1501n, 0])
  })

  test('rejects with LOG_FULL when asked to', async () => {
    const { log } = open(2_000)
    await log.append({ id: 1n })
    await assert.rejects(
      log.append(
        Array.from({ length: 500 }, (_, i) => ({ id: i })),
        { whenFull: 'reject' },
      ),
      (error) => isSluiceError(error, 'LOG_FULL'),
    )
  })
})
