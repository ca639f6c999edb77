import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { formatType } from '../../../src/core/schema/format-type.ts'
import { parseSchemaFile } from '../../../src/core/schema/schema-file.ts'
import { parseType } from '../../../src/core/schema/parse-type.ts'
import { isSluiceError } from '../../../src/core/errors.ts'
import { inferInput } from '../../../src/source/ingest/infer-input.ts'
import { InputBytes } from '../../../src/source/ingest/input-bytes.ts'
import { chunksOf } from '../ingest/support.ts'

const page = readFileSync(join(process.cwd(), 'docs/inputs.md'), 'utf8')

/** Cells of the rows of the first table below a heading. */
function rowsBelow(heading: string): readonly (readonly string[])[] {
  const section = page.split('\n## ').find((part) => part.startsWith(heading)) ?? ''
  const rows = section.split('\n').filter((line) => line.startsWith('| '))
  return rows.slice(1).map((line) => line.slice(2, -2).split(' | '))
}

const codesIn = (cell: string): readonly string[] =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code ?? '')

/** What becomes of a column `v` with these values: its type, `refused` or `left out`. */
async function inferred(values: readonly string[]): Promise<string> {
  const text = values.map((value) => `{"v": ${value}, "w": 1}\n`).join('')
  const location = { kind: 'stream', bytes: chunksOf(Buffer.from(text), text.length) } as const
  const bytes = await InputBytes.open({ name: 'a.ndjson', location })
  try {
    const { fields } = await inferInput({ bytes, format: 'ndjson' })
    const found = fields.find(({ name }) => name === 'v')
    return found === undefined ? 'left out' : formatType(found.type)
  } catch (error) {
    if (isSluiceError(error, 'SCHEMA_UNSUPPORTED')) return 'refused'
    throw error
  }
}

describe('docs/inputs.md', () => {
  const rows = rowsBelow('Types that are inferred')
  assert.ok(rows.length > 10)
  for (const [values = '', column = ''] of rows) {
    test(`${values} gives ${column}`, async () => {
      const expected = /^(?:refused|left out)/.exec(column)?.[0] ?? column
      assert.equal(await inferred(codesIn(values)), expected)
    })
  }

  test('its schema file is one', () => {
    const [, text = ''] = /```json\n(.*?)```/s.exec(page) ?? []
    const schema = parseSchemaFile(text, 'docs/inputs.md')
    assert.deepEqual(
      schema.fields.map(({ name }) => name),
      ['id', 'total', 'at', 'tags'],
    )
  })

  test('names every type, as it is written', () => {
    const types = rowsBelow('Types that are declared').flatMap(([type = '']) => codesIn(type))
    const kinds = types.map((type) => {
      assert.equal(formatType(parseType(type)), type)
      return parseType(type).kind
    })
    const all = 'boolean tinyint smallint int bigint float double decimal string char bytes binary'
    const more = 'date time timestamp timestamp_ltz array map row'
    assert.deepEqual(kinds, `${all} ${more}`.split(' '))
  })
})
