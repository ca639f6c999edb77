import { murmur3 } from '../../bucketing/murmur.ts'
import {
  compareWithKey,
  copyRecord,
  hasKeyAt,
  headerBytes,
  isDeleteAt,
  keyAt,
  keyLengthAt,
  keyStartAt,
  payloadAt,
  valueAt,
  writeRecord,
} from './records.ts'
import { sortByKey } from './sort-keys.ts'

export function hashKey(key: Uint8Array, seed: number): number {
  return murmur3(key, 0, key.length, seed)
}

/**
 * The last value, or the delete, of each key put into it. Everything lies in typed arrays, so that
 * millions of entries are nothing to a garbage collector; what was overwritten stays in the arena,
 * so that values handed out never change.
 */
export class KeyTable {
  readonly #seed: number
  #arena = new Uint8Array(0)
  #end = 0
  /** Pairs of hash and position + 1; 0 is a free slot. */
  #slots: Uint32Array
  #keys = 0
  #deletes = 0
  #payload = 0
  #overwritten = 0
  #order: Uint32Array | undefined

  /** @param expected How many keys it will have about, so that its slots need not grow. */
  constructor(seed: number, expected = 0) {
    this.#seed = seed
    this.#slots = new Uint32Array(slotsFor(expected))
  }

  /** Different keys, deleted ones included. */
  get keys(): number {
    return this.#keys
  }

  /** Deletes that were put, overwritten ones included. */
  get deletes(): number {
    return this.#deletes
  }

  /** Bytes of all keys and values that were put, overwritten ones included. */
  get payload(): number {
    return this.#payload
  }

  /** Bytes of those that were overwritten. */
  get overwritten(): number {
    return this.#overwritten
  }

  /** What it takes of the process, free room included. */
  get memoryBytes(): number {
    return this.#arena.length + this.#slots.byteLength + (this.#order?.byteLength ?? 0)
  }

  get arena(): Uint8Array {
    return this.#arena
  }

  /** The position of the entry of a key; -1 where there is none. */
  find(key: Uint8Array, hash: number): number {
    const slots = this.#slots
    const mask = slots.length - 2
    const arena = this.#arena
    const wanted = hash >>> 0
    let slot = (wanted << 1) & mask
    for (;;) {
      const place = slots[slot + 1] ?? 0
      if (place === 0) return -1
      if (slots[slot] === wanted && hasKeyAt(arena, place - 1, key)) return place - 1
      slot = (slot + 2) & mask
    }
  }

  /** Puts a value, or a delete where there is none. */
  put(key: Uint8Array, hash: number, value: Uint8Array | undefined): void {
    const payload = key.length + (value === undefined ? 0 : value.length)
    this.#reserve(payload + headerBytes)
    const start = this.#end
    this.#end = writeRecord(this.#arena, start, key, value)
    this.#link(start, key, hash)
  }

  /** Puts an entry of another table. */
  copy(from: KeyTable, position: number): void {
    this.copyFrom(from.#arena, position)
  }

  /** Puts an entry that lies in other bytes, and answers where the next one begins there. */
  copyFrom(arena: Uint8Array, position: number): number {
    const start = keyStartAt(position)
    const key = arena.subarray(start, start + keyLengthAt(arena, position))
    this.#reserve(payloadAt(arena, position) + headerBytes)
    const place = this.#end
    const next = copyRecord(this.#arena, place, arena, position)
    this.#end = place + next - position
    this.#link(place, key, hashKey(key, this.#seed))
    return next
  }

  value(position: number): Uint8Array | undefined {
    return valueAt(this.#arena, position)
  }

  key(position: number): Uint8Array {
    return keyAt(this.#arena, position)
  }

  /** Positions in the order of the keys. */
  order(): Uint32Array {
    this.#order ??= this.#sort()
    return this.#order
  }

  /** The place in `order()` of the first key that is not below this one. */
  seek(key: Uint8Array): number {
    const order = this.order()
    let low = 0
    let high = order.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (compareWithKey(this.#arena, order[middle] ?? 0, key) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Gives back room that is free, where that is worth a copy. */
  trim(): void {
    if (this.#end < this.#arena.length * slackShare) this.#arena = this.#arena.slice(0, this.#end)
    const needed = slotsFor(this.#keys)
    if (needed < this.#slots.length) this.#resize(needed)
  }

  #sort(): Uint32Array {
    const order = new Uint32Array(this.#keys)
    let count = 0
    const slots = this.#slots
    for (let slot = 1; slot < slots.length; slot += 2) {
      const place = slots[slot] ?? 0
      if (place === 0) continue
      order[count] = place - 1
      count += 1
    }
    sortByKey(this.#arena, order)
    return order
  }

  /** Makes the entry at a position that of its key. */
  #link(position: number, key: Uint8Array, hash: number): void {
    const slots = this.#slots
    const arena = this.#arena
    const mask = slots.length - 2
    const wanted = hash >>> 0
    let slot = (wanted << 1) & mask
    for (;;) {
      const place = slots[slot + 1] ?? 0
      if (place === 0) {
        slots[slot] = wanted
        this.#keys += 1
        break
      }
      if (slots[slot] === wanted && hasKeyAt(arena, place - 1, key)) {
        this.#overwritten += payloadAt(arena, place - 1)
        break
      }
      slot = (slot + 2) & mask
    }
    slots[slot + 1] = position + 1
    this.#payload += payloadAt(arena, position)
    if (isDeleteAt(arena, position)) this.#deletes += 1
    this.#order = undefined
    if (this.#keys * 4 > slots.length) this.#resize(slots.length * 2)
  }

  #reserve(bytes: number): void {
    const needed = this.#end + bytes
    if (needed <= this.#arena.length) return
    if (needed > arenaBytesMax) throw new RangeError(`a table of ${needed} bytes is too large`)
    const wanted = Math.min(arenaBytesMax, this.#arena.length * growth)
    const grown = new Uint8Array(Math.max(arenaBytesMin, needed, Math.ceil(wanted)))
    grown.set(this.#arena.subarray(0, this.#end))
    this.#arena = grown
  }

  #resize(length: number): void {
    const old = this.#slots
    const slots = new Uint32Array(length)
    const mask = slots.length - 2
    for (let at = 0; at < old.length; at += 2) {
      const place = old[at + 1] ?? 0
      if (place === 0) continue
      const hash = old[at] ?? 0
      let slot = (hash << 1) & mask
      while (slots[slot + 1] !== 0) slot = (slot + 2) & mask
      slots[slot] = hash
      slots[slot + 1] = place
    }
    this.#slots = slots
  }
}

/** Numbers, two a slot, of which at most half are taken. */
function slotsFor(keys: number): number {
  return 2 * Math.max(slotsMin, 2 ** Math.ceil(Math.log2(keys * 2)))
}

const slotsMin = 16
const arenaBytesMin = 1_024
const growth = 1.5
/** Positions and one more must fit into 32 bits. */
const arenaBytesMax = 2 ** 32 - 2
const slackShare = 0.8
