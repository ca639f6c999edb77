import { SluiceError } from '../../core/errors.ts'
import type { BadRecord } from './input.ts'

/** The error a run ends with at a bad record. */
export function recordRefused(
  name: string,
  bad: BadRecord,
  kind: 'value' | 'unknown-field',
  help?: string,
): SluiceError {
  const { line, column, byte } = bad.place
  const standard =
    kind === 'unknown-field'
      ? 'take the field out, or set such records aside: --on-unknown-field quarantine'
      : 'correct the line and run the same command again, or set such records aside: --on-bad-record quarantine'
  return new SluiceError('RECORD_REFUSED', `${name} line ${String(line)}: ${bad.reason}`, {
    where: placeText(name, bad.place),
    fix: help ?? bad.fix ?? standard,
    details: { input: name, line, column, byte, recordLine: bad.line, recordByte: bad.byte, kind },
  })
}

/** A place in an input, as people read it. */
export function placeText(name: string, { line, column, byte }: BadRecord['place']): string {
  return `${name}:${String(line)}:${String(column)} (byte ${byte.toLocaleString('en-US')})`
}
