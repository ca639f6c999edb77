import type { KvCursor, KvEntries, KvRange } from '../ports.ts'
import type { IteratorRange, Rows, Session } from './binding.ts'

/** Rows that the binding hands over at once. Large ones are in memory all together. */
const pieceRows = 256
const entriesDefault = 1_024

/** Reads the rows of a session, in order. */
export class RocksDbCursor implements KvCursor {
  readonly #rows: Rows
  readonly #explain: (error: unknown) => Promise<unknown>
  readonly #closed: Promise<void>
  #error: Error | undefined
  #isOver = false
  #wake: () => void = () => undefined

  constructor(
    session: Session,
    range: IteratorRange,
    explain: (error: unknown) => Promise<unknown>,
  ) {
    this.#explain = explain
    this.#rows = session.iterator(range, { capacity: pieceRows })
    this.#closed = new Promise((resolve) => {
      this.#rows.on('close', () => {
        this.#isOver = true
        this.#wake()
        resolve()
      })
    })
    this.#rows.on('error', (error) => {
      this.#error = error
    })
    this.#rows.on('end', () => {
      this.#isOver = true
      this.#wake()
    })
    // Also begins to read, so that the iterator is opened now and not at the first question.
    this.#rows.on('readable', () => {
      this.#wake()
    })
  }

  async next(entriesMax = entriesDefault): Promise<KvEntries | undefined> {
    const keys: Uint8Array[] = []
    const values: Uint8Array[] = []
    while (keys.length < entriesMax) {
      const row = this.#rows.read()
      if (row !== null) {
        keys.push(plain(row.key))
        values.push(plain(row.value))
      } else if (this.#isOver) {
        break
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      }
    }
    if (this.#error !== undefined) throw await this.#explain(this.#error)
    return keys.length === 0 ? undefined : { keys, values }
  }

  async close(): Promise<void> {
    this.#rows.destroy()
    await this.#closed
  }
}

export const emptyCursor: KvCursor = {
  next: (): KvEntries | undefined => undefined,
  close: () => undefined,
}

/** The binding answers with buffers, of which a slice is no copy. */
export function plain({ buffer, byteOffset, length }: Uint8Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, length)
}

/** A cursor that is opened when the store is. */
export function laterCursor(opening: Promise<KvCursor>): KvCursor {
  return {
    next: async (entriesMax) => (await opening).next(entriesMax),
    close: async () => (await opening).close(),
  }
}

/** Undefined where no key can be. The binding takes an empty bound for none. */
export function boundsOf({ from, to }: Pick<KvRange, 'from' | 'to'>): IteratorRange | undefined {
  if (to !== undefined && to.length === 0) return undefined
  if (from !== undefined && to !== undefined && Buffer.compare(from, to) >= 0) return undefined
  return {
    ...(from === undefined || from.length === 0 ? {} : { gte: from }),
    ...(to === undefined ? {} : { lt: to }),
  }
}
