import type { AvroSchema } from './avro.ts'
import { isAvroRecord, optional } from './avro-fields.ts'
import { partitionType } from './partition-type.ts'
import type { PartitionSpec } from './partition-spec.ts'
import type { IdField } from '../../../core/schema/types.ts'

/** How a partition field is called in Avro, whose names are letters, digits and `_`. */
export type PartitionColumn = { readonly avroName: string; readonly fieldId: number }

/** The columns of the partition tuple, in the order of the spec. */
export function partitionColumns(spec: PartitionSpec): readonly PartitionColumn[] {
  return spec.fields.map(({ name, fieldId }) => ({ avroName: avroName(name), fieldId }))
}

/**
 * The Avro schema of a manifest (spec, "Manifests"). Readers go by the ids, by the names, or by both,
 * so all of them are as the spec has them.
 * @param fields The columns that the partition fields come from.
 */
export function manifestSchema(
  spec: PartitionSpec,
  fields: readonly IdField[],
  formatVersion: number,
): AvroSchema {
  return {
    type: 'record',
    name: 'manifest_entry',
    fields: [
      field('status', 'int', 0),
      optional('snapshot_id', 'long', 1),
      optional('sequence_number', 'long', 3),
      optional('file_sequence_number', 'long', 4),
      field('data_file', dataFileSchema(spec, fields, formatVersion), 2),
    ],
  }
}

/** Partition field ids by the name their values have in the records of this schema. */
export function partitionFieldIds(schema: unknown): ReadonlyMap<string, number> {
  const dataFile = fieldType(schema, 'data_file')
  const partition = fieldType(dataFile, 'partition')
  const ids = new Map<string, number>()
  for (const each of fieldsOf(partition)) {
    const [name, fieldId] = [each['name'], each['field-id']]
    if (typeof name === 'string' && typeof fieldId === 'number') ids.set(name, fieldId)
  }
  return ids
}

function dataFileSchema(
  spec: PartitionSpec,
  fields: readonly IdField[],
  formatVersion: number,
): AvroSchema {
  return {
    type: 'record',
    name: 'r2',
    fields: [
      field('content', 'int', 134),
      field('file_path', 'string', 100),
      field('file_format', 'string', 101),
      field('partition', partitionSchema(spec, fields), 102),
      field('record_count', 'long', 103),
      field('file_size_in_bytes', 'long', 104),
      optional('column_sizes', columnMap(117, 118, 'long'), 108),
      optional('value_counts', columnMap(119, 120, 'long'), 109),
      optional('null_value_counts', columnMap(121, 122, 'long'), 110),
      optional('nan_value_counts', columnMap(138, 139, 'long'), 137),
      optional('lower_bounds', columnMap(126, 127, 'bytes'), 125),
      optional('upper_bounds', columnMap(129, 130, 'bytes'), 128),
      optional('key_metadata', 'bytes', 131),
      optional('split_offsets', { type: 'array', items: 'long', 'element-id': 133 }, 132),
      optional('equality_ids', { type: 'array', items: 'int', 'element-id': 136 }, 135),
      optional('sort_order_id', 'int', 140),
      optional('referenced_data_file', 'string', 143),
      ...(formatVersion < 3
        ? []
        : [
            optional('first_row_id', 'long', 142),
            optional('content_offset', 'long', 144),
            optional('content_size_in_bytes', 'long', 145),
          ]),
    ],
  }
}

/** The one part that differs from table to table of one format. */
export function partitionSchema(spec: PartitionSpec, fields: readonly IdField[]): AvroSchema {
  return {
    type: 'record',
    name: 'r102',
    fields: spec.fields.map((each) =>
      optional(avroName(each.name), partitionType(each, fields), each.fieldId),
    ),
  }
}

/** Without the logical type some readers take it for a list of pairs and fail. */
function columnMap(keyId: number, valueId: number, value: 'long' | 'bytes'): AvroSchema {
  return {
    type: 'array',
    logicalType: 'map',
    items: {
      type: 'record',
      name: `k${keyId}_v${valueId}`,
      fields: [field('key', 'int', keyId), field('value', value, valueId)],
    },
  }
}

function field(
  name: string,
  type: AvroSchema,
  fieldId: number,
): { readonly [key: string]: unknown } {
  return { name, type, 'field-id': fieldId }
}

/** Iceberg's own escaping: `a.b` is `a_x2Eb`, and a leading digit gets an underscore. */
function avroName(name: string): string {
  const escaped = name.replace(
    /[^A-Za-z0-9_]/g,
    (unit) => `_x${unit.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return /^[0-9]/.test(escaped) ? `_${escaped}` : escaped
}

function fieldType(schema: unknown, name: string): unknown {
  return fieldsOf(schema).find((each) => each['name'] === name)?.['type']
}

function fieldsOf(schema: unknown): readonly { readonly [key: string]: unknown }[] {
  if (!isAvroRecord(schema)) return []
  const { fields } = schema
  return Array.isArray(fields) ? fields.filter(isAvroRecord) : []
}
