import type { Leaf } from './file-schema.ts'
import type { Run } from './shred.ts'

/** Place in a run: always at the beginning of a row. */
export type Place = {
  readonly rows: number
  readonly entries: number
  readonly values: number
}

export const runStart: Place = { rows: 0, entries: 0, values: 0 }

/**
 * Where the next rows of a run end, if they are to be at most `rowsMax` and about `bytesMax` bytes of
 * values. At least one row is taken, whatever its size.
 *
 * @param fixedBytes Bytes a value takes; 0 for text and bytes, whose sizes are looked up.
 */
export function nextPlace(
  run: Run,
  from: Place,
  leaf: Leaf,
  fixedBytes: number,
  rowsMax: number,
  bytesMax: number,
): Place {
  const { definition, repetition } = run
  const offsets = run.column.layout === 'bytes' && fixedBytes === 0 ? run.column.offsets : undefined
  if (definition === undefined && repetition === undefined && offsets === undefined) {
    const count = Math.max(1, Math.min(rowsMax, Math.floor(bytesMax / Math.max(1, fixedBytes))))
    const taken = Math.min(count, run.entries - from.entries)
    return {
      rows: from.rows + taken,
      entries: from.entries + taken,
      values: from.values + taken,
    }
  }
  const { indices, first } = run.values
  let { rows, entries, values } = from
  let bytes = 0
  while (entries < run.entries && rows - from.rows < rowsMax) {
    let rowEntries = entries
    let rowValues = values
    let rowBytes = 0
    do {
      if (definition === undefined || definition[rowEntries] === leaf.definitionMax) {
        if (offsets === undefined) rowBytes += fixedBytes
        else {
          const at = indices === undefined ? first + rowValues : (indices[rowValues] ?? 0)
          rowBytes += 4 + (offsets[at + 1] ?? 0) - (offsets[at] ?? 0)
        }
        rowValues += 1
      }
      rowEntries += 1
    } while (rowEntries < run.entries && repetition !== undefined && repetition[rowEntries] !== 0)
    if (rows > from.rows && bytes + rowBytes > bytesMax) break
    rows += 1
    entries = rowEntries
    values = rowValues
    bytes += rowBytes
  }
  return { rows, entries, values }
}
