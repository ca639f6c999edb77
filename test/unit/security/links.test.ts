import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { localStore, locationOf } from '../../../src/catalog/store/local-store.ts'
import { isPlainFile } from '../../../src/catalog/store/plain-file.ts'
import { systemIds } from '../../../src/core/system.ts'
import { scratchFolder } from '../../support/scratch.ts'

describe('S-06 a link that somebody left where Sluice writes', () => {
  const store = localStore(systemIds)
  const body = Buffer.from('ours')

  test('is a taken name to a create: what it leads to stays as it is', async (t) => {
    const folder = scratchFolder(t)
    const victim = join(folder, 'victim')
    writeFileSync(victim, 'theirs')
    for (const [name, target] of [
      ['v2', victim],
      ['v3', join(folder, 'not-there')],
    ] as const) {
      symlinkSync(target, join(folder, name))
      const outcome = await store.createIfAbsent(locationOf(join(folder, name)), body)
      assert.deepEqual(outcome, { kind: 'rejected', reason: 'exists' })
    }
    assert.equal(readFileSync(victim, 'utf8'), 'theirs')
    assert.ok(!existsSync(join(folder, 'not-there')))
  })

  test('is replaced, not followed, by a hint and a data file', async (t) => {
    const folder = scratchFolder(t)
    const victim = join(folder, 'victim')
    writeFileSync(victim, 'theirs')
    symlinkSync(victim, join(folder, 'hint'))
    await store.putHint(locationOf(join(folder, 'hint')), body)
    assert.equal(readFileSync(join(folder, 'hint'), 'utf8'), 'ours')
    symlinkSync(victim, join(folder, 'data'))
    const writer = await store.open(locationOf(join(folder, 'data')))
    await writer.write(body)
    await writer.finish().catch(() => writer.abandon())
    assert.equal(readFileSync(victim, 'utf8'), 'theirs')
  })

  test('is no file of the lake to what deletes, nor is what lies behind a linked folder', async (t) => {
    const folder = scratchFolder(t)
    const [lake, outside] = [join(folder, 'lake'), join(folder, 'outside')]
    mkdirSync(lake)
    mkdirSync(outside)
    writeFileSync(join(outside, 'file'), 'theirs')
    writeFileSync(join(lake, 'own'), 'ours')
    symlinkSync(outside, join(lake, 'folder'))
    symlinkSync(join(outside, 'file'), join(lake, 'link'))
    const isOwn = (name: string): Promise<boolean> =>
      isPlainFile(locationOf(lake), locationOf(join(lake, name)))
    assert.equal(await isOwn('own'), true)
    assert.equal(await isOwn('link'), false)
    assert.equal(await isOwn('folder/file'), false)
    assert.equal(await isOwn('../outside/file'), false)
    assert.deepEqual(readdirSync(outside), ['file'])
  })
})
