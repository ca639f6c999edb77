import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { SnapshotEntry } from '../../../src/catalog/ports.ts'
import {
  bucket,
  type CommitId,
  commitId,
  epoch,
  incarnation,
  millis,
  offset,
  type SnapshotId,
  snapshotId,
} from '../../../src/core/ids.ts'
import { roundChange } from '../../../src/sink/committer/changes.ts'
import { isKeepaliveDue } from '../../../src/sink/committer/keepalive.ts'
import { readCopy } from '../../../src/sink/committer/progress-copy.ts'
import { readVersion } from '../../../src/sink/committer/progress.ts'
import { FakeLake } from '../../support/fake-lake.ts'

const source = 'embedded:demo.clicks'
const id = (digit: string): CommitId => commitId(digit.repeat(32))

/** Rounds of ours that end bucket 0 at 10, 20, … and bucket 1 at 5. */
async function tiered(rounds: number): Promise<FakeLake> {
  const lake = new FakeLake()
  for (let round = 1; round <= rounds; round += 1) {
    const ranges = [
      {
        bucket: bucket(0),
        start: offset(BigInt(10 * (round - 1))),
        end: offset(BigInt(10 * round)),
        isFirst: round === 1,
      },
      ...(round === 1
        ? [{ bucket: bucket(1), start: offset(0n), end: offset(5n), isFirst: true }]
        : []),
    ]
    const change = roundChange(await readVersion(lake, source), {
      commit: id(String(round)),
      token: { generation: 0, incarnation: incarnation(1), epoch: epoch(round) },
      source,
      ranges,
      files: [],
      final: false,
      forceFinished: false,
      inputs: () => new Map(),
    })
    lake.apply(change)
  }
  return lake
}

function foreign(number: bigint, parent: SnapshotId | undefined, sequence: bigint): SnapshotEntry {
  return {
    id: snapshotId(number),
    parent,
    sequence,
    committedAt: millis(0),
    operation: 'append',
    summary: new Map([['operation', 'append']]),
    manifestList: 'foreign',
  }
}

/** Another engine appends on top, and expires everything below. */
function appendAndExpire(lake: FakeLake, count: number): void {
  let parent = lake.newest.head
  const added: SnapshotEntry[] = []
  for (let each = 0; each < count; each += 1) {
    const entry = foreign(BigInt(900 + each), parent, lake.newest.lastSequence + BigInt(each + 1))
    added.push(entry)
    parent = entry.id
  }
  const kept = added.slice(-1)
  lake.edit({ head: parent, snapshots: new Map(kept.map((entry) => [entry.id, entry])) })
}

async function progressOf(lake: FakeLake): Promise<string> {
  const { progress } = await readVersion(lake, source)
  if (progress.kind !== 'found') return progress.kind
  return `found ${String(progress.ledger.buckets.get(bucket(0))?.end)}`
}

describe('progress when history is gone', () => {
  test('goes on when the recorded snapshot is the very parent that was expired', async () => {
    const lake = await tiered(2)
    appendAndExpire(lake, 1)
    equal(await progressOf(lake), 'found 20')
  })

  test('goes on when the rows end exactly where the copy says (evidence in the data)', async () => {
    const lake = await tiered(2)
    appendAndExpire(lake, 3)
    lake.ends = new Map([
      [bucket(0), 20n],
      [bucket(1), 5n],
    ])
    equal(await progressOf(lake), 'found 20')
  })

  test('is lost when rows are missing, too many, in another bucket, or do not say', async () => {
    for (const ends of [
      new Map([
        [bucket(0), 10n],
        [bucket(1), 5n],
      ]),
      new Map([
        [bucket(0), 21n],
        [bucket(1), 5n],
      ]),
      new Map([[bucket(0), 20n]]),
      new Map([
        [bucket(0), 20n],
        [bucket(1), 5n],
        [bucket(2), 1n],
      ]),
      undefined,
    ]) {
      const lake = await tiered(2)
      appendAndExpire(lake, 3)
      lake.ends = ends
      const { progress } = await readVersion(lake, source)
      ok(progress.kind === 'lost')
      equal(progress.error.code, 'PROGRESS_LOST')
    }
  })

  test('is lost, never 0, when the properties are gone as well', async () => {
    const lake = await tiered(2)
    appendAndExpire(lake, 1)
    lake.edit({ properties: new Map() })
    equal(await progressOf(lake), 'lost')
  })

  test('a rollback takes the ends back, and says from where', async () => {
    const lake = await tiered(2)
    const [first, second] = [...lake.newest.snapshots.keys()]
    lake.edit({ head: first })
    const { progress } = await readVersion(lake, source)
    ok(progress.kind === 'found')
    equal(progress.ledger.buckets.get(bucket(0))?.end, 10n)
    equal(progress.rolledBackFrom, second)
  })

  test('a copy that was refused or is older is no rollback', async () => {
    const lake = await tiered(1)
    const properties = lake.newest.properties
    const later = await tiered(2)
    later.edit({ properties })
    const { progress } = await readVersion(later, source)
    ok(progress.kind === 'found')
    equal(progress.rolledBackFrom, undefined)
  })

  test('a large ledger leaves only ends, or a digest, in the property', async () => {
    const lake = await tiered(1)
    const copy = readCopy(lake.newest)
    deepEqual(
      copy?.ends,
      new Map([
        [bucket(0), 10n],
        [bucket(1), 5n],
      ]),
    )
    equal(copy.ledger?.round, 1)
  })
})

describe('keepalive', () => {
  test('is due when ours lies below others for half of the time snapshots are kept', async () => {
    const lake = await tiered(1)
    const isDue = async (now: number): Promise<boolean> =>
      isKeepaliveDue(await readVersion(lake, source), millis(now))
    equal(await isDue(10 ** 12), false)
    const entry = foreign(900n, lake.newest.head, 2n)
    lake.edit({
      head: entry.id,
      snapshots: new Map([...lake.newest.snapshots, [entry.id, entry]]),
    })
    equal(await isDue(216_000_000), false)
    equal(await isDue(216_000_001), true)
    lake.edit({
      properties: new Map([
        ...lake.newest.properties,
        ['history.expire.max-snapshot-age-ms', '1000'],
      ]),
    })
    equal(await isDue(501), true)
  })

  test('is due at once when ours was expired already and only its copy is proven', async () => {
    const lake = await tiered(1)
    appendAndExpire(lake, 1)
    const version = await readVersion(lake, source)
    equal(version.progress.kind, 'found')
    equal(isKeepaliveDue(version, millis(0)), true)
  })
})
