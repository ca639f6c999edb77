import type { DataType, IdField } from '../../../core/schema/types.ts'
import type { AvroSchema } from './avro.ts'
import type { PartitionField } from './partition-spec.ts'

/**
 * The Avro type of a partition field's values (spec, "Partition transforms" and appendix A). Other
 * tools may have given a table any spec, and a delete file lies in the partition of its data file.
 */
export function partitionType(field: PartitionField, fields: readonly IdField[]): AvroSchema {
  const [transform] = field.transform.split('[')
  switch (transform) {
    case 'identity':
    case 'truncate':
      return valueType(findType(fields, field.sourceId), field.fieldId)
    case 'day':
      return { type: 'int', logicalType: 'date' }
    default:
      // Buckets, years, months and hours are numbers; a void field is always null.
      return 'int'
  }
}

function findType(fields: readonly IdField[], id: number | undefined): DataType | undefined {
  for (const field of fields) {
    if (field.id === id) return field.type
    const nested = findType(field.children, id)
    if (nested !== undefined) return nested
  }
  return undefined
}

function valueType(type: DataType | undefined, fieldId: number): AvroSchema {
  switch (type?.kind) {
    case 'boolean':
      return 'boolean'
    case 'bigint':
      return 'long'
    case 'float':
      return 'float'
    case 'double':
      return 'double'
    case 'char':
    case 'string':
      return 'string'
    case 'binary':
    case 'bytes':
      return 'bytes'
    case 'date':
      return { type: 'int', logicalType: 'date' }
    case 'time':
      return { type: 'long', logicalType: 'time-micros' }
    case 'timestamp':
    case 'timestamp_ltz':
      return {
        type: 'long',
        logicalType: 'timestamp-micros',
        'adjust-to-utc': type.kind === 'timestamp_ltz',
      }
    case 'decimal':
      return {
        type: 'fixed',
        name: `decimal_${fieldId}`,
        size: decimalBytes(type.precision),
        logicalType: 'decimal',
        precision: type.precision,
        scale: type.scale,
      }
    default:
      return 'int'
  }
}

/** The fewest bytes that hold every unscaled value of so many digits. */
function decimalBytes(precision: number): number {
  const largest = 10n ** BigInt(precision) - 1n
  let size = 1
  while (BigInt.asIntN(size * 8, largest) !== largest) size += 1
  return size
}
