/** What a cache knows of a key: its value, or that it has none. */
export type Cached = { readonly value: Uint8Array | undefined; readonly bytes: number }

/** A read that is on its way; a write to its key before it ends makes its answer worthless here. */
export type Expected = { readonly family: number; readonly key: Uint8Array; readonly text: string }

/** What an entry counts for beside its key and value. */
export const entryOverheadBytes = 96

export type ReadCacheOptions = {
  /** Whether all families share one list, or each has an equal part of its own. */
  readonly scope: 'shared' | 'per-family'
  readonly bytesMax: number
}

/**
 * Remembers what was read, of all families of one store, least recently used first out. Shared by
 * them, the family that is read most has the largest part.
 */
export class ReadCache {
  readonly #scope: ReadCacheOptions['scope']
  readonly #parts = new Map<number, Part>()
  readonly #expected = new Map<string, Expected>()
  #bytesMax: number

  constructor({ scope, bytesMax }: ReadCacheOptions) {
    this.#scope = scope
    this.#bytesMax = bytesMax
    if (scope === 'shared') this.#parts.set(sharedPart, new Part())
  }

  get bytes(): number {
    let sum = 0
    for (const { bytes } of this.#parts.values()) sum += bytes
    return sum
  }

  /** Gives the cache another size; what does not fit any more goes. */
  resize(bytesMax: number): void {
    this.#bytesMax = bytesMax
    this.#shrink()
  }

  addFamily(family: number): void {
    if (this.#scope === 'shared') return
    this.#parts.set(family, new Part())
    this.#shrink()
  }

  removeFamily(family: number): void {
    for (const [text, { family: of }] of this.#expected) {
      if (of === family) this.#expected.delete(text)
    }
    if (this.#scope === 'shared') this.#part(family)?.deleteFamily(family)
    else this.#parts.delete(family)
  }

  /** What is known of a key; undefined where nothing is. */
  get(family: number, key: Uint8Array): Cached | undefined {
    return this.#part(family)?.get(textOf(family, key))
  }

  /** Says that a key is about to be read. */
  expect(family: number, key: Uint8Array): Expected {
    const expected = { family, key, text: textOf(family, key) }
    this.#expected.set(expected.text, expected)
    return expected
  }

  /** Keeps what a read found, unless the key was written to, or asked for again, since. */
  fill(expected: Expected, value: Uint8Array | undefined): void {
    if (!this.abandon(expected)) return
    const bytes = entryOverheadBytes + expected.key.length + (value?.length ?? 0)
    if (bytes > this.#partBytesMax) return
    const part = this.#part(expected.family)
    part?.set(expected.text, { value, bytes })
    part?.shrink(this.#partBytesMax)
  }

  /** Ends a read that found nothing to keep; false when it had been ended by a write. */
  abandon(expected: Expected): boolean {
    if (this.#expected.get(expected.text) !== expected) return false
    this.#expected.delete(expected.text)
    return true
  }

  /** Says that a key was written to. */
  forget(family: number, key: Uint8Array): void {
    const text = textOf(family, key)
    this.#expected.delete(text)
    this.#part(family)?.delete(text)
  }

  get #partBytesMax(): number {
    return this.#bytesMax / Math.max(1, this.#parts.size)
  }

  #shrink(): void {
    for (const part of this.#parts.values()) part.shrink(this.#partBytesMax)
  }

  /** None for a family that was dropped while it was read or written. */
  #part(family: number): Part | undefined {
    return this.#parts.get(this.#scope === 'shared' ? sharedPart : family)
  }
}

/** One list of entries. A map keeps the order in which they were put in, so the first is the oldest. */
class Part {
  readonly #entries = new Map<string, Cached>()
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  get(text: string): Cached | undefined {
    const found = this.#entries.get(text)
    if (found === undefined) return undefined
    this.#entries.delete(text)
    this.#entries.set(text, found)
    return found
  }

  set(text: string, cached: Cached): void {
    this.delete(text)
    this.#entries.set(text, cached)
    this.#bytes += cached.bytes
  }

  delete(text: string): void {
    const found = this.#entries.get(text)
    if (found === undefined) return
    this.#entries.delete(text)
    this.#bytes -= found.bytes
  }

  deleteFamily(family: number): void {
    for (const text of this.#entries.keys()) {
      if (text.startsWith(familyText(family))) this.delete(text)
    }
  }

  shrink(bytesMax: number): void {
    for (const text of this.#entries.keys()) {
      if (this.#bytes <= bytesMax) return
      this.delete(text)
    }
  }
}

const sharedPart = -1

function familyText(family: number): string {
  return String.fromCharCode(family & 0xffff, family >>> 16)
}

/** A key of the cache: texts compare and hash where bytes would not. */
function textOf(family: number, key: Uint8Array): string {
  const bytes = Buffer.from(key.buffer, key.byteOffset, key.length)
  return familyText(family) + bytes.toString('latin1')
}
