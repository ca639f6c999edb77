import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { bucketsOf } from '../../../src/source/bucketing/buckets.ts'
import {
  commitShares,
  emptyLake,
  type Lake,
  numbers,
  openWorld,
  type World,
} from './embedded-world.ts'

/** Numbers of input 1 are above those of input 0, so a row tells where it came from. */
const inputBase = 1_000_000
const inputIds = ['first', 'second'] as const

type Step =
  /** Appends the next records of an input; without `mark` the piece stays open. */
  | {
      readonly kind: 'append'
      readonly input: 0 | 1
      readonly size: number
      readonly mark: boolean
    }
  | { readonly kind: 'commit'; readonly shares: readonly number[]; readonly told: boolean }
  | { readonly kind: 'crash' }

const shares = fc.array(
  fc.oneof(fc.constantFrom(0, 1), fc.double({ min: 0, max: 1, noNaN: true })),
  {
    minLength: 1,
    maxLength: 5,
  },
)
const stepsOf = (sizes: readonly number[], maxLength: number): fc.Arbitrary<Step[]> => {
  const append = fc.record({
    kind: fc.constant('append' as const),
    input: fc.constantFrom(0 as const, 1 as const),
    size: fc.oneof(...sizes.map((max) => fc.integer({ min: 0, max }))),
    mark: fc.boolean(),
  })
  const commit = fc.record({ kind: fc.constant('commit' as const), shares, told: fc.boolean() })
  const crash = fc.constant({ kind: 'crash' as const })
  return fc.array(
    fc.oneof(
      { weight: 5, arbitrary: append },
      { weight: 3, arbitrary: commit },
      { weight: 2, arbitrary: crash },
    ),
    { minLength: 1, maxLength, size: 'max' },
  )
}

/** Where each input is read from next, as a reader of it would know after opening the lake. */
function positions(lake: Lake): [number, number] {
  const of = (id: string): number => Number(lake.inputs.get(id)?.position ?? '0')
  return [of(inputIds[0]), of(inputIds[1])]
}

async function appendPiece(
  world: World,
  at: number[],
  piece: Step & { kind: 'append' },
): Promise<void> {
  const { source, table } = world
  const from = at[piece.input] ?? 0
  const values = Array.from({ length: piece.size }, (_, i) => piece.input * inputBase + from + i)
  at[piece.input] = from + piece.size
  const result = await source.append(table.id, numbers(values), {
    input: {
      id: inputIds[piece.input],
      name: `${inputIds[piece.input]}.ndjson`,
      startOrdinal: BigInt(from),
      startPosition: '0',
      ...(piece.mark ? { position: String(from + piece.size) } : {}),
    },
  })
  assert.equal(result.appended + result.alreadyThere, piece.size)
}

/** Bucket of each record by the two rules, told without the code under test where place decides. */
function expectedBuckets(
  input: number,
  count: number,
  buckets: number,
  byKey: boolean,
): Int32Array {
  const values = Array.from({ length: count }, (_, i) => input * inputBase + i)
  const column = numbers(values).columns[0]
  assert.ok(column !== undefined)
  if (byKey) return bucketsOf(column, buckets, 'iceberg')
  return Int32Array.from(values, (_, i) => Math.floor(i / 1024) % buckets)
}

async function liveThrough(steps: readonly Step[], buckets: number, byKey: boolean): Promise<void> {
  const lake = emptyLake(buckets)
  let world = openWorld(lake, { byKey })
  let at = positions(lake)
  const reached: [number, number] = [0, 0]
  for (const each of [...steps, { kind: 'crash' } as const]) {
    if (each.kind === 'append') {
      await appendPiece(world, at, each)
      reached[each.input] = Math.max(reached[each.input], at[each.input])
    } else if (each.kind === 'commit') {
      await commitShares(world, lake, each.shares)
      // A commit whose reply was lost is in the lake although the source was not told.
      if (each.told) world.source.committed(world.table.id, lake.ends)
      checkProgress(lake)
    } else {
      world = openWorld(lake, { byKey })
      at = positions(lake)
    }
  }
  // The last life reads both inputs to the furthest record ever read, and commits all.
  for (const input of [0, 1] as const) {
    const size = reached[input] - at[input]
    await appendPiece(world, at, { kind: 'append', input, size, mark: true })
  }
  await commitShares(world, lake, [1])
  for (const input of [0, 1] as const) {
    const assigned = expectedBuckets(input, reached[input], buckets, byKey)
    for (let bucket = 0; bucket < buckets; bucket += 1) {
      const expected: number[] = []
      assigned.forEach((each, i) => {
        if (each === bucket) expected.push(input * inputBase + i)
      })
      const found = lake.rows[bucket]?.filter((row) => Math.floor(row / inputBase) === input)
      assert.deepEqual(found, expected, `input ${input}, bucket ${bucket}`)
    }
    const progress = lake.inputs.get(inputIds[input])
    assert.equal(progress?.position ?? '0', String(reached[input]))
    assert.deepEqual(progress?.extra ?? new Map(), new Map())
  }
}

/** What the lake says must be what it has: records before the position, and the extra beyond it. */
function checkProgress(lake: Lake): void {
  inputIds.forEach((id, input) => {
    const rows = lake.rows.map((each) =>
      each.filter((row) => Math.floor(row / inputBase) === input).map((row) => row % inputBase),
    )
    const progress = lake.inputs.get(id)
    const position = Number(progress?.position ?? '0')
    assert.equal(Number(progress?.records ?? 0n), position)
    const before = rows.flat().filter((row) => row < position)
    assert.equal(before.length, position, 'everything before the position is in')
    rows.forEach((each, bucket) => {
      const beyond = each.filter((row) => row >= position).length
      const extra = [...(progress?.extra ?? [])].find(([of]) => Number(of) === bucket)?.[1] ?? 0n
      assert.equal(Number(extra), beyond, `extra of bucket ${bucket}`)
    })
  })
}

const worlds = [
  { name: 'by place', byKey: false, sizes: [3, 40, 3000], stepsMax: 40, numRuns: 200 },
  { name: 'by key', byKey: true, sizes: [3, 40, 3000], stepsMax: 40, numRuns: 200 },
  // Whole pieces of a replay are then in the lake while those before them are not.
  { name: 'by key in small pieces', byKey: true, sizes: [1, 2, 8], stepsMax: 80, numRuns: 300 },
]
for (const { name, byKey, sizes, stepsMax, numRuns } of worlds) {
  test(`neither loses nor doubles a record over crashes and replays, ${name}`, async () => {
    await fc.assert(
      fc.asyncProperty(
        stepsOf(sizes, stepsMax),
        fc.integer({ min: 1, max: 5 }),
        async (steps, buckets) => {
          await liveThrough(steps, buckets, byKey)
        },
      ),
      { numRuns },
    )
  })
}
