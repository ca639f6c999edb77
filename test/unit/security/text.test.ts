import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseDuration } from '../../../src/core/duration.ts'
import { SluiceError } from '../../../src/core/errors.ts'
import { isSecretName, looksLikeSecret, redactUrls } from '../../../src/core/secret.ts'
import { parseSize } from '../../../src/core/size.ts'
import { parseTableName } from '../../../src/core/table-name.ts'
import { escapeText } from '../../../src/core/text.ts'
import { renderError } from '../../../src/cli/render-error.ts'
import { mentions } from '../../../src/cli/lake-tables.ts'
import { styleOf } from '../../../src/cli/style.ts'
import { repository } from '../../support/cli.ts'
import { runCli, withWarehouse } from '../cli/lake-fixture.ts'

const sources = (): readonly (readonly [string, string])[] =>
  readdirSync(join(repository, 'src'), { recursive: true })
    .map(String)
    .filter((name) => name.endsWith('.ts'))
    .map((name) => [name, readFileSync(join(repository, 'src', name), 'utf8')])

test('S-01 secrets are revealed in one file, which hands them to the S3 client', () => {
  const revealing = sources().filter(([, text]) => /\.reveal\(/.test(text))
  assert.deepEqual(
    revealing.map(([name]) => name),
    ['cli/s3-options.ts'],
  )
})

test('S-16 patterns are written in the code; only a glob and a name in SQL are made one, without nested repeats', () => {
  const made = sources().filter(([, text]) => /new RegExp\(|RegExp\(/.test(text))
  assert.deepEqual(
    made.map(([name]) => name),
    ['cli/inputs.ts', 'cli/lake-tables.ts'],
  )
})

test('S-16 what anybody may write is read in time that grows with its length', () => {
  const hard = [
    ...['a', '0', '.', '~', '/', ':', '"', '@', '%', ' ', '-', '=', '1h', 'a.', 'x://', 'a@'],
    ...['eyJ', '_key', 'token-', '?&', '~2E', '\u001b[', 'ab-'],
  ].map((piece) => piece.repeat(Math.ceil(200_000 / piece.length)))
  const readers: readonly ((text: string) => unknown)[] = [
    parseTableName,
    (text) => parseDuration(text, 'x'),
    (text) => parseSize(text, 'x'),
    looksLikeSecret,
    isSecretName,
    redactUrls,
    escapeText,
    (text) => mentions(text, ['demo', 'clicks']),
    (text) => mentions('select 1 from demo.clicks', ['demo', text.slice(0, 2_000)]),
  ]
  for (const text of hard) {
    for (const [at, read] of readers.entries()) {
      const startedAt = performance.now()
      try {
        read(text)
      } catch (error) {
        assert.ok(error instanceof SluiceError)
      }
      const took = performance.now() - startedAt
      assert.ok(took < 2_000, `reader ${at} took ${took} ms for ${text.slice(0, 6)}…`)
    }
  }
})

/** What a terminal would obey, or show in another order than it is. */
const obeyed = /[\p{Cc}\u202a-\u202e\u2066-\u2069]/u

test('S-14 no text of others reaches a terminal as an order to it', () => {
  const view = { style: styleOf('plain'), verbose: true }
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const error = new SluiceError('DATA_CORRUPT', text, { fix: text, where: text, state: text })
      const shown = renderError(error, view).replaceAll('\n', '')
      assert.ok(!obeyed.test(shown), JSON.stringify(shown))
    }),
    { numRuns: 1_000 },
  )
})

test('S-14 hostile records, names and columns are shown escaped', async () => {
  await withWarehouse(async (folder) => {
    const order = '\u001b]0;owned\u0007\u001b[2J\u202e'
    const input = join(folder, 'a\u001b[31m.ndjson')
    const record = JSON.stringify({ id: 1, [`c${order}`]: `v${order}` })
    writeFileSync(input, `${record}\n`)
    const warehouse = join(folder, 'lake')
    const args = ['tier', input, '--warehouse', warehouse, '--table', 'demo.t']
    const tiered = await runCli(args)
    const queried = await runCli(['query', warehouse, 'select * from demo.t'])
    writeFileSync(input, `${record}\n{"id": "${order}"}\n`)
    const failed = await runCli(args)
    assert.notEqual(failed.exit, 0)
    for (const { out, err } of [tiered, queried, failed]) {
      for (const shown of [out, err]) {
        const rest = shown.replaceAll('\n', '')
        assert.ok(!obeyed.test(rest), JSON.stringify(rest))
      }
    }
  })
})
