import { SluiceError } from '../../core/errors.ts'
import type { Millis } from '../../core/ids.ts'
import { type IdField, systemColumns, systemFields } from '../../core/schema/types.ts'
import type { TableDefinition } from '../ports.ts'
import { assignFieldIds } from './format/field-ids.ts'
import { jsonObject } from './format/json-fields.ts'
import { type TableMetadata, viewMetadata } from './format/metadata.ts'
import { bucketField, encodeSpec } from './format/partition-spec.ts'
import { bucketCountProperty, lakeProperties } from './format/properties.ts'
import { encodeSchema } from './format/schema-json.ts'

/**
 * The first metadata of a new table, laid out as Fluss lays out its log tables: the user's columns,
 * the three system columns, one partition field for the bucket, sorted by offset.
 * @throws SluiceError SCHEMA_UNSUPPORTED, CONFIG_INVALID
 */
export function createTableMetadata(
  definition: TableDefinition,
  at: {
    readonly location: string
    /** 128 random bits as 32 hexadecimal digits. */
    readonly random: string
    readonly now: Millis
  },
): TableMetadata {
  refuseReservedNames(definition)
  const { primaryKey = [], formatVersion = 2 } = definition
  refuseLooseKey(definition, primaryKey)
  const { fields, lastId } = assignFieldIds([...definition.schema.fields, ...systemFields])
  const bucket = bucketField(fields, definition.bucketCount, definition.bucketKey)
  const properties = new Map(lakeProperties(definition.properties))
  if (!properties.has(bucketCountProperty)) {
    properties.set(bucketCountProperty, String(definition.bucketCount))
  }
  if (primaryKey.length > 0) {
    for (const key of mergeProperties) properties.set(key, 'merge-on-read')
  }
  const json = jsonObject([
    ['format-version', formatVersion],
    ['table-uuid', uuidOf(at.random)],
    ['location', at.location],
    ['last-sequence-number', 0],
    ['last-updated-ms', at.now],
    ['last-column-id', lastId],
    ['current-schema-id', 0],
    ['schemas', [encodeSchema(fields, 0, primaryKey)]],
    ['default-spec-id', 0],
    ['partition-specs', [encodeSpec({ specId: 0, fields: [bucket] })]],
    ['last-partition-id', bucket.fieldId],
    ['default-sort-order-id', sortOrderId],
    ['sort-orders', [offsetOrder(fields)]],
    ['properties', jsonObject(properties)],
    // Left out rather than null or -1: all three mean "none", and every reader knows this one.
    ['current-snapshot-id', undefined],
    ['refs', jsonObject([])],
    ['snapshots', []],
    ['statistics', []],
    ['partition-statistics', []],
    ['snapshot-log', []],
    ['metadata-log', []],
    ['next-row-id', formatVersion === 3 ? 0 : undefined],
  ])
  return viewMetadata(json, at.location)
}

/** How other engines are asked to write deletes, updates and merges: beside the rows, as we do. */
const mergeProperties = ['write.delete.mode', 'write.update.mode', 'write.merge.mode'] as const

/** The order of a new table; its files name it. */
export const sortOrderId = 1

/** A version 4 UUID (RFC 9562) of 128 random bits given as 32 hexadecimal digits. */
export function uuidOf(random: string): string {
  const variant = ((Number.parseInt(random.charAt(16), 16) & 3) | 8).toString(16)
  return [
    random.slice(0, 8),
    random.slice(8, 12),
    `4${random.slice(13, 16)}`,
    `${variant}${random.slice(17, 20)}`,
    random.slice(20, 32),
  ].join('-')
}

function offsetOrder(fields: readonly IdField[]): ReturnType<typeof jsonObject> {
  const offset = fields.find((field) => field.name === systemColumns.offset)
  return jsonObject([
    ['order-id', sortOrderId],
    [
      'fields',
      [
        jsonObject([
          ['transform', 'identity'],
          ['source-id', offset?.id],
          ['direction', 'asc'],
          ['null-order', 'nulls-first'],
        ]),
      ],
    ],
  ])
}

/** Identifier fields are required and have a value that can be compared (spec, "Identifier fields"). */
function refuseLooseKey({ schema }: TableDefinition, primaryKey: readonly string[]): void {
  for (const name of primaryKey) {
    const field = schema.fields.find((each) => each.name === name)
    const problem =
      field === undefined ? 'is not a column' : field.type.nullable ? 'may be null' : undefined
    if (problem === undefined) continue
    throw new SluiceError('SCHEMA_UNSUPPORTED', `primary key "${name}" ${problem}`, {
      details: { column: name },
    })
  }
}

function refuseReservedNames(definition: TableDefinition): void {
  const reserved = new Set<string>(Object.values(systemColumns))
  for (const { name } of definition.schema.fields) {
    if (!reserved.has(name.toLowerCase())) continue
    throw new SluiceError('SCHEMA_UNSUPPORTED', `column "${name}" has a name that Sluice adds`, {
      fix: 'rename the column',
      details: { column: name },
    })
  }
}
