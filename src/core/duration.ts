import { SluiceError } from './errors.ts'
import { quoteValue } from './text.ts'

/** What durations look like, for messages. */
export const durationForms = '30s, 5min, 1h30min, PT5M'

export type DurationLimits = {
  /** Where a wait is meant zero is refused, because it would mean "never wait" or "always". */
  readonly zero?: 'refused' | 'allowed'
}

/**
 * Reads a duration in the forms Fluss and people use: whole numbers with units, largest first
 * (`1h30min`, `5 minutes`), or ISO 8601 (`PT5M`, `P1D`).
 * @param subject What the value was given for, such as `--freshness`; begins the message.
 * @returns milliseconds
 * @throws SluiceError CONFIG_INVALID
 */
export function parseDuration(text: string, subject: string, limits: DurationLimits = {}): number {
  const trimmed = text.trim()
  const total = isoForm.test(trimmed) ? readIso(trimmed) : readUnits(trimmed)
  if (total === undefined) throw refuse(text, subject, '')
  if (total > durationMax) throw refuse(text, subject, ': at most 365d')
  if (total === 0 && limits.zero !== 'allowed') {
    throw refuse(text, subject, ': it must be longer than zero')
  }
  return total
}

/** The shortest exact form that `parseDuration` reads back: `3min`, `1h30min`, `1500ms`. */
export function formatDuration(ms: number): string {
  if (ms === 0) return '0ms'
  let rest = ms
  let text = ''
  for (const [name, size] of shortUnits) {
    const count = Math.floor(rest / size)
    if (count === 0) continue
    text += `${count}${name}`
    rest -= count * size
  }
  return text
}

const shortUnits = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
  ['ms', 1],
] as const

const durationMax = 365 * 86_400_000

const unitSizes: ReadonlyMap<string, number> = new Map([
  ...['d', 'day', 'days'].map((name) => [name, 86_400_000] as const),
  ...['h', 'hour', 'hours'].map((name) => [name, 3_600_000] as const),
  ...['min', 'm', 'minute', 'minutes'].map((name) => [name, 60_000] as const),
  ...['s', 'sec', 'secs', 'second', 'seconds'].map((name) => [name, 1000] as const),
  ...['ms', 'milli', 'millis', 'millisecond', 'milliseconds'].map((name) => [name, 1] as const),
])

const isoForm = /^P/i
const isoParts = /^P(?:(\d{1,12})D)?(?:T(?=\d)(?:(\d{1,12})H)?(?:(\d{1,12})M)?(?:(\d{1,12})S)?)?$/i
const oneUnit = /^(\d{1,15})\s?([a-z]+)\s*/i

function readIso(text: string): number | undefined {
  const parts = isoParts.exec(text)
  if (parts === null) return undefined
  const [days, hours, minutes, seconds] = parts.slice(1)
  if ([days, hours, minutes, seconds].every((part) => part === undefined)) return undefined
  return (
    Number(days ?? 0) * 86_400_000 +
    Number(hours ?? 0) * 3_600_000 +
    Number(minutes ?? 0) * 60_000 +
    Number(seconds ?? 0) * 1000
  )
}

function readUnits(text: string): number | undefined {
  let rest = text
  let total = 0
  let smallest = Number.POSITIVE_INFINITY
  while (rest !== '') {
    const part = oneUnit.exec(rest)
    const size = unitSizes.get(part?.[2]?.toLowerCase() ?? '')
    if (part === null || size === undefined || size >= smallest) return undefined
    total += Number(part[1]) * size
    smallest = size
    rest = rest.slice(part[0].length)
  }
  return smallest === Number.POSITIVE_INFINITY ? undefined : total
}

function refuse(text: string, subject: string, why: string): SluiceError {
  const message = `${subject} ${quoteValue(text)} is not a duration${why}`
  return new SluiceError('CONFIG_INVALID', message, {
    fix: durationForms,
    details: { value: text, accepted: durationForms },
  })
}
