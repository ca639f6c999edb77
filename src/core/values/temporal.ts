/**
 * ISO 8601 dates and times, read from UTF-8 bytes exactly: whole days and microseconds, proleptic
 * Gregorian, cut toward the past. No `Date` takes part.
 */
export type InstantText = {
  /** Days since 1970-01-01, before the zone is taken off. */
  days: number
  /** Seconds of the day, minus the zone: may be negative or beyond one day. */
  seconds: number
  /** Fraction of the second in nanoseconds, cut there. */
  nanos: number
  /** Fraction digits that are not trailing zeros. */
  fractionDigits: number
  /** Fraction digits as written. */
  fractionLength: number
  zoned: boolean
}

export function newInstantText(): InstantText {
  return { days: 0, seconds: 0, nanos: 0, fractionDigits: 0, fractionLength: 0, zoned: false }
}

/** Days since 1970 of `YYYY-MM-DD`, or nothing when the bytes are not exactly a calendar day. */
export function parseDate(bytes: Uint8Array, from: number, to: number): number | undefined {
  if (to - from !== 10 || bytes[from + 4] !== dash || bytes[from + 7] !== dash) return undefined
  const year = 100 * twoDigits(bytes, from) + twoDigits(bytes, from + 2)
  const month = twoDigits(bytes, from + 5)
  const day = twoDigits(bytes, from + 8)
  if (!(year >= 0 && month >= 1 && month <= 12 && day >= 1)) return undefined
  if (!(day <= daysOfMonth(year, month))) return undefined
  return daysSinceEpoch(year, month, day)
}

/** `hh:mm:ss` with an optional fraction, into `seconds`, `nanos` and `fractionDigits`. */
export function parseTime(bytes: Uint8Array, from: number, to: number, into: InstantText): boolean {
  if (to - from < 8) return false
  return readTime(bytes, from, to, into) === to
}

/**
 * `YYYY-MM-DDThh:mm[:ss[.fraction]]` (a space instead of the T is taken as well), then nothing, `Z`
 * or `±hh:mm`.
 */
export function parseInstant(
  bytes: Uint8Array,
  from: number,
  to: number,
  into: InstantText,
): boolean {
  if (to - from < 16) return false
  const days = parseDate(bytes, from, from + 10)
  const separator = bytes[from + 10]
  if (days === undefined || (separator !== letterT && separator !== space)) return false
  let at = readTime(bytes, from + 11, to, into)
  if (at === -1) return false
  into.days = days
  into.zoned = at < to
  if (at === to) return true
  const sign = bytes[at]
  if (sign === letterZ) return at + 1 === to
  if ((sign !== plus && sign !== dash) || at + 6 !== to || bytes[at + 3] !== colon) return false
  const hours = twoDigits(bytes, at + 1)
  const minutes = twoDigits(bytes, at + 4)
  at += 6
  if (!(hours <= 23 && minutes <= 59)) return false
  into.seconds -= (sign === plus ? 1 : -1) * (hours * 3600 + minutes * 60)
  return true
}

/** Seconds since 1970 of an instant; a safe integer. */
export function epochSeconds(instant: InstantText): number {
  return instant.days * 86_400 + instant.seconds
}

export function dateText(days: number): string {
  const { year, month, day } = civilDate(days)
  return `${String(year).padStart(4, '0')}-${pad(month)}-${pad(day)}`
}

/** `01:02:03.000004` of microseconds of a day; others are shown as a number of them. */
export function timeText(micros: bigint): string {
  if (micros < 0n || micros >= microsPerDay) return micros.toString()
  const seconds = Number(micros / 1_000_000n)
  const fraction = micros % 1_000_000n
  const clock = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
  const digits = fraction === 0n ? '' : `.${fraction.toString().padStart(6, '0')}`
  return `${clock.map(pad).join(':')}${digits}`
}

/** `1970-01-02T01:02:03.000004` of microseconds since 1970. */
export function timestampText(micros: bigint): string {
  const inDay = ((micros % microsPerDay) + microsPerDay) % microsPerDay
  return `${dateText(Number((micros - inDay) / microsPerDay))}T${timeText(inDay)}`
}

/** Year, month and day of a day number (Howard Hinnant, "chrono-compatible low-level date algorithms"). */
export function civilDate(days: number): { year: number; month: number; day: number } {
  const shifted = days + 719_468
  const era = Math.floor(shifted / 146_097)
  const dayOfEra = shifted - era * 146_097
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  )
  const dayOfYear =
    dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const monthFromMarch = Math.floor((5 * dayOfYear + 2) / 153)
  const day = dayOfYear - Math.floor((153 * monthFromMarch + 2) / 5) + 1
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
  return { year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day }
}

const microsPerDay = 86_400_000_000n
const dash = 45
const plus = 43
const colon = 58
const dot = 46
const space = 32
const letterT = 84
const letterZ = 90

/** Index after the time, or -1. Seconds may be absent, as in ISO 8601. */
function readTime(bytes: Uint8Array, from: number, to: number, into: InstantText): number {
  const hours = twoDigits(bytes, from)
  const minutes = twoDigits(bytes, from + 3)
  if (!(hours <= 23 && minutes <= 59) || bytes[from + 2] !== colon) return -1
  into.seconds = hours * 3600 + minutes * 60
  into.nanos = 0
  into.fractionDigits = 0
  into.fractionLength = 0
  let at = from + 5
  if (at > to) return -1
  if (at === to || bytes[at] !== colon) return at
  const seconds = twoDigits(bytes, at + 1)
  at += 3
  if (!(seconds <= 59) || at > to) return -1
  into.seconds += seconds
  if (at === to || bytes[at] !== dot) return at
  at += 1
  const first = at
  let unit = 100_000_000
  for (; at < to; at += 1) {
    const digit = (bytes[at] ?? 0) - 48
    if (digit < 0 || digit > 9) break
    if (digit !== 0) into.fractionDigits = at - first + 1
    into.nanos += digit * Math.floor(unit)
    unit /= 10
  }
  into.fractionLength = at - first
  return at === first ? -1 : at
}

/** NaN unless both bytes are digits. */
function twoDigits(bytes: Uint8Array, at: number): number {
  const tens = (bytes[at] ?? 0) - 48
  const ones = (bytes[at + 1] ?? 0) - 48
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN
}

function daysOfMonth(year: number, month: number): number {
  if (month === 2) return isLeap(year) ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

function isLeap(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
}

function daysSinceEpoch(year: number, month: number, day: number): number {
  const marchYear = month <= 2 ? year - 1 : year
  const era = Math.floor(marchYear / 400)
  const yearOfEra = marchYear - era * 400
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1
  const dayOfEra =
    yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * 146_097 + dayOfEra - 719_468
}

function pad(value: number): string {
  return String(value).padStart(2, '0')
}
