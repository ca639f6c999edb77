import type { ColumnBatch } from '../../core/columns/column.ts'
import { SluiceError } from '../../core/errors.ts'
import type { Bucket } from '../../core/ids.ts'
import { check } from '../../core/never.ts'
import type { ChangeBatch } from '../changelog/change-batch.ts'
import type { Write } from '../changelog/changelog.ts'
import type { SourceTable } from '../ports.ts'
import type { ChangelogPart } from './embedded-table.ts'
import type { KeyedState } from './keyed-state.ts'
import { splitChanges, takeChanges } from './split-changes.ts'

export type PreparedChanges = { readonly batch: ChangeBatch; readonly buckets: Int32Array }

/** Changes applied to the state of a table, in the order in which they came. */
export class KeyedTable {
  readonly state: KeyedState
  readonly #table: SourceTable
  #last: Promise<unknown> = Promise.resolve()
  /** Why the state is not to be trusted any more. */
  #broken: unknown

  constructor(table: SourceTable, state: KeyedState) {
    this.#table = table
    this.state = state
  }

  /** Runs one piece of work after the other: an old row is what the change before it has left. */
  inOrder<Result>(work: () => Promise<Result>): Promise<Result> {
    const turn = this.#last.then(work)
    this.#last = turn.catch(() => undefined)
    return turn
  }

  keyOf(record: ColumnBatch): Uint8Array {
    const [key] = this.state.keysOf(record)
    check(key !== undefined, 'there is a record')
    return key
  }

  /**
   * Makes changelogs of changes and writes their rows. Nothing is written if one of them is refused.
   *
   * @param skips How many changes of a bucket the lake has already; they are left out.
   */
  async apply(
    prepared: readonly PreparedChanges[],
    skips: (bucket: Bucket, count: number, already: bigint) => number,
  ): Promise<{ readonly parts: readonly ChangelogPart[]; readonly given: number }> {
    if (this.#broken !== undefined) throw this.#brokenError()
    const parts: ChangelogPart[] = []
    const pending = new Map<Bucket, Map<string, Write>>()
    const skippedBefore = new Map<Bucket, bigint>()
    let given = 0
    for (const { batch, buckets } of prepared) {
      given += batch.records.length
      for (const part of splitChanges(batch, buckets, this.#table.bucketCount)) {
        const { bucket } = part
        const count = part.batch.records.length
        const already = skippedBefore.get(bucket) ?? 0n
        const skipped = skips(bucket, count, already)
        skippedBefore.set(bucket, already + BigInt(skipped))
        const writes = pending.get(bucket) ?? new Map<string, Write>()
        pending.set(bucket, writes)
        const rest = skipped === 0 ? part.batch : takeChanges(part.batch, rowsFrom(skipped, count))
        const changelog = await this.#apply(bucket, rest, writes, buckets, skipped)
        for (const [text, write] of changelog.writes) writes.set(text, write)
        parts.push({ bucket, changelog, skipped })
      }
    }
    try {
      for (const [bucket, writes] of pending) await this.state.write(bucket, writes)
    } catch (error) {
      // Some rows may be written and others not, and the log has none of them.
      this.#broken = error
      throw this.#brokenError()
    }
    return { parts, given }
  }

  async #apply(
    bucket: Bucket,
    batch: ChangeBatch,
    writes: ReadonlyMap<string, Write>,
    buckets: Int32Array,
    skipped: number,
  ): ReturnType<KeyedState['apply']> {
    try {
      return await this.state.apply(bucket, batch, writes)
    } catch (error) {
      if (!(error instanceof SluiceError) || typeof error.details['row'] !== 'number') throw error
      // Named by its place in what the caller gave.
      const row = placeOf(buckets, bucket, skipped + error.details['row'])
      throw new SluiceError(error.code, error.message, {
        details: { ...error.details, table: this.#table.name, row },
        ...(error.fix === undefined ? {} : { fix: error.fix }),
        cause: error,
      })
    }
  }

  #brokenError(): SluiceError {
    return new SluiceError(
      'STORE_UNAVAILABLE',
      `${this.#table.name}: the key-value store failed, and its rows cannot be trusted any more`,
      {
        details: { table: this.#table.name },
        state: 'what was reported as committed is in the lake',
        fix: 'run again: the rows are read from the lake',
        cause: this.#broken,
      },
    )
  }
}

function rowsFrom(start: number, end: number): Int32Array {
  return Int32Array.from({ length: end - start }, (_, at) => start + at)
}

/** Where the nth change of a bucket stands among all. */
function placeOf(buckets: Int32Array, bucket: Bucket, nth: number): number {
  let seen = 0
  for (const [row, each] of buckets.entries()) {
    if (each !== bucket) continue
    if (seen === nth) return row
    seen += 1
  }
  return nth
}
