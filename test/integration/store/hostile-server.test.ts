import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { describe, test } from 'node:test'
import type { ObjectStore } from '../../../src/catalog/store/object-store.ts'
import { s3Store } from '../../../src/catalog/store/s3-store.ts'
import { isSluiceError, type SluiceError } from '../../../src/core/errors.ts'
import { seededChance, systemClock, systemIds } from '../../../src/core/system.ts'

const ports = { clock: systemClock, chance: seededChance(1), ids: systemIds }
const limits = {
  // Long enough that only a limit of bytes can end what a fast server says without an end.
  times: { request: 60_000, bytesPerMillisecond: 1_000, connect: 1_000 },
  retries: { attemptsMax: 1, delayFirst: 1, delayMax: 2, totalMax: 1_000, budgetMax: 50 },
}

type Handler = (request: IncomingMessage, reply: ServerResponse) => void

async function serverOf(handler: Handler): Promise<{ endpoint: string } & AsyncDisposable> {
  const server = createServer((request, reply) => {
    request.resume()
    handler(request, reply)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  return {
    endpoint: `http://127.0.0.1:${address.port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function storeAt(endpoint: string, key = 'AKIDTEST'): ObjectStore {
  const credentials = () =>
    Promise.resolve({ accessKeyId: key, secretAccessKey: `secret-of-${key}` })
  return s3Store('demo', { endpoint, credentials }, ports, limits)
}

/** Says the same for ever. */
function endless(status: number, text: string): Handler {
  const chunk = Buffer.from(text.repeat(Math.ceil(1_000_000 / text.length)))
  return (_, reply) => {
    reply.writeHead(status, { 'Content-Type': 'application/xml' })
    reply.on('error', () => undefined)
    const more = (): void => {
      while (!reply.destroyed && reply.write(chunk));
      if (!reply.destroyed) reply.once('drain', more)
    }
    more()
  }
}

async function refusal(work: Promise<unknown>): Promise<SluiceError> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  assert.ok(isSluiceError(error), `a SluiceError, not ${String(error)}`)
  return error
}

const entry = '<Contents><Key>lake/x</Key><Size>1</Size></Contents>'

describe('S-08 a server that', () => {
  test('never ends a list, or an error, is given up after some megabytes', async () => {
    for (const status of [200, 403, 500]) {
      await using server = await serverOf(endless(status, entry))
      const store = storeAt(server.endpoint)
      const before = process.memoryUsage().rss
      for (const work of [
        () => store.list('s3://demo/lake/'),
        () => store.uploads?.list('s3://demo/lake/') ?? Promise.resolve(),
        ...(status === 200 ? [] : [() => store.read('s3://demo/a')]),
      ]) {
        const error = await refusal(work())
        assert.equal(error.code, 'STORE_UNAVAILABLE')
        assert.match(error.message, /the reply goes on after 32 MB/)
      }
      assert.ok(process.memoryUsage().rss - before < 400_000_000)
    }
  })

  test('never ends its answer to a commit leaves it in doubt', async () => {
    await using server = await serverOf(endless(500, entry))
    const outcome = await storeAt(server.endpoint).createIfAbsent('s3://demo/v1', Buffer.from('1'))
    assert.equal(outcome.kind, 'unknown')
  })

  test('sends an object larger than any that is read whole is not listened to', async () => {
    let sent = 0
    await using server = await serverOf((_, reply) => {
      reply.writeHead(200, { 'Content-Length': String(2 ** 40) })
      reply.on('error', () => undefined)
      const more = (): void => {
        while (!reply.destroyed && reply.write(Buffer.alloc(65_536))) sent += 65_536
        if (!reply.destroyed) reply.once('drain', more)
      }
      more()
    })
    const error = await refusal(storeAt(server.endpoint).read('s3://demo/v1'))
    assert.equal(error.code, 'LIMIT_EXCEEDED')
    assert.ok(sent < 100_000_000, `${sent} bytes were sent`)
  })

  test('nests or unfolds what it says is refused soon', async () => {
    const entities = Array.from(
      { length: 30 },
      (_, at) => `<!ENTITY a${at + 1} "&a${at};&a${at};&a${at};&a${at};">`,
    )
    const bombs = [
      `${'<a>'.repeat(200_000)}${'</a>'.repeat(200_000)}`,
      `<!DOCTYPE x [<!ENTITY a0 "lol">${entities.join('')}]><ListBucketResult><Contents><Key>lake/&a30;</Key></Contents></ListBucketResult>`,
      '<'.repeat(1_000_000),
      `<ListBucketResult ${'a="b" '.repeat(200_000)}>`,
    ]
    for (const bomb of bombs) {
      await using server = await serverOf((_, reply) => {
        reply.writeHead(200, { 'Content-Type': 'application/xml' }).end(bomb)
      })
      const startedAt = performance.now()
      const listed = await storeAt(server.endpoint)
        .list('s3://demo/lake/')
        .catch((error: unknown) => error)
      assert.ok(isSluiceError(listed) || (Array.isArray(listed) && listed.length === 0))
      assert.ok(performance.now() - startedAt < 10_000, bomb.slice(0, 40))
    }
  })
})

describe('S-04 two stores in one process', () => {
  test('sign with their own keys at their own endpoints, also when their requests mix', async () => {
    const seen = new Map<string, Set<string>>()
    const server = (name: string): Promise<{ endpoint: string } & AsyncDisposable> =>
      serverOf((request, reply) => {
        const key = /Credential=([^/]+)\//.exec(request.headers.authorization ?? '')?.[1] ?? 'none'
        seen.set(name, (seen.get(name) ?? new Set()).add(key))
        setImmediate(() => reply.end('body'))
      })
    await using one = await server('one')
    await using other = await server('other')
    const [first, second] = [storeAt(one.endpoint, 'KEYONE'), storeAt(other.endpoint, 'KEYTWO')]
    const reads = Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? first : second))
    await Promise.all(reads.map((store) => store.read('s3://demo/a')))
    assert.deepEqual(
      [...seen].map(([name, keys]) => [name, [...keys]]),
      [
        ['one', ['KEYONE']],
        ['other', ['KEYTWO']],
      ],
    )
  })
})
