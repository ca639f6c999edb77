import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deflateRawSync } from 'node:zlib'
import fc from 'fast-check'
import {
  type AvroSchema,
  avroCodec,
  readAvro,
  writeAvro,
} from '../../../src/catalog/iceberg/format/avro.ts'
import { isSluiceError } from '../../../src/core/errors.ts'

const sync = '000102030405060708090a0b0c0d0e0f'
const record = (type: AvroSchema): AvroSchema => ({
  type: 'record',
  name: 'test',
  fields: [{ name: 'a', type, 'field-id': 7 }],
})

test('records have the bytes that the Avro specification gives', () => {
  const schema = {
    type: 'record',
    name: 'test',
    fields: [
      { name: 'a', type: 'long' },
      { name: 'b', type: 'string' },
    ],
  }
  const bytes = avroCodec(schema).encode({ a: 27n, b: 'foo' })
  assert.equal(Buffer.from(bytes).toString('hex'), '3606666f6f')
  const longs = new Map([
    [0n, '00'],
    [-1n, '01'],
    [1n, '02'],
    [-64n, '7f'],
    [64n, '8001'],
    [2n ** 63n - 1n, 'feffffffffffffffff01'],
    [-(2n ** 63n), 'ffffffffffffffffff01'],
  ])
  for (const [value, hex] of longs) {
    assert.equal(Buffer.from(avroCodec('long').encode(value)).toString('hex'), hex)
  }
})

test('every long survives, also as an optional field', () => {
  const codec = avroCodec(record(['null', 'long']))
  const longs = fc.option(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }))
  fc.assert(
    fc.property(fc.array(longs, { maxLength: 20 }), (values) => {
      const bytes = writeAvro(
        codec,
        values.map((a) => ({ a })),
        { metadata: new Map([['k', 'v']]), sync },
      )
      const file = readAvro(bytes, 'test')
      assert.deepEqual(
        file.records.map((each) => each['a']),
        values,
      )
      assert.equal(Buffer.from(file.metadata.get('k') ?? []).toString(), 'v')
    }),
  )
})

test('a block may be left as it is', () => {
  const codec = avroCodec(record('string'))
  const text = 'a'.repeat(100)
  const options = { metadata: new Map<string, string>(), sync, compression: 'null' } as const
  const file = readAvro(writeAvro(codec, [{ a: text }], options), 'test')
  assert.equal(Buffer.from(file.metadata.get('avro.codec') ?? []).toString(), 'null')
  assert.deepEqual(
    file.records.map((each) => each['a']),
    [text],
  )
  assert.ok(Buffer.from(writeAvro(codec, [{ a: text }], options)).includes(text))
})

test('the header keeps attributes that Avro does not know', () => {
  const { schema } = readAvro(
    writeAvro(avroCodec(record('int')), [], { metadata: new Map(), sync }),
    'x',
  )
  assert.deepEqual(schema, record('int'))
})

test('blocks without compression and metadata in sized blocks are read', () => {
  const text = (value: string): Buffer =>
    Buffer.concat([Buffer.from([value.length * 2]), Buffer.from(value)])
  const entry = Buffer.concat([text('avro.schema'), text('"string"')])
  const bytes = Buffer.concat([
    Buffer.from('Obj\u0001', 'latin1'),
    Buffer.from([0x01, entry.length * 2]), // -1 entry, then its size
    entry,
    Buffer.from([0]),
    Buffer.from(sync, 'hex'),
    Buffer.from([4, 10]), // 2 records, 5 bytes
    Buffer.from([2, 0x61, 4, 0x62, 0x63]),
    Buffer.from(sync, 'hex'),
  ])
  assert.deepEqual(readAvro(bytes, 'test').records, ['a', 'bc'])
})

test('a file cut at any byte is refused by name and place, or ends at a whole block', () => {
  const rows = Array.from({ length: 40 }, (_, index) => ({ a: BigInt(index) ** 9n }))
  const whole = writeAvro(avroCodec(record('long')), rows, { metadata: new Map(), sync })
  const headerEnd = readHeaderEnd(whole)
  for (let length = 0; length < whole.length; length += 1) {
    if (length === headerEnd) continue
    assert.throws(
      () => readAvro(whole.subarray(0, length), 'm0.avro'),
      (error) =>
        isSluiceError(error, 'DATA_CORRUPT') && /^m0\.avro: not readable/.test(error.message),
      `cut at ${String(length)}`,
    )
  }
})

test('damaged bytes never end in anything but DATA_CORRUPT', () => {
  const rows = Array.from({ length: 40 }, (_, index) => ({ a: `value ${String(index)}` }))
  const whole = writeAvro(avroCodec(record('string')), rows, { metadata: new Map(), sync })
  fc.assert(
    fc.property(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), (at, flip) => {
      const bytes = Uint8Array.from(whole)
      bytes[at] = (bytes[at] ?? 0) ^ flip
      try {
        readAvro(bytes, 'm0.avro')
      } catch (error) {
        assert.ok(isSluiceError(error, 'DATA_CORRUPT'), String(error))
      }
    }),
  )
})

test('a block that claims more records than it has bytes is refused', () => {
  const whole = writeAvro(avroCodec(record('null')), [], { metadata: new Map(), sync })
  const block = deflateRawSync(Buffer.alloc(0))
  const bytes = Buffer.concat([
    whole,
    Buffer.from([0xfe, 0xff, 0xff, 0xff, 0x07, block.length * 2]),
    block,
    Buffer.from(sync, 'hex'),
  ])
  assert.throws(() => readAvro(bytes, 'm0.avro'), { code: 'DATA_CORRUPT' })
})

/** A file without blocks is whole, so a cut just after the header cannot be seen. */
function readHeaderEnd(whole: Uint8Array): number {
  return Buffer.from(whole).indexOf(Buffer.from(sync, 'hex')) + 16
}
