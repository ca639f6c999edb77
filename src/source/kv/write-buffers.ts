import { SluiceError } from '../../core/errors.ts'
import { formatBytes } from '../../core/text.ts'
import { after } from './awaitable.ts'
import type { EngineStore, FamilyBuffers, KvEngine } from './engine.ts'
import type { Awaitable } from './ports.ts'

export type WriteBuffersOptions = {
  readonly engine: Pick<KvEngine, 'flushAt' | 'batchShare'>
  readonly store: Pick<EngineStore, 'heldBytes' | 'buffers' | 'flush'>
  readonly bytesMax: number
  readonly onForcedFlush: (flushed: FamilyBuffers) => void
}

/**
 * Keeps the write buffers of all families of a store together below one limit: before a batch would
 * pass it, the family with the largest buffer is flushed. The greedy one pays, not the old one.
 */
export class WriteBuffers {
  readonly #options: WriteBuffersOptions
  #bytesMax: number
  #cursors = 0
  #waiting: (() => void)[] = []

  constructor(options: WriteBuffersOptions) {
    this.#options = options
    this.#bytesMax = options.bytesMax
  }

  get bytesMax(): number {
    return this.#bytesMax
  }

  resize(bytesMax: number): void {
    this.#bytesMax = bytesMax
  }

  get batchBytesMax(): number {
    return Math.floor(this.#bytesMax * this.#options.engine.batchShare)
  }

  /**
   * Makes room for a batch. Waits while what is too much is kept alive by open cursors.
   * @throws SluiceError LIMIT_EXCEEDED when the batch is larger than a batch may be.
   */
  admit(bytes: number): Awaitable<void> {
    if (bytes > this.batchBytesMax) throw this.#tooLarge(bytes)
    return this.#makeRoom(bytes, new Set())
  }

  /** Whether these bytes fit as it is; false where that is not known at once. */
  hasRoom(bytes: number): boolean {
    const held = this.#options.store.heldBytes()
    return (
      typeof held === 'number' &&
      held + bytes <= this.#bytesMax * this.#options.engine.flushAt &&
      bytes <= this.batchBytesMax
    )
  }

  /** Notes that a cursor is open, and gives what to call when it is closed. */
  cursorOpened(): () => void {
    this.#cursors += 1
    return () => {
      this.#cursors -= 1
      for (const wake of this.#waiting.splice(0)) wake()
    }
  }

  #makeRoom(bytes: number, flushed: Set<number>): Awaitable<void> {
    const { store, engine } = this.#options
    return after(store.heldBytes(), (held) => {
      const limit = this.#bytesMax * engine.flushAt
      if (held + bytes <= limit) return
      return after(store.buffers(), (buffers) => {
        const victim = largest(buffers, flushed)
        if (victim !== undefined) return this.#flush(victim, bytes, flushed)
        const kept = held - buffers.reduce((sum, { flushable }) => sum + flushable, 0)
        if (this.#cursors === 0 || kept + bytes <= limit) return
        return this.#cursorClosed().then(() => this.#makeRoom(bytes, new Set()))
      })
    })
  }

  #flush(victim: FamilyBuffers, bytes: number, flushed: Set<number>): Awaitable<void> {
    flushed.add(victim.family)
    return after(this.#options.store.flush(victim.family), () => {
      this.#options.onForcedFlush(victim)
      return this.#makeRoom(bytes, flushed)
    })
  }

  #cursorClosed(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
    })
  }

  #tooLarge(bytes: number): SluiceError {
    return new SluiceError(
      'LIMIT_EXCEEDED',
      `a batch of ${formatBytes(bytes)} is larger than the ${formatBytes(this.batchBytesMax)} ` +
        'the write buffers of this KV store allow',
      {
        fix: 'write smaller batches, or raise kv.memory.size',
        details: { bytes, batchBytesMax: this.batchBytesMax, writeBufferBytesMax: this.#bytesMax },
      },
    )
  }
}

/** Of several that are equally large, the older family. One already flushed has no more to give. */
function largest(
  buffers: readonly FamilyBuffers[],
  flushed: ReadonlySet<number>,
): FamilyBuffers | undefined {
  let most: FamilyBuffers | undefined
  for (const each of buffers) {
    if (each.flushable === 0 || flushed.has(each.family)) continue
    if (most === undefined || each.flushable > most.flushable) most = each
  }
  return most
}
