import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { helpText } from '../../../src/cli/help.ts'
import { laterOptions } from '../../../src/cli/later.ts'
import { commandNames } from '../../../src/cli/option-spec.ts'
import { optionTable } from '../../../src/cli/option-table.ts'
import { referencePages } from '../../../src/cli/reference.ts'
import { errorCodes } from '../../../src/core/errors.ts'

for (const [name, page] of Object.entries(referencePages)) {
  test(`docs/reference/${name} is what the code says (else: node scripts/reference.mjs)`, () => {
    const file = readFileSync(join(process.cwd(), 'docs', 'reference', name), 'utf8')
    assert.equal(file, page())
  })
}

test('every error code has a place that messages can link to', () => {
  const page = referencePages['errors.md']?.() ?? ''
  for (const code of Object.keys(errorCodes)) {
    assert.ok(page.includes(`<a id="${code.toLowerCase()}"></a>${code} `), code)
  }
})

test('no option is both there and of a later version, or there twice', () => {
  const names = optionTable.map(({ name }) => name)
  assert.equal(new Set(names).size, names.length)
  assert.deepEqual(
    names.filter((name) => laterOptions.has(name)),
    [],
  )
  const shorts = optionTable.flatMap(({ short }) => short ?? [])
  assert.equal(new Set(shorts).size, shorts.length)
})

test('help names every option of a command and no line is longer than 160 columns', () => {
  for (const command of commandNames) {
    const text = helpText(command)
    for (const option of optionTable.filter(({ commands }) => commands.includes(command))) {
      assert.ok(text.includes(`--${option.name}`), `${command} ${option.name}`)
    }
    for (const line of text.split('\n')) assert.ok(line.length <= 160, line)
  }
  for (const command of commandNames) assert.ok(helpText().includes(command))
})
