import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { openLake } from '../../../src/library/api/lake.ts'
import { scratchFolder } from '../../support/scratch.ts'
import { runCli } from '../cli/lake-fixture.ts'

/** What every object has once a prototype was written to. */
const inherited = (): Readonly<Record<string, unknown>> => ({})

describe('S-13 records whose keys are names of JavaScript', () => {
  const inputs: Readonly<Record<string, string>> = {
    'a.ndjson':
      '{"id":1,"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":2}},"toString":"x"}\n',
    'a.csv': 'id,__proto__,constructor,toString\n1,polluted,polluted,x\n',
  }
  for (const [name, text] of Object.entries(inputs)) {
    test(`are rows like any others, from ${name} to the lake and back`, async (t) => {
      const folder = scratchFolder(t)
      writeFileSync(join(folder, name), text)
      const lake = join(folder, 'lake')
      const args = ['tier', join(folder, name), '--warehouse', lake, '--table', 'demo.t', '--json']
      const tiered = await runCli(args, { folder })
      assert.equal(tiered.exit, 0, tiered.err)
      const table = await (await openLake({ warehouse: lake })).table('demo.t')
      const rows = []
      for await (const row of table.rows()) rows.push(row)
      const [row] = rows
      assert.ok(row !== undefined)
      for (const key of ['id', '__proto__', 'constructor', 'toString']) {
        assert.ok(Object.hasOwn(row, key), `${key} in ${Object.keys(row).join()}`)
      }
      assert.equal(inherited()['polluted'], undefined)
      assert.equal((await runCli(['verify', lake], { folder })).exit, 0)
    })
  }
})

describe('S-15 records that are made to be hard to read', () => {
  const deep = 200_000
  const records: Readonly<Record<string, string>> = {
    'nested lists': `{"id":${'['.repeat(deep)}${']'.repeat(deep)}}`,
    'nested objects': `{"id":${'{"a":'.repeat(deep)}1${'}'.repeat(deep)}}`,
    'nested and cut': `{"id":${'['.repeat(deep)}`,
    'a number of a million digits': `{"id":${'9'.repeat(1_000_000)}}`,
    'a fraction of a million digits': `{"id":0.${'9'.repeat(1_000_000)}}`,
    'a key of a million characters': `{"id":1,"${'k'.repeat(1_000_000)}":1}`,
    'a hundred thousand keys': `{${Array.from({ length: 100_000 }, (_, at) => `"k${at}":1`).join()}}`,
    'an exponent beyond everything': '{"id":1e999999999}',
    'a text that never ends': `{"id":"${'x'.repeat(1_000_000)}`,
    'half a pair of surrogates': String.raw`{"id":"\ud800"}`,
    'bytes that are no text': '{"id":"\u0000\u0001"}',
  }
  const ways = ['first of all', 'after a good one', 'when the table is there'] as const
  for (const [name, record] of Object.entries(records)) {
    test(`${name}: a row, or an error by its code`, async (t) => {
      for (const way of ways) {
        const folder = scratchFolder(t)
        const input = join(folder, 'a.ndjson')
        const lake = join(folder, 'lake')
        const args = ['tier', input, '--warehouse', lake, '--table', 'demo.t']
        writeFileSync(input, '{"id":1}\n')
        if (way === 'when the table is there')
          assert.equal((await runCli(args, { folder })).exit, 0)
        writeFileSync(input, way === ways[0] ? `${record}\n{"id":1}\n` : `{"id":1}\n${record}\n`)
        const { exit, err } = await runCli(args, { folder })
        assert.ok([0, 2, 3].includes(exit), `${way}: ${exit}: ${err.slice(0, 500)}`)
        if (exit !== 0) assert.match(err, /code {3}[A-Z_]+ \(exit [23]\)/)
        assert.ok(err.length < 5_000, `${way}: the message repeats the record`)
      }
    })
  }
})
