import { equal } from 'node:assert/strict'
import { describe, test } from 'node:test'
import { lineJournal } from '../../../src/cli/journal.ts'
import type { Terminal } from '../../../src/cli/terminal.ts'

function lines(level: 'debug' | 'info' | 'warn' | 'error', format: 'text' | 'json'): string {
  const noted: string[] = []
  const terminal: Pick<Terminal, 'note'> = {
    note: (line) => {
      noted.push(line)
    },
  }
  const journal = lineJournal({
    terminal: terminal as Terminal,
    level,
    format,
    now: () => new Date(Date.UTC(2026, 0, 2, 3, 4, 5)),
  })
  journal.note({
    level: 'info',
    event: 'round.committed',
    message: 'in',
    fields: { rows: 2n ** 63n },
  })
  journal.note({ level: 'warn', event: 'commit.in_doubt', message: 'no\u001banswer' })
  return noted.map((line) => line.replace(/^\d\d:\d\d:\d\d/, 'TIME')).join('\n')
}

describe('lineJournal', () => {
  test('keeps what is below its level to itself', () => {
    equal(lines('error', 'text'), '')
    equal(lines('warn', 'text'), 'TIME warn commit.in_doubt no\\x1banswer')
  })

  test('writes facts behind the message, and all digits of a number', () => {
    equal(
      lines('info', 'text').split('\n')[0],
      'TIME info round.committed in  rows=9223372036854775808',
    )
    equal(
      lines('info', 'json').split('\n')[0],
      '{"time":"2026-01-02T03:04:05.000Z","level":"info","event":"round.committed","message":"in","rows":9223372036854775808}',
    )
  })
})
