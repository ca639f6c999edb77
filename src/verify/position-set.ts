/** Positions of one data file, one bit for each of its rows. */
export class PositionSet {
  /** Distinct positions that are rows of the file. */
  count = 0
  /** The lowest position that is no row of the file. */
  beyond: number | undefined
  readonly rows: number
  readonly #bits: Uint8Array

  constructor(rows: number) {
    this.rows = rows
    this.#bits = new Uint8Array((rows + 7) >> 3)
  }

  has(row: number): boolean {
    return (((this.#bits[row >> 3] ?? 0) >> (row & 7)) & 1) === 1
  }

  /** Adds `[from, to)`. */
  add(from: number, to: number): void {
    if (from < 0 || to > this.rows) {
      const beyond = from < 0 ? from : Math.max(from, this.rows)
      if (this.beyond === undefined || beyond < this.beyond) this.beyond = beyond
    }
    for (let row = Math.max(0, from); row < to && row < this.rows; row += 1) {
      if (this.has(row)) continue
      this.#bits[row >> 3] = (this.#bits[row >> 3] ?? 0) | (1 << (row & 7))
      this.count += 1
    }
  }

  addAll(other: PositionSet): void {
    for (const row of other) this.add(row, row + 1)
  }

  *[Symbol.iterator](): Generator<number> {
    for (let byte = 0; byte < this.#bits.length; byte += 1) {
      if (this.#bits[byte] === 0) continue
      for (let row = 8 * byte; row < 8 * byte + 8; row += 1) if (this.has(row)) yield row
    }
  }
}
