import { cutText } from '../text.ts'
import { newInstantText, parseDate, parseInstant } from '../values/temporal.ts'

/** The beginning of a value and the line it was first seen in, for messages. */
export type Sighting = { readonly line: number; readonly text: string }

/** What was seen of one column, or of one part of a nested one. */
export type Observed = {
  /** First value of each class that was seen. */
  integer?: Sighting
  fraction?: Sighting
  boolean?: Sighting
  string?: Sighting
  object?: Sighting
  array?: Sighting
  /** First integer beyond 2^53, and beyond 64 bits. */
  inexact?: Sighting
  large?: Sighting
  readonly strings: ObservedStrings
  readonly fields: Map<string, Observed>
  element?: Observed
}

export type ObservedStrings = {
  count: number
  dates: number
  /** Dates with a time, at most six fraction digits: with and without a zone. */
  zoned: number
  local: number
  /** Strings that look like a date or time but are of none of the forms above. */
  nearly: number
  /** The first string that is of none of those forms. */
  other?: Sighting
}

export function newObserved(): Observed {
  return { strings: { count: 0, dates: 0, zoned: 0, local: 0, nearly: 0 }, fields: new Map() }
}

/** The part of an observed object, made when it is seen first. */
export function observedField(object: Observed, name: string): Observed {
  const known = object.fields.get(name)
  if (known !== undefined) return known
  const field = newObserved()
  object.fields.set(name, field)
  return field
}

/** @param text A JSON number. */
export function observeNumber(observed: Observed, text: string, line: number): void {
  const seen = { line, text: cutText(text) }
  if (/[.eE]/.test(text)) {
    observed.fraction ??= seen
    return
  }
  observed.integer ??= seen
  if (text.length < 16) return
  // Digits without an end are not worth a number: its cost grows faster than they do.
  const value = text.length > digitsMax ? 2n ** 64n : BigInt(text)
  if (value > 2n ** 53n || value < -(2n ** 53n)) observed.inexact ??= seen
  if (BigInt.asIntN(64, value) !== value) observed.large ??= seen
}

const digitsMax = 100

/** @param bytes UTF-8, in `[from, to)`. */
export function observeString(
  observed: Observed,
  bytes: Buffer,
  range: { readonly from: number; readonly to: number; readonly line: number },
): void {
  const { from, to, line } = range
  const { strings } = observed
  strings.count += 1
  const text = (): string => bytes.toString('utf8', from, Math.min(to, from + 400))
  observed.string ??= { line, text: text() }
  if (parseDate(bytes, from, to) !== undefined) {
    strings.dates += 1
    return
  }
  if (parseInstant(bytes, from, to, instant) && instant.fractionLength <= 6) {
    if (instant.zoned) strings.zoned += 1
    else strings.local += 1
    return
  }
  strings.other ??= { line, text: text() }
  if (to - from <= 40 && looksLikeTime.test(bytes.toString('latin1', from, to))) strings.nearly += 1
}

const instant = newInstantText()

/** `2001/01/01 01:10`, `01.02.2003`, `2001-01-01T00:00:00.123456789Z`, `20:15`. */
const looksLikeTime = /^(\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([T ].*)?|\d{1,2}:\d{2}(:\d{2}.*)?)$/
