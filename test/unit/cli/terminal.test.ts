import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openTerminal, type TextStream } from '../../../src/cli/terminal.ts'

type Size = Pick<TextStream, 'columns' | 'rows'>

function open(stdout: Size, stderr: Size, environment: Readonly<Record<string, string>> = {}) {
  const written: string[] = []
  const stream = (size: Size): TextStream => ({
    isTTY: true,
    ...size,
    write: (text) => {
      written.push(text)
      return true
    },
  })
  const terminal = openTerminal({
    stdout: stream(stdout),
    stderr: stream(stderr),
    environment,
    color: 'never',
    quiet: false,
    now: () => 0,
  })
  return { terminal, written }
}

test('takes the size of the terminal, 80 by 24 where it does not know its own', () => {
  const sizes = [
    open({ columns: 120 }, { columns: 100, rows: 50 }),
    open({}, { columns: 100, rows: 50 }),
    open({ columns: 0, rows: 0 }, { columns: 0, rows: 0 }),
    open({}, {}),
    open({ columns: 120 }, {}, { COLUMNS: '60' }),
  ]
  assert.deepEqual(
    sizes.map(({ terminal }) => [terminal.width, terminal.rows]),
    [
      [120, 50],
      [100, 50],
      [80, 24],
      [80, 24],
      [60, 24],
    ],
  )
})

test('a terminal without a size still shows whole lines', () => {
  const { terminal, written } = open({ columns: 0, rows: 0 }, { columns: 0, rows: 0 })
  const lines = ['x'.repeat(79), 'second']
  terminal.draw(lines)
  for (const line of lines) assert.ok(written.join('').includes(line))
})
