import { isUtf8 } from 'node:buffer'
import {
  type Data,
  type Field as ArrowField,
  DataType as Arrow,
  type DataType as ArrowType,
  type RecordBatch,
  type Vector,
} from 'apache-arrow'
import { SluiceError } from '../errors.ts'
import type { DataType, Field } from '../schema/types.ts'
import {
  type Blame,
  type Scope,
  scopeOfDictionary,
  scopeOfElements,
  scopeOfMembers,
} from './arrow-blame.ts'
import { fixedValues } from './arrow-fixed.ts'
import { fieldFromArrow } from './arrow-type.ts'
import { bytesOf, childOf, malformed, offsetsOf } from './arrow-memory.ts'
import { type Column, type ColumnBatch, countOnes, isNull, layoutOf } from './column.ts'
import { gatherColumn, indexAt } from './gather.ts'

export type FromArrowOptions = {
  /** Columns whose nanoseconds, in whatever depth, may be cut to microseconds. */
  readonly allowPrecisionLoss?: ReadonlySet<string>
  /**
   * Told of each value that its column cannot hold, by the row it is in; what the columns have there
   * is not to be used. Without it the first such value is an error.
   */
  readonly onUnfit?: (row: number, reason: string, column: string) => void
}

export type FromArrow = {
  readonly fields: readonly Field[]
  readonly batch: ColumnBatch
  /** Values that lost nanoseconds. */
  readonly cutValues: number
}

/**
 * An Arrow record batch as our columns, over the same memory where the forms agree. Sizes, offsets
 * and text are checked, since a batch may come from anywhere.
 *
 * @throws SluiceError SCHEMA_UNSUPPORTED for a type, INPUT_UNREADABLE for a malformed batch,
 *   RECORD_REFUSED for a value that its column cannot hold
 */
export function fromArrow(batch: RecordBatch, options: FromArrowOptions = {}): FromArrow {
  const { onUnfit = refuse } = options
  const cut = { values: 0 }
  const fields: Field[] = []
  const columns = batch.schema.fields.map((arrowField: ArrowField<ArrowType>, at): Column => {
    const isLossAllowed = options.allowPrecisionLoss?.has(arrowField.name) === true
    const field = fieldFromArrow(arrowField, () => isLossAllowed)
    fields.push(field)
    const data = childOf(batch.data, at, field.name)
    if (data.length !== batch.numRows) throw malformed(field.name, 'columns differ in length')
    const blame: Blame = (row, reason) => {
      onUnfit(row, reason, field.name)
    }
    return columnOf(field.type, data, field.name, { cut, blame })
  })
  return { fields, batch: { length: batch.numRows, columns }, cutValues: cut.values }
}

function refuse(_: number, reason: string): never {
  throw new SluiceError('RECORD_REFUSED', reason)
}

function columnOf(type: DataType, data: Data, path: string, scope: Scope): Column {
  if (Arrow.isDictionary(data.type)) return decoded(type, data, path, scope)
  const base = baseOf(type, data, path)
  if (!type.nullable) blameNulls(base, path, scope)
  return withValues(type, data, base, path, scope)
}

type Base = Pick<Column, 'type' | 'length' | 'nullCount' | 'validity' | 'bitOffset'>

function baseOf(type: DataType, data: Data, path: string): Base {
  const { length, offset } = data
  const bitmap: unknown = data.nullBitmap
  const base = { type, length, nullCount: 0, validity: undefined, bitOffset: offset }
  if (!(bitmap instanceof Uint8Array) || bitmap.length === 0) {
    if (data.nullCount > 0) throw malformed(path, 'its nulls have no bitmap')
    return base
  }
  if (bitmap.length * 8 < offset + length) throw malformed(path, 'its bitmap is too short')
  const nullCount = length - countOnes(bitmap, offset, length)
  return nullCount === 0 ? base : { ...base, nullCount, validity: bitmap }
}

function withValues(type: DataType, data: Data, base: Base, path: string, scope: Scope): Column {
  const arrow: ArrowType = data.type
  switch (type.kind) {
    case 'char':
    case 'string':
    case 'binary':
    case 'bytes':
      return bytesColumn(type, data, base, path, scope)
    case 'array': {
      const element = childOf(data, 0, path)
      const offsets = Arrow.isFixedSizeList(arrow)
        ? evenOffsets(base.length, arrow.listSize, element.length, path)
        : offsetsOf(data, element.length, path)
      const within = scopeOfElements(base, offsets, scope)
      const column = columnOf(type.element, element, `${path}.element`, within)
      return { ...base, layout: 'list', offsets, element: column }
    }
    case 'map': {
      const entry = childOf(data, 0, path)
      const offsets = offsetsOf(data, entry.length, path)
      if (entry.nullCount > 0) throw malformed(path, 'an entry of a map is null')
      const within = scopeOfElements(base, offsets, scope)
      const key = columnOf(type.key, childOf(entry, 0, path), `${path}.key`, within)
      const value = columnOf(type.value, childOf(entry, 1, path), `${path}.value`, within)
      return { ...base, layout: 'map', offsets, key, value }
    }
    case 'row': {
      const within = scopeOfMembers(base, scope)
      const fields = type.fields.map((field, at) => {
        const child = childOf(data, at, path)
        if (child.length !== base.length) throw malformed(path, 'its fields differ in length')
        return columnOf(field.type, child, `${path}.${field.name}`, within)
      })
      return { ...base, layout: 'struct', fields }
    }
    default:
      return fixedValues(type, data, base, path, scope)
  }
}

function blameNulls(base: Base, path: string, { blame }: Scope): void {
  if (base.nullCount === 0) return
  for (let at = 0; at < base.length; at += 1) {
    if (isNull(base, at)) blame(at, `the column ${path} is NOT NULL and holds nulls`)
  }
}

function bytesColumn(type: DataType, data: Data, base: Base, path: string, scope: Scope): Column {
  const values = bytesOf(data.values, path)
  const arrow: ArrowType = data.type
  const offsets = Arrow.isFixedSizeBinary(arrow)
    ? evenOffsets(
        base.length,
        arrow.byteWidth,
        Math.floor(values.length / arrow.byteWidth) * arrow.byteWidth,
        path,
      )
    : offsetsOf(data, values.length, path)
  const column = { ...base, layout: 'bytes', offsets, values } as const
  if (type.kind === 'string' && !isText(column)) blameText(column, path, scope)
  return column
}

type Bytes = Column & { readonly layout: 'bytes' }

/** Text as a whole is UTF-8, and no value begins inside a character: then each one is UTF-8. */
function isText({ offsets, values }: Bytes): boolean {
  const end = offsets[offsets.length - 1] ?? 0
  if (!isUtf8(values.subarray(offsets[0] ?? 0, end))) return false
  for (const offset of offsets) {
    if (offset < end && ((values[offset] ?? 0) & 0xc0) === 0x80) return false
  }
  return true
}

function blameText(column: Bytes, path: string, { blame }: Scope): void {
  const { offsets, values } = column
  for (let at = 0; at < column.length; at += 1) {
    if (isNull(column, at) || isUtf8(values.subarray(offsets[at], offsets[at + 1]))) continue
    blame(at, `text in the column ${path} is not UTF-8`)
  }
}

function evenOffsets(length: number, size: number, available: number, path: string): Int32Array {
  if (length * size > available || length * size > 2 ** 31 - 1) {
    throw malformed(path, 'it holds fewer values than it says')
  }
  return Int32Array.from({ length: length + 1 }, (_, at) => at * size)
}

/** Replaces the indices of a dictionary by its values. */
function decoded(type: DataType, data: Data, path: string, scope: Scope): Column {
  const dictionary: Vector | undefined = data.dictionary
  const arrow: ArrowType = data.type
  if (dictionary === undefined || !Arrow.isDictionary(arrow)) {
    throw malformed(path, 'its dictionary is missing')
  }
  const indexType: ArrowType & { readonly bitWidth: number; readonly isSigned: boolean } =
    arrow.indices
  const base = baseOf({ ...type, nullable: true }, data, path)
  const bits = indexType.isSigned ? indexType.bitWidth : 2 * indexType.bitWidth
  const kind = bits > 32 ? 'bigint' : 'int'
  const indices = fixedValues({ kind, nullable: true }, data.clone(indexType), base, path, scope)
  const { scope: within, reasons } = scopeOfDictionary(scope)
  let before = 0
  const chunks = dictionary.data.map((chunk: Data) => {
    const first = before
    before += chunk.length
    return columnOf({ ...type, nullable: true }, chunk, `${path} (dictionary)`, {
      ...within,
      blame: (at, reason) => {
        within.blame(first + at, reason)
      },
    })
  })
  const column = gatherColumn(type, chunks, indices, path)
  if (reasons.size > 0) {
    for (let at = 0; at < indices.length; at += 1) {
      const reason = isNull(indices, at) ? undefined : reasons.get(indexAt(indices, at))
      if (reason !== undefined) scope.blame(at, reason)
    }
  }
  if (!type.nullable) blameNulls(column, path, scope)
  if (column.layout !== layoutOf(type)) throw malformed(path, 'its dictionary has another type')
  return column
}
