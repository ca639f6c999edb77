import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  BufferType,
  Data,
  DateMillisecond,
  Dictionary,
  Field,
  FixedSizeList,
  Float16,
  Float32,
  Int16,
  Int32,
  Int64,
  LargeUtf8,
  List,
  makeVector,
  RecordBatch,
  Schema,
  Struct,
  TimeMillisecond,
  TimestampMillisecond,
  TimestampNanosecond,
  TimestampSecond,
  type DataType as ArrowType,
  Uint16,
  Uint32,
  Uint64,
  Uint8,
  Utf8,
  Vector,
  vectorFromArray,
  Binary,
  DateDay,
  makeData,
} from 'apache-arrow'
import { fromArrow } from '../../../src/core/columns/arrow.ts'
import { isSluiceError } from '../../../src/core/errors.ts'
import { rowsOf } from '../../property/parquet/rows.ts'

function batchOf(data: Data, nullable = true): RecordBatch {
  const fields = [new Field<ArrowType>('a', data.type, nullable)]
  return new RecordBatch(
    new Schema(fields),
    new Data(new Struct(fields), 0, data.length, 0, undefined, [data]),
  )
}

function take(data: Data, allowPrecisionLoss: readonly string[] = []): [string, unknown[]] {
  const { fields, batch } = fromArrow(batchOf(data), {
    allowPrecisionLoss: new Set(allowPrecisionLoss),
  })
  return [fields[0]!.type.kind, rowsOf(batch).map(([cell]) => cell)]
}

function dataOf(type: ArrowType, values: readonly unknown[]): Data {
  return vectorFromArray(values, type).data[0]!
}

const refusals: readonly (readonly [string, Data, string])[] = [
  [
    'nanoseconds',
    makeData({ type: new TimestampNanosecond(), data: BigInt64Array.of(1n) }),
    'SCHEMA_UNSUPPORTED',
  ],
]

test('integers are widened until they hold every value of the Arrow type', () => {
  assert.deepEqual(take(dataOf(new Uint8(), [0, 255, null])), ['smallint', [0, 255, null]])
  assert.deepEqual(take(dataOf(new Int16(), [-32768, 32767])), ['smallint', [-32768, 32767]])
  assert.deepEqual(take(dataOf(new Uint16(), [65535])), ['int', [65535]])
  assert.deepEqual(take(dataOf(new Uint32(), [4294967295, 1])), ['bigint', [4294967295n, 1n]])
  const all = 2n ** 64n - 1n
  assert.deepEqual(take(dataOf(new Uint64(), [all, 0n, null])), ['decimal', [all, 0n, null]])
  const most = 2n ** 63n - 1n
  assert.deepEqual(take(dataOf(new Int64(), [most, -most - 1n])), ['bigint', [most, -most - 1n]])
})

test('half floats keep their value', () => {
  const data = makeData({ type: new Float16(), data: Uint16Array.of(0x3c00, 0xc000, 0x7c00, 1) })
  assert.deepEqual(take(data), ['float', [1, -2, Infinity, 2 ** -24]])
})

test('seconds and milliseconds become microseconds, before 1970 too', () => {
  const seconds = makeData({ type: new TimestampSecond(), data: BigInt64Array.of(-1n, 5n) })
  assert.deepEqual(take(seconds), ['timestamp', [-1_000_000n, 5_000_000n]])
  const millis = makeData({ type: new TimestampMillisecond('UTC'), data: BigInt64Array.of(-1n) })
  assert.deepEqual(take(millis), ['timestamp_ltz', [-1000n]])
  const times = makeData({ type: new TimeMillisecond(), data: Int32Array.of(86_399_999) })
  assert.deepEqual(take(times), ['time', [86_399_999_000n]])
})

test('nanoseconds are cut downwards where the loss is allowed, and counted', () => {
  const data = makeData({
    type: new TimestampNanosecond(),
    data: BigInt64Array.of(-1n, 1999n, 3000n),
  })
  assert.deepEqual(take(data, ['a']), ['timestamp', [-1n, 1n, 3n]])
  assert.equal(fromArrow(batchOf(data), { allowPrecisionLoss: new Set(['a']) }).cutValues, 2)
})

test('nanoseconds that are refused say how a column may be cut, and a column allows it at any depth', () => {
  const type = new TimestampNanosecond('UTC')
  const data = makeData({ type, data: BigInt64Array.of(1999n) })
  assert.throws(
    () => take(data),
    (error) =>
      isSluiceError(error, 'SCHEMA_UNSUPPORTED') &&
      error.fix ===
        'declare it in --schema as "type": "TIMESTAMP_LTZ(9)" with "allow_precision_loss": true: ' +
          'its values are then cut to microseconds',
  )
  const list = makeData({
    type: new FixedSizeList(1, new Field('item', type, true)),
    length: 1,
    child: data,
  })
  assert.throws(
    () => take(list),
    (error) =>
      isSluiceError(error, 'SCHEMA_UNSUPPORTED') &&
      /^the Arrow column a\.element of type /.test(error.message) &&
      /^declare its column in --schema with "allow_precision_loss": true/.test(error.fix ?? ''),
  )
  assert.deepEqual(take(list, ['a']), ['array', [[1n]]])
})

test('dates in milliseconds are days, and parts of a day are refused', () => {
  const day = 86_400_000n
  const whole = makeData({ type: new DateMillisecond(), data: BigInt64Array.of(-day, 3n * day) })
  assert.deepEqual(take(whole), ['date', [-1, 3]])
  const part = makeData({ type: new DateMillisecond(), data: BigInt64Array.of(1n) })
  assert.throws(
    () => take(part),
    (error) => isSluiceError(error, 'RECORD_REFUSED'),
  )
  assert.deepEqual(take(makeData({ type: new DateDay(), data: Int32Array.of(-5) })), ['date', [-5]])
})

test('a dictionary is replaced by its values', () => {
  const type = new Dictionary(new Utf8(), new Int32())
  const vector = vectorFromArray(['b', 'a', null, 'b'], type)
  assert.deepEqual(take(vector.data[0]!), ['string', ['b', 'a', null, 'b']])
  const dictionary = makeVector(dataOf(new Utf8(), ['only']))
  const outside = new Data(type, 0, 1, 0, { [BufferType.DATA]: Int32Array.of(7) }, [], dictionary)
  assert.throws(
    () => take(outside),
    (error) => isSluiceError(error, 'INPUT_UNREADABLE'),
  )
})

test('lists of a fixed size are lists', () => {
  const child = makeData({ type: new Float32(), data: Float32Array.of(1, 2, 3, 4) })
  const type = new FixedSizeList(2, new Field('item', new Float32(), true))
  const data = makeData({ type, length: 2, child })
  assert.deepEqual(take(data), [
    'array',
    [
      [1, 2],
      [3, 4],
    ],
  ])
  assert.deepEqual(take(data.slice(1, 1)), ['array', [[3, 4]]])
})

test('large text has its offsets narrowed', () => {
  assert.deepEqual(take(dataOf(new LargeUtf8(), ['é', null, ''])), ['string', ['é', null, '']])
})

test('malformed memory is refused before it is read', () => {
  const values = new TextEncoder().encode('abc')
  const bad: readonly (readonly [string, Data])[] = [
    [
      'descending',
      makeData({ type: new Binary(), valueOffsets: Int32Array.of(0, 3, 1), data: values }),
    ],
    ['outside', makeData({ type: new Binary(), valueOffsets: Int32Array.of(0, 4), data: values })],
    [
      'negative',
      makeData({ type: new Binary(), valueOffsets: Int32Array.of(-1, 3), data: values }),
    ],
    ['short', makeData({ type: new Int32(), length: 5, data: Int32Array.of(1) })],
    ['bitmap', new Data(new Int32(), 0, 20, -1, { 1: new Int32Array(20), 2: new Uint8Array(1) })],
  ]
  for (const [name, data] of bad) {
    assert.throws(
      () => take(data),
      (error) => isSluiceError(error, 'INPUT_UNREADABLE'),
      name,
    )
  }
})

test('text that is not UTF-8 is refused, also when only a boundary is wrong', () => {
  const whole = new TextEncoder().encode('é')
  const split = makeData({ type: new Utf8(), valueOffsets: Int32Array.of(0, 1, 2), data: whole })
  assert.throws(
    () => take(split),
    (error) => isSluiceError(error, 'RECORD_REFUSED'),
  )
})

for (const [name, data, code] of refusals) {
  test(`${name} has no column type and is refused by name`, () => {
    assert.throws(
      () => take(data),
      (error) => isSluiceError(error) && error.code === code && error.message.includes('column a'),
    )
  })
}

test('values that do not fit are told by their rows, through lists and dictionaries', () => {
  const told = (data: Data): readonly (readonly [number, string, string])[] => {
    const found: [number, string, string][] = []
    fromArrow(batchOf(data), {
      onUnfit: (row, reason, column) => found.push([row, reason, column]),
    })
    return found
  }
  const day = 86_400_000n
  const parts = makeData({
    type: new DateMillisecond(),
    // The first lies before every list, the last behind them.
    data: BigInt64Array.of(1n, day, 2n, 3n, day, 4n),
  })
  const type = new List(new Field<ArrowType>('item', parts.type, true))
  const valueOffsets = Int32Array.of(1, 2, 2, 4, 5)
  const lists = makeData({ type, valueOffsets, child: parts })
  assert.deepEqual(told(lists), [
    [2, 'a date in the column a.element is not a whole day: 2 ms', 'a'],
    [2, 'a date in the column a.element is not a whole day: 3 ms', 'a'],
  ])
  const nulls = { nullCount: 1, nullBitmap: Uint8Array.of(0b1011) }
  assert.deepEqual(told(makeData({ type, valueOffsets, child: parts, ...nulls })), [])

  const words = makeData({
    type: new Utf8(),
    valueOffsets: Int32Array.of(0, 1, 2, 3),
    data: Uint8Array.of(0x61, 0xff, 0x62),
  })
  const encoded = makeData({
    type: new Dictionary(new Utf8(), new Int32()),
    data: Int32Array.of(0, 1, 2, 1),
    dictionary: new Vector([words]),
  })
  const bad = 'text in the column a (dictionary) is not UTF-8'
  assert.deepEqual(told(encoded), [
    [1, bad, 'a'],
    [3, bad, 'a'],
  ])
  assert.throws(
    () => fromArrow(batchOf(encoded)),
    (error) => isSluiceError(error, 'RECORD_REFUSED') && error.message === bad,
  )
})
