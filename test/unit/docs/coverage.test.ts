import { deepEqual, equal, ok } from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { plantOf } from '../../../sim/plants.ts'

const root = process.cwd()
const page = readFileSync(join(root, 'docs/simulation.md'), 'utf8')

/** Names of all tests, as they stand in the sources. */
const names = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.ts'))
  .flatMap((file) => {
    const text = readFileSync(join(root, 'test', file), 'utf8')
    return [...text.matchAll(/\btest\(\s*(['"`])(.*?)\1,/g)].map(([, , name]) => name ?? '')
  })

/** The rows of a table of the page by their first cell. */
function rowsOf(title: string): ReadonlyMap<string, string> {
  const section = page.split('\n## ').find((part) => part.startsWith(`${title}\n`)) ?? ''
  const rows = [...section.matchAll(/^\| ([^|]+?) \|.*\| ([^|]+) \|$/gm)]
  return new Map(rows.map(([, first, last]) => [first ?? '', last ?? '']))
}

const failures = rowsOf('Failures of others, replayed')
const mutants = rowsOf('Mutants of the protocol')
const later = /\bcomes? with\b/

function named(id: string): boolean {
  return names.some((name) => new RegExp(`^(?:[A-Z]-\\d+ )*${id}\\b`).test(name))
}

describe('docs/simulation.md', () => {
  for (let number = 1; number <= 24; number += 1) {
    const id = `B-${String(number).padStart(2, '0')}`
    test(`has a row for ${id}, and a test begins with it or says when it comes`, () => {
      const row = failures.get(id)
      ok(row !== undefined, `${id} has no row`)
      ok(named(id) || later.test(row), `${id}: no test begins with it`)
    })
  }

  test('says of each of the 34 mutants what kills it, or with what it comes', () => {
    const numbers = [...mutants.keys()].filter((key) => /^\d+$/.test(key))
    deepEqual(
      numbers,
      Array.from({ length: 34 }, (_, at) => String(at + 1)),
    )
    let killed = 0
    for (const [number, row] of mutants) {
      for (const [, of] of row.matchAll(/\bmodel (M\d+)/g)) {
        equal(of, `M${number}`)
        ok(
          names.some((name) => name.startsWith(`${of} `)),
          `no test of the model begins with ${of}`,
        )
      }
      for (const [, list] of row.matchAll(/\bplants? ([a-z-]+(?:, [a-z]+-[a-z-]+)*)/g)) {
        for (const plant of list?.split(', ') ?? []) ok(plantOf(plant), plant)
      }
      for (const [id] of row.matchAll(/\bB-\d\d\b/g)) ok(named(id), id)
      const hasProof = /\bmodel M|\bplants? |`test\/|\bB-\d/.test(row)
      if (hasProof) killed += 1
      else if (/^\d+$/.test(number)) ok(later.test(row), `M${number} is neither killed nor put off`)
    }
    ok(killed >= 14, `${killed} mutants are killed`)
  })

  test('names no test file that is not there', () => {
    const files = [...page.matchAll(/`(test\/[^`]+\.test\.ts)`/g)].map(([, file]) => file ?? '')
    ok(files.length > 10)
    deepEqual(
      files.filter((file) => !existsSync(join(root, file))),
      [],
    )
  })

  test('names the tests of fluss 2648, and of rows without a fence, as they are called', () => {
    ok(names.some((name) => name.startsWith('T-34 fluss #2648: a check before the commit')))
    for (const name of [
      'fluss 2648: checked once, then committed',
      'rows are exactly once with the fence switched off too',
    ]) {
      ok(names.includes(name), name)
      ok(page.replaceAll('\n', ' ').includes(name), name)
    }
    ok(plantOf('check-once'))
  })
})
