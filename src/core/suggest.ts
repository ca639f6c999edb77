/**
 * The candidate a misspelt name most likely meant, or nothing when none is close: at most one edit
 * in three letters. Ties go to the earlier candidate.
 */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined
  let bestDistance = Math.max(1, Math.floor(name.length / 3)) + 1
  for (const candidate of candidates) {
    if (candidate === name) continue
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase(), bestDistance)
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** ` Did you mean X?` with a leading full stop, ready to be added to a message, or nothing. */
export function didYouMean(name: string, candidates: Iterable<string>): string {
  const candidate = nearest(name, candidates)
  return candidate === undefined ? '' : `. Did you mean ${candidate}?`
}

/** Edits with a swap of neighbors as one (optimal string alignment), cut off at `limit`. */
function editDistance(left: string, right: string, limit: number): number {
  if (Math.abs(left.length - right.length) >= limit) return limit
  const width = right.length + 1
  let older = new Array<number>(width).fill(0)
  let previous = Array.from({ length: width }, (_, index) => index)
  let current = new Array<number>(width).fill(0)
  for (let row = 1; row <= left.length; row += 1) {
    current[0] = row
    for (let column = 1; column < width; column += 1) {
      const same = left[row - 1] === right[column - 1]
      let cost = Math.min(
        (previous[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (previous[column - 1] ?? 0) + (same ? 0 : 1),
      )
      const swapped = row > 1 && column > 1
      if (swapped && left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1]) {
        cost = Math.min(cost, (older[column - 2] ?? 0) + 1)
      }
      current[column] = cost
    }
    ;[older, previous, current] = [previous, current, older]
  }
  return previous[right.length] ?? limit
}
