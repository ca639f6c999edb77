import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { extname, join } from 'node:path'
import { describe, test } from 'node:test'
import type { ManyFamiliesEnd } from '../../support/kv-many-families.ts'
import { bytes, openRocks, skipWithoutRocksDb } from '../../support/rocksdb.ts'
import { scratchFolder } from '../../support/scratch.ts'

const families = 60
const names = Array.from({ length: families }, (_, at) => `user-${at}`)
const script = join(
  import.meta.dirname,
  `../../support/kv-many-families${extname(import.meta.filename)}`,
)

/** Writes to all families in a process that may open so many files. */
function writeWith(limit: number, folder: string, round: string): ManyFamiliesEnd {
  const run = spawnSync(
    'bash',
    [
      '-c',
      `ulimit -n ${limit}; exec "$@"`,
      'bash',
      process.execPath,
      ...process.execArgv.filter((each) => each !== '--test'),
      script,
      folder,
      String(families),
      round,
    ],
    { encoding: 'utf8' },
  )
  assert.equal(run.status, 0, run.stderr)
  return JSON.parse(run.stdout) as ManyFamiliesEnd
}

async function roundsIn(folder: string, round: string): Promise<number> {
  const store = await openRocks(folder, names)
  let found = 0
  for (const family of store.families().slice(1)) {
    if ((await store.get(family, bytes(round))) !== undefined) found += 1
  }
  await store.close()
  return found
}

describe('too many open files', { skip: skipWithoutRocksDb() }, () => {
  const explained = (end: ManyFamiliesEnd, limit: number): void => {
    assert.equal(end.code, 'LIMIT_EXCEEDED')
    const { families: count, limit: said, maxOpenFiles, newest } = end.details ?? {}
    assert.deepEqual([count, said, maxOpenFiles], [families + 1, String(limit), -1])
    assert.deepEqual(newest, ['user-55', 'user-56', 'user-57', 'user-58', 'user-59'])
    assert.match(end.message ?? '', /too many open files, with 61 families and \d+ files/)
    assert.match(end.message ?? '', new RegExp(`limit ${limit}, maxOpenFiles -1`))
    assert.match(end.fix ?? '', /ulimit -n.*maxOpenFiles.*as the program goes on.*user-59/)
  }

  test('C-35 at the open are explained, and what was acknowledged is there', async (t) => {
    const folder = join(scratchFolder(t), 'store')
    assert.deepEqual(writeWith(400, folder, 'first'), { step: 'done' })
    const end = writeWith(60, folder, 'second')
    assert.equal(end.step, 'open')
    explained(end, 60)
    assert.equal(await roundsIn(folder, 'first'), families)
    assert.equal(await roundsIn(folder, 'second'), 0)
    assert.deepEqual(writeWith(400, folder, 'third'), { step: 'done' })
  })

  test('C-35 at a flush are explained; the store takes no more and loses nothing', async (t) => {
    const folder = join(scratchFolder(t), 'store')
    // Enough for all families, and for some files of them.
    const end = writeWith(110, folder, 'first')
    assert.equal(end.step, 'flush')
    explained(end, 110)
    assert.ok(Number(end.details?.['files']) > 0)
    assert.equal(end.next, 'LIMIT_EXCEEDED')
    assert.equal(await roundsIn(folder, 'first'), families)
  })
})
