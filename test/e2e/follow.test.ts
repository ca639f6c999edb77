import assert from 'node:assert/strict'
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type CliEnd,
  documentOf,
  documentsOf,
  type RunningCli,
  sluice,
  startSluice,
} from '../support/cli.ts'
import { scratchFolder } from '../support/scratch.ts'

const table = ['--warehouse', './lake', '--table', 'demo.ids'] as const
const follow = ['--follow', '--freshness', '1s'] as const

test('--follow tiers what a file grows by, and SIGINT ends it with all of it in', async (t) => {
  const cwd = scratchFolder(t)
  const path = join(cwd, 'ids.ndjson')
  writeFileSync(path, lines(0, 10))
  const running = startSluice(['tier', 'ids.ndjson', ...table, ...follow], { cwd })
  await rowsIn(running, 10)
  for (let at = 10; at < 60; at += 10) {
    appendFileSync(path, lines(at, at + 10))
    await sleep(200)
  }
  await rowsIn(running, 60)
  running.kill('SIGINT')
  const end = await endOf(running, 20)
  assert.equal(end.exit, 0, end.stderr)
  assert.match(end.stdout, /^✓ 60 records → demo\.ids in /)
  assert.match(
    end.stderr,
    /stopping: the running round has 30s to be committed, \^C again to leave now/,
  )

  const again = await sluice(['tier', 'ids.ndjson', ...table], { cwd })
  assert.match(again.stdout, /^✓ nothing to do: demo\.ids holds all 60 records /)
  await requireIds(cwd, 60)
})

test('SIGTERM does not wait for freshness: what was read is committed in bounded time', async (t) => {
  const cwd = scratchFolder(t)
  const path = join(cwd, 'ids.ndjson')
  writeFileSync(path, lines(0, 5))
  await sluice(['tier', 'ids.ndjson', ...table], { cwd })
  const slow = ['--follow', '--freshness', '10min', '--json']
  const running = startSluice(['tier', 'ids.ndjson', ...table, ...slow], { cwd })
  appendFileSync(path, lines(5, 25))
  await running.until(({ stdout }) => stdout.includes('"records":25,'))
  running.kill('SIGTERM')
  const end = await endOf(running, 20)
  assert.equal(end.exit, 0, end.stderr)
  const events = documentsOf(end.stdout)
  const receipt = events.at(-1)
  assert.ok(events.every((event) => typeof event['event'] === 'string'))
  assert.equal(receipt?.['event'], 'receipt')
  assert.equal(receipt['ok'], true)
  assert.equal(receipt['rows'], 20)
  await requireIds(cwd, 25)
})

test('a record that is still being written waits for its newline', async (t) => {
  const cwd = scratchFolder(t)
  const path = join(cwd, 'ids.ndjson')
  writeFileSync(path, `${lines(0, 3)}{"id":`)
  const running = startSluice(['tier', 'ids.ndjson', ...table, ...follow], { cwd })
  await rowsIn(running, 3)
  running.kill('SIGINT')
  const end = await endOf(running, 20)
  assert.equal(end.exit, 0, end.stderr)
  assert.match(end.stdout, /^✓ 3 records → /)
  appendFileSync(path, '3}\n')
  const again = await sluice(['tier', 'ids.ndjson', ...table], { cwd })
  assert.match(again.stdout, /^✓ 1 record → demo\.ids in .* \(3 were there\)\n/)
  await requireIds(cwd, 4)
})

test('--follow tiers stdin as it comes; with an id a run goes on exactly where it was', async (t) => {
  const cwd = scratchFolder(t)
  const args = ['tier', '-', ...table, '--input-id', 'feed', ...follow]
  const running = startSluice(args, { cwd })
  await running.write(lines(0, 10))
  await rowsIn(running, 10)
  await running.write(lines(10, 20))
  await rowsIn(running, 20)
  running.kill('SIGTERM')
  const end = await endOf(running, 20)
  assert.equal(end.exit, 0, end.stderr)
  assert.match(end.stdout, /^✓ 20 records → /)

  const again = startSluice(args, { cwd })
  await again.write(lines(0, 30))
  again.endInput()
  const ended = await endOf(again, 20)
  assert.equal(ended.exit, 0, ended.stderr)
  assert.match(ended.stdout, /^✓ 10 records → demo\.ids in .* \(20 were there\)\n/)
  await requireIds(cwd, 30)
})

test('a second signal, over a second after the first, leaves at once; nothing is lost', async (t) => {
  const cwd = scratchFolder(t)
  const text = Array.from(
    { length: 150_000 },
    (_, id) => `{"id":${id},"text":"${'long '.repeat(40)}${id}"}\n`,
  ).join('')
  writeFileSync(join(cwd, 'ids.ndjson'), text)
  // The slowest encoder, so that the last round takes its time.
  const slow = ['--follow', '--freshness', '10min', '--encoder', 'parquetjs-lite', '--json']
  const running = startSluice(['tier', 'ids.ndjson', ...table, ...slow], { cwd })
  await running.until(({ stdout }) => stdout.includes('"records":150000'))
  running.kill('SIGINT')
  await sleep(1200)
  const isOver = running.child.exitCode !== null
  running.kill('SIGINT')
  const end = await endOf(running, 5)
  if (isOver) t.diagnostic('the round was over before the second signal')
  else assert.equal(end.exit, 130, end.stderr)

  const again = await sluice(['tier', 'ids.ndjson', ...table, '--json'], { cwd })
  assert.equal(again.exit, 0, again.stderr)
  await requireIds(cwd, 150_000)
})

for (const [signal, exit] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  test(`${signal} without --follow exits with ${exit}; run again every record is in once`, async (t) => {
    const cwd = scratchFolder(t)
    const text = Array.from(
      { length: 100_000 },
      (_, id) => `{"id":${id},"text":"${'long '.repeat(60)}${id}"}\n`,
    ).join('')
    writeFileSync(join(cwd, 'ids.ndjson'), text)
    const args = ['tier', 'ids.ndjson', ...table, '--memory', '32MiB']
    const running = startSluice(args, { cwd })
    await running.until(({ stderr }) => stderr.includes('  round 1 '))
    running.kill(signal)
    const end = await endOf(running, 20)
    assert.equal(end.exit, exit, `${end.stdout}${end.stderr}`)
    assert.match(end.stdout, /^✗ [\d,]+ records → demo\.ids in /)
    assert.match(
      end.stderr,
      new RegExp(`error: demo\\.ids: interrupted before all input was in the lake
  fix    run again: it goes on where it stopped
  code   STOPPED \\(exit ${exit}\\) · docs/reference/errors\\.md#stopped\n$`),
    )
    const again = await sluice(args, { cwd })
    assert.equal(again.exit, 0, again.stderr)
    assert.match(again.stdout, /^✓ [\d,]+ records → demo\.ids in .* \([\d,]+ were there\)\n/)
    await requireIds(cwd, 100_000)
  })
}

/** Lines with the ids from `from` to before `to`. */
function lines(from: number, to: number): string {
  return Array.from({ length: to - from }, (_, at) => `{"id":${from + at}}\n`).join('')
}

/** Resolves when the commits of a run have brought that many rows in. */
function rowsIn(running: RunningCli, rows: number): Promise<void> {
  return running.until(({ stderr }) => {
    const counts = [...stderr.matchAll(/ ([\d,]+) rows? /g)].map(([, count]) => count ?? '')
    return counts.reduce((sum, count) => sum + Number(count.replaceAll(',', '')), 0) >= rows
  })
}

/** A stop is bounded: by the shutdown timeout of 30 s, and with little to do by much less. */
async function endOf(running: RunningCli, seconds: number): Promise<CliEnd> {
  const cancel = new AbortController()
  const late = sleep(seconds * 1000, undefined, { signal: cancel.signal }).then(() => {
    running.kill('SIGKILL')
    throw new Error(`it did not end within ${seconds} s: ${running.stdout()}${running.stderr()}`)
  })
  late.catch(() => undefined)
  const end = await Promise.race([running.ended, late])
  cancel.abort()
  return end
}

/** The table holds the ids 0 to `count` - 1, each once. */
async function requireIds(cwd: string, count: number): Promise<void> {
  const sql = `select count(*), count(distinct id), min(id), max(id) from demo.ids`
  const found = documentOf(await sluice(['query', './lake', sql, '--json'], { cwd }))
  assert.deepEqual(found['rows'], [[count, count, 0, count - 1]])
}
