import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { engineScript, fastEngines, skipWithout } from './engines.ts'
import { beyondEngines, type TortureColumn, tortureColumns } from '../support/torture-columns.ts'
import { tableIn, temporaryFolder, tier } from '../support/torture-lake.ts'
import { isNullAt, tortureTable, valueIndex, writeTable } from '../support/torture-table.ts'

const rows = 60
const runs = 5

type Filter = {
  readonly column: string
  readonly type: string
  readonly operator: '=' | '<' | '>' | '<=' | '>=' | 'null' | 'notnull'
  readonly value: string
  /** Rows the filter keeps. */
  readonly ids: readonly number[]
}

const icebergTypes: Readonly<Record<string, string>> = {
  TINYINT: 'int',
  SMALLINT: 'int',
  INT: 'int',
  BIGINT: 'long',
  CHAR: 'string',
  STRING: 'string',
  BINARY: 'binary',
  BYTES: 'binary',
  TIMESTAMP: 'timestamp',
  TIMESTAMP_LTZ: 'timestamptz',
}

function icebergType(type: string): string {
  const kind = type.replace(/\(.*/, '')
  return kind === 'DECIMAL' ? type.toLowerCase() : (icebergTypes[kind] ?? kind.toLowerCase())
}

/** Filters at the bounds of a column and in between: some on it, some on its nullable twin. */
function filtersOf(column: TortureColumn): Filter[] {
  const type = icebergType(column.type)
  const last = column.values.length - 1
  const middle = Math.floor(last / 2)
  const rowsWhere = (keeps: (index: number) => boolean): number[] =>
    allRows.filter((row) => keeps(valueIndex(column, row, rows)))
  const isNull = (row: number): boolean => isNullAt(column, row, rows)
  const filter = (operator: Filter['operator'], at: number, ids: readonly number[]): Filter => {
    return { column: column.name, type, operator, value: column.values[at] ?? '', ids }
  }
  const orNull = ({ ids, ...rest }: Filter): Filter => {
    return { ...rest, column: `${column.name}_null`, ids: ids.filter((row) => !isNull(row)) }
  }
  return [
    filter(
      '=',
      0,
      rowsWhere((index) => index === 0),
    ),
    filter(
      '=',
      last,
      rowsWhere((index) => index === last),
    ),
    filter(
      '<',
      middle,
      rowsWhere((index) => index < middle),
    ),
    filter(
      '>',
      middle,
      rowsWhere((index) => index > middle),
    ),
    filter('<', 0, []),
    filter('>', last, []),
    orNull(
      filter(
        '=',
        middle,
        rowsWhere((index) => index === middle),
      ),
    ),
    orNull(
      filter(
        '<=',
        0,
        rowsWhere((index) => index === 0),
      ),
    ),
    orNull(
      filter(
        '>=',
        last,
        rowsWhere((index) => index === last),
      ),
    ),
    orNull(filter('notnull', 0, allRows)),
    { ...orNull(filter('null', 0, [])), ids: allRows.filter(isNull) },
  ]
}

const allRows = Array.from({ length: rows }, (_, row) => row)

describe('filters on every type', { skip: skipWithout() }, async () => {
  const folder = await temporaryFolder('filters')
  const columns = tortureColumns.filter(
    ({ name, isOrdered }) => isOrdered === true && !/_[1245]$/.test(name),
  )
  const filters = columns.flatMap(filtersOf)
  const filtersFile = path.join(folder, 'filters.json')
  const table = tableIn(path.join(folder, 'lake'), 'demo.filtered')

  // Each run has values of its own, so that what the bounds of its files rule out is most of a table.
  before(async () => {
    const whole = tortureTable(columns, rows)
    await writeFile(filtersFile, JSON.stringify(filters))
    for (let run = 0; run < runs; run += 1) {
      const lines = whole.lines.slice((run * rows) / runs, ((run + 1) * rows) / runs)
      const { schema, input } = await writeTable(folder, `run-${String(run)}`, { ...whole, lines })
      const into = ['--warehouse', path.join(folder, 'lake'), '--table', 'demo.filtered']
      await tier([input, ...into, '--schema', schema])
    }
  })

  for (const engine of fastEngines) {
    test(`${engine} finds by bounds, and between them, exactly the rows that hold them`, async () => {
      const { python, script } = engineScript('fast', 'torture_filters.py')
      const left: readonly string[] = engine === 'chdb' ? beyondEngines.chdb : []
      const asked = filters.filter(({ column }) => !left.includes(column))
      await writeFile(`${filtersFile}.${engine}`, JSON.stringify(asked))
      const run = promisify(execFile)
      const { stdout } = await run(python, [script, engine, table, `${filtersFile}.${engine}`], {
        maxBuffer: 2 ** 26,
      })
      const answers: unknown = JSON.parse(stdout)
      assert.ok(Array.isArray(answers) && answers.length === asked.length)
      const wrong = asked.flatMap(({ column, operator, value, ids }, at) => {
        const found = JSON.stringify(answers[at])
        const right = JSON.stringify(ids)
        return found === right ? [] : [`${column} ${operator} ${value}: ${found}, not ${right}`]
      })
      assert.deepEqual(wrong, [])
    })
  }
})
