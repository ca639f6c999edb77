import { deepEqual, equal } from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from 'fast-check'
import type { UploadEntry } from '../../../src/catalog/store/object-store.ts'
import { millis } from '../../../src/core/ids.ts'
import { planSweep, type SweepPlan } from '../../../src/sink/sweeper/sweep-plan.ts'

const folder = 'file:///lake/demo/clicks'
const day = 86_400_000
const now = millis(100 * day)

/** Files by their path below the table's folder, with their age in days. */
function plan(
  ages: Readonly<Record<string, number>>,
  names: readonly string[] = [],
  retentionDays = 3,
): SweepPlan {
  const entries = Object.entries(ages).map(([path, age]) => ({
    location: path.startsWith('file:') ? path : `${folder}/${path}`,
    bytes: 10,
    modifiedAt: millis(now - age * day),
  }))
  const olderThanMs = retentionDays * day
  return planSweep({ folder, entries, names: new Set(names), now, olderThanMs })
}

function orphans(planned: SweepPlan): readonly string[] {
  return planned.orphans.map(
    ({ location, reason }) => `${reason} ${location.replace(`${folder}/`, '')}`,
  )
}

describe('what a sweep may delete', () => {
  test('old files below data and metadata that nothing refers to', () => {
    const planned = plan({
      'data/__bucket=0/lost.parquet': 9,
      'metadata/lost-m0.avro': 9,
      'metadata/snap-1-lost.avro': 9,
      'data/.sluice-0123456789abcdef.tmp': 9,
    })
    deepEqual(orphans(planned), [
      'unreferenced data/__bucket=0/lost.parquet',
      'unreferenced metadata/lost-m0.avro',
      'unreferenced metadata/snap-1-lost.avro',
      'temporary data/.sluice-0123456789abcdef.tmp',
    ])
  })

  test('nothing that is referenced, by whatever spelling of its location', () => {
    const planned = plan({ 'data/__bucket=0/a.parquet': 9, 'data/b.parquet': 9 }, ['a.parquet'])
    deepEqual(orphans(planned), ['unreferenced data/b.parquet'])
    equal(planned.kept.get('referenced'), 1)
  })

  test('no version, no hint, no metadata of whatever name', () => {
    const planned = plan({
      'metadata/v1.metadata.json': 90,
      'metadata/v2.gz.metadata.json': 90,
      'metadata/v3.metadata.json.gz': 90,
      'metadata/00004-5f2c.metadata.json': 90,
      'metadata/version-hint.text': 90,
    })
    deepEqual(orphans(planned), [])
    equal(planned.kept.get('version'), 5)
  })

  test('nothing as young as the retention, and nothing from the future', () => {
    const planned = plan({
      'data/three-days.parquet': 3,
      'data/today.parquet': 0,
      'data/tomorrow.parquet': -1,
      'data/.sluice-00.tmp': 2,
    })
    deepEqual(orphans(planned), [])
    equal(planned.kept.get('young'), 4)
  })

  test('nothing hidden, as other engines have it; a partition folder is not', () => {
    const planned = plan({
      'data/_started': 9,
      'data/.crc': 9,
      'data/_temporary/0/part.parquet': 9,
      'data/_day=2026-01-01/part.parquet': 9,
    })
    deepEqual(orphans(planned), ['unreferenced data/_day=2026-01-01/part.parquet'])
    equal(planned.kept.get('hidden'), 3)
  })

  test('nothing beside data and metadata, and nothing of a table inside this one', () => {
    const planned = plan({
      'readme.txt': 9,
      'other/x.parquet': 9,
      'data/inner/metadata/v1.metadata.json': 9,
      'data/inner/data/x.parquet': 9,
      'file:///lake/demo/clicks2/data/x.parquet': 9,
      'data/../../flights/data/x.parquet': 9,
      'data//x.parquet': 9,
    })
    deepEqual(orphans(planned), [])
    equal(planned.kept.get('outside'), 5)
    equal(planned.kept.get('other-table'), 2)
  })

  test('uploads that nobody finished, as old and in the same places, whatever has their name', () => {
    const uploadOf = (path: string, age: number | undefined): UploadEntry => ({
      location: `${folder}/${path}`,
      id: path,
      bytes: 5,
      activeAt: age === undefined ? undefined : millis(now - age * day),
    })
    const { orphans: files, ...planned } = planSweep({
      folder,
      entries: [
        ...['data/inner/metadata/v1.metadata.json', 'data/there.parquet'].map((path) => ({
          location: `${folder}/${path}`,
          bytes: 1,
          modifiedAt: millis(0),
        })),
      ],
      uploads: [
        uploadOf('data/__bucket=0/lost.parquet', 3.5),
        uploadOf('data/there.parquet', 9),
        uploadOf('metadata/lost-m0.avro', 9),
        uploadOf('data/running.parquet', 3),
        uploadOf('data/unknown.parquet', undefined),
        uploadOf('data/_hidden/x.parquet', 9),
        uploadOf('data/inner/data/x.parquet', 9),
        uploadOf('elsewhere/x.parquet', 9),
        uploadOf('metadata/v9.metadata.json', 9),
      ],
      names: new Set(['there.parquet']),
      now,
      olderThanMs: 3 * day,
    })
    deepEqual(files, [])
    deepEqual(
      planned.uploads.map(({ id }) => id),
      ['data/__bucket=0/lost.parquet', 'data/there.parquet', 'metadata/lost-m0.avro'],
    )
    equal(planned.kept.get('upload'), 6)
  })

  test('never a location outside of the two folders, whatever a store lists', () => {
    const part = fc.constantFrom(
      'data',
      'metadata',
      '..',
      '.',
      '',
      'x.parquet',
      '.sluice-1.tmp',
      'é',
    )
    const location = fc.oneof(
      fc.array(part, { maxLength: 6 }).map((parts) => [folder, ...parts].join('/')),
      fc.array(part, { maxLength: 6 }).map((parts) => ['file:///lake/demo', ...parts].join('/')),
      fc.string(),
    )
    fc.assert(
      fc.property(fc.array(location), (locations) => {
        const entries = locations.map((each) => ({
          location: each,
          bytes: 1,
          modifiedAt: millis(0),
        }))
        const facts = { folder, entries, names: new Set<string>(), now, olderThanMs: day }
        const planned = planSweep(facts)
        let counted = planned.orphans.length
        for (const count of planned.kept.values()) counted += count
        equal(counted, locations.length)
        for (const { location: orphan } of planned.orphans) {
          const inside = new URL(orphan).pathname
          equal(/^\/lake\/demo\/clicks\/(?:data|metadata)\//.test(inside), true, orphan)
        }
      }),
    )
  })
})
