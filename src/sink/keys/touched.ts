import { check } from '../../core/never.ts'
import type { RowPlace } from '../writer/rolling-writer.ts'
import type { TouchedKeys } from '../ports.ts'

/** A key as a map can hold it: one character for each byte. */
export function keyText(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.length).toString('latin1')
}

const isDeleted = -1

/**
 * Collects what a split does to each key it touches: where its newest row lies, and which rows of the
 * split's own files a later change has replaced.
 */
export class TouchedBuilder {
  readonly #numbers = new Map<string, number>()
  readonly #keys: Uint8Array[] = []
  readonly #places: RowPlace[] = []
  readonly #replaced = new Map<number, number[]>()

  get size(): number {
    return this.#keys.length
  }

  /** The key has a row there from now on. */
  put(key: Uint8Array, text: string, place: RowPlace): void {
    this.#set(key, text, place)
  }

  /** The key has no row from now on. */
  delete(key: Uint8Array, text: string): void {
    this.#set(key, text, { file: isDeleted, row: 0 })
  }

  finish(): TouchedKeys {
    const { length } = this.#keys
    const file = Int32Array.from({ length }, (_, at) => this.#places[at]?.file ?? isDeleted)
    const row = Uint32Array.from({ length }, (_, at) => this.#places[at]?.row ?? 0)
    return { keys: this.#keys, file, row, replaced: this.#replaced }
  }

  #set(key: Uint8Array, text: string, place: RowPlace): void {
    const known = this.#numbers.get(text)
    if (known === undefined) {
      this.#numbers.set(text, this.#keys.length)
      this.#keys.push(key)
      this.#places.push(place)
      return
    }
    const before = this.#places[known]
    check(before !== undefined, 'each key has a place')
    if (before.file !== isDeleted) {
      const rows = this.#replaced.get(before.file)
      if (rows === undefined) this.#replaced.set(before.file, [before.row])
      else rows.push(before.row)
    }
    this.#places[known] = place
  }
}
