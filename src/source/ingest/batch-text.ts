import { check } from '../../core/never.ts'
import type { BadLine, RefusedChange } from './input.ts'
import type { PrefixHash } from './prefix-hash.ts'

/** The text of one batch, kept as long as its records may still turn out to be bad. */
export class BatchText {
  readonly #position: bigint
  readonly #lines: bigint
  readonly #hash: PrefixHash
  readonly #parts: Buffer[] = []

  /**
   * @param position Of its first byte.
   * @param lines Before it.
   * @param hash Of everything before it; not used by anybody else.
   */
  constructor(position: bigint, lines: bigint, hash: PrefixHash) {
    this.#position = position
    this.#lines = lines
    this.#hash = hash
  }

  /** Text that follows; it is copied. */
  add(text: Uint8Array): void {
    this.#parts.push(Buffer.from(text))
  }

  /**
   * The record that a change is of.
   * @param lines The line of each change, from 1 at the start of the input.
   */
  recordOf(
    lines: Uint32Array,
    row: number,
    reason: string,
  ): Omit<RefusedChange, 'error' | 'bad'> & { readonly bad: BadLine } {
    const line = lines[row]
    check(line !== undefined, 'the change is in the batch')
    const before = line - Number(this.#lines) - 1
    const text = Buffer.concat(this.#parts)
    let from = 0
    for (let passed = 0; passed < before; passed += 1) from = text.indexOf(10, from) + 1
    const newline = text.indexOf(10, from)
    const to = newline === -1 ? text.length : newline
    const number = BigInt(line)
    const byte = this.#position + BigInt(from)
    const bad: BadLine = {
      kind: 'line',
      line: number,
      place: { line: number, column: 1, byte },
      byte,
      code: 'RECORD_REFUSED',
      reason,
      raw: Uint8Array.from(text.subarray(from, to)),
    }
    const hash = this.#hash.copy()
    hash.update(text.subarray(0, from))
    return {
      bad,
      first: lines.indexOf(line),
      end: lines.lastIndexOf(line) + 1,
      before: { endPosition: byte, ...hash.here() },
    }
  }
}
