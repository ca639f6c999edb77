import { type Column, type ColumnBatch, countOnes, isNull } from '../../core/columns/column.ts'
import { SluiceError } from '../../core/errors.ts'
import { check } from '../../core/never.ts'
import type { FileNode, FileSchema } from './file-schema.ts'

/** One batch's part of a leaf: its levels, and which elements of the column are its values. */
export type Run = {
  readonly column: Column
  readonly rows: number
  /** Values, nulls and empty lists together: the number of levels. */
  readonly entries: number
  /** Definition level of each entry; absent when each has the highest. */
  readonly definition: Uint8Array | undefined
  /** Repetition level of each entry; absent when each is 0, that is one entry a row. */
  readonly repetition: Uint8Array | undefined
  readonly values: Values
}

/** Elements `indices[0, count)` of a column, or `[first, first + count)` of it without indices. */
export type Values = {
  readonly indices: Int32Array | undefined
  readonly first: number
  readonly count: number
}

/**
 * Entries on the way from a row to a leaf. An entry is alive as long as nothing above it is null or
 * empty; the index of one that is not is -1, and its definition level is final.
 */
type Entries = {
  readonly rows: number
  readonly count: number
  /** Definition level of entries that are alive. */
  readonly depth: number
  /** Of entries that are not alive; absent when all are. */
  readonly ended: Uint8Array | undefined
  readonly repetition: Uint8Array | undefined
  /** Lists and maps above. */
  readonly repeats: number
  /** Element of the column that each entry is; absent when entry `i` is element `first + i`. */
  readonly index: Int32Array | undefined
  readonly first: number
}

/** For each leaf of the file, in order, its runs: one for each batch. */
export function* runsByLeaf(
  schema: FileSchema,
  batches: readonly ColumnBatch[],
): Generator<readonly Run[]> {
  for (const [at, node] of schema.roots.entries()) {
    const ofBatches = batches.map((batch) => {
      const column = batch.columns[at]
      check(column !== undefined, 'a batch has the columns of the file')
      return shred(node, column)
    })
    const leaves = ofBatches[0]?.length ?? 0
    for (let leaf = 0; leaf < leaves; leaf += 1) {
      yield ofBatches.flatMap((runs) => runs[leaf] ?? [])
    }
  }
}

/** The runs of all leaves below one top-level column, in the order of the file's columns. */
export function shred(node: FileNode, column: Column): Run[] {
  if (node.children.length === 0 && node.nullable) return [flatRun(column)]
  const runs: Run[] = []
  descend(node, column, wholeColumn(column.length), runs)
  return runs
}

/** The run of a column that is not nested: the same as below, in one pass over its bitmap. */
function flatRun(column: Column): Run {
  const { length, validity, bitOffset, nullCount } = column
  const base = { column, rows: length, entries: length, repetition: undefined }
  if (validity === undefined || nullCount === 0) {
    const values = { indices: undefined, first: 0, count: length }
    return { ...base, definition: undefined, values }
  }
  const definition = new Uint8Array(length)
  const indices = new Int32Array(length)
  let count = 0
  for (let at = 0; at < length; at += 1) {
    const bit = bitOffset + at
    const isPresent = ((validity[bit >> 3] ?? 0) >> (bit & 7)) & 1
    definition[at] = isPresent
    // Written also where it is null: the next value overwrites it, and no branch can be mispredicted.
    indices[count] = at
    count += isPresent
  }
  return { ...base, definition, values: { indices, first: 0, count } }
}

function wholeColumn(rows: number): Entries {
  return {
    rows,
    count: rows,
    depth: 0,
    ended: undefined,
    repetition: undefined,
    repeats: 0,
    index: undefined,
    first: 0,
  }
}

function descend(node: FileNode, column: Column, above: Entries, runs: Run[]): void {
  const entries = node.nullable ? endNulls(column, above) : refuseNulls(node, column, above)
  if (column.layout === 'struct') {
    column.fields.forEach((field, at) => {
      descend(childOf(node, at), field, entries, runs)
    })
  } else if (column.layout === 'list') {
    descend(childOf(node, 0), column.element, enterList(column.offsets, entries), runs)
  } else if (column.layout === 'map') {
    const inside = enterList(column.offsets, entries)
    descend(childOf(node, 0), column.key, inside, runs)
    descend(childOf(node, 1), column.value, inside, runs)
  } else {
    runs.push(runOf(column, entries))
  }
}

function childOf(node: FileNode, at: number): FileNode {
  const child = node.children[at]
  check(child !== undefined, `the batch has the type of the column ${node.path.join('.')}`)
  return child
}

function refuseNulls(node: FileNode, column: Column, entries: Entries): Entries {
  if (column.nullCount === 0) return entries
  for (let i = 0; i < entries.count; i += 1) {
    const at = entries.index === undefined ? entries.first + i : (entries.index[i] ?? -1)
    if (at >= 0 && isNull(column, at)) {
      throw new SluiceError('RECORD_REFUSED', `${node.path.join('.')} is null and is NOT NULL`)
    }
  }
  return entries
}

function endNulls(column: Column, above: Entries): Entries {
  const depth = above.depth + 1
  const { validity, bitOffset } = column
  if (validity === undefined || column.nullCount === 0) return { ...above, depth }
  const { count, first } = above
  if (above.index === undefined) {
    const ones = countOnes(validity, bitOffset + first, count)
    if (ones === count) return { ...above, depth }
  }
  const ended = above.ended === undefined ? new Uint8Array(count) : above.ended.slice()
  const index = new Int32Array(count)
  for (let i = 0; i < count; i += 1) {
    const at = above.index === undefined ? first + i : (above.index[i] ?? -1)
    const bit = bitOffset + at
    if (at < 0) {
      index[i] = -1
    } else if ((((validity[bit >> 3] ?? 0) >> (bit & 7)) & 1) === 0) {
      index[i] = -1
      ended[i] = depth - 1
    } else {
      index[i] = at
    }
  }
  return { ...above, depth, ended, index, first: 0 }
}

function enterList(offsets: Int32Array, above: Entries): Entries {
  const { count, first, depth } = above
  const repeats = above.repeats + 1
  let total = 0
  let empties = 0
  for (let i = 0; i < count; i += 1) {
    const at = above.index === undefined ? first + i : (above.index[i] ?? -1)
    const size = at < 0 ? 0 : (offsets[at + 1] ?? 0) - (offsets[at] ?? 0)
    if (size === 0) empties += 1
    total += size === 0 ? 1 : size
  }
  const repetition = new Uint8Array(total)
  const ended = empties === 0 ? undefined : new Uint8Array(total)
  const index = new Int32Array(total)
  let to = 0
  for (let i = 0; i < count; i += 1) {
    const at = above.index === undefined ? first + i : (above.index[i] ?? -1)
    const begin = at < 0 ? 0 : (offsets[at] ?? 0)
    const end = at < 0 ? 0 : (offsets[at + 1] ?? 0)
    repetition[to] = above.repetition?.[i] ?? 0
    if (begin === end) {
      if (ended !== undefined) ended[to] = at < 0 ? (above.ended?.[i] ?? 0) : depth
      index[to] = -1
      to += 1
      continue
    }
    index[to] = begin
    to += 1
    for (let element = begin + 1; element < end; element += 1) {
      repetition[to] = repeats
      index[to] = element
      to += 1
    }
  }
  const { rows } = above
  return { rows, count: total, depth: depth + 1, ended, repetition, repeats, index, first: 0 }
}

function runOf(column: Column, entries: Entries): Run {
  const { rows, count, index, ended, depth, repetition, first } = entries
  const base = { column, rows, entries: count, repetition }
  if (index === undefined) {
    return { ...base, definition: undefined, values: { indices: undefined, first, count } }
  }
  const indices = new Int32Array(count)
  const definition = new Uint8Array(count)
  let present = 0
  for (let i = 0; i < count; i += 1) {
    const at = index[i] ?? -1
    if (at < 0) {
      definition[i] = ended?.[i] ?? 0
    } else {
      definition[i] = depth
      indices[present] = at
      present += 1
    }
  }
  const start = indices[0] ?? 0
  const isDense = present > 0 && (indices[present - 1] ?? 0) - start === present - 1
  return {
    ...base,
    definition: present === count ? undefined : definition,
    values: { indices: isDense ? undefined : indices, first: isDense ? start : 0, count: present },
  }
}
