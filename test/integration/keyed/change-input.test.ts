import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Row } from '../../../src/core/columns/rows.ts'
import type { Field } from '../../../src/core/schema/types.ts'
import { appendChanges } from '../../../src/library/tier/append-changes.ts'
import type { IngestContext } from '../../../src/library/tier/ingest-input.ts'
import type { OpenedInput } from '../../../src/library/tier/open-source.ts'
import type { SplitResult } from '../../../src/sink/ports.ts'
import type { BadRecord } from '../../../src/source/ingest/input.ts'
import { InputBytes } from '../../../src/source/ingest/input-bytes.ts'
import { openInput } from '../../../src/source/ingest/open-input.ts'
import { KeyedWorld } from '../../support/keyed-world.ts'

const fields: readonly Field[] = [
  { name: 'id', type: { kind: 'bigint', nullable: false } },
  { name: 'name', type: { kind: 'string', nullable: true } },
  { name: 'note', type: { kind: 'string', nullable: true } },
]
const marker = '__debezium_unavailable_value'

type Step =
  | {
      readonly op: 'c' | 'u'
      readonly id: number
      readonly name: string | null
      readonly note: string | null | undefined
    }
  | { readonly op: 'move'; readonly id: number; readonly to: number; readonly name: string }
  | { readonly op: 'd'; readonly id: number }
  | { readonly op: 'x'; readonly id: number }
  | { readonly op: 'tombstone' }

const id = fc.integer({ min: 1, max: 8 })
const text = fc.option(fc.string({ maxLength: 3 }), { nil: null })
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    op: fc.constantFrom('c' as const, 'u' as const),
    id,
    name: text,
    note: fc.oneof(text, fc.constant(undefined)),
  }),
  fc.record({ op: fc.constant('move' as const), id, to: id, name: fc.string({ maxLength: 3 }) }),
  fc.record({ op: fc.constant('d' as const), id }),
  fc.record({ op: fc.constant('x' as const), id }),
  fc.constant({ op: 'tombstone' as const }),
)

/** A line, as Debezium writes it. A note that is undefined did not change. */
function lineOf(each: Step): string {
  switch (each.op) {
    case 'tombstone':
      return 'null'
    case 'move': {
      const after = { id: each.to, name: each.name, note: 'moved' }
      return JSON.stringify({ op: 'u', before: { id: each.id }, after })
    }
    case 'd':
    case 'x':
      return JSON.stringify({ op: each.op, before: { id: each.id }, after: null })
    default: {
      const { op, name, note = marker } = each
      return JSON.stringify({ after: { id: each.id, name, note }, op })
    }
  }
}

/** What is left of the changes, how many records of a changelog they are, and the bad lines. */
function fold(steps: readonly Step[]): {
  readonly rows: ReadonlyMap<number, string>
  readonly records: number
  readonly bad: readonly number[]
} {
  const rows = new Map<number, readonly [string | null, string | null]>()
  const bad: number[] = []
  let records = 0
  const remove = (key: number): void => {
    if (rows.delete(key)) records += 1
  }
  steps.forEach((each, at) => {
    const put = (key: number, row: readonly [string | null, string | null]): void => {
      records += rows.has(key) ? 2 : 1
      rows.set(key, row)
    }
    if (each.op === 'd') remove(each.id)
    else if (each.op === 'x') bad.push(at + 1)
    else if (each.op === 'move') {
      if (each.id !== each.to) remove(each.id)
      put(each.to, [each.name, 'moved'])
    } else if (each.op !== 'tombstone') {
      const old = rows.get(each.id)
      if (each.note === undefined && old === undefined) bad.push(at + 1)
      else put(each.id, [each.name, each.note === undefined ? (old?.[1] ?? null) : each.note])
    }
  })
  const shown = new Map([...rows].map(([key, row]) => [key, JSON.stringify(row)]))
  return { rows: shown, records, bad }
}

/** What a killed process leaves: some buckets of a round, or the whole of it. */
type Cut = {
  readonly batches: number
  readonly size: number
  readonly end: 'round' | 'part' | 'kill'
}

const cut: fc.Arbitrary<Cut> = fc.record({
  batches: fc.integer({ min: 1, max: 4 }),
  size: fc.integer({ min: 1, max: 6 }),
  end: fc.constantFrom('round' as const, 'part' as const, 'kill' as const),
})

test('an input read again after any crash changes each row once', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-changes-'))
  const path = join(folder, 'c.ndjson')
  try {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(2 as const, 3 as const),
        fc.array(step, { minLength: 1, maxLength: 40 }),
        fc.array(cut, { maxLength: 6 }),
        async (formatVersion, steps, cuts) => {
          writeFileSync(path, steps.map((each) => `${lineOf(each)}\n`).join(''))
          const world = await KeyedWorld.create({
            fields,
            primaryKey: ['id'],
            buckets: 3,
            formatVersion,
          })
          const bad = new Map<bigint, BadRecord>()
          try {
            for (const each of [...cuts, undefined]) {
              await ingest(world, path, each, bad)
              if (each?.end === 'kill') {
                await world.restart()
                continue
              }
              const { kind } = await world.round(async (results) => {
                // Buckets are cut at different depths: the round has not read the first one.
                if (each?.end === 'part' && results.length > 1) (results as SplitResult[]).shift()
                await Promise.resolve()
              })
              assert.ok(kind === 'committed' || kind === 'nothing', kind)
              if (each !== undefined) await world.restart()
            }
            const expected = fold(steps)
            const rows = (await world.rows()).map(({ id: key, name, note }: Row) => [
              Number(key),
              JSON.stringify([name, note]),
            ])
            assert.deepEqual(new Map(rows as [number, string][]), expected.rows)
            assert.equal(rows.length, expected.rows.size)
            const ends = [...world.source.committedEnds(world.sourceTable.id).values()]
            const records = ends.reduce((sum, end) => sum + Number(end), 0)
            assert.equal(records, expected.records, 'each change once')
            assert.deepEqual(
              [...bad.keys()].map(Number).sort((a, b) => a - b),
              expected.bad,
            )
          } finally {
            await world.close()
          }
        },
      ),
      { numRuns: 40 },
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

/** Reads on where the lake is, a few batches or all there is. */
async function ingest(
  world: KeyedWorld,
  path: string,
  part: Cut | undefined,
  bad: Map<bigint, BadRecord>,
): Promise<void> {
  const progress = world.source.inputs(world.sourceTable.id, new Map()).get('c')
  const bytes = await InputBytes.open({ name: 'c.ndjson', location: { kind: 'file', path } })
  const reader = await openInput({
    bytes,
    target: {
      table: 'demo.customers',
      fields,
      bucketKey: 'id',
      primaryKey: ['id'],
      changes: { kind: 'debezium' },
    },
    onBadRecord: 'quarantine',
    limits: { batchRecordsMax: part?.size ?? 100 },
    ...(progress === undefined || progress.digest === undefined
      ? {}
      : {
          resume: {
            position: BigInt(progress.position),
            records: progress.records,
            digest: progress.digest,
          },
        }),
  })
  const keep = (_: unknown, records: readonly BadRecord[]): Promise<void> => {
    for (const record of records) if (record.kind === 'line') bad.set(record.line, record)
    return Promise.resolve()
  }
  const context = {
    source: world.source,
    opened: { table: world.sourceTable },
    quarantine: { keep },
    signal: new AbortController().signal,
  } as unknown as IngestContext
  const input = { id: 'c', name: 'c.ndjson', isWhole: false } as OpenedInput
  let records = progress?.records ?? 0n
  for (let read = 0; read < (part?.batches ?? Number.POSITIVE_INFINITY); read += 1) {
    const batch = await reader.next()
    if (batch === undefined) break
    await keep(undefined, batch.bad)
    const { mark } = await appendChanges(context, input, batch, records)
    records = mark.records
    if (batch.ended) break
  }
  await reader.close()
}
