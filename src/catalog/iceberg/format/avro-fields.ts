import { SluiceError } from '../../../core/errors.ts'
import type { AvroRecord, AvroSchema } from './avro.ts'

// Reading of decoded Avro records. Fields that an older or other writer left out are undefined.

/** A field that must be there. */
export function required<T>(value: T | undefined, field: string, name: string): T {
  if (value !== undefined) return value
  throw wrong(field, name)
}

export function avroText(record: AvroRecord, field: string, name: string): string | undefined {
  const value = present(record, field)
  if (value === undefined || typeof value === 'string') return value
  throw wrong(field, name)
}

export function avroInt(record: AvroRecord, field: string, name: string): number | undefined {
  const value = present(record, field)
  if (value === undefined || typeof value === 'number') return value
  throw wrong(field, name)
}

export function avroLong(record: AvroRecord, field: string, name: string): bigint | undefined {
  const value = present(record, field)
  if (value === undefined || typeof value === 'bigint') return value
  // Some writers declare a count as int where the specification has a long.
  if (typeof value === 'number') return BigInt(value)
  throw wrong(field, name)
}

/** A long that counts rows or bytes, and so is a safe integer unless the file is corrupt. */
export function avroCount(record: AvroRecord, field: string, name: string): number | undefined {
  const value = present(record, field)
  return value === undefined ? undefined : safeCount(value, field, name)
}

/** A list of such numbers. */
export function avroCounts(
  record: AvroRecord,
  field: string,
  name: string,
): readonly number[] | undefined {
  return avroList(record, field, name)?.map((value) => safeCount(value, field, name))
}

export function avroBoolean(record: AvroRecord, field: string, name: string): boolean | undefined {
  const value = present(record, field)
  if (value === undefined || typeof value === 'boolean') return value
  throw wrong(field, name)
}

export function avroBytes(record: AvroRecord, field: string, name: string): Uint8Array | undefined {
  const value = present(record, field)
  if (value === undefined) return undefined
  // A copy, so that a few bytes do not keep the whole block in memory.
  if (value instanceof Uint8Array) return Uint8Array.from(value)
  throw wrong(field, name)
}

function avroList(record: AvroRecord, field: string, name: string): readonly unknown[] | undefined {
  const value = present(record, field)
  if (value === undefined || Array.isArray(value)) return value
  throw wrong(field, name)
}

export function avroRecords(
  record: AvroRecord,
  field: string,
  name: string,
): readonly AvroRecord[] | undefined {
  return avroList(record, field, name)?.map((value) => {
    if (isAvroRecord(value)) return value
    throw wrong(field, name)
  })
}

export function isAvroRecord(value: unknown): value is AvroRecord {
  return typeof value === 'object' && value !== null && !(value instanceof Uint8Array)
}

/** `["null", T]` with null as its default, which is how Iceberg writes what is optional. */
export function optional(
  name: string,
  type: AvroSchema,
  fieldId: number,
): { readonly [key: string]: unknown } {
  return { name, type: ['null', type], default: null, 'field-id': fieldId }
}

function safeCount(value: unknown, field: string, name: string): number {
  const count = typeof value === 'number' ? BigInt(value) : value
  if (typeof count !== 'bigint' || count < 0n || count > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw wrong(field, name)
  }
  return Number(count)
}

function present(record: AvroRecord, field: string): unknown {
  return record[field] ?? undefined
}

function wrong(field: string, name: string): SluiceError {
  return new SluiceError(
    'DATA_CORRUPT',
    `${name}: field ${field} is missing or not what it should be`,
    {
      details: { file: name, field },
    },
  )
}
