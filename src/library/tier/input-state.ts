import type { ErrorCode, SluiceError } from '../../core/errors.ts'
import { counted } from '../../core/text.ts'
import type { Reached } from './explain-error.ts'

/**
 * What an error of an input means for the lake. Reading stopped there, and everything before it was
 * drained into the lake.
 * @returns the code the run ends with, and what is in the lake, where there is something to say
 */
export function inputEnd(
  error: SluiceError,
  reached: Reached,
): { readonly code: ErrorCode; readonly state: string | undefined } {
  const code = isSomethingWritten(reached) ? laterCode(error.code) : error.code
  const state = error.state ?? stateAt(error, reached) ?? stateBehind(error, reached)
  return { code, state }
}

/**
 * All inputs were looked at before anything was written, so one that is not what it was then has
 * changed. The codes for what was wrong from the beginning say that nothing was written.
 */
function laterCode(code: ErrorCode): ErrorCode {
  if (code === 'SCHEMA_UNSUPPORTED') return 'TABLE_MISMATCH'
  return code === 'INPUT_UNREADABLE' || code === 'CONFIG_INVALID' ? 'INPUT_CHANGED' : code
}

function isSomethingWritten({ rounds, isCreated }: Reached): boolean {
  return rounds.length > 0 || isCreated
}

/** By the line or row that reading stopped at. */
function stateAt(
  { code, details }: SluiceError,
  { snapshotId, records }: Reached,
): string | undefined {
  // A header has a line, and so have files that are no inputs.
  const header = code === 'RECORD_REFUSED' ? details['line'] : undefined
  const line = numberOf(details['recordLine'] ?? header)
  const at = line ?? (details['input'] === undefined ? undefined : numberOf(details['row']))
  if (at === undefined) return undefined
  const unit = line === undefined ? 'row' : 'line'
  const first = line === undefined ? 0n : (numberOf(details['firstLine']) ?? 1n)
  const before = numberOf(details['recordsBefore'])
  const isHeader = details['recordLine'] === undefined && line !== undefined
  // A header says nothing of what an earlier run took.
  if (isHeader && records !== undefined && records > 0n) return undefined
  const nothing = `nothing from ${unit} ${String(at)} on is`
  if (isHeader || at <= first) return `${nothing} in the lake`
  if (before === 0n || snapshotId === undefined)
    return `no record before ${unit} ${String(at)} is in the lake; ${nothing}`
  const snapshot = `(snapshot ${snapshotId.toString()})`
  // What a cut stream gave is right; what a damaged one gave before it failed is not proven to be.
  const doubt = details['cut'] === false ? ', where a value may be wrong' : ''
  return `${recordsBefore(before, unit, first, at)} in the lake ${snapshot}${doubt}; ${nothing}`
}

/** A record that was set aside, and one of several lines, keep lines from being counted as records. */
function recordsBefore(
  before: bigint | undefined,
  unit: string,
  first: bigint,
  at: bigint,
): string {
  if (before === undefined) return `every good record before ${unit} ${String(at)} is`
  if (before !== at - first) {
    const verb = before === 1n ? 'is' : 'are'
    return `${counted(before, 'record')} before ${unit} ${String(at)} ${verb}`
  }
  const last = at - 1n
  if (first === last) return `${unit} ${String(first)} is`
  return `${unit}s ${String(first)} to ${String(last)} are`
}

function stateBehind(error: SluiceError, reached: Reached): string | undefined {
  const { rounds, isCreated, records } = reached
  const [first] = rounds
  const last = rounds.at(-1)
  if (first !== undefined && last !== undefined) {
    return first.round === last.round
      ? `round ${String(first.round)} is in the lake`
      : `rounds ${String(first.round)} to ${String(last.round)} are in the lake`
  }
  if (isCreated) return 'the table is made and empty'
  // Other codes say it themselves, or are about something else.
  const isOfInput = error.code === 'DATA_CORRUPT' || error.code === 'RECORD_REFUSED'
  if (!isOfInput || error.details['input'] === undefined) return undefined
  return records === undefined ? 'nothing was written' : 'this run added nothing'
}

function numberOf(value: unknown): bigint | undefined {
  return typeof value === 'number' || typeof value === 'bigint' ? BigInt(value) : undefined
}
