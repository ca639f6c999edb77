import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  counted,
  cutText,
  displayWidth,
  escapeText,
  formatBytes,
  formatClock,
  formatCount,
  formatSeconds,
} from '../../../src/core/text.ts'

test('shows control, bidirectional and lone surrogate characters by their code', () => {
  assert.equal(escapeText('a\u001b[31m\n\u202eb\u0085'), 'a\\x1b[31m\\x0a\\u202eb\\x85')
  assert.equal(escapeText('\ud800x\udc00'), '\\ud800x\\udc00')
  assert.equal(escapeText('naïve 表 😀'), 'naïve 表 😀')
})

test('cuts by code points and never inside one', () => {
  assert.equal(cutText('a'.repeat(80)), 'a'.repeat(80))
  assert.equal(cutText('a'.repeat(81)), `${'a'.repeat(79)}…`)
  assert.equal(cutText('😀'.repeat(80)), '😀'.repeat(80))
  assert.equal(cutText('😀😀😀', 2), '😀…')
})

test('formats counts with all their digits', () => {
  assert.equal(formatCount(0), '0')
  assert.equal(formatCount(999), '999')
  assert.equal(formatCount(1000), '1,000')
  assert.equal(formatCount(9_223_372_036_854_775_807n), '9,223,372,036,854,775,807')
  assert.equal(counted(1n, 'record'), '1 record')
  assert.equal(counted(2000, 'record'), '2,000 records')
})

test('formats bytes by powers of 1000 and times by what a person needs', () => {
  for (const [bytes, text] of [
    [0, '0 B'],
    [999, '999 B'],
    [1000, '1.0 kB'],
    [61_204, '61 kB'],
    [446_166, '446 kB'],
    [999_600, '1.0 MB'],
    [48_000_000, '48 MB'],
    [1.5e12, '1.5 TB'],
  ] as const) {
    assert.equal(formatBytes(bytes), text)
  }
  for (const [seconds, text] of [
    [0.004, '0.00 s'],
    [0.06, '0.06 s'],
    [0.4, '0.4 s'],
    [27.1, '27.1 s'],
    [247, '4 min 07 s'],
    [7500, '2 h 05 min'],
  ] as const) {
    assert.equal(formatSeconds(seconds), text)
  }
  assert.equal(formatClock(23), '0:23')
  assert.equal(formatClock(3723), '1:02:03')
})

test('counts the columns of wide characters and of marks', () => {
  assert.equal(displayWidth('abc'), 3)
  assert.equal(displayWidth('表'), 2)
  assert.equal(displayWidth('e\u0301'), 1)
  assert.equal(displayWidth('😀'), 2)
})
