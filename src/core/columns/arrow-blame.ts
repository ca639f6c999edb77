import { type Column, isNull } from './column.ts'

/** Told of a value that its column cannot hold, by its place in the column. */
export type Blame = (at: number, reason: string) => void

/** What reading Arrow memory leaves behind besides columns. */
export type Scope = {
  /** Counts values that lost precision. */
  readonly cut: { values: number }
  readonly blame: Blame
}

type Base = Pick<Column, 'type' | 'length' | 'nullCount' | 'validity' | 'bitOffset'>

/** The scope of a row's members: where the row is null, they are no values. */
export function scopeOfMembers(row: Base, { cut, blame }: Scope): Scope {
  return {
    cut,
    blame: (at, reason) => {
      if (!isNull(row, at)) blame(at, reason)
    },
  }
}

/** The scope of elements: what lies in no list or map, or in one that is null, is no value. */
export function scopeOfElements(owner: Base, offsets: Int32Array, { cut, blame }: Scope): Scope {
  return {
    cut,
    blame: (at, reason) => {
      const index = ownerOf(offsets, at)
      if (index !== -1 && !isNull(owner, index)) blame(index, reason)
    },
  }
}

/** The scope of a dictionary, whose values become known before the elements that use them. */
export function scopeOfDictionary({ cut }: Scope): {
  readonly scope: Scope
  /** Why a value of the dictionary cannot be held, by its place there. */
  readonly reasons: ReadonlyMap<number, string>
} {
  const reasons = new Map<number, string>()
  const blame: Blame = (at, reason) => {
    if (!reasons.has(at)) reasons.set(at, reason)
  }
  return { scope: { cut, blame }, reasons }
}

/** The last of those that begin at or before the element, if it ends behind it. */
function ownerOf(offsets: Int32Array, at: number): number {
  let low = 0
  let high = offsets.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if ((offsets[middle] ?? 0) <= at) low = middle
    else high = middle - 1
  }
  const isInside = at >= (offsets[low] ?? 0) && at < (offsets[low + 1] ?? 0)
  return isInside ? low : -1
}
