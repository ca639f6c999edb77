import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import {
  compareRows,
  compareTables,
  engineScript,
  fastEngines,
  readInput,
  readRows,
  readTable,
  skipWithout,
} from './engines.ts'

type Tables = Readonly<Record<'nested' | 'flat' | 'plain' | 'gap', string>>

describe('the engine harness', { skip: skipWithout() }, () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'sluice-harness-'))
  const file = (name: string): string => path.join(folder, name)
  let nested = ''
  let flat = ''
  let plain = ''
  let gap = ''

  before(() => {
    const { python, script } = engineScript('fast', 'sample_table.py')
    const output = execFileSync(python, [script, folder], { encoding: 'utf8' })
    ;({ nested, flat, plain, gap } = JSON.parse(output) as Tables)
  })
  after(() => {
    rmSync(folder, { recursive: true })
  })

  test('every fast engine reads hand-written values of every type as they were written', () => {
    const { python, script } = engineScript('fast', 'selftest.py')
    execFileSync(python, [script, ...fastEngines], { encoding: 'utf8' })
  })

  for (const engine of fastEngines) {
    test(`${engine} reads a table cell by cell equal to NDJSON, Parquet and Arrow inputs`, async () => {
      const actual = await readRows({ engine, table: nested })
      for (const name of ['input.ndjson', 'input.parquet', 'input.arrow']) {
        const loose = engine === 'chdb'
        const expected = await readInput({ files: [file(name)], table: nested, loose })
        assert.deepEqual(compareRows(expected, actual).differences, [], name)
        assert.equal(expected.looseDigest, actual.looseDigest, name)
        if (!loose) assert.equal(expected.digest, actual.digest, name)
      }
    })
  }

  test('a CSV input tells an empty text from a null', async () => {
    const expected = await readInput({ files: [file('input.csv')], table: flat })
    const actual = await readRows({ engine: 'duckdb', table: flat })
    assert.deepEqual(compareRows(expected, actual).differences, [])
  })

  test('one lost, one doubled and one changed row are each found', async () => {
    const { lines, ...digest } = await readRows({ engine: 'duckdb', table: nested })
    const [first = '', second = '', ...rest] = lines
    const altered = [first, first, second.replace('1e+300', '1e+301'), ...rest]
    const changed = compareRows({ ...digest, lines }, { ...digest, lines: altered.slice(0, -1) })
    assert.equal(changed.equal, false)
    assert.ok(changed.onlyExpected >= 1 && changed.onlyActual >= 1)
  })

  for (const engine of fastEngines) {
    test(`${engine} compares whole tables with a file, and finds an offset that is not there`, async () => {
      const found = await compareTables({
        engine,
        file: file('plain.parquet'),
        tables: [plain, gap, plain],
      })
      const differences = ['bucket 1: 2 offsets from 0 to 2, 2 different ones']
      assert.deepEqual(found, [
        { table: plain, rows: 4, differences: [] },
        { table: gap, rows: 4, differences },
        { table: plain, rows: 4, differences: [] },
      ])
    })
  }

  test('whole tables that differ from a file in one row or cell are told from it', async () => {
    const names = ['lost', 'doubled', 'swapped', 'integer', 'zero', 'empty']
    const files = names.map((name) => file(`${name}.parquet`))
    for (const other of files) {
      const tables = [plain]
      const [found] = await compareTables({ engine: 'duckdb', file: other, tables })
      const rows = other === file('lost.parquet') ? 3 : other === file('doubled.parquet') ? 5 : 4
      assert.equal(found?.differences[0], `4 rows instead of ${rows}`, other)
      assert.ok(found.differences.length >= 2, other)
    }
  })

  test('a field that the table lacks is refused with its line', async () => {
    appendFileSync(file('input.ndjson'), '{"Id":5,"extra":1}\n')
    await assert.rejects(
      readInput({ files: [file('input.ndjson')], table: nested }),
      /input\.ndjson line 6: the schema has no field extra/,
    )
    const kept = await readInput({ files: [file('input.ndjson')], table: nested, skipLines: [6] })
    assert.equal(kept.rows, 4)
  })

  test('an engine that fails says so with its status', async () => {
    await assert.rejects(readTable({ engine: 'duckdb', table: file('absent') }), { status: 2 })
    await assert.rejects(readTable({ engine: 'duckdb', table: flat, where: 'nonsense (' }), {
      name: 'EngineError',
      status: 2,
    })
  })
})
