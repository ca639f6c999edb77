import type { Journal, JournalEntry } from '../core/ports.ts'
import { stringifyJson } from '../core/json64.ts'
import { escapeText } from '../core/text.ts'
import type { Terminal } from './terminal.ts'

export const logLevels = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof logLevels)[number]
export const logFormats = ['text', 'json'] as const
export type LogFormat = (typeof logFormats)[number]

/** Writes what happens as lines on standard error, from `level` on. */
export function lineJournal(options: {
  readonly terminal: Terminal
  readonly level: LogLevel
  readonly format: LogFormat
  readonly now: () => Date
}): Journal {
  const { terminal, level, format, now } = options
  const least = logLevels.indexOf(level)
  return {
    note(entry) {
      if (logLevels.indexOf(entry.level) < least) return
      terminal.note(format === 'json' ? jsonLine(entry, now()) : textLine(entry, now()))
    },
  }
}

/** `12:00:04 warn commit.in_doubt no answer to a commit  table=demo.flights attempt=1` */
function textLine({ level, event, message, fields = {} }: JournalEntry, at: Date): string {
  const facts = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}=${escapeText(String(value))}`)
  const time = at.toTimeString().slice(0, 8)
  return [`${time} ${level} ${event} ${escapeText(message)}`, facts.join(' ')]
    .filter((part) => part !== '')
    .join('  ')
}

function jsonLine({ level, event, message, fields = {} }: JournalEntry, at: Date): string {
  const facts = Object.entries(fields).flatMap(([key, value]) =>
    value === undefined ? [] : [[key, value] as const],
  )
  return stringifyJson(
    Object.fromEntries([
      ['time', at.toISOString()],
      ['level', level],
      ['event', event],
      ['message', message],
      ...facts,
    ]),
  )
}
