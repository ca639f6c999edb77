import { check } from '../../core/never.ts'
import type { BadRecord, RefusedChange } from './input.ts'
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
   * @param lines The line of each change, from 0.
   */
  recordOf(lines: Uint32Array, row: number, reason: string): Omit<RefusedChange, 'error'> {
    const line = lines[row]
    check(line !== undefined, 'the change is in the batch')
    const text = Buffer.concat(this.#parts)
    let from = 0
    for (let passed = 0; passed < line; passed += 1) from = text.indexOf(10, from) + 1
    const newline = text.indexOf(10, from)
    const to = newline === -1 ? text.length : newline
    const number = this.#lines + BigInt(line) + 1n
    const byte = this.#position + BigInt(from)
    const bad: BadRecord = {
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
