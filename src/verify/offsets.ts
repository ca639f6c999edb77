/** Offsets `[start, end)`. */
export type Run = { readonly start: bigint; readonly end: bigint }

/** Where the offsets of a file are not ascending: the row, and the offset before it. */
export type Disorder = { readonly row: bigint; readonly before: bigint; readonly offset: bigint }

/** Runs of one file that are kept. Files of Sluice have one; a compaction may have mixed many. */
const runsMax = 1 << 16

/** Takes the offsets of one file, in file order, and keeps them as runs of consecutive ones. */
export class OffsetRuns {
  /** Rows whose offset counts: not null, not negative. */
  count = 0n
  /** Rows of a key-value snapshot, which have no offset of a log: -1. */
  unlogged = 0n
  lower: bigint | undefined
  upper: bigint | undefined
  disorder: Disorder | undefined
  /** An offset that is in the file twice. */
  doubled: bigint | undefined
  #runs: Run[] = []
  #start = 0n
  #next: bigint | undefined
  #row = 0n
  #isExact = true

  /** @param isThere Whether element `index` is not null. */
  add(values: BigInt64Array, length: number, isThere: (index: number) => boolean): void {
    for (let index = 0; index < length; index += 1) {
      const offset = values[index] ?? 0n
      const row = this.#row
      this.#row += 1n
      if (!isThere(index) || offset < 0n) {
        if (offset === -1n && isThere(index)) this.unlogged += 1n
        continue
      }
      this.count += 1n
      if (offset === this.#next) {
        this.#next = offset + 1n
        continue
      }
      if (this.#next !== undefined && offset < this.#next) {
        this.disorder ??= { row, before: this.#next - 1n, offset }
      }
      this.#close()
      this.#start = offset
      this.#next = offset + 1n
    }
  }

  /** The runs in order; undefined when there were too many, so that only counts are known. */
  finish(): readonly Run[] | undefined {
    this.#close()
    this.#next = undefined
    this.#merge()
    return this.#isExact ? this.#runs : undefined
  }

  #close(): void {
    if (this.#next === undefined) return
    const [start, end] = [this.#start, this.#next]
    if (this.lower === undefined || start < this.lower) this.lower = start
    if (this.upper === undefined || end - 1n > this.upper) this.upper = end - 1n
    if (!this.#isExact) return
    this.#runs.push({ start, end })
    if (this.#runs.length < 2 * runsMax) return
    this.#merge()
    if (this.#runs.length < runsMax) return
    this.#isExact = false
    this.#runs = []
  }

  /** Sorts the runs and joins those that touch. */
  #merge(): void {
    this.#runs.sort((a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : 0))
    const merged: Run[] = []
    for (const run of this.#runs) {
      const last = merged.at(-1)
      if (last === undefined || run.start > last.end) {
        merged.push(run)
        continue
      }
      if (run.start < last.end) this.doubled ??= run.start
      merged[merged.length - 1] = {
        start: last.start,
        end: run.end > last.end ? run.end : last.end,
      }
    }
    this.#runs = merged
  }
}
