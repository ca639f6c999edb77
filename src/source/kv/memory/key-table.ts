import { murmur3 } from '../../bucketing/murmur.ts'
import { Arena, offsetOf } from './arena.ts'
import {
  compareKeysAt,
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
  return murmur3(key, 0, key.length, seed) >>> 0
}

/**
 * The last value, or the delete, of each key put into it. Everything lies in typed arrays, so that
 * millions of entries are nothing to a garbage collector; what was overwritten stays in the arena,
 * so that values handed out never change.
 */
export class KeyTable {
  readonly #seed: number
  readonly #arena = new Arena()
  /** Pairs of hash and position + 1; 0 is a free slot. */
  #slots: Uint32Array
  #keys = 0
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
    return this.#arena.bytes + this.#slots.byteLength + (this.#order?.byteLength ?? 0)
  }

  /** The position of the entry of a key; -1 where there is none. */
  find(key: Uint8Array, hash: number): number {
    return (this.#slots[this.#slotOf(key, hash) + 1] ?? 0) - 1
  }

  /** Puts a value, or a delete where there is none. */
  put(key: Uint8Array, hash: number, value: Uint8Array | undefined): void {
    const payload = key.length + (value === undefined ? 0 : value.length)
    const position = this.#arena.take(payload + headerBytes)
    writeRecord(this.#arena.chunkAt(position), offsetOf(position), key, value)
    this.#link(position, this.#slotOf(key, hash), { hash, payload })
  }

  /** Puts an entry that lies in other bytes, and answers where the next one begins there. */
  copyFrom(bytes: Uint8Array, offset: number): number {
    const start = keyStartAt(offset)
    const hash = murmur3(bytes, start, start + keyLengthAt(bytes, offset), this.#seed) >>> 0
    this.#copy(bytes, offset, { hash, slot: this.#slotOfEntry(bytes, offset, hash) })
    return start + payloadAt(bytes, offset)
  }

  /**
   * Takes entries over from an older table, unless this one has their keys. With `gone`, a table of
   * deletes, they go there instead and hide older entries from there.
   */
  takeOlder(older: KeyTable, gone: KeyTable | undefined): void {
    const slots = older.#slots
    for (let at = 0; at < slots.length; at += 2) {
      const place = slots[at + 1] ?? 0
      if (place === 0) continue
      const hash = slots[at] ?? 0
      const bytes = older.bytesAt(place - 1)
      const offset = offsetOf(place - 1)
      const slot = this.#slotOfEntry(bytes, offset, hash)
      if (this.#slots[slot + 1] !== 0) continue
      if (gone === undefined) this.#copy(bytes, offset, { hash, slot })
      else if (!gone.#takeDelete(bytes, offset, hash)) this.#copy(bytes, offset, { hash, slot })
    }
  }

  /** The chunk a position is in; `offsetOf` says where in it. */
  bytesAt(position: number): Uint8Array {
    return this.#arena.chunkAt(position)
  }

  value(position: number): Uint8Array | undefined {
    return valueAt(this.#arena.chunkAt(position), offsetOf(position))
  }

  key(position: number): Uint8Array {
    return keyAt(this.#arena.chunkAt(position), offsetOf(position))
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
      const position = order[middle] ?? 0
      const bytes = this.#arena.chunkAt(position)
      if (compareWithKey(bytes, offsetOf(position), key) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Gives back room that is free, where that is worth a copy. */
  trim(): void {
    this.#arena.trim()
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

  #copy(
    bytes: Uint8Array,
    offset: number,
    { hash, slot }: { readonly hash: number; readonly slot: number },
  ): void {
    const payload = payloadAt(bytes, offset)
    const position = this.#arena.take(payload + headerBytes)
    copyRecord(this.#arena.chunkAt(position), offsetOf(position), bytes, offset)
    this.#link(position, slot, { hash, payload })
  }

  /** Takes a delete over; true where this table has its key now, or had it. */
  #takeDelete(bytes: Uint8Array, offset: number, hash: number): boolean {
    const slot = this.#slotOfEntry(bytes, offset, hash)
    if (this.#slots[slot + 1] !== 0) return true
    if (!isDeleteAt(bytes, offset)) return false
    this.#copy(bytes, offset, { hash, slot })
    return true
  }

  /** Makes the entry at a position that of its key, whose slot is given. */
  #link(
    position: number,
    slot: number,
    { hash, payload }: { readonly hash: number; readonly payload: number },
  ): void {
    const slots = this.#slots
    const old = slots[slot + 1] ?? 0
    if (old === 0) {
      slots[slot] = hash
      this.#keys += 1
    } else {
      this.#overwritten += payloadAt(this.#arena.chunkAt(old - 1), offsetOf(old - 1))
    }
    slots[slot + 1] = position + 1
    this.#payload += payload
    this.#order = undefined
    if (this.#keys * 4 > slots.length) this.#resize(slots.length * 2)
  }

  /** The slot of a key, or the free one it would get. */
  #slotOf(key: Uint8Array, hash: number): number {
    const slots = this.#slots
    const mask = slots.length - 2
    let slot = (hash << 1) & mask
    for (;;) {
      const place = slots[slot + 1] ?? 0
      if (place === 0) return slot
      if (slots[slot] === hash && this.#isAt(place - 1, key)) return slot
      slot = (slot + 2) & mask
    }
  }

  #isAt(position: number, key: Uint8Array): boolean {
    return hasKeyAt(this.#arena.chunkAt(position), offsetOf(position), key)
  }

  /** As `#slotOf`, for the key of an entry that lies elsewhere. */
  #slotOfEntry(bytes: Uint8Array, offset: number, hash: number): number {
    const slots = this.#slots
    const mask = slots.length - 2
    let slot = (hash << 1) & mask
    for (;;) {
      const place = slots[slot + 1] ?? 0
      if (place === 0) return slot
      if (slots[slot] === hash) {
        const own = this.#arena.chunkAt(place - 1)
        if (compareKeysAt(own, offsetOf(place - 1), bytes, offset) === 0) return slot
      }
      slot = (slot + 2) & mask
    }
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
