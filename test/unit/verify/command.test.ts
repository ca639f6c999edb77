import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { before, test } from 'node:test'
import { pathOf } from '../../../src/catalog/store/local-store.ts'
import { runCli, withWarehouse } from '../cli/lake-fixture.ts'
import { at, Lake, type Loose, type Original, tieredLake } from './support.ts'

let original: Original
before(async () => {
  original = await tieredLake()
})

/** Puts the lake on disk, elsewhere than where it was made. */
function writeLake(lake: Lake, folder: string): void {
  for (const [location, body] of lake.files) {
    const path = pathOf(location).replace(pathOf(lake.root), folder)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, body)
  }
}

test('a clean table is one line, and exit 0', async () => {
  await withWarehouse(async (folder) => {
    writeLake(new Lake(original), folder)
    const lines = {
      rows: 'statistics right',
      files: 'every file there; rows not read',
      metadata: 'by the manifests; files not read',
    }
    for (const [level, end] of Object.entries(lines)) {
      const { exit, out } = await runCli(['verify', folder, 'demo.t', '--level', level])
      assert.equal(exit, 0)
      assert.ok(
        out.startsWith('✓ demo.t: 2 buckets, 100 rows, 2 snapshots: no gap, no overlap'),
        out,
      )
      assert.ok(out.trimEnd().endsWith(end), out)
    }
  })
})

test('a table that was made and has no rows yet says so', async () => {
  await withWarehouse(async (folder) => {
    const lake = join(folder, 'empty')
    const input = join(folder, 'empty.ndjson')
    const schema = join(folder, 'schema.json')
    writeFileSync(input, '')
    writeFileSync(schema, '{"columns": [{"name": "id", "type": "BIGINT"}]}')
    const args = ['tier', input, '--warehouse', lake, '--table', 'demo.t', '--schema', schema]
    assert.equal((await runCli(args)).exit, 0)
    const { exit, out } = await runCli(['verify', lake])
    assert.equal(exit, 0)
    assert.equal(out, '✓ demo.t: no round yet\n')
  })
})

test('a faulty table is a block for each fault, and exit 1', async () => {
  const lake = new Lake(original)
  const [manifest = ''] = lake.manifests()
  const [data = ''] = lake.dataFiles(manifest)
  lake.editManifest(manifest, (entries) => {
    const twin = structuredClone(at(entries, 0))
    const file = twin['data_file'] as Loose
    file['file_path'] = data.replace('.parquet', '-again.parquet')
    for (const key of ['lower_bounds', 'upper_bounds']) {
      for (const pair of file[key] as Loose[])
        pair['value'] = Buffer.from(pair['value'] as Uint8Array)
    }
    lake.files.set(String(file['file_path']), lake.read(data))
    entries.push(twin)
    const other = at(entries, 1)['data_file'] as Loose
    other['record_count'] = (other['record_count'] as bigint) + 1n
  })
  lake.edit((metadata) => {
    const properties = metadata['properties'] as Loose
    properties['sluice.token'] = '{"token":[0,1,1],"commit":"00000000000000000000000000000000"}'
  })
  lake.files.set(`${lake.folder}/data/left\u001b[31m.parquet`, Buffer.from('x'))
  await withWarehouse(async (folder) => {
    writeLake(lake, folder)
    const { exit, out } = await runCli(['verify', '--warehouse', folder])
    assert.equal(exit, 1)
    assert.equal(
      plain(out),
      [
        '✗ demo.t: 3 faults in 2 snapshots',
        '  OVERLAP   bucket 0, offsets [A, B): in two files of snapshot ID (round 2, epoch 2.1)',
        '            N rows are readable twice; files FILE, FILE',
        '  ROWCOUNT  FILE: the manifest says N rows, the file has N',
        '  PROGRESS  snapshot ID: sluice.token is epoch 1.1, a snapshot is of epoch 2.1',
        '  ORPHAN    data/left\\x1b[31m.parquet: 1 file (1 B) that no snapshot refers to, of rounds in flight or given up',
        '',
      ].join('\n'),
    )
  })
})

test('the JSON form names table, fault and place', async () => {
  const lake = new Lake(original)
  const [data = ''] = lake.dataFiles(at(lake.manifests(), 0))
  lake.files.delete(data)
  await withWarehouse(async (folder) => {
    writeLake(lake, folder)
    const { exit, out } = await runCli(['verify', folder, '--json'])
    assert.equal(exit, 1)
    const document = JSON.parse(out) as { ok: boolean; tables: Loose[] } & Loose
    assert.equal(document['schema'], 'sluice.verify/1')
    assert.equal(document.ok, false)
    const [table = {}] = document.tables
    assert.deepEqual(
      ['table', 'snapshots_checked', 'snapshots_skipped', 'files', 'rows'].map((key) => table[key]),
      ['demo.t', 2, 0, 4, 100],
    )
    assert.match(String(table['snapshot_id']), /^\d+$/)
    const [fault] = table['faults'] as Loose[]
    assert.deepEqual(Object.keys(fault ?? {}), [
      'kind',
      'bucket',
      'start',
      'end',
      'snapshot_ids',
      'paths',
      'column',
      'expected',
      'found',
      'detail',
    ])
    assert.deepEqual(fault?.['kind'], 'MISSING_FILE')
    assert.deepEqual(fault['paths'], [data.slice(lake.folder.length + 1)])
    assert.deepEqual(fault['snapshot_ids'], [table['snapshot_id']])
  })
})

test('what verify is asked for is checked before anything is read', async () => {
  const none = await runCli(['verify'])
  assert.equal(none.exit, 2)
  assert.match(none.err, /verify needs a lake/)
  const level = await runCli(['verify', './lake', '--level', 'row'])
  assert.equal(level.exit, 2)
  assert.match(level.err, /--level "row" is not known. Did you mean rows\?/)
  const more = await runCli(['verify', './lake', 'a.b', 'c.d'])
  assert.match(more.err, /verify takes a lake and one table, not also "c.d"/)
  await withWarehouse(async (folder) => {
    const missing = await runCli(['verify', folder, '--json'])
    assert.equal(missing.exit, 3)
    assert.equal((JSON.parse(missing.out) as Loose)['schema'], 'sluice.verify/1')
  })
})

/** The report without what differs from run to run. */
function plain(text: string): string {
  return text
    .replace(/data\/id_bucket=\d\/\S+?\.parquet/g, 'FILE')
    .replace(/snapshot \d{9,}/g, 'snapshot ID')
    .replace(/\[\d+, \d+\)/, '[A, B)')
    .replace(/\b\d+ rows\b/g, 'N rows')
    .replace(/has \d+$/gm, 'has N')
}
