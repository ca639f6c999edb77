import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { numberedRegister } from '../../src/catalog/register/numbered.ts'
import type { ObjectStore } from '../../src/catalog/store/object-store.ts'
import type { S3Limits } from '../../src/catalog/store/s3-store.ts'
import { isSluiceError, type SluiceError } from '../../src/core/errors.ts'
import { seededChance } from '../../src/core/system.ts'
import { pattern } from '../integration/store/conformance.ts'
import { type Fault, type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'
import { type S3Server, startWeed, storeOf } from '../support/s3-server.ts'

const limits: S3Limits = {
  times: { request: 1_500, bytesPerMillisecond: 20_000, connect: 1_000 },
  retries: { attemptsMax: 4, delayFirst: 2, delayMax: 10, totalMax: 10_000, budgetMax: 200 },
}

describe('S3 behind faults', () => {
  let server: S3Server
  let proxy: FaultProxy
  let store: ObjectStore
  /** The same bucket without faults, to look at what is there. */
  let plain: ObjectStore
  let places = 0
  before(async () => {
    server = await startWeed()
    proxy = await startFaultProxy(server.endpoint)
    store = storeOf({ ...server, endpoint: proxy.endpoint }, limits)
    plain = storeOf(server)
  })
  after(async () => {
    await proxy[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  const place = (): string => {
    places += 1
    return `s3://${server.bucket}/faults/p${places}`
  }
  const hit = (operation: string, fault: Fault, times = 1): void => {
    proxy.plan([{ operation, fault, times }])
  }
  const sent = (operation: string): number =>
    proxy.seen().filter((request) => request.operation === operation).length
  const refusal = async (work: Promise<unknown>): Promise<SluiceError> => {
    const error = await work.then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    assert.ok(isSluiceError(error), `a SluiceError, not ${String(error)}`)
    return error
  }

  describe('a create', () => {
    const expectations: readonly (readonly [Fault, string, 'there' | 'absent'])[] = [
      ['reset-before', 'unknown', 'absent'],
      ['reset-midway', 'unknown', 'absent'],
      ['reset-after', 'unknown', 'there'],
      ['500', 'unknown', 'absent'],
      ['500-after', 'unknown', 'there'],
      ['503', 'unknown', 'absent'],
      ['silence', 'unknown', 'absent'],
      ['409', 'contended', 'absent'],
      ['412', 'exists', 'absent'],
      ['doubled', 'exists', 'there'],
      ['403-expired', 'applied', 'there'],
      ['403-skewed', 'applied', 'there'],
    ]
    for (const [fault, outcome, state] of expectations) {
      test(`under ${fault} ends as ${outcome}, sent once, and the object is ${state}`, async () => {
        const location = `${place()}/v1`
        hit('create', fault)
        const found = await store.createIfAbsent(location, Buffer.from('mine'))
        assert.equal(found.kind === 'rejected' ? found.reason : found.kind, outcome)
        // Only a request that the store refused unseen is signed anew and sent again.
        assert.equal(sent('create'), fault.startsWith('403') ? 2 : 1)
        assert.equal(await plain.size(location), state === 'there' ? 4 : undefined)
      })
    }

    for (const fault of ['reset-after', '500-after', 'doubled'] as const) {
      test(`F-06 F-07 that was applied under ${fault} is found by reading it back`, async () => {
        const table = place()
        hit('create', fault)
        const outcome = await numberedRegister(store, table).create(1, Buffer.from('{"a":1}'))
        assert.equal(outcome.kind, 'applied')
      })
    }

    test('F-11 that arrives late takes a free number or none', async () => {
      const table = place()
      const ours = numberedRegister(store, table)
      hit('create', 'late')
      assert.equal((await ours.create(1, Buffer.from('ours'))).kind, 'unknown')
      const theirs = numberedRegister(plain, table)
      assert.equal((await theirs.create(1, Buffer.from('theirs'))).kind, 'applied')
      assert.deepEqual(await proxy.release(), [412])
      assert.equal((await ours.create(1, Buffer.from('ours'))).kind, 'rejected')
      hit('create', 'late')
      assert.equal((await ours.create(2, Buffer.from('ours'))).kind, 'unknown')
      assert.deepEqual(await proxy.release(), [200])
      assert.equal((await ours.create(2, Buffer.from('ours'))).kind, 'applied')
      assert.equal((await theirs.create(2, Buffer.from('theirs'))).kind, 'rejected')
    })

    test('never has two winners, whatever is lost on the way', async () => {
      const faults: readonly Fault[] = [
        ...(['reset-before', 'reset-after', '500', '500-after'] as const),
        ...(['503', '409', 'doubled'] as const),
      ]
      const chance = seededChance(20261201)
      proxy.plan([])
      proxy.random((operation) =>
        operation === 'create' ? faults[chance.below(faults.length * 2)] : undefined,
      )
      const table = place()
      const writer = async (name: string, version: number): Promise<boolean> => {
        const register = numberedRegister(store, table)
        for (let attempt = 0; attempt < 30; attempt += 1) {
          const outcome = await register.create(version, Buffer.from(name))
          if (outcome.kind === 'applied') return true
          const holder = await plain.read(`${table}/metadata/v${version}.metadata.json`)
          if (outcome.kind === 'rejected' && holder !== undefined) return false
        }
        throw new Error('thirty attempts were not enough')
      }
      try {
        for (let version = 1; version <= 5; version += 1) {
          const names = ['a', 'b', 'c'].map((name) => `${name}${version}`)
          const won = await Promise.all(names.map((name) => writer(name, version)))
          const winners = names.filter((_, at) => won[at] === true)
          const body = await plain.read(`${table}/metadata/v${version}.metadata.json`)
          assert.deepEqual(winners, [Buffer.from(body ?? []).toString()])
        }
        assert.ok(proxy.seen().some(({ fault }) => fault !== undefined))
      } finally {
        proxy.random(undefined)
      }
    })
  })

  describe('a small data file', () => {
    const faults: readonly Fault[] = [
      ...(['reset-before', 'reset-midway', 'reset-after', '500', '500-after'] as const),
      ...(['503', '409', 'silence', '403-expired', '403-skewed'] as const),
    ]
    for (const fault of faults) {
      test(`F-01 F-02 F-04 is whole after ${fault}, by the same bytes sent again`, async () => {
        const location = `${place()}/data/small`
        hit('put', fault)
        const body = pattern(70_000)
        const writer = await store.open(location)
        await writer.write(body)
        assert.equal(await writer.finish(), body.length)
        assert.equal(sent('put'), 2)
        assert.deepEqual(Buffer.from((await plain.read(location)) ?? []), body)
      })
    }

    test('F-03 fails clean when the store asks to slow down for ever', async () => {
      const location = `${place()}/data/small`
      hit('put', '503', 1_000)
      const writer = await store.open(location)
      await writer.write(pattern(10))
      const error = await refusal(writer.finish())
      assert.equal(error.code, 'STORE_UNAVAILABLE')
      assert.match(error.message, /HTTP 503 SlowDown/)
      assert.equal(sent('put'), 4)
      await writer.abandon()
      assert.equal(await plain.size(location), undefined)
    })
  })

  describe('a large data file', () => {
    const cases: readonly (readonly [string, Fault])[] = [
      ...(['reset-before', 'reset-after', '500', '503'] as const).flatMap((fault) =>
        (['begin', 'part', 'complete'] as const).map((operation) => [operation, fault] as const),
      ),
      ['part', 'reset-midway'],
      ['part', 'silence'],
      ['complete', '500-after'],
      ['complete', '200-error'],
      ['complete', '409'],
      ['complete', 'silence'],
    ]
    for (const [operation, fault] of cases) {
      test(`F-16 F-17 F-18 is whole after ${fault} of a ${operation}`, async () => {
        const location = `${place()}/data/large`
        hit(operation, fault)
        const body = pattern(9_000_000)
        const writer = await store.open(location)
        for (let at = 0; at < body.length; at += 3_000_000) {
          await writer.write(body.subarray(at, at + 3_000_000))
        }
        assert.equal(await plain.size(location), undefined)
        assert.equal(await writer.finish(), body.length)
        const read = await plain.read(location)
        assert.ok(read !== undefined && Buffer.compare(read, body) === 0)
        const wasApplied = fault === 'reset-after' || fault === '500-after'
        const expected = operation !== 'complete' || wasApplied ? 1 : 2
        assert.equal(sent('complete'), expected, 'an applied completion is known by a HEAD')
      })
    }

    test('F-16 shows nothing when the process ends between parts', async () => {
      const at = place()
      proxy.plan([])
      const writer = await store.open(`${at}/data/large`)
      await writer.write(pattern(9_000_000))
      assert.deepEqual(await plain.list(`${at}/`), [])
      assert.equal(await plain.read(`${at}/data/large`), undefined)
      await writer.abandon()
      assert.equal(sent('abort'), 1)
    })

    test('ends its upload when a part cannot be sent', async () => {
      const location = `${place()}/data/large`
      hit('part', '500', 1_000)
      const writer = await store.open(location)
      await writer.write(pattern(9_000_000))
      assert.equal((await refusal(writer.finish())).code, 'STORE_UNAVAILABLE')
      await writer.abandon()
      assert.equal(sent('complete'), 0)
      assert.equal(sent('abort'), 1)
      assert.equal(await plain.size(location), undefined)
    })
  })

  describe('a read', () => {
    const faults: readonly Fault[] = [
      ...(['reset-before', 'reset-after', '500', '503', 'silence'] as const),
      ...(['slow-body', 'cut-body', 'short-body', '403-expired'] as const),
    ]
    for (const fault of faults) {
      test(`F-05 of a range gives the whole range after ${fault}`, async () => {
        const location = `${place()}/data/file`
        const body = pattern(400_000)
        await plain.createIfAbsent(location, body)
        hit('get', fault)
        const range = await store.readRange(location, 1_000, 301_000)
        assert.deepEqual(Buffer.from(range ?? []), body.subarray(1_000, 301_000))
        assert.equal(sent('get'), 2)
      })
    }
    for (const fault of [...faults, 'flipped-body'] as const) {
      test(`F-05 F-14 of an object gives the whole object after ${fault}`, async () => {
        const location = `${place()}/metadata/v1`
        const body = pattern(400_000)
        await plain.createIfAbsent(location, body)
        hit('get', fault)
        assert.deepEqual(Buffer.from((await store.read(location)) ?? []), body)
        assert.equal(sent('get'), 2)
      })
    }

    test('F-14 of an object that comes damaged every time names it', async () => {
      const location = `${place()}/metadata/v1`
      await plain.createIfAbsent(location, pattern(4_000))
      hit('get', 'flipped-body', 1_000)
      const error = await refusal(store.read(location))
      assert.equal(error.code, 'DATA_CORRUPT')
      assert.ok(error.message.includes(location))
    })

    test('of a length or a list is answered after a fault', async () => {
      const at = place()
      await plain.createIfAbsent(`${at}/one`, Buffer.from('1'))
      for (const fault of ['reset-before', 'reset-after', '500', '503', 'silence'] as const) {
        hit('head', fault)
        assert.equal(await store.size(`${at}/one`), 1)
        hit('list', fault)
        assert.equal((await store.list(`${at}/`)).length, 1)
      }
      for (const fault of ['cut-body', 'short-body', 'slow-body'] as const) {
        hit('list', fault)
        assert.equal((await store.list(`${at}/`)).length, 1, fault)
        assert.equal(sent('list'), 2)
      }
    })
  })

  test('F-22 a removal whose reply is lost is sent again', async () => {
    const location = `${place()}/one`
    await plain.createIfAbsent(location, Buffer.from('1'))
    hit('delete', 'reset-after')
    await store.remove(location)
    assert.equal(sent('delete'), 2)
    assert.equal(await plain.size(location), undefined)
  })

  test('F-20 a redirect to another host is refused for every request', async () => {
    const location = `${place()}/one`
    for (const [operation, work] of [
      ['create', () => store.createIfAbsent(location, Buffer.from('1'))],
      ['get', () => store.read(location)],
      ['list', () => store.list(`${location}/`)],
    ] as const) {
      hit(operation, '307')
      const error = await refusal(work())
      assert.equal(error.code, 'LOCATION_REFUSED')
      assert.equal(error.effect, 'none')
      assert.equal(sent(operation), 1)
    }
  })
})
