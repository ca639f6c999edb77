import { bitAt, type Column } from '../../core/columns/column.ts'
import { SluiceError } from '../../core/errors.ts'
import type { DataType, DataTypeKind } from '../../core/schema/types.ts'
import type { KeyWriter } from './key-writer.ts'

/** Whose rule assigns records to buckets; `fluss` is the one of tables without a lake. */
export type BucketFormat = 'iceberg' | 'paimon' | 'fluss'

// Fluss refuses BOOLEAN, TINYINT, SMALLINT and TIMESTAMP_LTZ here; FLOAT and DOUBLE cannot be the
// source of the bucket transform that such a lake table is partitioned by.
const icebergKinds: readonly DataTypeKind[] = [
  'int',
  'bigint',
  'decimal',
  'char',
  'string',
  'binary',
  'bytes',
  'date',
  'time',
  'timestamp',
]
const nestedKinds: readonly DataTypeKind[] = ['array', 'map', 'row']

/** @throws SluiceError SCHEMA_UNSUPPORTED when a column of this type cannot be a bucket key. */
export function requireKeyType(name: string, type: DataType, format: BucketFormat): void {
  const allowed =
    format === 'iceberg' ? icebergKinds.includes(type.kind) : !nestedKinds.includes(type.kind)
  if (allowed) return
  throw new SluiceError(
    'SCHEMA_UNSUPPORTED',
    `bucket key ${JSON.stringify(name)} is ${type.kind.toUpperCase()}; a bucket key must be ` +
      'INT, BIGINT, DECIMAL, STRING, BYTES, DATE, TIME or TIMESTAMP',
    { details: { column: name, type: type.kind, format } },
  )
}

/**
 * Writes the key of one row, whose values must not be null, as the writers of the format do. Iceberg
 * keys have exactly one column.
 */
export function writeKey(
  target: KeyWriter,
  columns: readonly Column[],
  row: number,
  format: BucketFormat,
): void {
  target.clear()
  if (format === 'paimon') {
    writeBinaryRow(target, columns, row)
    return
  }
  for (const column of columns) {
    if (format === 'iceberg') writeSingleValue(target, column, row)
    else writeCompacted(target, column, row)
  }
}

/** Iceberg's single-value form, with 32-bit numbers widened to 64 bits as its hash wants them. */
function writeSingleValue(target: KeyWriter, column: Column, row: number): void {
  switch (column.layout) {
    case 'int32': {
      const value = column.values[row] ?? 0
      target.long(value, value >> 31)
      return
    }
    case 'int64':
      writeLong(target, column.values[row] ?? 0n)
      return
    case 'int128':
      target.minimal(unscaled(column.values, row))
      return
    case 'float32':
      target.word(floatBits(column.values[row] ?? 0), 4)
      return
    case 'float64':
      writeLong(target, doubleBits(column.values[row] ?? 0))
      return
    case 'bytes':
      target.slice(column.values, column.offsets[row] ?? 0, column.offsets[row + 1] ?? 0)
      return
    default:
      throw notAKey(column)
  }
}

/** Fluss's compacted key: the fields of a compacted row one after the other, without null bits. */
function writeCompacted(target: KeyWriter, column: Column, row: number): void {
  const type = column.type
  switch (column.layout) {
    case 'bit':
      target.byte(bitAt(column, row) ? 1 : 0)
      return
    case 'int32': {
      const value = column.values[row] ?? 0
      if (type.kind === 'tinyint') target.word(value, 1)
      else if (type.kind === 'smallint') target.word(value, 2)
      else target.varInt(value)
      return
    }
    case 'int64': {
      const value = column.values[row] ?? 0n
      if (type.kind === 'time') {
        target.varInt(Number(millisOf(value)))
      } else if (type.kind === 'timestamp' || type.kind === 'timestamp_ltz') {
        target.varLong(millisOf(value))
        if (type.precision > 3) target.varInt(nanoOfMilli(value))
      } else {
        target.varLong(value)
      }
      return
    }
    case 'int128': {
      const value = unscaled(column.values, row)
      if (type.kind === 'decimal' && type.precision <= 18) {
        target.varLong(value)
      } else {
        target.varInt(minimalSize(value))
        target.minimal(value)
      }
      return
    }
    case 'float32':
      target.word(floatBits(column.values[row] ?? 0), 4)
      return
    case 'float64':
      writeLong(target, doubleBits(column.values[row] ?? 0))
      return
    case 'bytes': {
      const from = column.offsets[row] ?? 0
      const to = column.offsets[row + 1] ?? 0
      target.varInt(to - from)
      target.slice(column.values, from, to)
      return
    }
    default:
      throw notAKey(column)
  }
}

/** Paimon's binary row: a header with null bits, an 8-byte slot per field, then what is longer. */
function writeBinaryRow(target: KeyWriter, columns: readonly Column[], row: number): void {
  const header = Math.floor((columns.length + 63 + 8) / 64) * 8
  target.zeros(header + 8 * columns.length)
  columns.forEach((column, index) => {
    writeSlot(target, header + 8 * index, column, row)
  })
}

function writeSlot(target: KeyWriter, slot: number, column: Column, row: number): void {
  const type = column.type
  switch (column.layout) {
    case 'bit':
      target.setLong(slot, bitAt(column, row) ? 1 : 0, 0)
      return
    case 'int32': {
      const value = column.values[row] ?? 0
      const width = type.kind === 'tinyint' ? 0xff : type.kind === 'smallint' ? 0xffff : -1
      target.setLong(slot, value & width, 0)
      return
    }
    case 'int64': {
      const value = column.values[row] ?? 0n
      if (type.kind === 'time') {
        target.setLong(slot, Number(millisOf(value)), 0)
      } else if (type.kind !== 'timestamp' && type.kind !== 'timestamp_ltz') {
        setLong(target, slot, value)
      } else if (type.precision <= 3) {
        setLong(target, slot, millisOf(value))
      } else {
        target.setLong(slot, nanoOfMilli(value), target.length)
        writeLong(target, millisOf(value))
      }
      return
    }
    case 'int128': {
      const value = unscaled(column.values, row)
      if (type.kind === 'decimal' && type.precision <= 18) {
        setLong(target, slot, value)
      } else {
        const size = minimalSize(value)
        target.setLong(slot, size, target.length)
        target.minimal(value)
        target.zeros(16 - size)
      }
      return
    }
    case 'float32':
      target.setLong(slot, floatBits(column.values[row] ?? 0), 0)
      return
    case 'float64':
      setLong(target, slot, doubleBits(column.values[row] ?? 0))
      return
    case 'bytes': {
      const from = column.offsets[row] ?? 0
      const to = column.offsets[row + 1] ?? 0
      const size = to - from
      if (size <= 7) {
        target.bytes.set(column.values.subarray(from, to), slot)
        target.bytes[slot + 7] = 0x80 | size
      } else {
        target.setLong(slot, size, target.length)
        target.slice(column.values, from, to)
        target.zeros((8 - (size & 7)) & 7)
      }
      return
    }
    default:
      throw notAKey(column)
  }
}

function writeLong(target: KeyWriter, value: bigint): void {
  target.long(Number(BigInt.asIntN(32, value)), Number(value >> 32n))
}

function setLong(target: KeyWriter, slot: number, value: bigint): void {
  target.setLong(slot, Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n)))
}

function unscaled(words: BigInt64Array, row: number): bigint {
  return (words[2 * row + 1] ?? 0n) * 2n ** 64n + BigInt.asUintN(64, words[2 * row] ?? 0n)
}

function minimalSize(value: bigint): number {
  let size = 1
  while (BigInt.asIntN(8 * size, value) !== value) size += 1
  return size
}

/** Rounds down, also before 1970. */
function millisOf(micros: bigint): bigint {
  const rest = micros % 1000n
  return (micros - (rest < 0n ? rest + 1000n : rest)) / 1000n
}

function nanoOfMilli(micros: bigint): number {
  return Number(micros - millisOf(micros) * 1000n) * 1000
}

const float = new Float32Array(1)
const floatWord = new Int32Array(float.buffer)
const double = new Float64Array(1)
const doubleWord = new BigInt64Array(double.buffer)

function floatBits(value: number): number {
  float[0] = value
  return floatWord[0] ?? 0
}

function doubleBits(value: number): bigint {
  double[0] = value
  return doubleWord[0] ?? 0n
}

function notAKey(column: Column): SluiceError {
  return new SluiceError('INVARIANT_BROKEN', `a ${column.type.kind} column is no bucket key`)
}
