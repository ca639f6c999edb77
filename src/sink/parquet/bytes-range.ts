import type { Column } from '../../core/columns/column.ts'
import { check } from '../../core/never.ts'
import { type Part, viewOf } from './plain.ts'
import type { Extremes, Range } from './range.ts'

/**
 * What is kept of an extreme value. Bounds are cut to far less, so two values that agree this far
 * have the same bounds, and a value of many megabytes is not held on to.
 */
const keptBytesMax = 512

/** Order of STRING and BYTES: by unsigned bytes, which for UTF-8 is the order of code points. */
export class BytesRange implements Range {
  readonly nanCount = 0
  #min: Uint8Array | undefined
  #max: Uint8Array | undefined

  add(column: Column, part: Part): void {
    check(column.layout === 'bytes', 'a column of text or bytes holds bytes')
    if (part.from === part.to) return
    const { offsets, values: source } = column
    const { indices, first } = part.values
    let min = this.#min ?? kept(column.offsets, source, elementAt(part, part.from))
    let max = this.#max ?? min
    let shared = sharedPrefix(min, max)
    const view = viewOf(source)
    let minView = viewOf(min)
    for (let i = part.from; i < part.to; i += 1) {
      const at = indices === undefined ? first + i : (indices[i] ?? 0)
      const begin = offsets[at] ?? 0
      const size = Math.min((offsets[at + 1] ?? 0) - begin, keptBytesMax)
      // Where both extremes agree, one comparison serves both.
      let same = 0
      const fours = Math.min(shared, size) - 4
      while (same <= fours && view.getInt32(begin + same) === minView.getInt32(same)) same += 4
      while (same < shared && same < size && source[begin + same] === min[same]) same += 1
      const aboveMin = compareFrom(source, begin, size, min, same)
      if (aboveMin < 0) {
        min = kept(offsets, source, at)
        minView = viewOf(min)
        shared = sharedPrefix(min, max)
      } else if (aboveMin > 0 && compareFrom(source, begin, size, max, same) > 0) {
        max = kept(offsets, source, at)
        shared = sharedPrefix(min, max)
      }
    }
    this.#min = min
    this.#max = max
  }

  extremes(): Extremes | undefined {
    if (this.#min === undefined || this.#max === undefined) return undefined
    return { min: this.#min, max: this.#max }
  }

  merge(other: Range): void {
    check(other instanceof BytesRange, 'ranges of one leaf are alike')
    const from = other.extremes()
    if (from === undefined) return
    const own = this.extremes() ?? from
    this.#min = compareFrom(from.min, 0, from.min.length, own.min, 0) < 0 ? from.min : own.min
    this.#max = compareFrom(from.max, 0, from.max.length, own.max, 0) > 0 ? from.max : own.max
  }
}

function elementAt(part: Part, at: number): number {
  const { indices, first } = part.values
  return indices === undefined ? first + at : (indices[at] ?? 0)
}

function kept(offsets: Int32Array, source: Uint8Array, at: number): Uint8Array {
  const begin = offsets[at] ?? 0
  return source.slice(begin, Math.min(offsets[at + 1] ?? 0, begin + keptBytesMax))
}

function sharedPrefix(a: Uint8Array, b: Uint8Array): number {
  const size = Math.min(a.length, b.length)
  let same = 0
  while (same < size && a[same] === b[same]) same += 1
  return same
}

/** Compares `source[begin, begin + size)` with `other`, of which the first `same` bytes agree. */
function compareFrom(
  source: Uint8Array,
  begin: number,
  size: number,
  other: Uint8Array,
  same: number,
): number {
  const end = Math.min(size, other.length)
  for (let at = same; at < end; at += 1) {
    const difference = (source[begin + at] ?? 0) - (other[at] ?? 0)
    if (difference !== 0) return difference
  }
  return size - other.length
}
