import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import fc from 'fast-check'
import { faultKinds } from '../../../src/verify/findings.ts'
import { at, big, kindsOf, Lake, type Loose, type Original, tieredLake } from './support.ts'

let original: Original
before(async () => {
  original = await tieredLake()
})

test('whatever bytes are changed in whatever file, the audit ends with a report', async () => {
  const names = [...original.files.keys()].filter((name) => !/v1\.|v2\.|hint/.test(name))
  const spoil = fc.record({
    file: fc.constantFrom(...names.sort()),
    place: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
    bytes: fc.uint8Array({ minLength: 1, maxLength: 24 }),
    cut: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(spoil, async ({ file, place, bytes, cut }) => {
      const lake = new Lake(original)
      const body = Uint8Array.from(lake.read(file))
      const from = Math.floor(place * body.length)
      body.set(bytes.subarray(0, body.length - from), from)
      lake.files.set(file, cut ? body.subarray(0, from + 1) : body)
      const report = await lake.verify()
      for (const kind of kindsOf(report)) assert.ok(faultKinds.some((known) => known === kind))
      if (cut && from + 1 < body.length && file.endsWith('.parquet')) {
        assert.deepEqual(kindsOf(report), ['FILE_SIZE'])
      }
    }),
    { numRuns: 60 },
  )
})

test('a parent that is its own ancestor ends no loop', async () => {
  const lake = new Lake(original)
  lake.edit((metadata) => {
    const [first, second] = lake.snapshots(metadata)
    if (first !== undefined) first['parent-snapshot-id'] = second?.['snapshot-id']
  })
  assert.equal((await lake.verify('metadata')).snapshotsChecked, 2)
})

test('rows that another writer deleted on purpose are no gap; rows lost in a rewrite are', async () => {
  for (const operation of ['delete', 'replace'] as const) {
    const lake = new Lake(original)
    const [newest = ''] = lake.manifests()
    // The newest snapshot becomes another writer's, and its first file one that it removed.
    const id = 4_611_686_018_427_387_905n
    lake.edit((metadata) => {
      const second = at(lake.snapshots(metadata), 1)
      lake.snapshots(metadata).push({
        ...second,
        'snapshot-id': id,
        'parent-snapshot-id': second['snapshot-id'],
        'sequence-number': Number(second['sequence-number']) + 1,
        'manifest-list': `${String(second['manifest-list'])}-3`,
        summary: { operation },
      })
      metadata['current-snapshot-id'] = id
      metadata['refs'] = { main: { 'snapshot-id': id, type: 'branch' } }
    })
    const list = String(at(lake.snapshots(), 1)['manifest-list'])
    lake.files.set(`${list}-3`, lake.read(list))
    const rewritten = `${newest}-3`
    lake.files.set(rewritten, lake.read(newest))
    lake.editAvro(rewritten, (entries) => {
      for (const [index, entry] of entries.entries()) {
        entry['status'] = index === 0 ? 2 : 0
        entry['sequence_number'] = 2n
        entry['file_sequence_number'] = 2n
        if (index === 0) entry['snapshot_id'] = id
      }
    })
    lake.editAvro(`${list}-3`, (manifests) => {
      for (const manifest of manifests) {
        if (manifest['manifest_path'] === newest) manifest['manifest_path'] = rewritten
      }
    })
    lake.recount()
    const report = await lake.verify('metadata')
    assert.deepEqual(kindsOf(report), operation === 'delete' ? [] : ['GAP'], operation)
    assert.deepEqual(
      report.warnings.map(({ kind, snapshotIds }) => [kind, snapshotIds]),
      [['FOREIGN', [id]]],
    )
  }
})

test("an operator's decision shows in the report, and may set an end back", async () => {
  const lake = new Lake(original)
  lake.editLedger(0, (ledger) => {
    const [bucket] = ledger['buckets'] as string[][]
    if (bucket !== undefined) bucket[3] = '1000'
  })
  lake.edit((metadata) => {
    const summary = at(lake.snapshots(metadata), 1)['summary'] as Loose
    const ledger = JSON.parse(String(summary['sluice.ledger'])) as Loose
    summary['sluice.ledger'] = JSON.stringify({ ...ledger, kind: 'override' })
    summary['sluice.kind'] = 'override'
    summary['sluice.by'] = 'ada'
    summary['sluice.reason'] = 'restored from the copy'
  })
  const report = await lake.verify('metadata')
  assert.ok(!kindsOf(report).includes('REWIND'))
  const snapshotId = big(at(lake.snapshots(), 1)['snapshot-id'])
  assert.deepEqual(report.decisions, [
    { snapshotId, kind: 'override', reason: 'restored from the copy', by: 'ada' },
  ])
})

test('a declared gap is not a fault, and shows in the report', async () => {
  const lake = new Lake(original)
  lake.editLedger(1, (ledger) => {
    const [bucket] = ledger['buckets'] as string[][]
    const end = BigInt(bucket?.[3] ?? 0)
    if (bucket !== undefined) bucket[3] = String(end + 5n)
    ledger['gaps'] = [
      {
        partition: null,
        bucket: 0,
        from: String(end),
        to: String(end + 5n),
        reason: 'r',
        by: 'ada',
      },
    ]
  })
  const report = await lake.verify()
  assert.deepEqual(report.faults, [])
  assert.equal(report.declaredGaps.length, 1)
})
