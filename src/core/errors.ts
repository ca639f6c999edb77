/**
 * What a failed operation may have left behind. `none` is a proof, not a guess: files may be deleted
 * only after `none`, because deleting the files of a commit that did land corrupts the table.
 */
export type Effect = 'none' | 'unknown'

/**
 * Every code, with the exit status of a command that ends by it, and what the caller does about it.
 * One code per way a caller can react; `docs/reference/errors.md` is checked against this table.
 */
export const errorCodes = {
  CONFIG_INVALID: { exit: 2, effect: 'none', remedy: 'correct the option or the configuration' },
  NAME_INVALID: { exit: 2, effect: 'none', remedy: 'choose another name' },
  LOCATION_REFUSED: { exit: 2, effect: 'none', remedy: 'name a location Sluice may use' },
  SCHEMA_UNSUPPORTED: { exit: 2, effect: 'none', remedy: 'declare the column with --schema' },
  INPUT_UNREADABLE: { exit: 2, effect: 'none', remedy: 'correct the input or how it is named' },
  DEPENDENCY_MISSING: { exit: 2, effect: 'none', remedy: 'install the named package' },
  RECORD_REFUSED: { exit: 3, effect: 'none', remedy: 'correct the record, or quarantine it' },
  INPUT_CHANGED: { exit: 3, effect: 'none', remedy: 'restore the input, or name it anew' },
  TABLE_MISSING: { exit: 3, effect: 'none', remedy: 'name a table that exists' },
  TABLE_EXISTS: { exit: 3, effect: 'none', remedy: 'use another table' },
  TABLE_MISMATCH: { exit: 3, effect: 'none', remedy: 'use the definition the table has' },
  TABLE_REPLACED: { exit: 3, effect: 'none', remedy: 'decide which table is meant' },
  PROGRESS_LOST: { exit: 3, effect: 'none', remedy: 'look at the evidence and decide' },
  COMMIT_FENCED: { exit: 3, effect: 'none', remedy: 'leave the table to its new holder' },
  COMMIT_STALE: { exit: 3, effect: 'none', remedy: 'plan the round again' },
  COMMIT_CONFLICT: { exit: 3, effect: 'none', remedy: 'plan the round again' },
  COMMIT_CONTENDED: { exit: 3, effect: 'none', remedy: 'run again' },
  COMMIT_UNKNOWN: { exit: 4, effect: 'unknown', remedy: 'run again: it reads the lake' },
  DATA_CORRUPT: { exit: 3, effect: 'none', remedy: 'restore the named file' },
  LIMIT_EXCEEDED: { exit: 3, effect: 'none', remedy: 'stay below the named limit' },
  FAMILY_ORPHANED: { exit: 3, effect: 'none', remedy: 'migrate the column family, or keep it' },
  LOG_FULL: { exit: 3, effect: 'none', remedy: 'append again later' },
  LOG_TRUNCATED: { exit: 3, effect: 'none', remedy: 'declare the gap, or restore the log' },
  SOURCE_BEHIND: { exit: 3, effect: 'none', remedy: 'restore the source' },
  LEASE_LOST: { exit: 3, effect: 'none', remedy: 'take part again' },
  STORE_UNAVAILABLE: { exit: 5, effect: 'unknown', remedy: 'run again when the store answers' },
  STORE_DENIED: { exit: 5, effect: 'none', remedy: 'grant the rights' },
  STORE_UNSAFE: { exit: 5, effect: 'none', remedy: 'use a store with conditional writes' },
  STORE_UNSUPPORTED: { exit: 5, effect: 'none', remedy: 'use another kind of store' },
  DISK_FULL: { exit: 5, effect: 'none', remedy: 'free space and run again' },
  STOPPED: { exit: 130, effect: 'none', remedy: 'run again: it goes on where it stopped' },
  INVARIANT_BROKEN: { exit: 70, effect: 'unknown', remedy: 'report it: this is a bug' },
} as const satisfies Record<string, { exit: number; effect: Effect; remedy: string }>

export type ErrorCode = keyof typeof errorCodes

export type Details = Readonly<Record<string, unknown>>

export type ErrorOptions = {
  readonly details?: Details
  /** A command or an edit that can be copied. */
  readonly fix?: string
  /** Where it is, in the user's words: `flights.ndjson:1203:38 (byte 108,412)`. */
  readonly where?: string
  /** What is and what is not committed. */
  readonly state?: string
  readonly cause?: unknown
  /** Only to weaken: an error of a code with effect `none` may still have an unknown one. */
  readonly effect?: Effect
}

const mark: unique symbol = Symbol.for('sluice.error') as never

/**
 * The only error this library throws on purpose. Match on `code`, never on `message`: codes follow
 * semantic versioning, messages do not.
 */
export class SluiceError extends Error {
  override readonly name = 'SluiceError'
  readonly code: ErrorCode
  readonly effect: Effect
  readonly details: Details
  readonly fix?: string
  readonly where?: string
  readonly state?: string

  /** @param message One clause without a final stop; it names the thing the user named. */
  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.code = code
    this.effect = options.effect ?? errorCodes[code].effect
    this.details = options.details ?? {}
    if (options.fix !== undefined) this.fix = options.fix
    if (options.where !== undefined) this.where = options.where
    if (options.state !== undefined) this.state = options.state
    Object.defineProperty(this, mark, { value: true })
  }
}

/** Tells a `SluiceError` of any copy of this package, and of one code if it is given. */
export function isSluiceError(value: unknown, code?: ErrorCode): value is SluiceError {
  if (!(value instanceof Error) || !(mark in value) || !('code' in value)) return false
  return code === undefined || value.code === code
}
