import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  type EmbeddedSource,
  type Lake,
  type LogTable,
  openEmbeddedSource,
  openLake,
  startTiering,
  tier,
} from '../../../src/index.ts'

type World = { readonly folder: string; readonly lake: Lake; readonly source: EmbeddedSource }

async function inWorld(use: (world: World) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-library-'))
  try {
    await using lake = await openLake({ warehouse: folder })
    await using source = await openEmbeddedSource({ resumeFrom: lake })
    await use({ folder, lake, source })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** What a caller without types may give. */
const given = (value: unknown): never => value as never

const columns = { n: 'BIGINT' }

test('what a lake is opened with is checked before anything is looked at', async () => {
  for (const [options, message] of [
    [undefined, 'openLake takes an object of options'],
    [{}, 'openLake: a warehouse is missing'],
    [{ warehouse: '' }, 'openLake: a warehouse is missing'],
    [
      { warehouse: './x', warehose: './y' },
      'openLake: "warehose" is not an option. Did you mean warehouse?',
    ],
    [
      { warehouse: './x', catalog: { uri: 'https://catalog.example.com' } },
      'openLake: the catalog is "file"; others come later',
    ],
  ] as const) {
    await assert.rejects(openLake(given(options)), { code: 'CONFIG_INVALID', message })
  }
})

test('a definition with members that mean nothing makes no table', async () => {
  await inWorld(async ({ folder, lake, source }) => {
    for (const [definition, code, message] of [
      [
        { columns, bukets: 8 },
        'CONFIG_INVALID',
        'createTable demo.t: "bukets" is not an option. Did you mean buckets?',
      ],
      [
        { columns, primaryKey: ['n'] },
        'SCHEMA_UNSUPPORTED',
        'demo.t: primary-key tables come later',
      ],
      [
        { columns, partitionedBy: ['n'] },
        'SCHEMA_UNSUPPORTED',
        'demo.t: partitioned tables come later',
      ],
      [{ columns, formatVersion: 3 }, 'SCHEMA_UNSUPPORTED', 'demo.t: tables have format version 2'],
      [
        { columns, freshness: 0 },
        'CONFIG_INVALID',
        'freshness "0ms" is not a duration: it must be longer than zero',
      ],
      [{ columns, freshness: -1 }, 'CONFIG_INVALID', 'freshness "-1ms" is not a duration'],
      [{ columns, freshness: Number.NaN }, 'CONFIG_INVALID', /^freshness "NaNms"/],
      [{ columns, freshness: '5 bananas' }, 'CONFIG_INVALID', /^freshness "5 bananas"/],
    ] as const) {
      await assert.rejects(source.createTable('demo.t', given(definition)), { code, message })
    }
    await assert.rejects(
      tier('x.ndjson', given({ lake, table: 'demo.t', onBadRecords: 'quarantine' })),
      {
        code: 'CONFIG_INVALID',
        message: 'tier: "onBadRecords" is not an option. Did you mean onBadRecord?',
      },
    )
    await assert.rejects(tier('x.ndjson', given({ lake, table: 'demo.t', formatVersion: 3 })), {
      code: 'SCHEMA_UNSUPPORTED',
    })
    assert.deepEqual(await readdir(folder), [])
  })
})

test('a definition that differs is told in the words of the library', async () => {
  await inWorld(async ({ source }) => {
    await source.createTable('demo.t', { columns, buckets: 4, formatVersion: 2 })
    await assert.rejects(source.createTable('demo.t', { columns, buckets: 8 }), {
      code: 'TABLE_MISMATCH',
      message: 'demo.t exists with 4 buckets; buckets 8 would move its records',
      fix: 'leave buckets out, or name another table',
    })
    await assert.rejects(source.createTable('demo.t', { columns: { m: 'INT' } }), {
      code: 'TABLE_MISMATCH',
      fix: 'give the columns it has, or name another table',
    })
  })
})

test('what is no record is refused as one, and takes no offset', async () => {
  await inWorld(async ({ source }) => {
    const table: LogTable = await source.createTable('demo.t', { columns, buckets: 1 })
    for (const [records, message] of [
      [5, 'demo.t: a number is no row'],
      [null, 'demo.t: null is no row'],
      [undefined, 'demo.t: nothing is no row'],
      [[{ n: 1 }, null], 'row 1: null is no row'],
      [[[1]], 'row 0: an array is no row'],
      [['n'], 'row 0: a string is no row'],
    ] as const) {
      await assert.rejects(table.append(given(records)), { code: 'RECORD_REFUSED', message })
    }
    assert.deepEqual((await table.append({ n: 1 })).ends, new Map([[0, 1n]]))
  })
})

test('rounds of a receipt are reports, and nobody waits for a job that has ended', async () => {
  await inWorld(async ({ lake, source }) => {
    const table = await source.createTable('demo.t', { columns, buckets: 1, freshness: '1h' })
    await using job = startTiering({ source, lake })
    await table.append({ n: 1 })
    const { rounds } = await job.drain()
    assert.deepEqual(
      rounds.map((round) => [round.rows, 'event' in round]),
      [[1n, false]],
    )
    const position = await table.append({ n: 2 })
    await job.stop({ timeout: 0 })
    const code = { code: 'STOPPED' }
    await assert.rejects(job.committed(position), code)
    await assert.rejects(job.drain(), code)
  })
})
