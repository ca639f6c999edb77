import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSluiceError } from '../../../src/core/errors.ts'
import { formatSize, parseSize } from '../../../src/core/size.ts'

test('reads every unit as a power of 1024, in any case', () => {
  for (const [text, expected] of [
    ['268435456', 268_435_456],
    ['1k', 1024],
    ['1kb', 1024],
    ['1KiB', 1024],
    ['512MiB', 512 * 1024 ** 2],
    ['440mb', 440 * 1024 ** 2],
    ['2 GiB', 2 * 1024 ** 3],
    ['3g', 3 * 1024 ** 3],
  ] as const) {
    assert.equal(parseSize(text, '--memory'), expected, text)
  }
})

test('refuses what is no size, too small or too large, with the forms it takes', () => {
  for (const text of ['', 'x', '-1', '1.5g', '1tb', '1 g b', '9000g', '0']) {
    assert.throws(
      () => parseSize(text, '--memory'),
      (error) => isSluiceError(error, 'CONFIG_INVALID') && error.fix === '268435456, 512MiB, 2GiB',
      text,
    )
  }
  assert.throws(() => parseSize('1MiB', '--memory', 64 * 1024 ** 2), {
    message: '--memory "1MiB" is not a size: at least 64MiB',
  })
})

test('formats what it reads back', () => {
  for (const bytes of [1, 1000, 1024, 1536, 512 * 1024 ** 2, 1024 ** 4]) {
    assert.equal(parseSize(formatSize(bytes), 'x'), bytes)
  }
})
