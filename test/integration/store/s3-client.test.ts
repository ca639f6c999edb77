import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { describe, test } from 'node:test'
import { inspect } from 'node:util'
import { parseS3Location } from '../../../src/catalog/store/s3-location.ts'
import { retrier, standardRetries } from '../../../src/catalog/store/s3-retry.ts'
import { s3Store } from '../../../src/catalog/store/s3-store.ts'
import { s3Error, ShortBodyError } from '../../../src/catalog/store/s3-errors.ts'
import { isSluiceError, type SluiceError } from '../../../src/core/errors.ts'
import { seededChance, systemClock, systemIds } from '../../../src/core/system.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

const ports = { clock: systemClock, chance: seededChance(1), ids: systemIds }
const secrets = { secretAccessKey: 'h0nest-Secret/key+4242', sessionToken: 'session-T0ken-777' }
const quick = {
  times: { request: 1_000, bytesPerMillisecond: 1_000, connect: 1_000 },
  retries: { attemptsMax: 3, delayFirst: 1, delayMax: 2, totalMax: 1_000, budgetMax: 50 },
}

type Handler = (request: IncomingMessage, reply: ServerResponse) => void

async function withServer(
  handler: Handler,
  use: (endpoint: string) => Promise<void>,
): Promise<void> {
  const server = createServer((request, reply) => {
    request.resume()
    request.on('end', () => {
      handler(request, reply)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  try {
    await use(`http://127.0.0.1:${address.port}`)
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
}

function refuse(reply: ServerResponse, status: number, code: string, extra = ''): void {
  reply.writeHead(status, { 'Content-Type': 'application/xml' })
  reply.end(`<Error><Code>${code}</Code><Message>planned</Message>${extra}</Error>`)
}

function storeAt(endpoint: string, onCredentials: () => void = () => undefined) {
  const credentials = () => {
    onCredentials()
    return Promise.resolve({ accessKeyId: 'AKIDTEST', ...secrets })
  }
  return s3Store('demo', { endpoint, credentials }, ports, quick)
}

async function errorOf(work: Promise<unknown>): Promise<SluiceError> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  assert.ok(isSluiceError(error), `a SluiceError, not ${String(error)}`)
  return error
}

const body = Buffer.from('body')

describe('the S3 store', () => {
  test('proves that nothing was written when no connection was made', async () => {
    let endpoint = ''
    await withServer(
      () => undefined,
      (given) => {
        endpoint = given
        return Promise.resolve()
      },
    )
    const error = await errorOf(storeAt(endpoint).createIfAbsent('s3://demo/a', body))
    assert.equal(error.code, 'STORE_UNAVAILABLE')
    assert.equal(error.effect, 'none')
    assert.match(error.message, /^s3:\/\/demo: the store cannot be reached \(.*ECONNREFUSED/)
  })

  const refusals = [
    [403, 'AccessDenied', 'STORE_DENIED'],
    [403, 'SignatureDoesNotMatch', 'STORE_DENIED'],
    [404, 'NoSuchBucket', 'LOCATION_REFUSED'],
    [501, 'NotImplemented', 'STORE_UNSUPPORTED'],
    [400, 'InvalidRequest', 'STORE_UNAVAILABLE'],
    [400, 'AuthorizationHeaderMalformed', 'CONFIG_INVALID'],
    [301, 'PermanentRedirect', 'LOCATION_REFUSED'],
  ] as const
  for (const [status, reply, code] of refusals) {
    test(`proves that nothing was written after ${status} ${reply}`, async () => {
      await withServer(
        (_, response) => {
          refuse(response, status, reply)
        },
        async (endpoint) => {
          const error = await errorOf(storeAt(endpoint).createIfAbsent('s3://demo/a/b', body))
          assert.equal(error.code, code)
          assert.equal(error.effect, 'none')
          assert.match(error.message, /^s3:\/\/demo/)
        },
      )
    })
  }

  test('refuses a bucket that is not there, by bucket and endpoint, on every kind of request', async () => {
    await withServer(
      (_, response) => {
        refuse(response, 404, 'NoSuchBucket')
      },
      async (endpoint) => {
        const store = storeAt(endpoint)
        for (const work of [
          () => store.read('s3://demo/a'),
          () => store.list('s3://demo/'),
          () => store.createIfAbsent('s3://demo/a', body),
        ]) {
          const error = await errorOf(work())
          assert.equal(error.code, 'LOCATION_REFUSED')
          assert.equal(error.message, `s3://demo: there is no such bucket at ${endpoint}`)
          assert.equal(
            error.fix,
            `aws s3 mb s3://demo --endpoint-url ${endpoint}, or name another bucket or endpoint`,
          )
          assert.equal(error.details['endpoint'], endpoint)
        }
      },
    )
  })

  test('names the endpoint without the bucket in front, and AWS by its command alone', () => {
    const failure = { kind: 'reply', status: 404, code: 'NoSuchBucket', reason: 'planned' } as const
    const at = 'https://demo.s3.eu-north-1.amazonaws.com'
    const error = s3Error(failure, 's3://demo/a', 'none', at)
    assert.equal(
      error.message,
      's3://demo: there is no such bucket at https://s3.eu-north-1.amazonaws.com',
    )
    assert.equal(error.fix, 'aws s3 mb s3://demo, or name another bucket or endpoint')
  })

  test('F-15 takes bytes that were changed on their way for nothing written', async () => {
    await withServer(
      (_, response) => {
        refuse(response, 400, 'BadDigest')
      },
      async (endpoint) => {
        const outcome = await storeAt(endpoint).createIfAbsent('s3://demo/a', body)
        assert.deepEqual(outcome, { kind: 'rejected', reason: 'contended' })
      },
    )
  })

  test('takes a page of a proxy with status 502 for a doubt on writes, for a retry on reads', async () => {
    let requests = 0
    await withServer(
      (_, reply) => {
        requests += 1
        if (requests > 2) reply.end('whole')
        else reply.writeHead(502, { 'Content-Type': 'text/html' }).end('<html><h1>502<br></html>')
      },
      async (endpoint) => {
        const store = storeAt(endpoint)
        assert.equal((await store.createIfAbsent('s3://demo/a', body)).kind, 'unknown')
        assert.equal(Buffer.from((await store.read('s3://demo/a')) ?? []).toString(), 'whole')
        assert.equal(requests, 3)
      },
    )
  })

  test('S-01 S-02 shows no secret in any error, however deep one looks', async () => {
    const shown: string[] = []
    const replies: Handler[] = [
      (request, reply) => {
        const token = String(request.headers['x-amz-security-token'])
        refuse(reply, 403, 'ExpiredToken', `<Token-0>${token}</Token-0>`)
      },
      (request, reply) => {
        const signed = request.headers.authorization ?? ''
        refuse(reply, 403, 'SignatureDoesNotMatch', `<StringToSign>${signed}</StringToSign>`)
      },
      (_, reply) => {
        refuse(reply, 500, 'InternalError')
      },
      (request) => request.socket.destroy(),
      (_, reply) => {
        reply.writeHead(307, { Location: 'http://127.0.0.2:9/?X-Amz-Security-Token=t' })
        reply.end()
      },
    ]
    for (const handler of replies) {
      await withServer(handler, async (endpoint) => {
        const store = storeAt(endpoint)
        const outcome = await store.createIfAbsent('s3://demo/a', body).catch((e: unknown) => e)
        const writer = await store.open('s3://demo/data/a')
        await writer.write(body)
        const errors = [outcome, await errorOf(store.read('s3://demo/a'))]
        errors.push(await errorOf(writer.finish()), await errorOf(store.list('s3://demo/a/')))
        for (const error of errors) {
          shown.push(inspect(error, { depth: 20, showHidden: true }), JSON.stringify(error))
        }
      })
    }
    assert.equal(shown.length, 40)
    for (const text of shown) {
      for (const secret of [...Object.values(secrets), 'AKIDTEST', 'Signature=']) {
        assert.ok(!text.includes(secret), text)
      }
    }
  })

  test('S-01 does not repeat what a provider of credentials says', async () => {
    const credentials = () => Promise.reject(new Error(`bad key ${secrets.secretAccessKey}`))
    const options = { endpoint: 'http://127.0.0.1:9', credentials }
    const error = await errorOf(s3Store('demo', options, ports, quick).read('s3://demo/a'))
    assert.equal(error.code, 'STORE_DENIED')
    assert.equal(error.message, 's3://demo: no credentials were found')
    assert.ok(!inspect(error, { depth: 20, showHidden: true }).includes('h0nest'))
  })

  test('F-19 asks for new credentials once when the token has expired, then fails clean', async () => {
    let asked = 0
    let requests = 0
    await withServer(
      (_, reply) => {
        requests += 1
        refuse(reply, 403, 'ExpiredToken')
      },
      async (endpoint) => {
        const store = storeAt(endpoint, () => {
          asked += 1
        })
        const error = await errorOf(store.createIfAbsent('s3://demo/a', body))
        assert.equal(error.code, 'STORE_DENIED')
        assert.equal(error.effect, 'none')
        assert.deepEqual([asked, requests], [2, 2])
      },
    )
  })

  test('F-21 takes over the time of the store once when the clock of this machine is off', async () => {
    const dates: string[] = []
    await withServer(
      (request, reply) => {
        dates.push(String(request.headers['x-amz-date']).slice(0, 4))
        reply.setHeader('Date', 'Wed, 01 Jan 2031 00:00:00 GMT')
        if (dates.length === 1) refuse(reply, 403, 'RequestTimeTooSkewed')
        else reply.end('whole')
      },
      async (endpoint) => {
        const read = await storeAt(endpoint).read('s3://demo/a')
        assert.equal(Buffer.from(read ?? []).toString(), 'whole')
        assert.equal(dates.length, 2)
        assert.ok(['2030', '2031'].includes(dates[1] ?? ''), dates.join())
      },
    )
  })

  test('S-04 F-20 follows no redirect, so credentials never reach another host', async () => {
    let reached = 0
    await withServer(
      (_, reply) => {
        reached += 1
        reply.end('elsewhere')
      },
      async (elsewhere) => {
        await withServer(
          (_, reply) => {
            reply.writeHead(307, { Location: `${elsewhere}/demo/a` })
            reply.end()
          },
          async (endpoint) => {
            const error = await errorOf(storeAt(endpoint).read('s3://demo/a'))
            assert.equal(error.code, 'LOCATION_REFUSED')
            assert.match(error.message, /sends us to another host/)
          },
        )
      },
    )
    assert.equal(reached, 0)
  })

  test('S-04 keeps to its own bucket', async () => {
    const store = storeAt('http://127.0.0.1:9')
    for (const location of [
      's3://other/a',
      'file:///a',
      's3://demo',
      's3://demo/a/../b',
      's3://x@demo/a',
    ]) {
      assert.equal((await errorOf(store.read(location))).code, 'LOCATION_REFUSED', location)
    }
  })

  test('refuses a store that ignores ranges', async () => {
    await withServer(
      (_, reply) => {
        reply.end('the whole object')
      },
      async (endpoint) => {
        const error = await errorOf(storeAt(endpoint).readRange('s3://demo/a', 2, 5))
        assert.equal(error.code, 'STORE_UNSUPPORTED')
      },
    )
  })
})

describe('S3 locations', () => {
  test('are taken apart character for character', () => {
    assert.deepEqual(parseS3Location('s3://demo/a b/%2F?x#y'), {
      bucket: 'demo',
      key: 'a b/%2F?x#y',
    })
    assert.deepEqual(parseS3Location('s3a://demo/a'), { bucket: 'demo', key: 'a' })
    assert.deepEqual(parseS3Location('s3n://demo'), { bucket: 'demo', key: '' })
  })

  test('are refused when they name no place', () => {
    const long = `s3://demo/${'x'.repeat(1025)}`
    for (const location of [
      's3:///a',
      's3://-/a',
      's3://a b/c',
      's3://demo/./a',
      's3://demo/\0',
      long,
    ]) {
      assert.throws(() => parseS3Location(location), { code: 'LOCATION_REFUSED' })
    }
  })
})

describe('retries of S3', () => {
  const failing = (): Promise<never> => Promise.reject(new ShortBodyError('cut'))

  test('F-03 end within their time, with waits that grow and differ', async () => {
    const clock = new VirtualClock()
    const waits: number[] = []
    let last = 0
    const attempt = (): Promise<never> => {
      waits.push(clock.monotonic() - last)
      last = clock.monotonic()
      return failing()
    }
    const run = retrier({ clock, chance: seededChance(7) }).run(attempt)
    await assert.rejects(clock.settle(run), /cut/)
    assert.ok(waits.length <= standardRetries.attemptsMax)
    assert.ok(waits.length >= 8)
    assert.ok(waits.slice(1).every((wait, at) => wait >= 1 && wait <= 100 * 2 ** at))
    assert.ok(clock.monotonic() > 5_000, 'a storm of seconds is sat out')
    assert.ok(clock.monotonic() <= standardRetries.totalMax)
    assert.equal(new Set(waits).size, waits.length)
  })

  test('end soon where nobody ever answered, and not where somebody did', async () => {
    const clock = new VirtualClock()
    const run = async (retries: ReturnType<typeof retrier>): Promise<number> => {
      let attempts = 0
      const refused = (): Promise<never> => {
        attempts += 1
        const error = Object.assign(new Error('connect ECONNREFUSED'), { syscall: 'connect' })
        return Promise.reject(error)
      }
      await assert.rejects(clock.settle(retries.run(refused)), /ECONNREFUSED/)
      return attempts
    }
    const retries = retrier({ clock, chance: seededChance(7) })
    assert.equal(await run(retries), 5)
    assert.ok(clock.monotonic() < 2_000)
    await retries.run(() => Promise.resolve(1))
    assert.ok((await run(retries)) >= 8)
  })

  test('F-03 of all calls together end when their common budget is spent', async () => {
    const clock = new VirtualClock()
    let attempts = 0
    const retries = retrier(
      { clock, chance: seededChance(7) },
      { ...standardRetries, budgetMax: 10 },
    )
    const attempt = (): Promise<never> => {
      attempts += 1
      return failing()
    }
    const calls = Array.from({ length: 20 }, () => retries.run(attempt))
    await clock.settle(Promise.allSettled(calls))
    assert.equal(attempts, 30)
    await assert.rejects(clock.settle(retries.run(attempt)), /cut/)
    assert.equal(attempts, 31)
    for (let success = 0; success < 10; success += 1) await retries.run(() => Promise.resolve(1))
    await assert.rejects(clock.settle(retries.run(attempt)), /cut/)
    assert.equal(attempts, 33, 'ten successes paid for one retry')
  })
})
