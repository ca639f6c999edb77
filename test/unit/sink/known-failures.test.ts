import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileCatalog } from '../../../src/catalog/iceberg/file-catalog.ts'
import { scanTable } from '../../../src/catalog/iceberg/scan.ts'
import type { LakeTable, SnapshotEntry } from '../../../src/catalog/ports.ts'
import { numberedRegister } from '../../../src/catalog/register/numbered.ts'
import { localStore, locationOf } from '../../../src/catalog/store/local-store.ts'
import {
  bucket,
  type CommitId,
  commitId,
  epoch,
  millis,
  offset,
  type SnapshotId,
  snapshotId,
  tableId,
} from '../../../src/core/ids.ts'
import { silentJournal } from '../../../src/core/ports.ts'
import { seededChance, systemIds } from '../../../src/core/system.ts'
import { roundChange, snapshotOf } from '../../../src/sink/committer/changes.ts'
import { type CommitEnd, type CommitJob, commit } from '../../../src/sink/committer/commit.ts'
import { type HeldTable, holdTable, ledgerOf } from '../../../src/sink/committer/held-table.ts'
import { keepalive } from '../../../src/sink/committer/keepalive.ts'
import { summaryKeys } from '../../../src/sink/committer/lineage.ts'
import { readVersion } from '../../../src/sink/committer/progress.ts'
import { planSweep } from '../../../src/sink/sweeper/sweep-plan.ts'
import { FakeLake } from '../../support/fake-lake.ts'
import { ForeignWriter } from '../../support/foreign-writer.ts'
import { scratchFolder } from '../../support/scratch.ts'
import {
  append,
  applied,
  bigId,
  dataFile,
  definition,
  folder,
  lakeInMemory,
} from '../catalog/support.ts'

/*
 * Failures of comparable systems that need no simulation: they are about one commit, on tables of
 * numbered files. The numbers are those of the list in docs/simulation.md.
 */

const source = 'embedded:demo.clicks'
const clock = { now: () => millis(0), monotonic: () => millis(0), sleep: () => Promise.resolve() }
const ports = { clock, chance: seededChance(1), journal: silentJournal }
const id = (digit: string): CommitId => commitId(digit.repeat(32))

type Memory = ReturnType<typeof lakeInMemory>

type Round = {
  readonly commit: string
  readonly start?: bigint
  readonly end: bigint
  readonly epoch: number
  /** Of the file it adds. */
  readonly location?: string
}

/** A round of bucket 0 with one file, planned on what the table shows now. */
async function plan(held: HeldTable, round: Round): Promise<CommitJob> {
  const planned = await readVersion(held.lake, source)
  const token = { generation: 0, incarnation: held.incarnation, epoch: epoch(round.epoch) }
  const start = offset(round.start ?? 0n)
  const isFirst = round.start === undefined
  const ranges = [{ bucket: bucket(0), start, end: offset(round.end), isFirst }]
  const rows = Number(round.end - start)
  const location = round.location ?? `${folder}/data/${round.commit}.parquet`
  const name = id(round.commit)
  const { uuid, head, schemaId, specId } = planned.table
  return {
    held,
    planned,
    claim: {
      commit: name,
      snapshotId: snapshotOf(name),
      token,
      tableUuid: uuid,
      planHead: head,
      schemaId,
      specId,
      ranges,
      follows: ledgerOf(planned)?.commit ?? 'nothing',
      drawn: held.drawn,
    },
    build: (base) =>
      roundChange(base, {
        commit: name,
        token,
        source,
        ranges,
        files: [dataFile(0, rows, { location })],
        final: false,
        forceFinished: false,
        inputs: () => new Map(),
      }),
  }
}

async function hold(lake: LakeTable): Promise<HeldTable> {
  return holdTable(tableId(1n), lake, source, await readVersion(lake, source))
}

function codeOf(end: CommitEnd): string {
  return end.kind === 'committed' ? 'committed' : `${end.kind} ${end.error.code}`
}

/** Commit ids in the lineage with the kind of their snapshot, newest first. */
async function lineageOf(lake: LakeTable): Promise<readonly string[]> {
  const table = await lake.load()
  const found: string[] = []
  for (let at = table.head; at !== undefined; ) {
    const entry: SnapshotEntry | undefined = table.snapshots.get(at)
    const { commitId: commitKey, kind } = summaryKeys
    found.push(
      `${entry?.summary.get(kind) ?? 'foreign'} ${entry?.summary.get(commitKey)?.[0] ?? ''}`,
    )
    at = entry?.parent
  }
  return found
}

async function dropAndCreate(lake: Memory): Promise<LakeTable> {
  for (const location of [...lake.store.objects.keys()]) await lake.store.remove(location)
  return (await lake.catalog.create(definition())).table
}

for (const when of ['before the first round', 'after a round'] as const) {
  test(`B-05 a commit in flight while its table is dropped and made anew (fluss 3483), ${when}`, async () => {
    const lake = lakeInMemory()
    const { table } = await lake.catalog.create(definition())
    const held = await hold(table)
    const isFirst = when === 'before the first round'
    if (!isFirst) {
      const first = await plan(held, { commit: 'a', end: 10n, epoch: 1 })
      equal(codeOf(await commit(first, ports)), 'committed')
    }
    const start = isFirst ? {} : { start: 10n }
    const late = await plan(held, { commit: 'b', ...start, end: 20n, epoch: 2 })
    const anew = await dropAndCreate(lake)
    const { uuid } = await anew.load()
    const objects = [...lake.store.objects.keys()]
    // The number after the one it was planned on is free in the new table as well.
    equal(codeOf(await commit(late, ports)), 'rejected TABLE_REPLACED')
    deepEqual([...lake.store.objects.keys()], objects)
    equal((await anew.load()).uuid, uuid)
  })
}

test('B-08 two snapshots of ours in one go: the newest of the lineage, not of the list (fluss 2625)', async () => {
  const lake = new FakeLake()
  const held = await hold(lake)
  const made: (readonly [SnapshotId, SnapshotEntry])[] = []
  for (const [at, name] of ['a', 'b', 'c'].entries()) {
    const round = {
      commit: name,
      ...(at === 0 ? {} : { start: BigInt(10 * at) }),
      end: BigInt(10 * at + 10),
      epoch: at + 1,
    }
    const job = await plan(held, round)
    lake.apply(await job.build(job.planned))
    const entry = lake.newest.snapshots.get(job.claim.snapshotId)
    ok(entry !== undefined)
    made.push([entry.id, entry])
  }
  const [a, b, c] = made
  ok(a !== undefined && b !== undefined && c !== undefined)
  const { properties } = lake.newest
  const start = lake.versions[0]
  // One version brings both a and b, of one time; the list shows them in any order, and c, which is
  // of a higher sequence number, is in no lineage.
  for (const list of [[c, b, a] as const, [a, b, c] as const, [b, c, a] as const]) {
    const anew = new FakeLake()
    anew.edit({ ...start, head: b[0], snapshots: new Map(list), properties, lastSequence: 3n })
    const { progress } = await readVersion(anew, source)
    ok(progress.kind === 'found')
    equal(progress.snapshot?.id, b[0])
    equal(progress.ledger.buckets.get(bucket(0))?.end, 20n)
  }
})

test('B-21 a number that was used does not come back (slatedb rfc 26)', async () => {
  const lake = lakeInMemory()
  const { table } = await lake.catalog.create(definition())
  const held = await hold(table)
  await commit(await plan(held, { commit: 'a', end: 10n, epoch: 1 }), ports)
  await commit(await plan(held, { commit: 'b', start: 10n, end: 20n, epoch: 2 }), ports)
  const head = await table.load()
  match(head.token, /^3-/)

  // The oldest sweep there can be, to which nothing is referenced.
  const entries = await lake.store.list(`${folder}/`)
  const now = millis(lake.now * 2)
  const { orphans, kept } = planSweep({ folder, entries, names: new Set(), now, olderThanMs: 1 })
  equal(kept.get('version'), 4)
  equal(orphans.length > 0, true)
  for (const { location } of orphans) await lake.store.remove(location)
  await lake.store.remove(`${folder}/metadata/version-hint.text`)

  // A sleeper that knows nothing of what happened, and has lost the hint.
  const sleeper = numberedRegister(lake.store, folder)
  for (const version of [1, 2, 3]) {
    equal((await sleeper.create(version, Buffer.from('{}'))).kind, 'rejected')
  }
  for (const hint of ['9', '1', 'none']) {
    await lake.store.putHint(`${folder}/metadata/version-hint.text`, Buffer.from(hint))
    equal((await numberedRegister(lake.store, folder).head())?.version, 3, hint)
  }
  equal((await table.load()).token, head.token)
})

test('B-22 ids beyond 2^53, a current snapshot of -1, and totals that are carried on (icebird)', async () => {
  const lake = lakeInMemory()
  const { table } = await lake.catalog.create(definition())
  const v1 = `${folder}/metadata/v1.metadata.json`
  const text = Buffer.from((await lake.store.read(v1)) ?? []).toString()
  const without = text.replace(/"current-snapshot-id":(?:-1|null),/, '')
  const minusOne = without.replace('{', '{"current-snapshot-id":-1,')
  await lake.store.putHint(v1, Buffer.from(minusOne))

  const base = await table.load()
  equal(base.head, undefined)
  equal(base.snapshots.size, 0)
  const [one, two, three] = [bigId, 2n ** 63n - 1n, 2n ** 53n + 1n]
  const first = applied(await table.swap(base, append(one, [dataFile(0, 10)])))
  const empty = applied(await table.swap(first, append(two, [])))
  const last = applied(await table.swap(empty, append(three, [dataFile(1, 5)])))

  const back = await (await lake.catalog.create(definition())).table.load()
  equal(back.head, snapshotId(three))
  deepEqual(
    [...back.snapshots.values()].map(({ id: each, parent }) => [each, parent]),
    [
      [one, undefined],
      [two, one],
      [three, two],
    ],
  )
  const totals = [...last.snapshots.values()].map(({ summary }) =>
    ['total-records', 'total-data-files', 'total-delete-files', 'total-equality-deletes'].map(
      (key) => summary.get(key),
    ),
  )
  deepEqual(totals, [
    ['10', '1', '0', '0'],
    ['10', '1', '0', '0'],
    ['15', '2', '0', '0'],
  ])
})

test('B-23 one id is one snapshot, whatever its kind (paimon 350)', async () => {
  const lake = lakeInMemory()
  const { table } = await lake.catalog.create(definition())
  const held = await hold(table)
  await commit(await plan(held, { commit: 'a', end: 10n, epoch: 1 }), ports)
  const token = { generation: 0, incarnation: held.incarnation, epoch: epoch(2) }
  const draws = (digit: string) => ({ ...ports, ids: { bits128: () => digit.repeat(32) } })

  // The id of a round, drawn once more for a sign of life: it is taken for what has landed.
  await keepalive(held, token, await readVersion(table, source), draws('a'))
  deepEqual(await lineageOf(table), ['round a'])
  await keepalive(held, token, await readVersion(table, source), draws('b'))
  deepEqual(await lineageOf(table), ['keepalive b', 'round a'])

  // And the id of a sign of life for a round: nothing is written, and the ends stay where they are.
  const again = await plan(held, { commit: 'b', start: 10n, end: 20n, epoch: 3 })
  await commit(again, ports)
  deepEqual(await lineageOf(table), ['keepalive b', 'round a'])
  const { progress } = await readVersion(table, source)
  equal(progress.kind === 'found' && progress.ledger.buckets.get(bucket(0))?.end, 10n)
})

test('B-24 another engine compacts between plan and commit (iceberg 10720)', async (context) => {
  const warehouse = join(scratchFolder(context), 'lake')
  const store = localStore(systemIds)
  const lake = fileCatalog({ store, warehouse: locationOf(warehouse), clock, ids: systemIds })
  const { table } = await lake.create(definition())
  const held = await hold(table)
  const at = join(warehouse, 'demo/clicks')
  await mkdir(join(at, 'data'))
  const fileOf = async (name: string): Promise<string> => {
    await writeFile(join(at, 'data', name), 'rows')
    return locationOf(join(at, 'data', name))
  }
  const first = { commit: 'a', end: 10n, epoch: 1, location: await fileOf('a.parquet') }
  await commit(await plan(held, first), ports)
  const second = {
    commit: 'b',
    start: 10n,
    end: 15n,
    epoch: 2,
    location: await fileOf('b.parquet'),
  }
  const late = await plan(held, second)
  const others = new ForeignWriter(locationOf(at))
  const compacted = await others.compact()

  const end = await commit(late, ports)
  equal(end.kind === 'committed' && end.attempts, 2)
  deepEqual(await lineageOf(table), ['round b', 'foreign ', 'round a'])
  const { files, snapshot } = await scanTable(store, locationOf(at))
  equal(snapshot?.parent, compacted)
  // The number of the first attempt is the one that they have by now.
  equal(
    snapshot.sequence,
    (await others.metadata()).snapshots.get(snapshotId(compacted))!.sequence + 1n,
  )
  equal((await others.metadata()).lastSequence, snapshot.sequence)
  // What they wrote for ours stays in place of it, and ours is beside it.
  deepEqual(files.map(({ rows }) => rows).sort(), [10, 5])
  equal(
    files.some(({ location }) => location.endsWith('/a.parquet')),
    false,
  )
})
