import { SluiceError } from '../errors.ts'
import type { DataType } from '../schema/types.ts'
import { columnBuilder, type ColumnBuilder } from './builder.ts'
import { bitAt, type Column, isNull } from './column.ts'

/**
 * The elements that `indices` names, counted over all `chunks`; null where the index is null.
 *
 * @param path Names the column in an error.
 * @throws SluiceError INPUT_UNREADABLE for an index outside the chunks
 */
export function gatherColumn(
  type: DataType,
  chunks: readonly Column[],
  indices: Column,
  path: string,
): Column {
  const builder = columnBuilder(type)
  for (let at = 0; at < indices.length; at += 1) {
    if (isNull(indices, at)) {
      builder.appendNull()
      continue
    }
    let index = indexAt(indices, at)
    let chunk = 0
    while (index >= (chunks[chunk]?.length ?? Infinity)) {
      index -= chunks[chunk]?.length ?? 0
      chunk += 1
    }
    const source = chunks[chunk]
    if (source === undefined || index < 0) {
      throw new SluiceError('INPUT_UNREADABLE', `an index of ${path} is not in its dictionary`)
    }
    appendElement(builder, source, index)
  }
  return builder.finish()
}

/** Which element of the chunks an index names; -1 for none. */
export function indexAt(indices: Column, at: number): number {
  if (indices.layout === 'int32') return indices.values[at] ?? -1
  if (indices.layout === 'int64') return Number(indices.values[at] ?? -1n)
  return -1
}

/** Appends element `index` of a column without children to a builder of its type. */
function appendElement(builder: ColumnBuilder, source: Column, index: number): void {
  if (isNull(source, index)) builder.appendNull()
  else if (builder.layout === 'bit' && source.layout === 'bit') builder.append(bitAt(source, index))
  else if (builder.layout === 'int32' && source.layout === 'int32') {
    builder.append(source.values[index] ?? 0)
  } else if (builder.layout === 'int64' && source.layout === 'int64') {
    builder.append(source.values[index] ?? 0n)
  } else if (builder.layout === 'int128' && source.layout === 'int128') {
    const low = BigInt.asUintN(64, source.values[2 * index] ?? 0n)
    builder.append(((source.values[2 * index + 1] ?? 0n) << 64n) | low)
  } else if (builder.layout === 'float32' && source.layout === 'float32') {
    builder.append(source.values[index] ?? 0)
  } else if (builder.layout === 'float64' && source.layout === 'float64') {
    builder.append(source.values[index] ?? 0)
  } else if (builder.layout === 'bytes' && source.layout === 'bytes') {
    builder.append(source.values, source.offsets[index] ?? 0, source.offsets[index + 1] ?? 0)
  } else {
    throw new SluiceError('INVARIANT_BROKEN', `${source.layout} was gathered as ${builder.layout}`)
  }
}
