import type { Column } from '../core/columns/column.ts'
import { isSluiceError } from '../core/errors.ts'
import type { TableId } from '../core/ids.ts'
import { check } from '../core/never.ts'
import { type Chance, order } from '../core/ports.ts'
import { bucketsOf } from '../source/bucketing/buckets.ts'
import { blockRecords } from '../source/bucketing/split.ts'
import type { EmbeddedSource } from '../source/embedded/embedded-source.ts'
import type { PacedClock } from './demo-clock.ts'
import { Digests } from './demo-hash.ts'
import { demoRecords } from './demo-records.ts'
import { createdAt, type DemoTable, rowsUntil } from './demo-tables.ts'

/** Between two appends, in milliseconds of demo time; every moment of the walkthrough is one of them. */
const tickMs = 5000

export type ProducerOptions = {
  readonly table: DemoTable
  readonly id: TableId
  readonly source: EmbeddedSource
  readonly clock: PacedClock
  readonly chance: Chance
  /** Wall time of second 0, in milliseconds. */
  readonly startsAt: number
  /** Seconds of demo time at which it stops. */
  readonly until: number
  readonly signal: AbortSignal
}

/** Appends records of one table at its rate, and keeps what the check compares. */
export class DemoProducer {
  readonly digests = new Digests()
  rows = 0
  readonly #options: ProducerOptions
  /** Next offset of each bucket, by the published rule and not by what the source says. */
  readonly #next: number[]

  constructor(options: ProducerOptions) {
    this.#options = options
    this.#next = Array.from({ length: options.table.buckets }, () => 0)
  }

  /** Resolves when production is over. */
  async run(): Promise<void> {
    const { clock, table, until, signal } = this.#options
    try {
      for (;;) {
        const second = createdAt + clock.monotonic() / 1000
        await this.#produceUntil(rowsUntil(table, Math.min(second, until)))
        if (second >= until) return
        await clock.sleep(Math.min(tickMs, (until - second) * 1000), {
          order: order.result,
          signal,
        })
      }
    } catch (error) {
      if (!isSluiceError(error, 'STOPPED') || !signal.aborted) throw error
    }
  }

  async #produceUntil(total: number): Promise<void> {
    const count = total - this.rows
    if (count <= 0) return
    const { table, id, source, chance, startsAt, signal } = this.#options
    const step = 60_000_000 / table.rowsPerMinute
    const at = BigInt(startsAt) * 1000n + BigInt(Math.floor(table.from * 1e6 + this.rows * step))
    const place = { first: this.rows, count, at, step: BigInt(Math.floor(step)) }
    const batch = demoRecords(table, chance, place)
    const buckets = this.#bucketsOf(batch.columns[0], count)
    const offsets = new Float64Array(count)
    for (let row = 0; row < count; row += 1) {
      const bucket = buckets[row] ?? 0
      const offset = this.#next[bucket] ?? 0
      offsets[row] = offset
      this.#next[bucket] = offset + 1
    }
    this.digests.add(batch, {
      bucketAt: (row) => buckets[row] ?? 0,
      offsetAt: (row) => offsets[row] ?? 0,
    })
    this.rows = total
    await source.append(id, batch, { signal })
  }

  /** The hash of the key, or blocks of records in turn. */
  #bucketsOf(key: Column | undefined, count: number): Int32Array {
    const { table } = this.#options
    if (table.bucketKey !== undefined) {
      check(key !== undefined, 'the key of a demo table is its first column')
      return bucketsOf(key, table.buckets, 'iceberg')
    }
    return Int32Array.from(
      { length: count },
      (_, row) => Math.floor((this.rows + row) / blockRecords) % table.buckets,
    )
  }
}
