import { SluiceError } from '../../../core/errors.ts'
import type { JsonObject } from '../../../core/json64.ts'
import { type DataType, type IdField, systemColumns } from '../../../core/schema/types.ts'
import { arrayOf, intOf, isAbsent, jsonObject, objectsOf, textOf } from './json-fields.ts'

/** Partition field ids begin here; a spec without fields has 999 as its last. */
const firstPartitionId = 1000

export type PartitionField = {
  readonly name: string
  /** As the spec writes it: `identity`, `bucket[4]`, `day`. */
  readonly transform: string
  /** Undefined for transforms of several columns, which v3 allows. */
  readonly sourceId: number | undefined
  readonly fieldId: number
}

export type PartitionSpec = {
  readonly specId: number
  readonly fields: readonly PartitionField[]
}

/** How the rows of a table are cut into buckets, as its partition spec says. */
export type BucketLayout = {
  /** The column whose hash is the bucket; undefined when the bucket is taken by place. */
  readonly key: string | undefined
  /** Undefined where the spec does not say it. */
  readonly bucketCount: number | undefined
}

/**
 * The partition field of a new table, as Fluss makes it: the bucket transform of the key, or the
 * bucket column itself.
 * @throws SluiceError SCHEMA_UNSUPPORTED when the key is missing, cannot be hashed, or its partition
 *   field would have the name of a column
 */
export function bucketField(
  fields: readonly IdField[],
  bucketCount: number,
  bucketKey: string | undefined,
): PartitionField {
  const fieldId = firstPartitionId
  const name = bucketKey ?? systemColumns.bucket
  const source = fields.find((field) => field.name === name)
  if (source === undefined) {
    throw new SluiceError('SCHEMA_UNSUPPORTED', `bucket key "${name}" is not a column`)
  }
  if (bucketKey === undefined) {
    return { name, transform: 'identity', sourceId: source.id, fieldId }
  }
  if (!canBeHashed(source.type)) {
    throw new SluiceError(
      'SCHEMA_UNSUPPORTED',
      `bucket key "${name}" is ${source.type.kind.toUpperCase()}, which has no bucket hash`,
      { fix: 'choose an INT, BIGINT, DECIMAL, STRING, BYTES, DATE, TIME or TIMESTAMP column' },
    )
  }
  const partition = `${name}_bucket`
  if (fields.some((field) => field.name === partition)) {
    throw new SluiceError(
      'SCHEMA_UNSUPPORTED',
      `column "${partition}" has the name that the buckets of "${name}" need`,
      { fix: 'rename the column, or choose another bucket key' },
    )
  }
  return { name: partition, transform: `bucket[${bucketCount}]`, sourceId: source.id, fieldId }
}

/** @returns undefined when the spec is not one that a Sluice or Fluss log table has. */
export function bucketLayout(
  spec: PartitionSpec,
  fields: readonly IdField[],
): BucketLayout | undefined {
  const [field] = spec.fields
  if (field === undefined || spec.fields.length > 1) return undefined
  const source = fields.find(({ id }) => id === field.sourceId)
  if (source === undefined) return undefined
  if (field.transform === 'identity') {
    const isBucket = source.name === systemColumns.bucket
    return isBucket ? { key: undefined, bucketCount: undefined } : undefined
  }
  const bucketCount = /^bucket\[(\d{1,9})\]$/.exec(field.transform)?.[1]
  if (bucketCount === undefined) return undefined
  return { key: source.name, bucketCount: Number.parseInt(bucketCount, 10) }
}

export function encodeSpec(spec: PartitionSpec): JsonObject {
  return jsonObject([
    ['spec-id', spec.specId],
    ['fields', encodeSpecFields(spec)],
  ])
}

/** The fields alone, which is what a manifest's header holds. */
export function encodeSpecFields(spec: PartitionSpec): readonly JsonObject[] {
  return spec.fields.map((field) =>
    jsonObject([
      ['name', field.name],
      ['transform', field.transform],
      ['source-id', field.sourceId],
      ['field-id', field.fieldId],
    ]),
  )
}

/** @throws SluiceError DATA_CORRUPT */
export function decodeSpec(json: JsonObject, name: string): PartitionSpec {
  return {
    specId: isAbsent(json, 'spec-id') ? 0 : intOf(json, 'spec-id', name),
    fields: objectsOf(json, 'fields', name).map((field, index) => ({
      name: textOf(field, 'name', name),
      transform: textOf(field, 'transform', name),
      sourceId: sourceOf(field, name),
      // Format v1 may leave the ids out; they are then consecutive.
      fieldId: isAbsent(field, 'field-id')
        ? firstPartitionId + index
        : intOf(field, 'field-id', name),
    })),
  }
}

function sourceOf(field: JsonObject, name: string): number | undefined {
  if (!isAbsent(field, 'source-id')) return intOf(field, 'source-id', name)
  const [first, second] = arrayOf(field, 'source-ids', name)
  return typeof first === 'number' && second === undefined ? first : undefined
}

function canBeHashed(type: DataType): boolean {
  switch (type.kind) {
    case 'tinyint':
    case 'smallint':
    case 'int':
    case 'bigint':
    case 'decimal':
    case 'char':
    case 'string':
    case 'binary':
    case 'bytes':
    case 'date':
    case 'time':
    case 'timestamp':
    case 'timestamp_ltz':
      return true
    default:
      return false
  }
}
