import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { ObjectStore } from '../../../src/catalog/store/object-store.ts'

export type StoreUnderTest = {
  readonly store: ObjectStore
  /** An empty place of its own, without a last slash. */
  readonly root: string
  readonly close?: () => Promise<void>
}

/** What every object store must do, whatever is behind it. */
export function describeStore(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`${name} as a store`, () => {
    let opened: StoreUnderTest
    let places = 0
    before(async () => {
      opened = await open()
    })
    after(async () => opened.close?.())

    /** A folder no other test uses. */
    const place = (): { readonly store: ObjectStore; readonly at: string } => {
      places += 1
      return { store: opened.store, at: `${opened.root}/p${places}` }
    }
    const create = async (location: string, text: string): Promise<string> => {
      const outcome = await opened.store.createIfAbsent(location, Buffer.from(text), {
        makeFolders: true,
      })
      return outcome.kind === 'rejected' ? outcome.reason : outcome.kind
    }
    /** Hidden names are the store's own, such as files that have no final name yet. */
    const visible = async (prefix: string): Promise<readonly string[]> =>
      (await opened.store.list(prefix))
        .map(({ location }) => location)
        .filter((location) => !/\/\.[^/]*$/.test(location))
    const text = async (location: string): Promise<string | undefined> => {
      const body = await opened.store.read(location)
      return body === undefined ? undefined : Buffer.from(body).toString()
    }

    test('creates an object whose name is free and refuses one that is taken', async () => {
      const { at } = place()
      assert.equal(await create(`${at}/v1`, 'first'), 'applied')
      assert.equal(await create(`${at}/v1`, 'second'), 'exists')
      assert.equal(await text(`${at}/v1`), 'first')
    })

    test('gives a name to exactly one of writers that come at once', async () => {
      const { at } = place()
      for (let round = 0; round < 3; round += 1) {
        const location = `${at}/v${round}`
        const writers = Array.from({ length: 5 }, (_, writer) => `writer ${writer}`)
        const outcomes = await Promise.all(writers.map((writer) => create(location, writer)))
        const winners = writers.filter((_, at) => outcomes[at] === 'applied')
        assert.equal(winners.length, 1, outcomes.join())
        assert.equal(await text(location), winners[0])
      }
    })

    test('takes an empty body for an object', async () => {
      const { store, at } = place()
      assert.equal(await create(`${at}/empty`, ''), 'applied')
      assert.equal(await text(`${at}/empty`), '')
      assert.equal(await store.size(`${at}/empty`), 0)
      assert.equal((await store.readRange(`${at}/empty`, 0, 10))?.length, 0)
    })

    test('says of an object that is not there that it is not there', async () => {
      const { store, at } = place()
      assert.equal(await store.read(`${at}/none`), undefined)
      assert.equal(await store.readRange(`${at}/none`, 0, 4), undefined)
      assert.equal(await store.readRange(`${at}/none`, 4, 4), undefined)
      assert.equal(await store.size(`${at}/none`), undefined)
      assert.deepEqual(await store.list(`${at}/`), [])
      await store.remove(`${at}/none`)
    })

    test('reads ranges, and fewer bytes only where the object ends', async () => {
      const { store, at } = place()
      await create(`${at}/digits`, '0123456789')
      const range = async (start: number, end: number): Promise<string> =>
        Buffer.from((await store.readRange(`${at}/digits`, start, end)) ?? []).toString()
      assert.equal(await range(0, 4), '0123')
      assert.equal(await range(3, 10), '3456789')
      assert.equal(await range(8, 100), '89')
      assert.equal(await range(10, 20), '')
      assert.equal(await range(50, 60), '')
      assert.equal(await range(5, 5), '')
    })

    test('writes a small object front to back and shows it only when it is finished', async () => {
      const { store, at } = place()
      const writer = await store.open(`${at}/data/small`)
      const reused = Buffer.from('abc')
      await writer.write(reused)
      reused.write('def')
      await writer.write(reused)
      assert.equal(await store.read(`${at}/data/small`), undefined)
      assert.deepEqual(await visible(`${at}/`), [])
      assert.equal(await writer.finish(), 6)
      assert.equal(await text(`${at}/data/small`), 'abcdef')
      await writer.abandon()
      assert.equal(await text(`${at}/data/small`), 'abcdef')
    })

    test('writes an object of many megabytes, whatever the pieces', async () => {
      const { store, at } = place()
      const body = pattern(21_000_003)
      const writer = await store.open(`${at}/data/large`)
      const buffer = Buffer.alloc(1_300_001)
      let from = 0
      for (let piece = 0; from < body.length; piece += 1) {
        const end = Math.min(body.length, from + (piece === 3 ? 1 : buffer.length))
        const length = body.copy(buffer, 0, from, end)
        await writer.write(buffer.subarray(0, length))
        buffer.fill(0xff)
        from = end
      }
      assert.equal(await store.size(`${at}/data/large`), undefined)
      assert.equal(await writer.finish(), body.length)
      assert.equal(await store.size(`${at}/data/large`), body.length)
      const read = await store.read(`${at}/data/large`)
      assert.ok(read !== undefined && Buffer.compare(body, read) === 0, 'the bytes are the same')
      const seam = await store.readRange(`${at}/data/large`, (8 << 20) - 5, (8 << 20) + 5)
      assert.deepEqual(Buffer.from(seam ?? []), body.subarray((8 << 20) - 5, (8 << 20) + 5))
    })

    test('leaves nothing of an object that is abandoned, small or large', async () => {
      const { store, at } = place()
      for (const bytes of [10, 18_000_000]) {
        const writer = await store.open(`${at}/data/given-up-${bytes}`)
        await writer.write(pattern(bytes))
        await writer.abandon()
        await writer.abandon()
        assert.equal(await store.read(`${at}/data/given-up-${bytes}`), undefined)
      }
      assert.deepEqual(await store.list(`${at}/`), [])
    })

    test('lists what is below a prefix, sorted, with sizes and times', async () => {
      const { store, at } = place()
      const names = ['a/2', 'a/1', 'a-b', 'a.b/x', 'b/c/d', 'B']
      for (const name of names) await create(`${at}/t/${name}`, name)
      await create(`${at}/t2`, 'beside')
      const entries = await store.list(`${at}/t/`)
      assert.deepEqual(
        entries.map((entry) => entry.location),
        names.map((name) => `${at}/t/${name}`).sort(),
      )
      for (const { location, bytes, modifiedAt } of entries) {
        assert.equal(bytes, location.length - `${at}/t/`.length)
        assert.ok(modifiedAt > 1_500_000_000_000, `${location} was written at ${modifiedAt}`)
      }
    })

    test('shows an object in the list as soon as it is created, and not once it is removed', async () => {
      const { store, at } = place()
      await create(`${at}/l/one`, '1')
      assert.equal((await store.list(`${at}/l/`)).length, 1)
      await store.remove(`${at}/l/one`)
      await store.remove(`${at}/l/one`)
      assert.deepEqual(await store.list(`${at}/l/`), [])
      assert.equal(await create(`${at}/l/one`, 'again'), 'applied')
      assert.equal(await text(`${at}/l/one`), 'again')
    })

    test('replaces a hint', async () => {
      const { store, at } = place()
      await create(`${at}/v1`, 'makes the folder')
      await store.putHint(`${at}/version-hint.text`, Buffer.from('1'))
      await store.putHint(`${at}/version-hint.text`, Buffer.from('22'))
      assert.equal(await text(`${at}/version-hint.text`), '22')
    })

    test('keeps names with spaces, signs and letters of any script apart', async () => {
      const { store, at } = place()
      const names = ['a b', 'a+b', 'k=v', '100~25', "q'uote", 'a&b', 'ü-日本', 'a,b@c(d)', 'x%20y']
      for (const name of names) assert.equal(await create(`${at}/n/${name}`, name), 'applied')
      for (const name of names) assert.equal(await text(`${at}/n/${name}`), name)
      const listed = await store.list(`${at}/n/`)
      assert.deepEqual(
        listed.map(({ location }) => location),
        names.map((name) => `${at}/n/${name}`).sort(),
      )
    })
  })
}

/** Bytes that differ at every place a part could be swapped, doubled or lost. */
export function pattern(bytes: number): Buffer {
  const body = Buffer.alloc(bytes)
  for (let at = 0; at + 4 <= bytes; at += 4) body.writeUInt32LE(Math.imul(at, 2654435761) >>> 0, at)
  return body
}
