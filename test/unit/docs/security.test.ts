import { ok } from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'

const root = process.cwd()
const page = readFileSync(join(root, 'SECURITY.md'), 'utf8')

/** What the page says of each rule, by its number. */
function checkOf(id: string): string | undefined {
  const row = new RegExp(`^\\| (S-\\d\\d(?: to S-\\d\\d)?) \\|.*\\| (.+) \\|$`, 'gm')
  for (const [, ids = '', check] of page.matchAll(row)) {
    const [first = '', last = first] = ids.split(' to ')
    if (id >= first && id <= last) return check
  }
  return undefined
}

describe('SECURITY.md', () => {
  for (let number = 1; number <= 20; number += 1) {
    const id = `S-${String(number).padStart(2, '0')}`
    test(`says what checks ${id}: tests that are there, one of which bears its number, or when it comes`, () => {
      const check = checkOf(id)
      ok(check !== undefined, `${id} has no row`)
      const files = [...check.matchAll(/`((?:test|docs)\/[^`]+)`/g)].map(([, file]) => file ?? '')
      for (const file of files) ok(existsSync(join(root, file)), file)
      const later = /\bcomes? with\b|^this page$/.test(check)
      const named = files.some((file) => readFileSync(join(root, file), 'utf8').includes(id))
      ok(later || named, `${id}: no test of ${files.join(', ')} bears its number`)
    })
  }
})
