import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import {
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  renameSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isSluiceError } from '../../../src/core/errors.ts'
import type { KvCheckpoint, KvFamily, KvStore } from '../../../src/source/kv/ports.ts'
import { bytes, openRocks, skipWithoutRocksDb, textOf } from '../../support/rocksdb.ts'
import { scratchFolder } from '../../support/scratch.ts'

const families = ['rows', 'positions', 'meta']

async function fill(store: KvStore, value: string, count = 500): Promise<void> {
  for (const name of families) {
    const family = await store.columnFamily(name)
    const batch = store.batch()
    for (let at = 0; at < count; at += 1) batch.put(family, bytes(`key-${at}`), bytes(value))
    await store.write(batch)
  }
}

async function valuesOf(store: KvStore, family: KvFamily): Promise<Set<string>> {
  const cursor = store.scan(family)
  const found = new Set<string>()
  for (;;) {
    const entries = await cursor.next()
    if (entries === undefined) break
    for (const value of entries.values) found.add(textOf(value) ?? '')
  }
  await cursor.close()
  return found
}

async function allValues(store: KvStore): Promise<string[]> {
  const all = await Promise.all(
    store
      .families()
      .filter(({ name }) => name !== 'default')
      .map((family) => valuesOf(store, family)),
  )
  return [...new Set(all.flatMap((each) => [...each]))].sort()
}

function tablesOf(checkpoint: KvCheckpoint): Map<string, string> {
  const tables = checkpoint.files.filter(({ name }) => name.endsWith('.sst'))
  return new Map(tables.map(({ id, name }) => [id, name]))
}

describe('checkpoints of a RocksDB store', { skip: skipWithoutRocksDb() }, () => {
  test('C-30 opens elsewhere as it was, whatever becomes of its source', async (t) => {
    const folder = scratchFolder(t)
    const source = await openRocks(join(folder, 'source'), families)
    await fill(source, 'old')
    const { files } = await source.checkpoint(join(folder, 'checkpoint'))
    const content = (): string[] =>
      readdirSync(join(folder, 'checkpoint'))
        .sort()
        .map((name) => `${name} ${digest(join(folder, 'checkpoint', name))}`)
    const before = content()
    const linked = files.filter(({ name }) => name.endsWith('.sst')).map(({ name }) => name)
    // Four files of one family are merged; all that the checkpoint links to is gone after that.
    for (let round = 0; round < 15; round += 1) {
      await fill(source, `new-${round}`)
      await source.flush()
    }
    await settled(() => linked.every((name) => !existsSync(join(folder, 'source', name))))
    const copies = ['first', 'second'].map((name) => join(folder, name))
    for (const copy of copies) {
      const from = join(folder, 'checkpoint')
      const restored = await openRocks(copy, families, { from })
      assert.deepEqual(await allValues(restored), ['old'])
      await fill(restored, `of ${copy}`)
      await restored.flush()
      await restored.close()
    }
    assert.deepEqual(await allValues(source), ['new-14'])
    await source.close()
    assert.deepEqual(content(), before, 'nobody wrote into the checkpoint')
  })

  test('C-30 mutant: with a link for its manifest it would not open once the source went on', async (t) => {
    const folder = scratchFolder(t)
    const source = await openRocks(join(folder, 'source'), families)
    await fill(source, 'old')
    const from = join(folder, 'checkpoint')
    const { files } = await source.checkpoint(from)
    const manifest = files.find(({ name }) => name.startsWith('MANIFEST-'))?.name ?? ''
    unlinkSync(join(from, manifest))
    linkSync(join(folder, 'source', manifest), join(from, manifest))
    for (let round = 0; round < 3; round += 1) {
      await fill(source, `new-${round}`)
      await source.flush()
    }
    await assert.rejects(openRocks(join(folder, 'copy'), families, { from }), (error) => {
      assert.ok(isSluiceError(error, 'DATA_CORRUPT'))
      assert.ok(error.message.includes(manifest), error.message)
      return true
    })
    await source.close()
  })

  test('C-29 lists every file with its bytes, and the families it is of', async (t) => {
    const folder = scratchFolder(t)
    const store = await openRocks(join(folder, 'store'), families)
    await fill(store, 'value')
    const checkpoint = await store.checkpoint(join(folder, 'checkpoint'))
    await store.close()
    assert.deepEqual(
      checkpoint.files.map(({ name }) => name).sort(),
      readdirSync(checkpoint.folder).sort(),
    )
    for (const { name, bytes: size, families: of } of checkpoint.files) {
      assert.equal(readFileSync(join(checkpoint.folder, name)).length, size, name)
      assert.equal(of.length, name.endsWith('.sst') ? 1 : 0, name)
    }
    const all = checkpoint.files.flatMap((file) => file.families)
    assert.deepEqual([...all].sort(), [...families].sort())
  })

  test('C-31 names in a second checkpoint only the files that are new', async (t) => {
    const folder = scratchFolder(t)
    const store = await openRocks(join(folder, 'store'), families)
    await fill(store, 'first')
    const first = tablesOf(await store.checkpoint(join(folder, 'one')))
    const rows = await store.columnFamily('rows')
    await store.put(rows, bytes('later'), bytes('second'))
    const second = tablesOf(await store.checkpoint(join(folder, 'two')))
    await store.close()
    const fresh = [...second].filter(([id]) => !first.has(id))
    assert.equal(fresh.length, 1)
    for (const id of first.keys()) assert.ok(second.has(id), `${id} is known already`)
  })

  test('C-31 one id is one content, also over stores that count on from one checkpoint', async (t) => {
    const folder = scratchFolder(t)
    const store = await openRocks(join(folder, 'store'), families)
    await fill(store, 'first')
    const from = join(folder, 'checkpoint')
    const seen = new Map<string, string>()
    const note = (checkpoint: KvCheckpoint): Map<string, string> => {
      for (const { id, name } of checkpoint.files) {
        const content = digest(join(checkpoint.folder, name))
        assert.equal(seen.get(id) ?? content, content, `${id} is one content`)
        seen.set(id, content)
      }
      return tablesOf(checkpoint)
    }
    const shared = note(await store.checkpoint(from))
    await fill(store, 'the source went on')
    note(await store.checkpoint(join(folder, 'of source')))
    await store.close()

    const numbers = new Map<string, string[]>()
    for (const name of ['left', 'right']) {
      const restored = await openRocks(join(folder, name), families, { from })
      await fill(restored, `the ${name} one went on`)
      const tables = note(await restored.checkpoint(join(folder, `of ${name}`)))
      for (const id of shared.keys()) assert.ok(tables.has(id), 'it keeps what is stored already')
      numbers.set(
        name,
        [...tables].filter(([id]) => !shared.has(id)).map(([, file]) => file),
      )
      // Restored once more, from its own checkpoint.
      const again = await openRocks(join(folder, `${name} again`), families, {
        from: join(folder, `of ${name}`),
      })
      const kept = note(await again.checkpoint(join(folder, `of ${name} again`)))
      assert.deepEqual([...kept.keys()].sort(), [...tables.keys()].sort())
      await again.close()
      await restored.close()
    }
    assert.deepEqual(numbers.get('left'), numbers.get('right'), 'both used the same numbers')
  })

  test('C-30 a checkpoint with a file missing or cut is refused with its name', async (t) => {
    const folder = scratchFolder(t)
    const store = await openRocks(join(folder, 'store'), families)
    await fill(store, 'value')
    const from = join(folder, 'checkpoint')
    const { files } = await store.checkpoint(from)
    await store.close()
    for (const { name, bytes: size } of files) {
      if (name === 'SLUICE' || size === 0) continue
      const body = readFileSync(join(from, name))
      // A link would cut the file of the store as well.
      renameSync(join(from, name), join(folder, name))
      const refused = (error: unknown): boolean => {
        assert.ok(isSluiceError(error, 'DATA_CORRUPT'), String(error))
        assert.ok(error.message.includes(name), error.message)
        return true
      }
      const open = (): Promise<KvStore> => openRocks(join(folder, 'copy'), families, { from })
      if (name !== 'CURRENT') await assert.rejects(open(), refused)
      writeFileSync(join(from, name), body)
      truncateSync(join(from, name), size - 1)
      await assert.rejects(open(), name === 'CURRENT' ? /CURRENT/ : refused)
      unlinkSync(join(from, name))
      renameSync(join(folder, name), join(from, name))
    }
    assert.ok(!existsSync(join(folder, 'copy')), 'nothing was made')
    await (await openRocks(join(folder, 'copy'), families, { from })).close()
  })

  test('refuses to write a checkpoint over a folder, and to restore over a store', async (t) => {
    const folder = scratchFolder(t)
    const store = await openRocks(join(folder, 'store'), families)
    await fill(store, 'value')
    const from = join(folder, 'checkpoint')
    await store.checkpoint(from)
    const taken = (error: unknown): boolean => isSluiceError(error, 'TABLE_EXISTS')
    await assert.rejects(store.checkpoint(from), taken)
    await fill(store, 'the store goes on')
    assert.deepEqual(await allValues(store), ['the store goes on'])
    await store.close()
    await assert.rejects(openRocks(join(folder, 'store'), families, { from }), taken)
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.startsWith('.')),
      [],
    )
  })
})

function digest(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}

/** Merging goes on in the background; nothing tells when it is done. */
async function settled(holds: () => boolean): Promise<void> {
  for (let at = 0; at < 600 && !holds(); at += 1) await sleep(50)
  assert.ok(holds())
}
