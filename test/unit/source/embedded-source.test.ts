import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { columnBuilder } from '../../../src/core/columns/builder.ts'
import type { ColumnBatch } from '../../../src/core/columns/column.ts'
import { type ErrorCode, isSluiceError, type SluiceError } from '../../../src/core/errors.ts'
import { bucket, millis, type Offset, offset, type TableId } from '../../../src/core/ids.ts'
import type { TableSchema } from '../../../src/core/schema/types.ts'
import { EmbeddedSource } from '../../../src/source/embedded/embedded-source.ts'
import { numbers, stillClock, valuesOf } from '../../property/source/embedded-world.ts'

const schema: TableSchema = { fields: [{ name: 'n', type: { kind: 'bigint', nullable: false } }] }
const definition = { name: 'demo.numbers', schema, bucketCount: 4, freshnessMs: 1000 }

function open(logMemoryBytes = 2 ** 20): EmbeddedSource {
  return new EmbeddedSource({ clock: stillClock, logMemoryBytes })
}

function upTo(count: number, from = 0): ColumnBatch {
  return numbers(Array.from({ length: count }, (_, i) => from + i))
}

async function ends(source: EmbeddedSource, id: TableId): Promise<readonly bigint[]> {
  return (await source.ranges(id)).map(({ end }) => end)
}

async function commitAll(source: EmbeddedSource, id: TableId): Promise<void> {
  const ranges = await source.ranges(id)
  source.committed(id, new Map(ranges.map(({ bucket, end }) => [bucket, end])))
}

const refusal =
  (code: ErrorCode, details: Record<string, unknown> = {}) =>
  (error: unknown): boolean => {
    assert.ok(isSluiceError(error, code), String(error))
    const picked = Object.fromEntries(Object.keys(details).map((key) => [key, error.details[key]]))
    assert.deepEqual(picked, details)
    return true
  }

/** Lets every promise that can settle do so. */
async function settle(): Promise<void> {
  for (let i = 0; i < 20; i += 1) await Promise.resolve()
}

describe('createTable', () => {
  test('T-01 refuses another bucket count and names both', () => {
    const source = open()
    const table = source.createTable(definition)
    assert.throws(
      () => source.createTable({ ...definition, bucketCount: 8 }),
      (error: SluiceError) => {
        assert.match(error.message, /\b4\b.*\b8\b/)
        return refusal('TABLE_MISMATCH', { existing: 4, asked: 8 })(error)
      },
    )
    assert.equal(source.table(table.id)?.bucketCount, 4)
    assert.throws(
      () =>
        open().createTable(definition, {
          ends: new Map([[bucket(7), offset(1n)]]),
          inputs: new Map(),
        }),
      refusal('TABLE_MISMATCH', { bucket: 7, asked: 4 }),
    )
  })

  test('opens a table of the same definition and refuses another', () => {
    const source = open()
    const table = source.createTable(definition)
    assert.equal(source.createTable({ ...definition, schema: structuredClone(schema) }), table)
    for (const other of [
      { ...definition, bucketKey: 'n' },
      { ...definition, freshnessMs: 5 },
      {
        ...definition,
        schema: { fields: [{ name: 'm', type: { kind: 'bigint', nullable: false } }] },
      },
    ] as const) {
      assert.throws(() => source.createTable(other), refusal('TABLE_MISMATCH'))
    }
    assert.deepEqual(source.tables(), [table])
    assert.equal(table.sourceId, 'embedded:demo.numbers')
  })

  test('refuses bucket counts out of range and keys that are no column or cannot be one', () => {
    for (const bucketCount of [0, -1, 1.5, 4097, Number.NaN]) {
      assert.throws(
        () => open().createTable({ ...definition, bucketCount }),
        refusal('CONFIG_INVALID'),
      )
    }
    assert.throws(
      () => open().createTable({ ...definition, bucketKey: 'm' }),
      refusal('SCHEMA_UNSUPPORTED'),
    )
    const flag: TableSchema = {
      fields: [{ name: 'f', type: { kind: 'boolean', nullable: false } }],
    }
    assert.throws(
      () => open().createTable({ ...definition, schema: flag, bucketKey: 'f' }),
      refusal('SCHEMA_UNSUPPORTED'),
    )
  })
})

describe('append', () => {
  test('T-13 refuses a change on a log table and uses no offset', async () => {
    const source = open()
    const { id } = source.createTable(definition)
    await source.append(id, upTo(3))
    for (const change of ['+I', '-U', '+U', '-D'] as const) {
      await assert.rejects(
        source.append(id, upTo(1), { change }),
        refusal('RECORD_REFUSED', { change }),
      )
    }
    assert.deepEqual(await ends(source, id), [3n, 0n, 0n, 0n])
    await source.append(id, upTo(1), { change: '+A' })
    assert.deepEqual(await ends(source, id), [4n, 0n, 0n, 0n])
  })

  test('tells the offsets it gave, and goes on from the ends of the lake', async () => {
    const source = open()
    const resumed: [number, bigint][] = [
      [0, 1024n],
      [2, 7n],
    ]
    const { id } = source.createTable(definition, {
      ends: new Map(resumed.map(([b, o]) => [bucket(b), offset(o)])),
      inputs: new Map(),
    })
    // Places without an input go on after the 1,031 records there are: in the block of bucket 1.
    const { ranges } = await source.append(id, upTo(1024))
    assert.deepEqual(ranges, [
      { bucket: 1, start: 0n, end: 1017n },
      { bucket: 2, start: 7n, end: 14n },
    ])
    assert.deepEqual(await source.ranges(id), [
      { bucket: 0, earliest: 1024n, end: 1024n },
      { bucket: 1, earliest: 0n, end: 1017n },
      { bucket: 2, earliest: 7n, end: 14n },
      { bucket: 3, earliest: 0n, end: 0n },
    ])
  })

  test('refuses a batch with a null where the table has none, whole', async () => {
    const source = open()
    const { id } = source.createTable(definition)
    const builder = columnBuilder({ kind: 'bigint', nullable: true })
    assert.ok(builder.layout === 'int64')
    builder.append(1n)
    builder.appendNull()
    const batch = { length: 2, columns: [builder.finish()] }
    await assert.rejects(
      source.append(id, batch),
      refusal('RECORD_REFUSED', { row: 1, column: 'n', reason: 'null' }),
    )
    assert.deepEqual(await ends(source, id), [0n, 0n, 0n, 0n])
  })

  test('keeps the records of small appends apart from the buffers they came in', async () => {
    const source = open()
    const { id } = source.createTable(definition)
    const batch = upTo(2)
    await source.append(id, batch)
    for await (const { records } of source.read(id, bucket(0), offset(0n), offset(2n))) {
      assert.deepEqual(valuesOf(records), [0, 1])
      const column = records.columns[0]
      assert.ok(column?.layout === 'int64')
      assert.equal(column.values.buffer.byteLength, 16)
    }
  })

  test('refuses an input that goes on elsewhere than it was', async () => {
    const source = open()
    const { id } = source.createTable(definition)
    const input = { id: 'a', name: 'a.ndjson', position: '3', startOrdinal: 0n }
    await source.append(id, upTo(3), { input })
    await assert.rejects(
      source.append(id, upTo(3), { input }),
      refusal('INPUT_CHANGED', { expected: 3n, given: 0n }),
    )
    assert.deepEqual(await ends(source, id), [3n, 0n, 0n, 0n])
  })
})

describe('memory', () => {
  // A thousand numbers take 8,000 bytes and a little; two such batches fit, three do not.
  const memory = 20_000

  test('makes an append wait until a commit has made room, in order', async () => {
    const source = open(memory)
    const { id } = source.createTable({ ...definition, bucketCount: 1 })
    await source.append(id, upTo(1000))
    await source.append(id, upTo(1000))
    const done: string[] = []
    const third = source.append(id, upTo(1000)).then(() => done.push('third'))
    const fourth = source.append(id, upTo(1)).then(() => done.push('fourth'))
    await settle()
    assert.deepEqual([done, source.waiting], [[], 2])
    assert.deepEqual(await ends(source, id), [2000n])
    source.committed(id, new Map([[bucket(0), offset(1000n)]]))
    await Promise.all([third, fourth])
    assert.deepEqual(done, ['third', 'fourth'])
    assert.deepEqual(await ends(source, id), [3001n])
    assert.ok(source.heldBytes <= memory)
    await commitAll(source, id)
    assert.equal(source.heldBytes, 0)
  })

  test('rejects with LOG_FULL when asked to, and takes nothing', async () => {
    const source = open(memory)
    const { id } = source.createTable({ ...definition, bucketCount: 1 })
    await source.append(id, upTo(2000))
    await assert.rejects(
      source.append(id, upTo(1000), { whenFull: 'reject' }),
      refusal('LOG_FULL', { max: memory }),
    )
    assert.deepEqual(await ends(source, id), [2000n])
  })

  test('takes a batch larger than all memory when nothing else is held', async () => {
    const source = open(memory)
    const { id } = source.createTable({ ...definition, bucketCount: 1 })
    await source.append(id, upTo(1))
    const large = source.append(id, upTo(10_000))
    await settle()
    assert.equal(source.waiting, 1)
    await commitAll(source, id)
    assert.equal((await large).appended, 10_000)
    await assert.rejects(source.append(id, upTo(1), { whenFull: 'reject' }), refusal('LOG_FULL'))
  })

  test('holds the memory of a batch until every bucket of it is in the lake', async () => {
    const source = open(2 ** 20)
    const { id } = source.createTable(definition)
    await source.append(id, upTo(4096))
    const held = source.heldBytes
    source.committed(id, new Map([0, 1, 2].map((each) => [bucket(each), offset(1024n)])))
    assert.equal(source.heldBytes, held)
    source.committed(id, new Map([[bucket(3), offset(1024n)]]))
    assert.equal(source.heldBytes, 0)
  })

  test('lets a pin delay an append, and its release let it in', async () => {
    const source = open(memory)
    const { id } = source.createTable({ ...definition, bucketCount: 1 })
    await source.append(id, upTo(2000))
    const pin = source.pin(id, bucket(0), offset(0n))
    const waits = source.append(id, upTo(1000))
    await commitAll(source, id)
    await settle()
    assert.equal(source.waiting, 1)
    pin.release()
    assert.equal((await waits).appended, 1000)
  })

  test('ends a wait by its signal, and with it those behind it of the same input', async () => {
    const source = open(memory)
    const { id } = source.createTable({ ...definition, bucketCount: 1 })
    await source.append(id, upTo(2000))
    const stop = new AbortController()
    const input = { id: 'a', name: 'a', position: '1' }
    const stopped = source.append(id, upTo(1000), { signal: stop.signal, input })
    const behind = source.append(id, upTo(1), { input: { ...input, position: '2' } })
    const other = source.append(id, upTo(1), { input: { ...input, id: 'b' } })
    stop.abort()
    await assert.rejects(stopped, refusal('STOPPED'))
    await assert.rejects(behind, refusal('STOPPED'))
    assert.equal((await other).appended, 1)
    assert.deepEqual(await ends(source, id), [2001n])
    await assert.rejects(source.append(id, upTo(1), { signal: stop.signal }), refusal('STOPPED'))
  })

  test('ends waits and refuses appends once closed, and can still be read', async () => {
    const source = open(memory)
    const { id } = source.createTable({ ...definition, bucketCount: 1 })
    await source.append(id, upTo(2000))
    const waits = source.append(id, upTo(1000))
    source.close()
    source.close()
    await assert.rejects(waits, refusal('STOPPED'))
    await assert.rejects(source.append(id, upTo(1)), refusal('STOPPED'))
    assert.deepEqual(await ends(source, id), [2000n])
  })

  test('says when a table should be tiered for want of room', async () => {
    const source = open(memory)
    const big = source.createTable({ ...definition, bucketCount: 1 }).id
    const idle = source.createTable({ ...definition, name: 'demo.idle' }).id
    const told: TableId[] = []
    const end = source.onGrown((id) => told.push(id))
    await source.append(big, upTo(1000))
    assert.deepEqual([source.isHalfFull(big), source.isHalfFull(idle)], [false, false])
    await source.append(big, upTo(1000))
    assert.deepEqual([source.isHalfFull(big), source.isHalfFull(idle)], [true, false])
    assert.deepEqual(told, [big, big])
    const waits = source.append(idle, upTo(1000))
    assert.deepEqual(told, [big, big, big])
    await commitAll(source, big)
    await waits
    assert.deepEqual([source.isHalfFull(big), told.at(-1)], [false, idle])
    end()
    await source.append(idle, upTo(1))
    assert.equal(told.length, 4)
  })
})

describe('inputs', () => {
  const noEnds = new Map<ReturnType<typeof bucket>, Offset>()

  test('moves to the last mark that is wholly in, and counts what is beyond', async () => {
    const source = open()
    const { id } = source.createTable({ ...definition, bucketCount: 2 })
    const append = (count: number, position: string, startPosition?: string) =>
      source.append(id, upTo(count), {
        input: {
          id: 'a',
          name: 'a.ndjson',
          position,
          digest: `digest of ${position}`,
          ...(startPosition === undefined ? {} : { startPosition }),
        },
      })
    await append(1000, 'byte 9', 'byte 0')
    await append(1000, 'byte 18')
    const tieredAt = stillClock.now()
    assert.deepEqual(source.inputs(id, noEnds), new Map())
    const at = (zero: bigint, one: bigint) =>
      source
        .inputs(
          id,
          new Map([
            [bucket(0), offset(zero)],
            [bucket(1), offset(one)],
          ]),
        )
        .get('a')
    // Record 1,024 is the first of bucket 1.
    assert.deepEqual(at(999n, 0n), {
      name: 'a.ndjson',
      position: 'byte 0',
      records: 0n,
      extra: new Map([[bucket(0), 999n]]),
      ahead: { position: 'byte 9', digest: 'digest of byte 9', tieredAt },
    })
    const first = {
      name: 'a.ndjson',
      position: 'byte 9',
      digest: 'digest of byte 9',
      tieredAt,
      records: 1000n,
    }
    assert.deepEqual(at(1000n, 0n), { ...first, extra: new Map() })
    assert.deepEqual(at(1010n, 976n), {
      ...first,
      extra: new Map([
        [bucket(0), 10n],
        [bucket(1), 976n],
      ]),
      ahead: { position: 'byte 18', digest: 'digest of byte 18', tieredAt },
    })
    assert.deepEqual(at(1024n, 976n), {
      name: 'a.ndjson',
      position: 'byte 18',
      digest: 'digest of byte 18',
      tieredAt,
      records: 2000n,
      extra: new Map(),
    })
  })

  test('keeps when an input was tiered while it has nothing more, and its blocks ahead of it', async () => {
    const blocks = { bytes: 65_536, digests: 'abcdef01' }
    const known = {
      name: 'a',
      position: '9',
      records: 5n,
      digest: 'd9',
      tieredAt: millis(7),
      extra: new Map(),
    }
    const source = open()
    const { id } = source.createTable(
      { ...definition, bucketCount: 2 },
      { ends: new Map([[bucket(0), offset(5n)]]), inputs: new Map([['a', known]]) },
    )
    const append = (count: number, position: string) =>
      source.append(id, upTo(count), {
        input: { id: 'a', name: 'a', position, digest: `d${position}`, blocks },
      })
    const at = (end: bigint) => source.inputs(id, new Map([[bucket(0), offset(end)]])).get('a')
    await append(0, '9')
    assert.deepEqual(at(5n), { ...known, blocks })
    await append(10, '18')
    assert.deepEqual(at(6n)?.ahead, {
      position: '18',
      digest: 'd18',
      blocks,
      tieredAt: stillClock.now(),
    })
    assert.equal(at(6n)?.tieredAt, 7)
    assert.equal(at(15n)?.tieredAt, stillClock.now())
  })

  test('carries inputs of the lake that nobody appends to as they are', () => {
    const source = open()
    const progress = {
      name: 'monday.ndjson',
      position: '446166',
      records: 2000n,
      digest: 'abc',
      notes: { lastLine: 'unended' },
      extra: new Map([[bucket(1), 5n]]),
    }
    const { id } = source.createTable(definition, {
      ends: new Map([[bucket(1), offset(5n)]]),
      inputs: new Map([['monday', progress]]),
    })
    assert.deepEqual(source.inputs(id, noEnds), new Map([['monday', progress]]))
  })

  test('skips what the lake has of a replay and says so', async () => {
    const source = open()
    const { id } = source.createTable(
      { ...definition, bucketCount: 2 },
      {
        ends: new Map([[bucket(0), offset(1024n)]]),
        inputs: new Map([
          [
            'a',
            { name: 'a', position: '1000', records: 1000n, extra: new Map([[bucket(0), 24n]]) },
          ],
        ]),
      },
    )
    const input = { id: 'a', name: 'a', position: '1100', startOrdinal: 1000n }
    const result = await source.append(id, upTo(100, 1000), { input })
    assert.deepEqual(result, {
      ranges: [{ bucket: 1, start: 0n, end: 76n }],
      appended: 76,
      alreadyThere: 24,
    })
  })
})
