import type { Column } from '../../core/columns/column.ts'
import { type Leaf, type Physical } from './file-schema.ts'
import { viewOf, wordsOf } from './plain.ts'
import type { Run } from './shred.ts'

/** A dictionary page larger than this costs readers more than it saves. */
const dictionaryBytesMax = 1 << 20

/** From this many values on, a column with more distinct ones than `distinctMax` is not worth it. */
export const sampleSize = 20_000
const distinctMax = 0.6

const empty = -1

export type Dictionary = {
  /** The distinct values in order of appearance, without nulls. */
  readonly column: Column
  readonly size: number
  /** For each present value of the runs, in order, its place in `column`. */
  readonly codes: Int32Array
}

/** The dictionary of a column chunk, or undefined where plain values are the better choice. */
export function buildDictionary(leaf: Leaf, runs: readonly Run[]): Dictionary | undefined {
  const total = runs.reduce((sum, run) => sum + run.values.count, 0)
  if (total === 0 || !canHaveDictionary(leaf.physical)) return undefined
  const first = runs[0]?.column
  if (first === undefined) return undefined
  const table = first.layout === 'bytes' ? new BytesTable() : new WordsTable(wordsPerValue(first))
  const codes = new Int32Array(total)
  let done = 0
  for (const run of runs) {
    if (!table.addRun(run, codes, done)) return undefined
    done += run.values.count
  }
  const plainBytes = table.seenBytes
  const codeBytes = (total * bitsFor(table.size)) / 8
  if (table.distinctBytes + codeBytes >= plainBytes) return undefined
  return { column: table.column(first), size: table.size, codes }
}

/** Floats are left out: their distinct bits are many, and their NaN must be counted anyway. */
function canHaveDictionary(physical: Physical): boolean {
  return physical !== 'boolean' && physical !== 'float' && physical !== 'double'
}

function bitsFor(size: number): number {
  return Math.max(1, 32 - Math.clz32(size - 1))
}

function wordsPerValue(column: Column): 1 | 2 | 4 {
  return column.layout === 'int128' ? 4 : column.layout === 'int64' ? 2 : 1
}

/** Open addressing over the hashes of the distinct values. */
abstract class Table {
  size = 0
  /** Bytes of all values added, and of the distinct ones, in PLAIN form. */
  seenBytes = 0
  distinctBytes = 0
  protected slots = new Int32Array(1 << 12).fill(empty)
  protected hashes = new Int32Array(1 << 11)

  /** @returns false when a dictionary is not worth it. */
  abstract addRun(run: Run, codes: Int32Array, done: number): boolean

  abstract column(like: Column): Column

  protected isWorthIt(seen: number): boolean {
    if (this.distinctBytes > dictionaryBytesMax) return false
    return seen < sampleSize || this.size <= seen * distinctMax
  }

  /** Enters value number `size`. */
  protected enter(slot: number, hash: number): void {
    this.slots[slot] = this.size
    this.hashes[this.size] = hash
    this.size += 1
    if (this.size < this.hashes.length) return
    const capacity = this.slots.length * 2
    const slots = new Int32Array(capacity).fill(empty)
    const hashes = new Int32Array(capacity >> 1)
    hashes.set(this.hashes)
    for (let code = 0; code < this.size; code += 1) {
      let at = (hashes[code] ?? 0) & (capacity - 1)
      while (slots[at] !== empty) at = (at + 1) & (capacity - 1)
      slots[at] = code
    }
    this.slots = slots
    this.hashes = hashes
  }
}

class WordsTable extends Table {
  readonly #stride: 1 | 2 | 4
  #distinct: Int32Array

  constructor(stride: 1 | 2 | 4) {
    super()
    this.#stride = stride
    this.#distinct = new Int32Array(stride << 11)
  }

  addRun(run: Run, codes: Int32Array, done: number): boolean {
    const words = integerWords(run.column)
    const stride = this.#stride
    const { indices, first, count } = run.values
    this.seenBytes += 4 * stride * count
    for (let i = 0; i < count; i += 1) {
      const at = stride * (indices === undefined ? first + i : (indices[i] ?? 0))
      let hash = Math.imul(words[at] ?? 0, 0x9e3779b1)
      if (stride > 1) hash = Math.imul(hash ^ (words[at + 1] ?? 0) ^ (hash >>> 15), 0x85ebca6b)
      if (stride > 2) {
        hash = Math.imul(hash ^ (words[at + 2] ?? 0) ^ (hash >>> 13), 0x9e3779b1)
        hash = Math.imul(hash ^ (words[at + 3] ?? 0) ^ (hash >>> 15), 0x85ebca6b)
      }
      hash ^= hash >>> 15
      const mask = this.slots.length - 1
      let slot = hash & mask
      let code = this.slots[slot] ?? empty
      while (code !== empty && !this.#holds(code, words, at)) {
        slot = (slot + 1) & mask
        code = this.slots[slot] ?? empty
      }
      if (code === empty) {
        code = this.#append(words, at, slot, hash)
        if (!this.isWorthIt(done + i)) return false
      }
      codes[done + i] = code
    }
    return true
  }

  column(like: Column): Column {
    const base = { type: like.type, length: this.size, nullCount: 0, validity: undefined }
    const words = this.#distinct
    const wide = new BigInt64Array(words.buffer, 0, (this.size * this.#stride) >> 1)
    if (like.layout === 'int128') return { ...base, bitOffset: 0, layout: 'int128', values: wide }
    if (like.layout === 'int64') return { ...base, bitOffset: 0, layout: 'int64', values: wide }
    return { ...base, bitOffset: 0, layout: 'int32', values: words.subarray(0, this.size) }
  }

  #holds(code: number, words: Int32Array, at: number): boolean {
    const distinct = this.#distinct
    const stride = this.#stride
    const from = stride * code
    if (distinct[from] !== words[at]) return false
    if (stride === 1) return true
    if (distinct[from + 1] !== words[at + 1]) return false
    if (stride === 2) return true
    return distinct[from + 2] === words[at + 2] && distinct[from + 3] === words[at + 3]
  }

  #append(words: Int32Array, at: number, slot: number, hash: number): number {
    const code = this.size
    const stride = this.#stride
    if ((code + 1) * stride > this.#distinct.length) {
      const grown = new Int32Array(this.#distinct.length * 2)
      grown.set(this.#distinct)
      this.#distinct = grown
    }
    for (let word = 0; word < stride; word += 1) {
      this.#distinct[stride * code + word] = words[at + word] ?? 0
    }
    this.distinctBytes += 4 * stride
    this.enter(slot, hash)
    return code
  }
}

/** Hashes the bytes where they lie; no string is ever made. */
class BytesTable extends Table {
  #offsets = new Int32Array(1 << 11)
  #arena = new Uint8Array(1 << 15)
  #view = viewOf(this.#arena)

  addRun(run: Run, codes: Int32Array, done: number): boolean {
    const { column } = run
    if (column.layout !== 'bytes') return false
    const { offsets, values: source } = column
    const { indices, first, count } = run.values
    const view = viewOf(source)
    for (let i = 0; i < count; i += 1) {
      const at = indices === undefined ? first + i : (indices[i] ?? 0)
      const begin = offsets[at] ?? 0
      const end = offsets[at + 1] ?? 0
      this.seenBytes += 4 + end - begin
      if (end - begin > dictionaryBytesMax) return false
      let hash = 0x811c9dc5 ^ (end - begin)
      let byte = begin
      for (; byte + 4 <= end; byte += 4) {
        hash = Math.imul(hash ^ view.getInt32(byte, true), 0x9e3779b1)
        hash ^= hash >>> 15
      }
      for (; byte < end; byte += 1) hash = Math.imul(hash ^ (source[byte] ?? 0), 0x01000193)
      hash ^= hash >>> 15
      const mask = this.slots.length - 1
      let slot = hash & mask
      let code = this.slots[slot] ?? empty
      while (code !== empty && !this.#holds(code, hash, view, begin, end)) {
        slot = (slot + 1) & mask
        code = this.slots[slot] ?? empty
      }
      if (code === empty) {
        code = this.#append(source, begin, end, slot, hash)
        if (!this.isWorthIt(done + i)) return false
      }
      codes[done + i] = code
    }
    return true
  }

  column(like: Column): Column {
    return {
      type: like.type,
      length: this.size,
      nullCount: 0,
      validity: undefined,
      bitOffset: 0,
      layout: 'bytes',
      offsets: this.#offsets.subarray(0, this.size + 1),
      values: this.#arena,
    }
  }

  #holds(code: number, hash: number, source: DataView, begin: number, end: number): boolean {
    if (this.hashes[code] !== hash) return false
    const arena = this.#view
    let at = this.#offsets[code] ?? 0
    if ((this.#offsets[code + 1] ?? 0) - at !== end - begin) return false
    let byte = begin
    for (; byte + 4 <= end; byte += 4, at += 4) {
      if (arena.getInt32(at) !== source.getInt32(byte)) return false
    }
    for (; byte < end; byte += 1, at += 1) {
      if (arena.getUint8(at) !== source.getUint8(byte)) return false
    }
    return true
  }

  #append(source: Uint8Array, begin: number, end: number, slot: number, hash: number): number {
    const code = this.size
    const from = this.#offsets[code] ?? 0
    const to = from + end - begin
    if (to > this.#arena.length) {
      const grown = new Uint8Array(Math.max(to, this.#arena.length * 2))
      grown.set(this.#arena.subarray(0, from))
      this.#arena = grown
      this.#view = viewOf(grown)
    }
    if (code + 2 > this.#offsets.length) {
      const grown = new Int32Array(this.#offsets.length * 2)
      grown.set(this.#offsets)
      this.#offsets = grown
    }
    this.#arena.set(source.subarray(begin, end), from)
    this.#offsets[code + 1] = to
    this.distinctBytes += 4 + end - begin
    this.enter(slot, hash)
    return code
  }
}

function integerWords(column: Column): Int32Array {
  if (column.layout === 'int32' || column.layout === 'int64' || column.layout === 'int128') {
    return wordsOf(column.values)
  }
  return new Int32Array(0)
}
