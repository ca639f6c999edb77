import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import {
  cpSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { extname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { isSluiceError } from '../../../src/core/errors.ts'
import { logRecords } from '../../../src/source/kv/rocksdb/log-records.ts'
import {
  appliedIn,
  distinctKeys,
  families,
  modelAt,
  replay,
  rowsIn,
} from '../../support/kv-history.ts'
import type { WriterNews, WriterTask } from '../../support/kv-writer.ts'
import { openRocks, skipWithoutRocksDb } from '../../support/rocksdb.ts'
import { scratchFolder } from '../../support/scratch.ts'

const end = 10_540
const writer = join(import.meta.dirname, `../../support/kv-writer${extname(import.meta.filename)}`)
const mib = 2 ** 20

/** Runs a writer to its end, and kills it there. */
async function killedAtEnd(task: WriterTask): Promise<void> {
  const child = fork(writer, [JSON.stringify(task)], { stdio: 'inherit' })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  await new Promise<void>((resolve, reject) => {
    child.on('message', ({ isDone }: WriterNews) => {
      if (isDone) resolve()
    })
    child.once('exit', () => {
      reject(new Error('the writer ended by itself'))
    })
  })
  child.kill('SIGKILL')
  await ended
}

function logsIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.log'))
    .sort()
}

describe('a write-ahead log that is gone or cut', { skip: skipWithoutRocksDb() }, () => {
  let root = ''
  let written = ''
  const clean: (() => void)[] = []

  // Families flushed at different times: rows after 5,000, positions after 9,000, meta never.
  before(async () => {
    root = scratchFolder({ after: (fn) => clean.push(fn as () => void) })
    written = join(root, 'written')
    await killedAtEnd({
      folder: written,
      history: 'distinctKeys',
      memoryBytes: 440 * mib,
      writeBufferSize: 64 * mib,
      end,
      flushes: { 5000: 'rows', 9000: 'positions' },
    })
  })
  after(() => {
    for (const each of clean) each()
  })

  let copies = 0
  const copy = (): string => {
    copies += 1
    const folder = join(root, `copy-${copies}`)
    cpSync(written, folder, { recursive: true })
    return folder
  }

  const refusal =
    (says: RegExp) =>
    (error: unknown): boolean => {
      assert.ok(isSluiceError(error, 'DATA_CORRUPT'), String(error))
      assert.match(error.message, says)
      assert.match(error.fix ?? '', /built again from its last checkpoint and the log/)
      return true
    }

  test('C-27 C-32 whole, it gives all families all there was', async () => {
    const store = await openRocks(copy(), families)
    assert.equal((await rowsIn(store, 'rows')).size, end)
    assert.equal((await rowsIn(store, 'positions')).size, end)
    assert.equal(await appliedIn(store), end - 1)
    await store.close()
  })

  test('C-32 removed, it is noticed, and the store is left as it is', async () => {
    const folder = copy()
    for (const name of logsIn(folder)) unlinkSync(join(folder, name))
    const files = readdirSync(folder).sort()
    await assert.rejects(openRocks(folder, families), refusal(/log was removed or cut/))
    await assert.rejects(openRocks(folder, families), refusal(/log was removed or cut/))
    assert.deepEqual(
      readdirSync(folder)
        .filter((name) => !name.startsWith('SLUICE.lock'))
        .sort(),
      files.filter((name) => !name.startsWith('SLUICE.lock')),
    )
  })

  test('C-32 planted: RocksDB itself opens such a store, each family of another moment', async () => {
    const folder = copy()
    for (const name of logsIn(folder)) unlinkSync(join(folder, name))
    const counts = await countsWithoutCheck(folder)
    assert.deepEqual(counts, { rows: 5_001, positions: 9_001, meta: 0 })
  })

  test('C-32 any one that is needed removed is noticed', async () => {
    const names = logsIn(written)
    assert.ok(names.length >= 3, names.join())
    for (const name of names) {
      const folder = copy()
      unlinkSync(join(folder, name))
      await assert.rejects(openRocks(folder, families), refusal(/log was removed or cut/))
    }
  })

  test('C-32 an older one cut anywhere, also between two records, is noticed', async () => {
    const older = logsIn(written).slice(0, -1)
    for (const name of older) {
      const whole = readFileSync(join(written, name))
      const boundaries = recordEnds(whole)
      const between = [boundaries[100], boundaries.at(-2)].map((boundary) => boundary ?? 0)
      for (const size of [0, 1, ...between, whole.length >> 1, whole.length - 1]) {
        const folder = copy()
        truncateSync(join(folder, name), size)
        await assert.rejects(
          openRocks(folder, families),
          refusal(/removed or cut/),
          `${name} cut to ${size} of ${whole.length} bytes`,
        )
        rmSync(folder, { recursive: true })
      }
    }
  })

  test('C-32 an older one cut is noticed when nothing came after the flush', async () => {
    const folder = copy()
    const store = await openRocks(folder, families)
    await store.put(await store.columnFamily('rows'), Buffer.from('1'), Buffer.from('of rows'))
    await store.put(await store.columnFamily('meta'), Buffer.from('2'), Buffer.from('of meta'))
    await store.put(await store.columnFamily('rows'), Buffer.from('3'), Buffer.from('of rows'))
    await store.flush([await store.columnFamily('rows')])
    await store.close()
    const [older, newest] = logsIn(folder)
    assert.ok(older !== undefined && newest !== undefined)
    assert.equal(readFileSync(join(folder, newest)).length, 0)
    const ends = recordEnds(readFileSync(join(folder, older)))
    assert.equal(ends.length, 3)
    for (const size of ends.slice(0, 2).reverse()) {
      truncateSync(join(folder, older), size)
      await assert.rejects(openRocks(folder, families), refusal(/removed or cut/))
    }
  })

  test('C-32 the newest one cut is an earlier moment of all families, which replay heals', async () => {
    const name = logsIn(written).at(-1) ?? ''
    const whole = readFileSync(join(written, name))
    for (const size of [0, 1, 1_000, whole.length >> 1, whole.length - 1]) {
      const folder = copy()
      truncateSync(join(folder, name), size)
      const store = await openRocks(folder, families)
      const applied = (await appliedIn(store)) ?? -1
      assert.ok(applied >= 9_000 && applied < end - 1, `${applied}`)
      assert.equal((await rowsIn(store, 'rows')).size, applied + 1)
      assert.equal((await rowsIn(store, 'positions')).size, applied + 1)
      await replay(store, distinctKeys, end)
      assert.deepEqual(await rowsIn(store, 'rows'), modelAt(distinctKeys, end))
      await store.close()
    }
  })

  test('C-32 altered inside, it is an earlier moment of all families or refused', async () => {
    for (const name of logsIn(written)) {
      const folder = copy()
      const body = readFileSync(join(folder, name))
      const middle = body.length >> 1
      body.writeUInt8((body.at(middle) ?? 0) ^ 0xff, middle)
      writeFileSync(join(folder, name), body)
      try {
        const store = await openRocks(folder, families)
        const applied = (await appliedIn(store)) ?? -1
        assert.equal((await rowsIn(store, 'rows')).size, applied + 1)
        assert.equal((await rowsIn(store, 'positions')).size, applied + 1)
        await store.close()
      } catch (error) {
        if (!isSluiceError(error, 'DATA_CORRUPT')) throw error
      }
    }
  })

  test('C-32 a dropped store is built again from its checkpoint and the log', async () => {
    const from = join(root, 'checkpoint')
    const earlier = await openRocks(join(root, 'earlier'), families)
    await replay(earlier, distinctKeys, 4_000)
    await earlier.checkpoint(from)
    await earlier.close()
    const folder = copy()
    for (const name of logsIn(folder)) unlinkSync(join(folder, name))
    await assert.rejects(openRocks(folder, families), refusal(/removed or cut/))
    rmSync(folder, { recursive: true })
    const store = await openRocks(folder, families, { from })
    assert.equal(await appliedIn(store), 3_999)
    await replay(store, distinctKeys, end)
    const model = modelAt(distinctKeys, end)
    assert.deepEqual(await rowsIn(store, 'rows'), model)
    assert.deepEqual(await rowsIn(store, 'positions'), model)
    assert.equal(await appliedIn(store), end - 1)
    await store.close()
  })

  test('C-32 removed after a clean close, it is noticed as well', async () => {
    const folder = copy()
    const store = await openRocks(folder, families)
    await store.put(await store.columnFamily('rows'), Buffer.from('late'), Buffer.from('value'))
    await store.close()
    for (const name of logsIn(folder)) unlinkSync(join(folder, name))
    await assert.rejects(openRocks(folder, families), refusal(/removed or cut/))
  })
})

/** Where records end that lie in a log as a whole: those of several pieces are copies. */
function recordEnds(log: Buffer): number[] {
  return [...logRecords(log)]
    .filter(({ buffer }) => buffer === log.buffer)
    .map(({ byteOffset, length }) => byteOffset - log.byteOffset + length)
}

type Raw = {
  ready(): Promise<void>
  close(options: object): Promise<void>
  columnFamily(name: string): {
    iterator(): AsyncIterable<{ readonly value: Uint8Array }>
  }
}

async function withoutCheck<Result>(
  folder: string,
  use: (raw: Raw) => Promise<Result>,
): Promise<Result> {
  const RocksDB = createRequire(import.meta.url)('rocksdb-native') as new (
    folder: string,
    options: object,
  ) => Raw
  const raw = new RocksDB(folder, { columnFamilies: families })
  await raw.ready()
  const result = await use(raw)
  await raw.close({ force: true })
  return result
}

function countsWithoutCheck(folder: string): Promise<Record<string, number>> {
  return withoutCheck(folder, async (raw) => {
    const counts: Record<string, number> = {}
    for (const name of families) {
      let count = 0
      for await (const { value } of raw.columnFamily(name).iterator()) {
        count += value.length > 0 ? 1 : 0
      }
      counts[name] = count
    }
    return counts
  })
}
