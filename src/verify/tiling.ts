import type { Run } from './offsets.ts'

/** Consecutive offsets of a bucket in one file. */
export type Piece<File> = Run & { readonly file: File }

export type Overlap<File> = Run & { readonly first: File; readonly second: File }

export type Tiling<File> = {
  /** Offsets that are in no file, in order. */
  readonly gaps: readonly Run[]
  /** Offsets that are in two files, in order. */
  readonly overlaps: readonly Overlap<File>[]
}

/**
 * Whether the pieces of a bucket cover `whole` once each, apart from the declared holes. Pieces
 * outside of it are somebody else's rows.
 */
export function tile<File>(
  pieces: readonly Piece<File>[],
  declared: readonly Run[],
  whole: Run,
): Tiling<File> {
  const gaps: Run[] = []
  const overlaps: Overlap<File>[] = []
  let at = whole.start
  let before: Piece<File> | undefined
  for (const piece of inOrder(pieces)) {
    if (piece.start >= whole.end) break
    if (piece.end <= whole.start) continue
    if (piece.start > at) gaps.push(...without({ start: at, end: piece.start }, declared))
    if (before !== undefined && piece.start < before.end) {
      const start = piece.start > whole.start ? piece.start : whole.start
      const end = smaller(smaller(piece.end, before.end), whole.end)
      if (start < end) overlaps.push({ start, end, first: before.file, second: piece.file })
    }
    if (before === undefined || piece.end > before.end) before = piece
    if (piece.end > at) at = piece.end
  }
  if (at < whole.end) gaps.push(...without({ start: at, end: whole.end }, declared))
  return { gaps, overlaps }
}

/** What is left of a range when others are taken out of it. */
export function without(range: Run, others: readonly Run[]): readonly Run[] {
  const left: Run[] = []
  let at = range.start
  for (const other of inOrder(others)) {
    if (other.end <= at) continue
    if (other.start >= range.end) break
    if (other.start > at) left.push({ start: at, end: other.start })
    at = other.end
  }
  if (at < range.end) left.push({ start: at, end: range.end })
  return left
}

function inOrder<Each extends Run>(runs: readonly Each[]): readonly Each[] {
  return [...runs].sort((a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : 0))
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}
