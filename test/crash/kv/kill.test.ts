import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { extname, join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { seededChance } from '../../../src/core/system.ts'
import type { KvStore } from '../../../src/source/kv/ports.ts'
import { appliedIn, families, fewKeys, modelAt, replay, rowsIn } from '../../support/kv-history.ts'
import type { WriterNews, WriterTask } from '../../support/kv-writer.ts'
import { openRocks, skipWithoutRocksDb } from '../../support/rocksdb.ts'
import { scratchFolder } from '../../support/scratch.ts'

const seed = Number(process.env['SLUICE_KILL_SEED'] ?? Math.floor(Math.random() * 1e9))
const writer = join(import.meta.dirname, `../../support/kv-writer${extname(import.meta.filename)}`)

/** Little memory, so that flushes and merges are under way at any moment. */
const small = { memoryBytes: 2 ** 20, writeBufferSize: 64 * 2 ** 10 }

type Writing = {
  readonly child: ChildProcess
  readonly begun: Promise<void>
  readonly done: Promise<void>
  acknowledged: number
}

function startWriter(task: WriterTask): Writing {
  const child = fork(writer, [JSON.stringify(task)], { stdio: 'inherit' })
  let begin = (): void => undefined
  let end = (): void => undefined
  const writing: Writing = {
    child,
    begun: new Promise((resolve) => (begin = resolve)),
    done: new Promise((resolve) => (end = resolve)),
    acknowledged: -1,
  }
  child.on('message', (news: WriterNews) => {
    writing.acknowledged = news.acknowledged
    begin()
    if (news.isDone) end()
  })
  return writing
}

/** Lets a writer write for a while, kills it, and answers what it had acknowledged at least. */
async function killedAfter(task: WriterTask, milliseconds: number): Promise<number> {
  const writing = startWriter(task)
  const ended = new Promise((resolve) => writing.child.once('exit', resolve))
  await Promise.race([writing.begun, ended])
  assert.equal(writing.child.exitCode, null, 'the writer writes until it is killed')
  await sleep(milliseconds)
  writing.child.kill('SIGKILL')
  await ended
  return writing.acknowledged
}

async function counts(
  store: KvStore,
): Promise<{ rows: number; positions: number; applied: number }> {
  return {
    rows: (await rowsIn(store, 'rows')).size,
    positions: (await rowsIn(store, 'positions')).size,
    applied: (await appliedIn(store)) ?? -1,
  }
}

describe('a RocksDB store whose process is killed', { skip: skipWithoutRocksDb() }, () => {
  const chance = seededChance(seed)

  test('C-27 at 50 random moments has every batch in all families or in none', async (t) => {
    t.diagnostic(`SLUICE_KILL_SEED=${seed}`)
    const folder = join(scratchFolder(t), 'store')
    const task: WriterTask = { folder, history: 'distinctKeys', ...small }
    for (let kill = 0; kill < 50; kill += 1) {
      const acknowledged = await killedAfter(task, chance.below(150))
      const store = await openRocks(folder, families)
      const { rows, positions, applied } = await counts(store)
      await store.close()
      assert.equal(rows, applied + 1)
      assert.equal(positions, applied + 1)
      assert.ok(applied >= acknowledged, `${applied} is applied of ${acknowledged} acknowledged`)
    }
  })

  test('C-04 replays the log from applied and then equals the model', async (t) => {
    t.diagnostic(`SLUICE_KILL_SEED=${seed}`)
    const folder = join(scratchFolder(t), 'store')
    const task: WriterTask = { folder, history: 'fewKeys', ...small }
    let before = -1
    for (let kill = 0; kill < 10; kill += 1) {
      await killedAfter(task, chance.below(300))
      const store = await openRocks(folder, families)
      const applied = (await appliedIn(store)) ?? -1
      assert.ok(applied > before)
      const end = applied + 1 + chance.below(300)
      await replay(store, fewKeys, end)
      const model = modelAt(fewKeys, end)
      assert.deepEqual(sorted(await rowsIn(store, 'rows')), sorted(model))
      assert.deepEqual(sorted(await rowsIn(store, 'positions')), sorted(model))
      await store.close()
      before = applied
    }
  })

  test('C-29 has left only whole checkpoints, whatever moment it was killed at', async (t) => {
    t.diagnostic(`SLUICE_KILL_SEED=${seed}`)
    const folder = scratchFolder(t)
    const checkpoints = join(folder, 'checkpoints')
    mkdirSync(checkpoints)
    const task: WriterTask = {
      folder: join(folder, 'store'),
      history: 'distinctKeys',
      ...small,
      checkpoints: { folder: checkpoints, every: 10 },
    }
    let opened = 0
    for (let kill = 0; kill < 10; kill += 1) {
      await killedAfter(task, chance.below(300))
      const taken = readdirSync(checkpoints).filter((name) => !name.startsWith('.'))
      for (const name of taken.slice(-2)) {
        const from = join(checkpoints, name)
        const store = await openRocks(join(folder, 'restored'), families, { from })
        const { rows, positions, applied } = await counts(store)
        await store.close()
        rmSync(join(folder, 'restored'), { recursive: true })
        assert.equal(`at-${applied}`, name)
        assert.equal(rows, applied + 1)
        assert.equal(positions, applied + 1)
        opened += 1
      }
      for (const name of taken) rmSync(join(checkpoints, name), { recursive: true })
      const store = await openRocks(task.folder, families)
      const { rows, positions, applied } = await counts(store)
      await store.close()
      assert.deepEqual([rows, positions], [applied + 1, applied + 1])
    }
    assert.ok(opened > 0, 'no writer came to a checkpoint')
  })
})

function sorted(rows: ReadonlyMap<string, string>): (readonly [string, string])[] {
  return [...rows].sort(([a], [b]) => (a < b ? -1 : 1))
}
