import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { Row } from '../../src/core/columns/rows.ts'
import type { Chance } from '../../src/core/ports.ts'
import type { Field } from '../../src/core/schema/types.ts'
import { seededChance } from '../../src/core/system.ts'
import { KeyedWorld, type WorldChange } from '../support/keyed-world.ts'
import { compareStates, type Engine, skipWithout } from './engines.ts'

const fields: readonly Field[] = [
  { name: 'id', type: { kind: 'bigint', nullable: false } },
  { name: 'name', type: { kind: 'string', nullable: true } },
  { name: 'balance', type: { kind: 'bigint', nullable: true } },
  { name: 'score', type: { kind: 'double', nullable: true } },
  { name: 'active', type: { kind: 'boolean', nullable: true } },
]

const rounds = 25
const changesPerRound = 4000
const keys = 5000
/** Keys that get every third change. */
const hotKeys = 20

/** One in four changes is a delete; some delete and put again at once, some move to another key. */
function changesOf(chance: Chance, model: Map<bigint, Row>): readonly WorldChange[] {
  const changes: WorldChange[] = []
  const take = (change: WorldChange): void => {
    const [op, row] = change
    const id = row['id'] as bigint
    changes.push(change)
    if (op === 'upsert') model.set(id, row)
    else model.delete(id)
  }
  while (changes.length < changesPerRound) {
    const id = BigInt(chance.below(3) === 0 ? chance.below(hotKeys) : chance.below(keys))
    const row = rowOf(chance, id)
    const kind = chance.below(8)
    if (kind < 2) take(['delete', { ...nothing, id }])
    else if (kind === 2) {
      take(['delete', { ...nothing, id }])
      take(['upsert', row])
    } else if (kind === 3) {
      take(['delete', { ...nothing, id }])
      take(['upsert', { ...row, id: BigInt(chance.below(keys)) }])
    } else take(['upsert', row])
  }
  return changes
}

const nothing: Row = { id: 0n, name: null, balance: null, score: null, active: null }

function rowOf(chance: Chance, id: bigint): Row {
  const some = (value: Row['name']): Row['name'] => (chance.below(5) === 0 ? null : (value ?? null))
  return {
    id,
    name: some(`käse ${String(chance.below(1000))} 🧀`),
    balance: some(2n ** 53n + BigInt(chance.below(1_000_000))),
    score: some(chance.below(1000) / 8),
    active: some(chance.below(2) === 0),
  }
}

function ndjson(model: ReadonlyMap<bigint, Row>): string {
  return [...model.values()]
    .map((row) => {
      const cells = Object.entries(row).map(([name, value]) => {
        const text = typeof value === 'bigint' ? String(value) : JSON.stringify(value)
        return `${JSON.stringify(name)}:${text}`
      })
      return `{${cells.join(',')}}\n`
    })
    .join('')
}

const readers: Readonly<Record<2 | 3, readonly Engine[]>> = {
  2: ['duckdb', 'pyiceberg', 'chdb'],
  // ClickHouse does not read deletion vectors.
  3: ['duckdb', 'pyiceberg', 'datafusion'],
}

for (const formatVersion of [2, 3] as const) {
  describe(`a primary-key table of format ${formatVersion}`, () => {
    test(`T-22: after each of ${rounds} rounds engines see the fold of the changes`, async (t) => {
      const engines = readers[formatVersion].filter((engine) => skipWithout(engine) === false)
      const world = await KeyedWorld.create({
        fields,
        primaryKey: ['id'],
        buckets: 4,
        formatVersion,
      })
      t.after(() => world.close())
      const chance = seededChance(formatVersion)
      const model = new Map<bigint, Row>()
      const states: { readonly metadata: string; readonly rows: string }[] = []
      for (let round = 1; round <= rounds; round += 1) {
        // Every so often the process ends, and another goes on from the lake.
        if (round % 8 === 0) await world.restart()
        await world.change(changesOf(chance, model))
        assert.equal((await world.round()).kind, 'committed')
        const rows = join(world.folder, `round-${String(round)}.ndjson`)
        await writeFile(rows, ndjson(model))
        const folder = join(world.folder, 'lake', 'demo', 'customers', 'metadata')
        // A process that begins writes a fence first, which is a version, too.
        const version = (await readFile(join(folder, 'version-hint.text'), 'utf8')).trim()
        states.push({ metadata: join(folder, `v${version}.metadata.json`), rows })
      }
      for (const engine of engines) {
        await t.test(engine, async () => {
          const found = await compareStates({ engine, states })
          assert.equal(found.length, rounds)
          for (const { table, differences } of found) assert.deepEqual(differences, [], table)
        })
      }
    })
  })
}
