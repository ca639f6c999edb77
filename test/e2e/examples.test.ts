import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { documentOf, flightsPath, repository, sluice } from '../support/cli.ts'
import { scratchFolder } from '../support/scratch.ts'

/** Examples lie beside the compiled source; `sluice` is resolved to this package itself. */
const examples = join(import.meta.dirname, '../../examples')

test('every example is run by a test', () => {
  const found = readdirSync(join(repository, 'examples')).filter((name) => name.endsWith('.ts'))
  assert.deepEqual(found.sort(), [
    'arrow-batches.ts',
    'file-then-rows.ts',
    'http-events.ts',
    'own-feed.ts',
  ])
})

test('file-then-rows tiers a file once and reads the rows back', async (t) => {
  const cwd = scratchFolder(t)
  const first = await run('file-then-rows', ['./lake', flightsPath], cwd)
  assert.match(
    first,
    /^5000 new rows in 1 rounds\nsnapshot \d+n of 2[\d:.TZ-]+\n(\d+) flights were over an hour late\n$/,
  )
  const again = await run('file-then-rows', ['./lake', flightsPath], cwd)
  assert.match(again, /^0 new rows in 0 rounds\n/)
  assert.equal(again.split('\n').at(-2), first.split('\n').at(-2))
  // DuckDB reads the text by itself.
  const sql = `select count(*) from read_ndjson('${flightsPath}') where delay > 60`
  const asked = documentOf(await sluice(['query', './lake', sql, '--json'], { cwd }))
  assert.deepEqual(asked['rows'], [[Number(/(\d+) flights/.exec(first)?.[1])]])
})

test('arrow-batches appends columns and reads columns', async (t) => {
  const cwd = scratchFolder(t)
  const output = await run('arrow-batches', ['./lake'], cwd)
  assert.equal(output, '10000 readings, the warmest of 33.9 °C\n')
  const sql = 'select count(*), count(distinct sensor), max(celsius) from plant.readings'
  const read = documentOf(await sluice(['query', './lake', sql, '--json'], { cwd }))
  assert.deepEqual(read['rows'], [[10_000, 50, 33.9]])
})

test('http-events answers when a click is in the lake, and drains before it ends', async (t) => {
  const cwd = scratchFolder(t)
  const { child, output } = start('http-events', ['./lake', '0'], cwd)
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  try {
    const port = await portOf(child, output)
    const url = `http://127.0.0.1:${port}`
    const waited = await fetch(`${url}/first`, { headers: { 'x-wait': 'lake' } })
    assert.equal(waited.status, 202)
    const sql = 'select url from web.clicks'
    const read = documentOf(await sluice(['query', './lake', sql, '--json'], { cwd }))
    assert.deepEqual(read['rows'], [['/first']])
    for (const path of ['/second', '/third']) {
      assert.equal((await fetch(`${url}${path}`)).status, 202)
    }
    child.kill('SIGTERM')
    assert.equal(await ended, 0, output())
    const all = `${sql} order by __offset`
    const end = documentOf(await sluice(['query', './lake', all, '--json'], { cwd }))
    assert.deepEqual(end['rows'], [['/first'], ['/second'], ['/third']])
  } finally {
    child.kill('SIGKILL')
  }
})

test('own-feed goes on where it was, also after it was killed', async (t) => {
  const cwd = scratchFolder(t)
  assert.equal(await run('own-feed', ['./lake', '600'], cwd), '600 readings after place 0\n')
  assert.equal(await run('own-feed', ['./lake', '600'], cwd), '0 readings after place 600\n')
  const versions = (): number => readdirSync(join(cwd, 'lake/plant/feed/metadata')).length
  const before = versions()
  const { child } = start('own-feed', ['./lake', '20000'], cwd)
  const ended = new Promise((resolve) => child.once('close', resolve))
  // In the middle of it: a round is in the lake, and more are to come.
  while (versions() === before && child.exitCode === null) {
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  child.kill('SIGKILL')
  await ended
  await run('own-feed', ['./lake', '20000'], cwd)
  const sql = 'select count(*), count(distinct reading), min(reading), max(reading) from plant.feed'
  const read = documentOf(await sluice(['query', './lake', sql, '--json'], { cwd }))
  assert.deepEqual(read['rows'], [[20_000, 20_000, 1, 20_000]])
})

type Started = { readonly child: ChildProcess; readonly output: () => string }

function start(name: string, args: readonly string[], cwd: string): Started {
  const child = spawn(process.execPath, [join(examples, `${name}.js`), ...args], { cwd })
  let output = ''
  const hear = (text: string): void => {
    output += text
  }
  child.stdout.setEncoding('utf8').on('data', hear)
  child.stderr.setEncoding('utf8').on('data', hear)
  return { child, output: () => output }
}

async function run(name: string, args: readonly string[], cwd: string): Promise<string> {
  const { child, output } = start(name, args, cwd)
  const exit = await new Promise((resolve) => child.once('close', resolve))
  assert.equal(exit, 0, output())
  return output()
}

/** The port that the system chose, once the example says so. */
async function portOf(child: ChildProcess, output: () => string): Promise<string> {
  for (;;) {
    const port = /port: (\d+)/.exec(output())?.[1]
    if (port !== undefined) return port
    if (child.exitCode !== null) throw new Error(`it ended: ${output()}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
