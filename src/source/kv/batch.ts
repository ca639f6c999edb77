import { check } from '../../core/never.ts'
import type { KvFamily } from './ports.ts'

/**
 * Operations over several families that are applied together. Keys and values are kept as they are
 * given and must not be changed until the batch is written; after that it can be cleared and filled
 * again.
 */
export class KvBatch {
  /** The operations in their order: family, key, and the value or undefined for a delete. */
  readonly families: number[] = []
  readonly keys: Uint8Array[] = []
  readonly values: (Uint8Array | undefined)[] = []
  #bytes = 0
  readonly #isOpen: (family: KvFamily) => boolean

  constructor(isOpen: (family: KvFamily) => boolean) {
    this.#isOpen = isOpen
  }

  get operations(): number {
    return this.keys.length
  }

  /** Bytes of all keys and values. */
  get bytes(): number {
    return this.#bytes
  }

  put(family: KvFamily, key: Uint8Array, value: Uint8Array): this {
    return this.#add(family, key, value)
  }

  delete(family: KvFamily, key: Uint8Array): this {
    return this.#add(family, key, undefined)
  }

  clear(): this {
    this.families.length = 0
    this.keys.length = 0
    this.values.length = 0
    this.#bytes = 0
    return this
  }

  #add(family: KvFamily, key: Uint8Array, value: Uint8Array | undefined): this {
    check(this.#isOpen(family), `family ${family.name} is one of the store of the batch`)
    this.families.push(family.id)
    this.keys.push(key)
    this.values.push(value)
    this.#bytes += key.length + (value?.length ?? 0)
    return this
  }
}
