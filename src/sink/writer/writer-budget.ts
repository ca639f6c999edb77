/** A writer that can give memory back by writing its open row group. */
export interface Evictable {
  readonly bufferedBytes: number
  evict(): Promise<void>
}

/**
 * One memory limit over all open writers of a process. When the sum passes it, the largest writer
 * writes its row group early: fewer, larger row groups survive where the data is.
 */
export class WriterBudget {
  readonly limitBytes: number
  readonly #writers = new Set<Evictable>()

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes
  }

  get usedBytes(): number {
    let sum = 0
    for (const writer of this.#writers) sum += writer.bufferedBytes
    return sum
  }

  join(writer: Evictable): void {
    this.#writers.add(writer)
  }

  leave(writer: Evictable): void {
    this.#writers.delete(writer)
  }

  /** Evicts until the sum is within the limit, or nothing is left to evict. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < this.#writers.size; turn += 1) {
      if (this.usedBytes <= this.limitBytes) return
      let largest: Evictable | undefined
      for (const writer of this.#writers) {
        if (largest === undefined || writer.bufferedBytes > largest.bufferedBytes) largest = writer
      }
      if (largest === undefined || largest.bufferedBytes === 0) return
      await largest.evict()
    }
  }
}
