import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isSluiceError } from '../../../src/core/errors.ts'
import { formatType } from '../../../src/core/schema/format-type.ts'
import { parseType } from '../../../src/core/schema/parse-type.ts'

describe('parseType', () => {
  const read: readonly (readonly [string, string])[] = [
    ['bigint not null', 'BIGINT NOT NULL'],
    ['TIMESTAMP', 'TIMESTAMP(6)'],
    ['TIMESTAMP_LTZ', 'TIMESTAMP_LTZ(6)'],
    ['TIME', 'TIME(0)'],
    ['DECIMAL', 'DECIMAL(10, 0)'],
    ['DECIMAL(5)', 'DECIMAL(5, 0)'],
    ['DECIMAL ( 38 , 38 )', 'DECIMAL(38, 38)'],
    ['CHAR(3)', 'CHAR(3)'],
    ['ARRAY<ARRAY<INT NOT NULL> NOT NULL>', 'ARRAY<ARRAY<INT NOT NULL> NOT NULL>'],
    ['MAP<STRING NOT NULL,DOUBLE>', 'MAP<STRING NOT NULL, DOUBLE>'],
    ['ROW<a INT, `b c` ROW<`x``y` DATE>>', 'ROW<a INT, `b c` ROW<`x``y` DATE>>'],
  ]
  for (const [text, formatted] of read) {
    test(`reads ${text}, and its text again`, () => {
      assert.equal(formatType(parseType(text)), formatted)
      assert.deepEqual(parseType(formatted), parseType(text))
    })
  }

  const refused: readonly (readonly [string, string, number])[] = [
    ['BIGNIT', 'type "BIGNIT" is not known. Did you mean BIGINT?', 0],
    ['ARRAY<VARCHAR>', 'type "VARCHAR" is called STRING in Fluss', 6],
    ['DECIMAL(39)', 'precision of DECIMAL is 39, allowed are 1 to 38', 0],
    ['DECIMAL(3, 4)', 'scale of DECIMAL is 4, allowed are 0 to 3', 0],
    ['TIMESTAMP(10)', 'precision of TIMESTAMP is 10, allowed are 0 to 9', 0],
    ['CHAR(0)', 'length of CHAR is 0, allowed are 1 to 2147483647', 0],
    ['ARRAY<INT', '">" expected in "ARRAY<INT", its end found', 9],
    ['INT NULL', 'type "INT NULL" goes on with "NULL" after its end', 4],
    ['ROW<a INT, a INT>', 'field "a" appears twice in ROW', 11],
    ['', 'type expected in "", its end found', 0],
    ['MAP<INT>', '"," expected in "MAP<INT>", ">" found', 7],
  ]
  for (const [text, message, at] of refused) {
    test(`refuses ${text}`, () => {
      assert.throws(
        () => parseType(text),
        (error) => {
          assert.ok(isSluiceError(error, 'SCHEMA_UNSUPPORTED'))
          assert.equal(error.message, message)
          assert.equal(error.details['at'], at)
          return true
        },
      )
    })
  }

  test('refuses what is nested too deep', () => {
    assert.throws(() => parseType(`${'ARRAY<'.repeat(40)}INT${'>'.repeat(40)}`), {
      message: 'type is nested deeper than 32',
    })
  })
})
