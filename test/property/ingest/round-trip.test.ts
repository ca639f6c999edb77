import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { batchToRows, rowsToBatch } from '../../../src/core/columns/rows.ts'
import { takeBatch } from '../../../src/core/columns/take.ts'
import { dateText } from '../../../src/core/values/temporal.ts'
import { fieldsOf, read } from '../../unit/ingest/support.ts'

const day = 86_400_000_000n
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
const text = fc.string({ unit: 'grapheme', maxLength: 12 })
const days = fc.integer({ min: -719_162, max: 2_932_896 })
const micros = fc.bigInt({ min: -62_135_596_800_000_000n, max: 253_402_300_799_999_999n })
const decimal = fc
  .tuple(fc.bigInt({ min: -(10n ** 12n) + 1n, max: 10n ** 12n - 1n }))
  .map(([value]) => {
    const digits = (value < 0n ? -value : value).toString().padStart(4, '0')
    return `${value < 0n ? '-' : ''}${digits.slice(0, -3)}.${digits.slice(-3)}`
  })

/** Micros as ISO text, by division alone. */
function isoText(value: bigint, zone: string): string {
  const inDay = ((value % day) + day) % day
  const date = dateText(Number((value - inDay) / day))
  const two = (part: bigint): string => String(part).padStart(2, '0')
  const seconds = inDay / 1_000_000n
  const fraction = String(inDay % 1_000_000n).padStart(6, '0')
  return `${date}T${two(seconds / 3600n)}:${two((seconds / 60n) % 60n)}:${two(seconds % 60n)}.${fraction}${zone}`
}

const columns = {
  big: 'BIGINT',
  int: 'INT',
  tiny: 'TINYINT',
  flag: 'BOOLEAN',
  double: 'DOUBLE',
  text: 'STRING',
  decimal: 'DECIMAL(12, 3)',
  bytes: 'BYTES',
  date: 'DATE',
  local: 'TIMESTAMP(6)',
  instant: 'TIMESTAMP_LTZ(6)',
}
const fields = fieldsOf(columns)
const maybe = <T>(values: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(values, { freq: 4 })
const row = fc.record({
  big: maybe(int64),
  int: maybe(fc.integer()),
  tiny: maybe(fc.integer({ min: -128, max: 127 })),
  flag: maybe(fc.boolean()),
  double: maybe(
    fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => !Object.is(value, -0)),
  ),
  text: maybe(text),
  decimal: maybe(decimal),
  bytes: maybe(fc.uint8Array({ maxLength: 9 })),
  date: maybe(days),
  local: maybe(micros),
  instant: maybe(micros),
})
type Sample = typeof row extends fc.Arbitrary<infer T> ? T : never

/** A double as a number with a fraction or an exponent, since integers beyond 2^53 are refused. */
const doubleText = (value: number): string =>
  Number.isInteger(value) && Math.abs(value) > 2 ** 53 ? value.toExponential() : String(value)

/** The texts of a row's values, independent of the code under test. */
function texts(value: Sample): Record<string, string | null> {
  const some = <T>(part: T | null, write: (part: T) => string): string | null =>
    part === null ? null : write(part)
  return {
    big: some(value.big, String),
    int: some(value.int, String),
    tiny: some(value.tiny, String),
    flag: some(value.flag, String),
    double: some(value.double, doubleText),
    text: value.text,
    decimal: value.decimal,
    bytes: some(value.bytes, (bytes) => Buffer.from(bytes).toString('base64')),
    date: some(value.date, dateText),
    local: some(value.local, (at) => isoText(at, '')),
    instant: some(value.instant, (at) => isoText(at + 7_200_000_000n, '+02:00')),
  }
}

const bare = new Set(['big', 'int', 'tiny', 'flag', 'double', 'decimal'])
const latest = 253_402_300_799_999_999n - 7_200_000_000n
const writable = (value: Sample): boolean => value.instant === null || value.instant <= latest

describe('text to columns and back', () => {
  test('NDJSON gives the rows it was written from, in any field order and any chunks', async () => {
    const shuffled = fc.shuffledSubarray(Object.keys(columns), { minLength: 11 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(row.filter(writable), { maxLength: 20 }),
        shuffled,
        fc.integer({ min: 1, max: 300 }),
        async (rows, order, chunk) => {
          const lines = rows.map((each) => {
            const written = texts(each)
            const members = order.map((name) => {
              const part = written[name] ?? null
              return `${JSON.stringify(name)}:${part === null || bare.has(name) ? String(part) : JSON.stringify(part)}`
            })
            return `{${members.join(' , ')}}\n`
          })
          const found = await read(lines.join(''), {
            fields,
            chunk,
            limits: { batchRecordsMax: 7 },
          })
          assert.deepEqual(
            found.rows,
            rows.map((each) => ({ ...each })),
          )
        },
      ),
      { numRuns: 300 },
    )
  })

  test('CSV gives the rows it was written from, however fields are quoted', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(row.filter(writable), fc.boolean()), { maxLength: 20 }),
        fc.integer({ min: 1, max: 300 }),
        async (rows, chunk) => {
          const lines = rows.map(([each, quoteAll]) =>
            Object.values(texts(each))
              .map((part) => {
                if (part === null) return ''
                const needed = part === '' || /[",\r\n]/.test(part) || quoteAll
                return needed ? `"${part.replaceAll('"', '""')}"` : part
              })
              .join(','),
          )
          const csv = [Object.keys(columns).join(','), ...lines].join('\r\n')
          const found = await read(csv, { name: 'a.csv', fields, chunk })
          assert.deepEqual(
            found.rows,
            rows.map(([each]) => ({ ...each })),
          )
        },
      ),
      { numRuns: 300 },
    )
  })

  test('rows become columns and the same rows again', () => {
    const nested = fieldsOf({
      list: 'ARRAY<BIGINT>',
      map: 'MAP<STRING, ARRAY<STRING>>',
      row: 'ROW<a INT, b ROW<c BYTES>>',
    })
    const plain = { noNullPrototype: true } as const
    const nestedRow = fc.record(
      {
        list: maybe(fc.array(maybe(int64), { maxLength: 4 })),
        map: maybe(
          fc
            .array(fc.tuple(text, maybe(fc.array(text, { maxLength: 2 }))), { maxLength: 3 })
            .map((entries) => new Map(entries)),
        ),
        row: maybe(
          fc.record(
            {
              a: maybe(fc.integer()),
              b: maybe(fc.record({ c: maybe(fc.uint8Array({ maxLength: 3 })) }, plain)),
            },
            plain,
          ),
        ),
      },
      plain,
    )
    fc.assert(
      fc.property(
        fc.array(nestedRow, { maxLength: 12 }),
        fc.array(fc.nat(), { maxLength: 20 }),
        (rows, picks) => {
          const batch = rowsToBatch(nested, rows)
          assert.deepEqual(batchToRows(nested, batch), rows)
          if (rows.length === 0) return
          const indices = Int32Array.from(picks, (pick) => pick % rows.length)
          const taken = takeBatch(batch, indices, indices.length)
          assert.deepEqual(
            batchToRows(nested, taken),
            Array.from(indices, (index) => rows[index]),
          )
        },
      ),
      { numRuns: 300 },
    )
  })

  test('scalar rows are gathered as they are', () => {
    fc.assert(
      fc.property(
        fc.array(row, { minLength: 1, maxLength: 40 }),
        fc.array(fc.nat(), { maxLength: 40 }),
        (rows, picks) => {
          const batch = rowsToBatch(fields, rows)
          const indices = Int32Array.from(picks, (pick) => pick % rows.length)
          const taken = takeBatch(batch, indices, indices.length)
          assert.deepEqual(
            batchToRows(fields, taken),
            Array.from(indices, (index) => ({ ...rows[index] })),
          )
        },
      ),
      { numRuns: 200 },
    )
  })
})
