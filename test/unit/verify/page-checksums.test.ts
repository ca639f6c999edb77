import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import fc from 'fast-check'
import { parquetBatches } from '../../../src/core/columns/parquet-in.ts'
import { readFooter } from '../../../src/core/columns/parquet-groups.ts'
import { readFacts } from '../../../src/verify/data-file.ts'
import { at, kindsOf, Lake, type Original, tieredLake } from './support.ts'

const questions = { bucket: undefined, offset: undefined, hash: undefined, partition: undefined }
const plain = ['--table-property', 'iceberg.write.parquet.compression-codec=uncompressed']

let lakes: readonly Original[]
before(async () => {
  lakes = [await tieredLake(), await tieredLake([...plain, '--bucket-key', 'id'])]
})

/** The path of a data file of a lake, and its bytes. */
function dataFile(original: Original): { readonly location: string; readonly bytes: Uint8Array } {
  const lake = new Lake(original)
  const location = at(lake.dataFiles(at(lake.manifests(), 0)), 0)
  return { location, bytes: lake.read(location) }
}

async function valuesOf(bytes: Uint8Array): Promise<string> {
  let text = ''
  for await (const batch of parquetBatches(new Blob([new Uint8Array(bytes)]), 'the file')) {
    text += JSON.stringify(batch.toArray(), exact)
  }
  return text
}

function exact(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}

test('UNREADABLE: a value was changed so that its page decodes and its bounds hold', async () => {
  const original = at(lakes, 1)
  const { location, bytes } = dataFile(original)
  // Scores are quarters of the ids from 60 to 99.
  const before = Buffer.alloc(8)
  before.writeDoubleLE(20.25)
  const place = Buffer.from(bytes).indexOf(before)
  assert.ok(place > 0)
  const changed = Uint8Array.from(bytes)
  new DataView(changed.buffer).setFloat64(place, 20.75, true)
  assert.ok((await valuesOf(bytes)).includes('"score":20.25'))
  assert.ok((await valuesOf(changed)).includes('"score":20.75'))

  const lake = new Lake(original)
  lake.files.set(location, changed)
  const report = await lake.verify()
  assert.deepEqual(kindsOf(report), ['UNREADABLE'])
  const [fault] = report.faults
  assert.ok(location.endsWith(fault?.paths?.[0] ?? '-'))
  assert.match(
    fault?.detail ?? '',
    /the page of column "score" at byte \d+ has the checksum [\da-f]{8}, its bytes have [\da-f]{8}/,
  )
  assert.deepEqual((await lake.verify('files')).faults, [])
})

test('no bit of a row group can be flipped so that other values are read', async () => {
  const files = lakes.map((original) => dataFile(original).bytes)
  const values = await Promise.all(files.map(valuesOf))
  let caught = 0
  const flip = fc.record({
    file: fc.nat({ max: files.length - 1 }),
    place: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
    bit: fc.nat({ max: 7 }),
  })
  await fc.assert(
    fc.asyncProperty(flip, async ({ file, place, bit }) => {
      const bytes = Uint8Array.from(at(files, file))
      const { groups } = await readFooter(new Blob([bytes]))
      const { start, end } = at(groups, 0)
      const byte = start + Math.floor(place * (end - start))
      bytes[byte] = (bytes[byte] ?? 0) ^ (1 << bit)
      try {
        await readFacts(new Blob([bytes]), questions)
      } catch {
        caught += 1
        return
      }
      // Some bits of a header say nothing about the values.
      assert.equal(await valuesOf(bytes), at(values, file))
    }),
    { numRuns: 300 },
  )
  assert.ok(caught > 200, `${String(caught)} of 300 were caught`)
})
