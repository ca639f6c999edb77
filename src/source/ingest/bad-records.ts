import { SluiceError } from '../../core/errors.ts'
import type { BadRecord, RecordPolicy } from './input.ts'
import { placesOf, recordRefused } from './refused.ts'

/** What is to become of bad records. */
export type BadRecordRules = {
  readonly onBadRecord: RecordPolicy
  readonly onUnknownField: RecordPolicy
  /** Records set aside after which the run stops. */
  readonly badRecordsMax: number
}

/** How much of an input stands before a record of it. */
export type Before = {
  /** Good records; undefined where records are not what is counted. */
  readonly records: bigint | undefined
  /** Line of the first record: 2 behind a header. */
  readonly firstLine?: bigint
}

/** Decides for the bad records of one input, of whatever format. */
export class BadRecords {
  readonly #name: string
  readonly #rules: BadRecordRules
  #count = 0

  constructor(name: string, rules: BadRecordRules) {
    this.#name = name
    this.#rules = rules
  }

  /** Whether a record like that is set aside, as long as there are not too many. */
  isSetAside(kind: 'value' | 'unknown-field'): boolean {
    const { onBadRecord, onUnknownField } = this.#rules
    return (kind === 'unknown-field' ? onUnknownField : onBadRecord) === 'quarantine'
  }

  /** @returns the error that ends the run, or nothing when the record is set aside */
  judge(
    record: BadRecord,
    kind: 'value' | 'unknown-field',
    before: Before,
  ): SluiceError | undefined {
    this.#count += 1
    const { badRecordsMax } = this.#rules
    if (!this.isSetAside(kind)) return recordRefused(this.#name, record, kind, before)
    if (this.#count <= badRecordsMax) return undefined
    const { at, details } = placesOf(this.#name, record, before)
    const count = badRecordsMax.toLocaleString('en-US')
    return new SluiceError(
      'LIMIT_EXCEEDED',
      `${at}: over ${count} bad records, the last: ${record.reason}`,
      { fix: 'correct the input, or raise --bad-records-max', details },
    )
  }
}
