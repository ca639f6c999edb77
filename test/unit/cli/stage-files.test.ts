import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { scanTable } from '../../../src/catalog/iceberg/scan.ts'
import { pathOf } from '../../../src/catalog/store/local-store.ts'
import { stageFiles } from '../../../src/cli/stage-files.ts'
import { Lake, type Original, tieredLake } from '../verify/support.ts'

const usual = process.env['TMPDIR']
const folder = mkdtempSync(join(tmpdir(), 'sluice-stage-'))
let original: Original
before(async () => {
  original = await tieredLake()
  process.env['TMPDIR'] = folder
})
after(() => {
  if (usual === undefined) delete process.env['TMPDIR']
  else process.env['TMPDIR'] = usual
  rmSync(folder, { recursive: true, force: true })
})

async function scanOf(lake: Lake): Promise<Parameters<typeof stageFiles>[1]> {
  return [{ name: ['demo', 't'], scan: await scanTable(lake.store(), lake.folder) }]
}

test('copies the files of a table where nobody else may read them, and removes them', async () => {
  const lake = new Lake(original)
  const notes: string[] = []
  const signal = new AbortController().signal
  const note = (message: string): void => void notes.push(message)
  const files = await stageFiles(lake.store(), await scanOf(lake), { signal, note })
  const copies = files.scans[0]?.scan.files ?? []
  assert.equal(copies.length, 4)
  assert.match(notes.join(), /^4 files, [\d.]+ kB, copied to \S+ first$/)
  for (const file of copies) {
    assert.deepEqual(readFileSync(pathOf(file.resolved)), Buffer.from(lake.read(file.location)))
    assert.equal(statSync(pathOf(file.resolved)).mode & 0o077, 0)
    assert.equal(statSync(dirname(pathOf(file.resolved))).mode & 0o077, 0)
  }
  await files[Symbol.asyncDispose]()
  assert.ok(copies.every((file) => !existsSync(pathOf(file.resolved))))
})

test('copies nothing when it is too much, and leaves nothing when a file is cut or it is stopped', async () => {
  const lake = new Lake(original)
  const scans = await scanOf(lake)
  const options = { signal: new AbortController().signal, note: () => undefined }
  await assert.rejects(stageFiles(lake.store(), scans, { ...options, bytesMax: 100 }), {
    code: 'LIMIT_EXCEEDED',
    message: /^the tables of this query have [\d.]+ kB; up to 100 B are copied here$/,
  })
  const [first] = scans[0]?.scan.files ?? []
  assert.ok(first !== undefined)
  lake.files.set(first.location, lake.read(first.location).subarray(0, 50))
  await assert.rejects(stageFiles(lake.store(), scans, options), {
    code: 'DATA_CORRUPT',
    message: /: a file that the metadata names has 50 of its \d+ bytes$/,
  })
  lake.files.delete(first.location)
  await assert.rejects(stageFiles(lake.store(), scans, options), {
    code: 'DATA_CORRUPT',
    message: /: a file that the metadata names is not there$/,
  })
  const stopped = { ...options, signal: AbortSignal.abort() }
  await assert.rejects(stageFiles(new Lake(original).store(), scans, stopped), { code: 'STOPPED' })
  assert.deepEqual(readdirSync(folder), [])
})
