import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { seededChance } from '../../src/core/system.ts'
import { readRows, readTable, skipWithout } from '../engines/engines.ts'
import { requireWhole } from '../support/audit.ts'
import { type CliEnd, documentOf, type RunningCli, startSluice } from '../support/cli.ts'
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'
import { s3Cli, s3Environment } from '../support/lake-on-s3.ts'
import { appendRecords } from '../support/records.ts'
import { type S3Server, startWeed, storeOf } from '../support/s3-server.ts'

const seed = Number(process.env['SLUICE_KILL_SEED'] ?? Math.floor(Math.random() * 1e9))
const kills = 20
const stops = 5
const fights = 5

describe('sluice on S3, killed and stopped', () => {
  const chance = seededChance(seed)
  const cwd = mkdtempSync(join(tmpdir(), 'sluice-s3-crash-'))
  let server: S3Server
  let proxy: FaultProxy
  let records = 0
  before(async () => {
    server = await startWeed()
    proxy = await startFaultProxy(server.endpoint)
  })
  after(async () => {
    await proxy[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
    rmSync(cwd, { recursive: true, force: true })
  })

  const args = (): readonly string[] => [
    ...['tier', 'input.ndjson', '--table', 'crash.t', '--buckets', '2'],
    ...['--warehouse', `s3://${server.bucket}/lake`, '--json'],
  ]
  const grow = (): void => {
    const more = 100 + chance.below(400)
    appendRecords(join(cwd, 'input.ndjson'), records, records + more)
    records += more
  }
  const through = (): Pick<S3Server, 'endpoint' | 'credentials'> => ({
    endpoint: proxy.endpoint,
    credentials: server.credentials,
  })
  const start = (): RunningCli => {
    const running = startSluice(args(), { cwd, env: s3Environment(through(), cwd) })
    running.endInput()
    return running
  }
  const runToEnd = async (): Promise<CliEnd> => {
    const end = await s3Cli(server, cwd)(args())
    assert.equal(end.exit, 0, `${end.stdout}${end.stderr}`)
    return end
  }
  const audit = (): Promise<void> =>
    requireWhole(storeOf(server), `s3://${server.bucket}/lake`, records)

  /** Requests of one run that has something to add, and those of them that create versions. */
  let requests = 0
  let creates = 0
  before(async () => {
    for (let run = 0; run < 2; run += 1) {
      grow()
      proxy.plan([])
      const end = await start().ended
      assert.equal(end.exit, 0, `${end.stdout}${end.stderr}`)
    }
    requests = proxy.seen().length
    creates = proxy.seen().filter(({ operation }) => operation === 'create').length
    assert.ok(creates > 0 && requests > creates)
  })

  /** Sends a signal as one of the run's requests comes in, or a little later. */
  const signalAtRandom = async (running: RunningCli, signal: NodeJS.Signals): Promise<string> => {
    // Few requests commit, and those are the ones to be interrupted most.
    const isCreate = chance.below(2) === 0
    const at = 1 + chance.below(isCreate ? creates : requests)
    const wait = chance.below(2) === 0 ? 0 : chance.below(30)
    let seen = 0
    const operation = await Promise.race([
      new Promise<string>((resolve) => {
        proxy.watch((request) => {
          if (!isCreate || request.operation === 'create') seen += 1
          if (seen === at) resolve(request.operation)
        })
      }),
      running.ended.then(() => 'end'),
    ])
    if (wait > 0) await sleep(wait)
    running.kill(signal)
    proxy.watch(undefined)
    return `${wait} ms after ${isCreate ? 'create' : 'request'} ${at} (${operation})`
  }

  test('at 20 random moments, it ends with every record once when it is run again', async (t) => {
    t.diagnostic(`SLUICE_KILL_SEED=${seed}`)
    const moments: string[] = []
    let killed = 0
    for (let at = 0; at < kills; at += 1) {
      if (chance.below(3) > 0) grow()
      const running = start()
      moments.push(await signalAtRandom(running, 'SIGKILL'))
      if ((await running.ended).signal === 'SIGKILL') killed += 1
    }
    await runToEnd()
    t.diagnostic(moments.join(', '))
    assert.ok(killed > kills / 2, `only ${killed} of ${kills} were still running`)
    await audit()
  })

  test('at random moments for a while, it goes on to the end by itself', async (t) => {
    const moments: string[] = []
    for (let at = 0; at < stops; at += 1) {
      grow()
      const running = start()
      moments.push(await signalAtRandom(running, 'SIGSTOP'))
      await sleep(100 + chance.below(900))
      running.kill('SIGCONT')
      const end = await running.ended
      assert.equal(end.exit, 0, `${moments.join()}: ${end.stdout}${end.stderr}`)
    }
    t.diagnostic(moments.join(', '))
    await audit()
  })

  test('until a newer one has finished, it adds nothing any more', async (t) => {
    const ends: string[] = []
    for (let at = 0; at < fights; at += 1) {
      grow()
      const older = start()
      const moment = await signalAtRandom(older, 'SIGSTOP')
      await runToEnd()
      older.kill('SIGCONT')
      const end = await older.ended
      const { error } = documentOf(end)
      const code = typeof error === 'object' && error !== null && 'code' in error && error['code']
      assert.ok(end.exit === 0 || code === 'COMMIT_FENCED', `${moment}: ${end.stderr}`)
      ends.push(`${moment}: ${end.exit === 0 ? 'done' : 'fenced'}`)
      await audit()
    }
    t.diagnostic(ends.join(', '))
  })

  describe('in the middle of several rounds', () => {
    const big = 80_000
    const version = /\/crash\/big\/metadata\/v(\d+)\.metadata\.json$/
    const tierBig = (lake: string): readonly string[] => [
      ...['tier', 'big.ndjson', '--table', 'crash.big', '--buckets', '4', '--memory', '32MiB'],
      ...['--warehouse', `s3://${server.bucket}/${lake}`, '--json'],
    ]
    const startBig = (lake: string): RunningCli => {
      const running = startSluice(tierBig(lake), { cwd, env: s3Environment(through(), cwd) })
      running.endInput()
      return running
    }
    const nextVersion = (): Promise<void> =>
      new Promise((resolve) => {
        proxy.watch(({ operation, key }) => {
          if (operation === 'create' && version.test(key)) resolve()
        })
      })
    before(() => {
      appendRecords(join(cwd, 'big.ndjson'), 0, big)
    })

    // With the create of its first commit under way, with its reply, or a little later.
    for (const wait of [0, 5, 40]) {
      test(`the older one, stopped ${wait} ms after it asked for a version, is fenced by the newer`, async (t) => {
        const lake = `taken-${wait}`
        const older = startBig(lake)
        for (let versions = 0; versions < 2; versions += 1) {
          await Promise.race([nextVersion(), older.ended.then(failed)])
        }
        await sleep(wait)
        older.kill('SIGSTOP')
        proxy.watch(undefined)
        // What was under way has arrived before anything new is looked at.
        await sleep(500)
        const newer = startBig(lake)
        await Promise.race([nextVersion(), newer.ended.then(failed)])
        proxy.watch(undefined)
        older.kill('SIGCONT')
        const [first, second] = await Promise.all([older.ended, newer.ended])
        t.diagnostic(`${String(first.exit)} and ${String(second.exit)}`)
        assert.equal(second.exit, 0, `${second.stdout}${second.stderr}`)
        assert.equal(first.exit, 3, `${first.stdout}${first.stderr}`)
        const { error } = documentOf(first)
        assert.ok(typeof error === 'object' && error !== null && 'code' in error)
        assert.equal(error['code'], 'COMMIT_FENCED', first.stderr)
        await requireWhole(storeOf(server), `s3://${server.bucket}/${lake}`, big)
        const again = await s3Cli(server, cwd)(tierBig(lake))
        assert.equal(documentOf(again)['rows'], 0)
      })
    }
  })

  test('other engines read each record once', { skip: skipWithout() }, async () => {
    const { accessKeyId, secretAccessKey } = server.credentials
    const request = {
      table: `s3://${server.bucket}/lake/crash/t`,
      s3: { endpoint: server.endpoint, key: accessKeyId, secret: secretAccessKey },
      columns: ['id', 'name'],
    }
    const { lines, digest } = await readRows({ engine: 'duckdb', ...request })
    const ids = lines.map((line) => Number(/"id":\s*"?(\d+)/.exec(line)?.[1])).sort((a, b) => a - b)
    assert.deepEqual(
      ids,
      Array.from({ length: records }, (_, id) => id),
    )
    assert.equal((await readTable({ engine: 'pyiceberg', ...request })).digest, digest)
  })
})

function failed(end: CliEnd): never {
  assert.fail(`ended too early: ${end.stdout}${end.stderr}`)
}
