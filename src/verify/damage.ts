import { isSluiceError, SluiceError } from '../core/errors.ts'

/** That a file cannot be decoded; becomes an `UNREADABLE` fault. */
export function damage(reason: string): SluiceError {
  return new SluiceError('DATA_CORRUPT', reason)
}

/**
 * Why a file cannot be decoded, from what its reader threw. Whatever else was thrown, such as a store
 * that does not answer, is no verdict on the file and is thrown again.
 */
export function damageOf(error: unknown): string {
  if (isSluiceError(error) && damageCodes.has(error.code)) return error.message
  throw error
}

const damageCodes: ReadonlySet<string> = new Set([
  'DATA_CORRUPT',
  'LIMIT_EXCEEDED',
  'INPUT_UNREADABLE',
  'RECORD_REFUSED',
  'SCHEMA_UNSUPPORTED',
])
