import assert from 'node:assert/strict'
import { appendFileSync, copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type CliEnd, documentOf, flightsPath } from '../support/cli.ts'
import {
  type Fault,
  type FaultProxy,
  type FaultRule,
  startFaultProxy,
} from '../support/fault-proxy.ts'
import { requireWhole } from '../support/audit.ts'
import { s3Cli } from '../support/lake-on-s3.ts'
import { type S3Server, startWeed, storeOf } from '../support/s3-server.ts'
import { startS3rver } from '../support/s3rver.ts'
import { scratchFolder } from '../support/scratch.ts'

/** Metadata of a version: whoever creates it has committed. */
const commits = /\/metadata\/v\d+\.metadata\.json$/

describe('sluice on S3', () => {
  let server: S3Server
  let proxy: FaultProxy
  before(async () => {
    server = await startWeed()
    proxy = await startFaultProxy(server.endpoint)
  })
  after(async () => {
    await proxy[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  const flights = (lake: string): readonly string[] => [
    ...['tier', 'flights.ndjson', '--table', 'demo.flights'],
    ...['--warehouse', `s3://${server.bucket}/${lake}`],
  ]
  const through = (): Pick<S3Server, 'endpoint' | 'credentials'> => ({
    endpoint: proxy.endpoint,
    credentials: server.credentials,
  })
  const requireRows = (lake: string, rows: number): Promise<void> =>
    requireWhole(storeOf(server), `s3://${server.bucket}/${lake}`, rows)

  test('a file becomes a table, again adds nothing, grown adds its tail, and it can be queried', async (t) => {
    const cwd = scratchFolder(t)
    const run = s3Cli(through(), cwd)
    copyFileSync(flightsPath, join(cwd, 'flights.ndjson'))
    proxy.plan([])
    const first = await run(flights('plain'))
    assert.equal(first.exit, 0, first.stderr)
    assert.match(first.stdout, /^✓ 5,000 records → demo\.flights in /)
    assert.ok(proxy.seen().some(({ key }) => key.includes('/plain/_sluice/probe/')))
    const left = await storeOf(server).list(`s3://${server.bucket}/plain/_sluice/`)
    assert.deepEqual(left, [], 'the probe leaves nothing')

    proxy.plan([])
    const again = await run(flights('plain'))
    assert.match(again.stdout, /^✓ nothing to do: demo\.flights holds all 5,000 records/)
    const kinds = new Set(proxy.seen().map(({ operation }) => operation))
    assert.deepEqual(
      [...kinds].filter((kind) => !['get', 'head', 'list'].includes(kind)),
      [],
    )

    const lines = readFileSync(flightsPath, 'utf8').split('\n').slice(0, 1000)
    appendFileSync(join(cwd, 'flights.ndjson'), `${lines.join('\n')}\n`)
    const grown = await run(flights('plain'))
    assert.match(grown.stdout, /^✓ 1,000 records → demo\.flights in .* \(5,000 were there\)\n/)

    proxy.plan([])
    const query = ['query', `s3a://${server.bucket}/plain`]
    const asked = await run([...query, 'select count(*)::int as n from demo.flights', '--json'])
    const document = documentOf(asked)
    assert.deepEqual(document['rows'], [[6000]])
    assert.equal(document['ok'], true)
    assert.match(asked.stderr, /^ {2}note {2}\d+ files, [\d.]+ kB, copied to \S+ first\n$/)
    assert.ok(proxy.seen().every(({ operation }) => ['get', 'head', 'list'].includes(operation)))
    const quiet = await run([...query, 'select 1 from demo.flights limit 1', '--csv', '-q'])
    assert.deepEqual([quiet.stdout, quiet.stderr], ['1\n1\n', ''])
    const wrong = await run([...query, 'select nonsense from demo.flights'])
    assert.equal(wrong.exit, 2)
    assert.deepEqual(readdirSync(join(cwd, 'tmp')), [], 'copies are removed, also after an error')
    await requireRows('plain', 6000)
  })

  test('the configuration says how the bucket is reached, and names where its keys are', async (t) => {
    const cwd = scratchFolder(t)
    copyFileSync(flightsPath, join(cwd, 'flights.ndjson'))
    const yaml = [
      `warehouse: s3://${server.bucket}/configured`,
      's3:',
      `  s3.endpoint: ${server.endpoint}`,
      '  s3.region: eu-north-1',
      '  s3.access-key-id: ${LAKE_KEY}',
      '  s3.secret-access-key: ${LAKE_SECRET}',
    ]
    writeFileSync(join(cwd, 'sluice.yaml'), `${yaml.join('\n')}\n`)
    const env = {
      ...{ AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '', SLUICE_S3_ENDPOINT: '' },
      LAKE_KEY: server.credentials.accessKeyId,
      LAKE_SECRET: server.credentials.secretAccessKey,
    }
    const run = s3Cli(server, cwd)
    const tiered = await run(['tier', 'flights.ndjson', '--table', 'demo.flights'], { env })
    assert.equal(tiered.exit, 0, tiered.stderr)
    await requireRows('configured', 5000)
    const { accessKeyId, secretAccessKey } = server.credentials
    const profile = `[lake]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n`
    writeFileSync(join(cwd, 'credentials'), profile)
    const byProfile = await run(['query', 'select count(*)::int from demo.flights', '--csv'], {
      env: {
        ...env,
        LAKE_KEY: accessKeyId,
        AWS_PROFILE: 'lake',
        AWS_SHARED_CREDENTIALS_FILE: join(cwd, 'credentials'),
      },
    })
    assert.equal(byProfile.exit, 0, byProfile.stderr)
  })

  describe('a commit', () => {
    const once = (fault: Fault): readonly FaultRule[] => [
      { operation: 'create', key: commits, fault },
    ]
    const plans: Readonly<Record<string, readonly FaultRule[]>> = {
      'that lands while its reply is lost': once('reset-after'),
      'that lands while the store says 500': once('500-after'),
      'that arrives twice': once('doubled'),
      'that never arrives': once('reset-before'),
      'that is cut in the middle': once('reset-midway'),
      'that conflicts with itself': once('409'),
      'F-11 that lands long after its sender gave it up': once('late'),
      'whose every request is answered by 503 at first': (
        ['create', 'put', 'get', 'head', 'list'] as const
      ).map((operation) => ({ operation, fault: '503', times: 3 })),
      'whose reads break off': (['reset-after', 'cut-body', 'short-body'] as const).map(
        (fault, at) => ({ operation: 'get', fault, nth: at + 1 }),
      ),
      'whose lost reply is followed by lost reads': [
        ...once('reset-after'),
        { operation: 'get', fault: 'reset-after', times: 2 },
      ],
    }

    test('holds each record once, whatever becomes of its requests', async (t) => {
      const cwd = scratchFolder(t)
      const run = s3Cli(through(), cwd)
      let rows = 0
      const grow = (): void => {
        const lines = Array.from({ length: 50 }, (_, at) => `{"id":${rows + at},"at":"lake"}\n`)
        appendFileSync(join(cwd, 'flights.ndjson'), lines.join(''))
        rows += lines.length
      }
      proxy.plan([])
      grow()
      assert.equal((await run(flights('faults'))).exit, 0)
      for (const [name, plan] of Object.entries(plans)) {
        await t.test(name, async () => {
          grow()
          proxy.plan(plan)
          let end = await run(flights('faults'))
          assert.ok(
            proxy.seen().some(({ fault }) => fault !== undefined),
            'the fault was met',
          )
          await proxy.release()
          proxy.plan([])
          // An outcome that stays unknown is reported as such; the next run finds out.
          if (end.exit === 4) end = await run(flights('faults'))
          assert.equal(end.exit, 0, end.stderr)
          await requireRows('faults', rows)
        })
      }
    })
  })

  describe('a store that cannot be used', () => {
    type Case = {
      readonly name: string
      readonly exit: number
      readonly says: RegExp
      readonly env?: Readonly<Record<string, string>>
      readonly bucket?: string
      readonly plan?: readonly FaultRule[]
    }
    const random = (): string =>
      Array.from({ length: 5 }, () => Math.random().toString(36).slice(2, 10)).join('')
    const secrets = { key: random(), secret: random(), token: random() }
    const anyOf = (fault: Fault): readonly FaultRule[] =>
      (['create', 'put', 'get', 'head', 'list'] as const).map((operation) => ({
        operation,
        fault,
        times: 1_000,
      }))
    const cases: readonly Case[] = [
      {
        name: 'has no such bucket',
        exit: 2,
        says: /s3:\/\/nowhere: there is no such bucket at http:\/\/127\.0\.0\.1:\d+\n {2}fix {4}aws s3 mb s3:\/\/nowhere --endpoint-url http:\/\/127\.0\.0\.1:\d+, or name another/,
        bucket: 'nowhere',
        env: {},
      },
      {
        name: 'knows no such key',
        exit: 5,
        says: /: the store refused access \(HTTP 403 .*\)\n {2}fix {4}check AWS_ACCESS_KEY_ID and/,
        env: { AWS_ACCESS_KEY_ID: secrets.key, AWS_SECRET_ACCESS_KEY: secrets.secret },
      },
      {
        name: 'finds a wrong secret',
        exit: 5,
        says: /: the store refused access \(HTTP 403 .*\)\n {2}fix {4}check AWS_ACCESS_KEY_ID and/,
        env: { AWS_SECRET_ACCESS_KEY: secrets.secret },
      },
      {
        name: 'answers nowhere',
        exit: 5,
        says: /s3:\/\/sluice-test: the store cannot be reached \(.*ECONNREFUSED.*\)\n {2}fix {4}look at the endpoint/,
        env: { SLUICE_S3_ENDPOINT: 'http://127.0.0.1:9' },
      },
      {
        name: 'sends us to another host',
        exit: 2,
        says: /s3:\/\/sluice-test: the store sends us to another host\n {2}fix {4}name the endpoint or the region/,
        plan: anyOf('307'),
      },
      {
        name: 'is in another region',
        exit: 2,
        says: /s3:\/\/sluice-test: not the bucket's region \(HTTP 400 .*\)\n {2}fix {4}name the region/,
        plan: anyOf('400-region'),
      },
      {
        name: 'finds the token expired',
        exit: 5,
        says: /: the store refused access \(HTTP 403 ExpiredToken: .*\)/,
        plan: anyOf('403-expired'),
      },
      {
        name: 'gets no keys',
        exit: 5,
        says: /s3:\/\/sluice-test: no credentials were found\n {2}fix {4}set AWS_ACCESS_KEY_ID/,
        env: {
          ...{ AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '', AWS_SESSION_TOKEN: '' },
          AWS_EC2_METADATA_DISABLED: 'true',
        },
      },
    ]
    for (const { name, exit, says, env, bucket = 'sluice-test', plan } of cases) {
      test(`S-02 which ${name} is told from others, and no secret is`, async (t) => {
        const cwd = scratchFolder(t)
        copyFileSync(flightsPath, join(cwd, 'flights.ndjson'))
        const run = s3Cli(through(), cwd)
        const given =
          env ??
          ({
            AWS_ACCESS_KEY_ID: secrets.key,
            AWS_SECRET_ACCESS_KEY: secrets.secret,
            AWS_SESSION_TOKEN: secrets.token,
          } as const)
        proxy.plan(plan ?? [])
        const place = `s3://${bucket}/refused`
        const ends: readonly CliEnd[] = [
          await run(['tier', 'flights.ndjson', '--warehouse', place, '-v'], { env: given }),
          await run(['query', place, 'select 1', '-v', '--json'], { env: given }),
        ]
        proxy.plan([])
        for (const end of ends) {
          assert.equal(end.exit, exit, end.stderr)
          assert.match(end.stderr, says)
          const all = [...Object.values(secrets), server.credentials.secretAccessKey]
          for (const secret of all) {
            assert.ok(!`${end.stdout}${end.stderr}`.includes(secret), end.stderr)
          }
        }
      })
    }
  })
})

test('a real server that ignores conditional writes is refused before anything is written', async (t) => {
  const cwd = scratchFolder(t)
  copyFileSync(flightsPath, join(cwd, 'flights.ndjson'))
  const unsafe = await startS3rver()
  try {
    const credentials = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' }
    const run = s3Cli({ endpoint: unsafe.endpoint, credentials }, cwd)
    const args = ['tier', 'flights.ndjson', '--warehouse', 's3://unsafe/lake']
    for (const attempt of [1, 2]) {
      const end = await run(args)
      assert.equal(end.exit, 5, `attempt ${attempt}: ${end.stdout}${end.stderr}`)
      assert.equal(
        end.stderr,
        `error: s3://unsafe: a key that was there was created again; this store ignores conditional writes
  state  nothing was written but the probe, which is removed again
  fix    use a REST catalog, or a store that passes sluice doctor
  code   STORE_UNSAFE (exit 5) · docs/reference/errors.md#store_unsafe
`,
      )
      assert.equal(end.stdout, '')
    }
    const store = storeOf({ endpoint: unsafe.endpoint, bucket: 'unsafe', credentials })
    assert.deepEqual(await store.list('s3://unsafe/'), [])
  } finally {
    await unsafe.stop()
  }
})
