import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type CliRun, runCli, withWarehouse } from '../unit/cli/lake-fixture.ts'

const block = 65_536
const lines = (from: number, to: number): string =>
  Array.from(
    { length: to - from },
    (_, at) => `{"id":${from + at},"note":"${'n'.repeat(60)}"}\n`,
  ).join('')

type Json = Record<string, unknown>

/** A file, and the command that tiers it. */
class Tiered {
  readonly folder: string
  readonly path: string

  constructor(folder: string) {
    this.folder = folder
    this.path = join(folder, 'a.ndjson')
  }

  write(text: string): void {
    writeFileSync(this.path, text)
  }

  tier(...more: readonly string[]): Promise<CliRun> {
    const args = ['tier', this.path, '--warehouse', join(this.folder, 'lake'), '--table', 'demo.t']
    return runCli([...args, ...more], { folder: this.folder })
  }

  get metadataPath(): string {
    const metadata = join(this.folder, 'lake/demo/t/metadata')
    const numbers = readdirSync(metadata).flatMap((name) =>
      [...name.matchAll(/^v(\d+)\.metadata\.json$/g)].map(([, number]) => Number(number)),
    )
    return join(metadata, `v${Math.max(...numbers)}.metadata.json`)
  }

  /** What the newest ledger says of the one input. */
  input(): Json {
    // Snapshot ids are too long for the plain parser, and are not looked at.
    const metadata = JSON.parse(readFileSync(this.metadataPath, 'utf8')) as Json
    const snapshot = (metadata['snapshots'] as Json[]).at(-1)
    const summary = snapshot?.['summary'] as Record<string, string>
    const ledger = JSON.parse(summary['sluice.ledger'] ?? '') as { inputs: [string, Json][] }
    const [entry] = ledger.inputs
    ok(entry)
    return entry[1]
  }
}

async function withFile(use: (tiered: Tiered) => Promise<void>): Promise<void> {
  await withWarehouse(async (folder) => {
    await use(new Tiered(folder))
  })
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

test('the ledger keeps digests of the committed range, also when the file has grown', async () => {
  await withFile(async (tiered) => {
    const whole = lines(0, 9000)
    for (const count of [2000, 2001, 9000]) {
      const text = whole.slice(0, lines(0, count).length)
      tiered.write(text)
      const before = Date.now()
      const run = await tiered.tier()
      equal(run.exit, 0, run.err)
      const { position, digest, blocks, tiered: at } = tiered.input()
      equal(position, String(text.length))
      equal(digest, sha256(text))
      const ends = Array.from(
        { length: Math.floor(text.length / block) },
        (_, n) => (n + 1) * block,
      )
      deepEqual(blocks, [block, ends.map((end) => sha256(text.slice(0, end)).slice(0, 8)).join('')])
      ok(Number(at) >= before && Number(at) <= Date.now())
    }
  })
})

test('a changed file is told with the day it was tiered and where it differs, a cut one as shorter', async () => {
  await withFile(async (tiered) => {
    const text = lines(0, 4000)
    tiered.write(text)
    await tiered.tier()
    const day = new Date(Number(tiered.input()['tiered'])).toISOString().slice(0, 10)
    const at = 2 * block + 100
    tiered.write(`${text.slice(0, at)}#${text.slice(at + 1)}`)
    const changed = await tiered.tier()
    equal(changed.exit, 3)
    const size = text.length.toLocaleString('en-US')
    const first = changed.err.split('\n')[0] ?? ''
    equal(
      first.replace(/ \d\d:\d\d UTC/, ''),
      `error: a.ndjson: its first ${size} bytes are not the ones tiered on ${day} ` +
        '(first difference in the block at byte 131,072)',
    )
    tiered.write(text.slice(0, 200_000))
    const cut = await tiered.tier('--json')
    const { error } = JSON.parse(cut.out) as { error: Json & { details: Json } }
    equal(error['code'], 'INPUT_CHANGED')
    match(
      String(error['message']),
      new RegExp(
        `^a\\.ndjson: is shorter than what was tiered on .* \\(200,000 bytes, ${size} are in the lake\\)$`,
      ),
    )
    match(String(error.details['tiered_at']), new RegExp(`^${day}T\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$`))
    equal(error.details['size'], 200_000)
  })
})

test('a lake whose ledger has neither time nor blocks is gone on with', async () => {
  await withFile(async (tiered) => {
    const text = lines(0, 2000)
    tiered.write(text)
    await tiered.tier()
    const old = readFileSync(tiered.metadataPath, 'utf8')
      .replaceAll(/\\"tiered\\":\\"\d+\\",/g, '')
      .replaceAll(/\\"blocks\\":\[\d+,\\"[0-9a-f]+\\"\],/g, '')
    writeFileSync(tiered.metadataPath, old)
    deepEqual(Object.keys(tiered.input()), ['name', 'position', 'records', 'digest', 'extra'])
    tiered.write(`#${text.slice(1)}`)
    const changed = await tiered.tier()
    match(changed.err, /^error: a\.ndjson: its first [\d,]+ bytes are not the ones tiered\n/)
    tiered.write(lines(0, 2500))
    const grown = await tiered.tier()
    match(grown.out, /^✓ 500 records → demo\.t in .* \(2,000 were there\)\n/)
    deepEqual(Object.keys(tiered.input()).slice(0, 6), [
      'name',
      'position',
      'records',
      'digest',
      'tiered',
      'blocks',
    ])
  })
})

test('a file in which set aside records were mended says what becomes of them', async () => {
  await withFile(async (tiered) => {
    const good = lines(0, 30)
    tiered.write(`${good}{"id":oops}\n${lines(30, 40)}`)
    const first = await tiered.tier('--on-bad-record', 'quarantine')
    equal(first.exit, 0, first.err)
    tiered.write(`${good}{"id":7777}\n${lines(30, 40)}`)
    const mended = await tiered.tier('--on-bad-record', 'quarantine')
    equal(mended.exit, 3)
    match(
      mended.err,
      /\n {2}state {2}1 record of it was set aside; mended in place, it cannot be read again\n {2}fix {4}restore the file, and tier the mended records from a file of their own\n/,
    )
    // Changed elsewhere, and of another table, it is told without it.
    const other = await runCli(
      ['tier', tiered.path, '--warehouse', join(tiered.folder, 'lake'), '--table', 'demo.other'],
      { folder: tiered.folder },
    )
    equal(other.exit, 0, other.err)
    tiered.write(`#${good.slice(1)}{"id":7777}\n${lines(30, 40)}`)
    const elsewhere = await runCli(
      ['tier', tiered.path, '--warehouse', join(tiered.folder, 'lake'), '--table', 'demo.other'],
      { folder: tiered.folder },
    )
    match(
      elsewhere.err,
      /\n {2}fix {4}restore the file, or tier it as another input: --input-id a-2\n/,
    )
  })
})
