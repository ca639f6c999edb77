import type { Leaf } from './file-schema.ts'
import type { Run } from './shred.ts'

/** Place in a run: always at the beginning of a row. */
export type Place = {
  readonly rows: number
  readonly entries: number
  readonly values: number
}

export const runStart: Place = { rows: 0, entries: 0, values: 0 }

/** How much is to be taken at once; at least one row is, whatever its size. */
export type Limits = {
  /** Bytes a value takes; 0 for text and bytes, whose sizes are looked up. */
  readonly fixedBytes: number
  readonly rowsMax: number
  readonly bytesMax: number
}

/** Where the next rows of a run end, if they are to stay within the limits. */
export function nextPlace(run: Run, from: Place, leaf: Leaf, limits: Limits): Place {
  const { definition, repetition, column, values } = run
  const offsets = column.layout === 'bytes' && limits.fixedBytes === 0 ? column.offsets : undefined
  if (repetition !== undefined) return nextOfRows(run, from, leaf, limits, offsets)
  if (offsets !== undefined && (definition !== undefined || values.indices !== undefined)) {
    return nextOfRows(run, from, leaf, limits, offsets)
  }
  const entries =
    offsets === undefined
      ? lastOfFixed(run, from, limits)
      : lastOfDense(run, from, limits, offsets, values.first)
  const rows = from.rows + entries - from.entries
  if (definition === undefined) return { rows, entries, values: from.values + rows - from.rows }
  let present = from.values
  for (let at = from.entries; at < entries; at += 1) {
    present += definition[at] === leaf.definitionMax ? 1 : 0
  }
  return { rows, entries, values: present }
}

/** One value a row at most: so many rows fit, whichever of them are null. */
function lastOfFixed(run: Run, from: Place, limits: Limits): number {
  const room = Math.max(1, Math.floor(limits.bytesMax / limits.fixedBytes))
  return Math.min(run.entries, from.entries + Math.min(limits.rowsMax, room))
}

/** Searches the ascending offsets of text without nulls. */
function lastOfDense(
  run: Run,
  from: Place,
  limits: Limits,
  offsets: Int32Array,
  first: number,
): number {
  const begin = offsets[first + from.values] ?? 0
  let low = from.entries + 1
  let high = Math.min(run.entries, from.entries + limits.rowsMax)
  while (low < high) {
    const middle = (low + high + 1) >> 1
    const bytes = (offsets[first + middle] ?? 0) - begin + 4 * (middle - from.entries)
    if (bytes <= limits.bytesMax) low = middle
    else high = middle - 1
  }
  return low
}

/** Adds up row by row. */
function nextOfRows(
  run: Run,
  from: Place,
  leaf: Leaf,
  limits: Limits,
  offsets: Int32Array | undefined,
): Place {
  const { definition, repetition } = run
  const { indices, first } = run.values
  let { rows, entries, values } = from
  let bytes = 0
  while (entries < run.entries && rows - from.rows < limits.rowsMax) {
    let rowEntries = entries
    let rowValues = values
    let rowBytes = 0
    do {
      if (definition === undefined || definition[rowEntries] === leaf.definitionMax) {
        if (offsets === undefined) rowBytes += limits.fixedBytes
        else {
          const at = indices === undefined ? first + rowValues : (indices[rowValues] ?? 0)
          rowBytes += 4 + (offsets[at + 1] ?? 0) - (offsets[at] ?? 0)
        }
        rowValues += 1
      }
      rowEntries += 1
    } while (rowEntries < run.entries && repetition !== undefined && repetition[rowEntries] !== 0)
    if (rows > from.rows && bytes + rowBytes > limits.bytesMax) break
    rows += 1
    entries = rowEntries
    values = rowValues
    bytes += rowBytes
  }
  return { rows, entries, values }
}
