import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatDuration, parseDuration } from '../../../src/core/duration.ts'
import { isSluiceError } from '../../../src/core/errors.ts'

const day = 86_400_000

test('T-27 reads durations and refuses bananas', () => {
  for (const [text, expected] of [
    ['5min', 300_000],
    ['PT5M', 300_000],
    ['30s', 30_000],
    ['1h30min', 5_400_000],
  ] as const) {
    assert.equal(parseDuration(text, '--freshness'), expected, text)
  }
  for (const text of ['0s', '-1s', '5 bananas']) {
    assert.throws(
      () => parseDuration(text, '--freshness'),
      (error) => isSluiceError(error, 'CONFIG_INVALID') && error.fix === '30s, 5min, 1h30min, PT5M',
      text,
    )
  }
  assert.throws(() => parseDuration('5 bananas', '--freshness'), {
    message: '--freshness "5 bananas" is not a duration',
  })
})

test('reads each unit, long forms, spaces before the unit and ISO 8601', () => {
  for (const [text, expected] of [
    ['250ms', 250],
    ['3 min', 180_000],
    ['3m', 180_000],
    ['1 minute', 60_000],
    ['10 seconds', 10_000],
    ['1d', day],
    ['1d2h3min4s5ms', day + 7_200_000 + 180_000 + 4005],
    ['1 h 30 min', 5_400_000],
    ['P1D', day],
    ['P1DT1H1M1S', day + 3_661_000],
    ['pt90s', 90_000],
    ['365d', 365 * day],
  ] as const) {
    assert.equal(parseDuration(text, '--freshness'), expected, text)
  }
})

test('refuses what is no duration, too long, or out of order', () => {
  for (const text of [
    '',
    ' ',
    '5',
    '1.5s',
    '+1s',
    '1s1s',
    '30s1h',
    's',
    '5µs',
    'P',
    'PT',
    'P1',
    'P1M',
    'PT1.5S',
    'P1Y',
    '366d',
    '99999999999999h',
    '1h-30min',
    '1,5 s',
    '١s',
  ]) {
    assert.throws(
      () => parseDuration(text, '--freshness'),
      (error) => isSluiceError(error, 'CONFIG_INVALID'),
      text,
    )
  }
})

test('takes zero only where no wait is meant', () => {
  assert.equal(parseDuration('0s', '--shutdown-timeout', { zero: 'allowed' }), 0)
  assert.throws(() => parseDuration('PT0S', '--freshness'), {
    message: '--freshness "PT0S" is not a duration: it must be longer than zero',
  })
})

test('escapes and cuts what it repeats', () => {
  assert.throws(
    () => parseDuration(`\u001b[31m${'x'.repeat(200)}`, '--freshness'),
    (error) => {
      assert.ok(error instanceof Error)
      assert.ok(error.message.includes('\\x1b[31m'))
      assert.ok(error.message.length < 130)
      return true
    },
  )
})

test('formats what it reads back', () => {
  for (const ms of [1, 999, 1500, 60_000, 5_400_000, day, day + 1]) {
    assert.equal(parseDuration(formatDuration(ms), 'x'), ms)
  }
  assert.equal(formatDuration(180_000), '3min')
  assert.equal(formatDuration(5_400_000), '1h30min')
})
