import { type Details, SluiceError } from '../../core/errors.ts'
import type { Before } from './bad-records.ts'
import type { BadRecord, TextPlace } from './input.ts'

/** The error a run ends with at a bad record. */
export function recordRefused(
  name: string,
  bad: BadRecord,
  kind: 'value' | 'unknown-field',
  before: Before,
): SluiceError {
  const { at, details } = placesOf(name, bad, before)
  const aside =
    kind === 'unknown-field' ? '--on-unknown-field quarantine' : '--on-bad-record quarantine'
  const message = `${at}: ${bad.reason}`
  if (bad.kind === 'row') {
    // A corrected file would be another one: its rows are told by all of its bytes.
    const fix = `set such records aside: ${aside}`
    return new SluiceError('RECORD_REFUSED', message, { fix, details: { ...details, kind } })
  }
  const edit =
    kind === 'unknown-field'
      ? 'take the field out'
      : 'correct the line and run the same command again'
  return new SluiceError('RECORD_REFUSED', message, {
    where: placeText(name, bad.place),
    fix: bad.fix ?? `${edit}, or set such records aside: ${aside}`,
    details: { ...details, kind },
  })
}

/** Where a record lies, for a message and for its details. */
export function placesOf(
  name: string,
  bad: BadRecord,
  { records, firstLine = 1n }: Before,
): { readonly at: string; readonly details: Details } {
  if (bad.kind === 'row') {
    const { row } = bad
    return {
      at: `${name} row ${String(row)}`,
      details: { input: name, row, ...countOf(records) },
    }
  }
  const { line, column, byte } = bad.place
  return {
    at: `${name} line ${String(line)}`,
    details: {
      input: name,
      line,
      column,
      byte,
      recordLine: bad.line,
      recordByte: bad.byte,
      ...countOf(records),
      firstLine,
    },
  }
}

function countOf(recordsBefore: bigint | undefined): Details {
  return recordsBefore === undefined ? {} : { recordsBefore }
}

/** A place in an input, as people read it. */
export function placeText(name: string, { line, column, byte }: TextPlace): string {
  return `${name}:${String(line)}:${String(column)} (byte ${byte.toLocaleString('en-US')})`
}
