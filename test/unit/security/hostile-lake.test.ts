import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import fc from 'fast-check'
import { fileCatalog } from '../../../src/catalog/iceberg/file-catalog.ts'
import { readAvro } from '../../../src/catalog/iceberg/format/avro.ts'
import { scanTable } from '../../../src/catalog/iceberg/scan.ts'
import { parquetBatches } from '../../../src/core/columns/parquet-in.ts'
import { isSluiceError } from '../../../src/core/errors.ts'
import { parseJson } from '../../../src/core/json64.ts'
import { systemClock, systemIds } from '../../../src/core/system.ts'
import { readDataFile } from '../../../src/catalog/iceberg/read-data-file.ts'
import { Lake, type Original, tieredLake } from '../verify/support.ts'

/** Far more than any answer takes, far less than a hang. */
const millisMax = 10_000

let original: Original
before(async () => {
  original = await tieredLake()
})

/** Everything a reader and a writer look at. */
async function readAll(lake: Lake): Promise<number> {
  const store = lake.store()
  const scan = await scanTable(store, lake.folder)
  let rows = 0
  for (const file of scan.files) {
    for await (const batch of readDataFile(store, file.resolved, scan.fields)) rows += batch.length
  }
  const catalog = fileCatalog({ store, warehouse: lake.root, clock: systemClock, ids: systemIds })
  await (await catalog.open(['demo', 't']))?.load()
  return rows
}

describe('S-15 a lake with bytes that someone changed', () => {
  test('is read, or refused by an error with a code, in any case soon', async () => {
    assert.equal(await readAll(new Lake(original)), 100)
    const names = [...original.files.keys()].sort()
    const spoil = fc.record({
      file: fc.constantFrom(...names),
      place: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
      bytes: fc.uint8Array({ minLength: 1, maxLength: 16 }),
      cut: fc.boolean(),
    })
    const refused = new Set<string>()
    await fc.assert(
      fc.asyncProperty(spoil, async ({ file, place, bytes, cut }) => {
        const lake = new Lake(original)
        const body = Uint8Array.from(lake.read(file))
        const from = Math.floor(place * body.length)
        body.set(bytes.subarray(0, body.length - from), from)
        lake.files.set(file, cut ? body.subarray(0, from + 1) : body)
        const startedAt = performance.now()
        try {
          await readAll(lake)
        } catch (error) {
          assert.ok(isSluiceError(error), `${file}: ${String(error)}`)
          assert.notEqual(error.code, 'INVARIANT_BROKEN', `${file}: ${error.message}`)
          refused.add(error.code)
        }
        assert.ok(performance.now() - startedAt < millisMax, file)
      }),
      { numRuns: 250 },
    )
    assert.ok(refused.has('DATA_CORRUPT'))
  })
})

describe('S-06 a lake whose metadata leads elsewhere', () => {
  const elsewhere = ['file:///etc', 's3://other/lake', 'http://169.254.169.254/latest', '../../etc']

  test('is not written to: a table says where it lies, and it must lie there', async () => {
    for (const location of elsewhere) {
      const lake = new Lake(original)
      lake.edit((metadata) => {
        metadata['location'] = location
      })
      const store = lake.store()
      const catalog = fileCatalog({
        store,
        warehouse: lake.root,
        clock: systemClock,
        ids: systemIds,
      })
      const table = await catalog.open(['demo', 't'])
      await assert.rejects(async () => table?.load(), { code: 'LOCATION_REFUSED' })
    }
  })

  test('is not read from another store than its own, whatever its files are called', async () => {
    const { s3Store } = await import('../../../src/catalog/store/s3-store.ts')
    const { localStore } = await import('../../../src/catalog/store/local-store.ts')
    const { seededChance } = await import('../../../src/core/system.ts')
    const ports = { clock: systemClock, chance: seededChance(1), ids: systemIds }
    const bucket = s3Store('mine', { endpoint: 'http://127.0.0.1:9', region: 'x' }, ports)
    for (const location of [
      'file:///etc/passwd',
      's3://other/key',
      'http://169.254.169.254/',
      '/etc/passwd',
    ]) {
      await assert.rejects(bucket.read(location), { code: 'LOCATION_REFUSED' }, location)
      await assert.rejects(bucket.readRange(location, 0, 9), { code: 'LOCATION_REFUSED' })
    }
    const disk = localStore(systemIds)
    for (const location of ['s3://other/key', 'http://169.254.169.254/', 'ftp://h/x']) {
      await assert.rejects(disk.read(location), { code: 'LOCATION_REFUSED' }, location)
    }
  })
})

describe('S-08 S-15 what is read has bounds', () => {
  const refusal = async (work: () => unknown): Promise<string> => {
    const startedAt = performance.now()
    const error: unknown = await Promise.resolve()
      .then(work)
      .catch((thrown: unknown) => thrown)
    assert.ok(isSluiceError(error), String(error))
    assert.ok(performance.now() - startedAt < millisMax)
    return error.code
  }

  test('JSON: in bytes, in depth, in digits', async () => {
    const limits = { name: 'x.json' }
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
    assert.equal(await refusal(() => parseJson(deep, limits)), 'DATA_CORRUPT')
    assert.equal(await refusal(() => parseJson('9'.repeat(1_000_000), limits)), 'DATA_CORRUPT')
    const small = { name: 'x.json', bytesMax: 10 }
    assert.equal(await refusal(() => parseJson(`"${'x'.repeat(20)}"`, small)), 'DATA_CORRUPT')
  })

  test('Avro: what a block says of its length is no reason to allocate it', async () => {
    const list = [...original.files].find(([name]) => /\/snap-[^/]*\.avro$/.test(name))
    assert.ok(list !== undefined)
    const [name, body] = list
    const sync = Buffer.from(body).subarray(-16)
    const header = Buffer.from(body).indexOf(sync) + 16
    // A zigzag number of 2^62 records, or of as many bytes.
    const huge = Buffer.from([0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01])
    for (const block of [
      Buffer.concat([huge, Buffer.from([2, 0])]),
      Buffer.concat([Buffer.from([2]), huge]),
    ]) {
      const forged = Buffer.concat([Buffer.from(body).subarray(0, header), block, sync])
      assert.equal(await refusal(() => readAvro(forged, name)), 'DATA_CORRUPT')
    }
  })

  test('Parquet: a footer is no longer than its file', async () => {
    const file = [...original.files].find(([name]) => name.endsWith('.parquet'))
    assert.ok(file !== undefined)
    for (const length of [0xffffffff, 0x7fffffff, 1_000_000, 0]) {
      const forged = Buffer.from(file[1])
      forged.writeUInt32LE(length, forged.length - 8)
      const code = await refusal(async () => {
        for await (const batch of parquetBatches(new Blob([forged]), 'x.parquet'))
          assert.fail(String(batch.numRows))
      })
      assert.equal(code, 'DATA_CORRUPT')
    }
  })
})

describe('S-13 keys that are names of JavaScript', () => {
  test('are data, in JSON and in table properties', () => {
    const text =
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":2}},"toString":3}'
    const parsed = parseJson(text, { name: 'x.json' })
    assert.deepEqual(Object.keys(parsed as object), ['__proto__', 'constructor', 'toString'])
    assert.equal(Object.getPrototypeOf(parsed), null)
    assert.equal(({} as Record<string, unknown>)['polluted'], undefined)
  })

  test('do not reach prototypes by way of metadata', async () => {
    const lake = new Lake(original)
    const metadata = Buffer.from(lake.read(lake.metadataAt)).toString()
    const hostile = metadata
      .replace('"properties":{', '"properties":{"__proto__":"polluted","constructor":"x",')
      .replace('"summary":{', '"summary":{"__proto__":"polluted",')
    assert.notEqual(hostile, metadata)
    lake.files.set(lake.metadataAt, Buffer.from(hostile))
    const scan = await scanTable(lake.store(), lake.folder)
    assert.equal(scan.properties.get('__proto__'), 'polluted')
    assert.equal(({} as Record<string, unknown>)['polluted'], undefined)
    assert.equal(typeof Object.prototype.constructor, 'function')
  })
})
