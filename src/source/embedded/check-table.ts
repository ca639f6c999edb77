import { isDeepStrictEqual } from 'node:util'
import { SluiceError } from '../../core/errors.ts'
import { primaryKeyProblem } from '../../core/schema/check-schema.ts'
import type { TableSchema } from '../../core/schema/types.ts'
import { type BucketFormat, requireKeyType } from '../bucketing/key-encoding.ts'
import type { SourceTable } from '../ports.ts'
import type { TableResume } from './embedded-table.ts'

/** Each bucket is a log, a split and a file per round. */
export const bucketsMax = 4096

export type EmbeddedTableDefinition = {
  /** As users write it: `demo.flights`. */
  readonly name: string
  readonly schema: TableSchema
  /** 1 to 4096; fixed from then on. */
  readonly bucketCount: number
  /** Column whose hash decides the bucket; without it, place does. */
  readonly bucketKey?: string
  readonly freshnessMs: number
  /** Whose hash; that of Iceberg unless given. */
  readonly lakeFormat?: BucketFormat
  /** Columns of the primary key; absent for a log table. It needs a bucket key. */
  readonly primaryKey?: readonly string[]
}

export function checkDefinition(definition: EmbeddedTableDefinition, format: BucketFormat): void {
  const { name, schema, bucketCount, bucketKey, freshnessMs } = definition
  if (!Number.isInteger(bucketCount) || bucketCount < 1 || bucketCount > bucketsMax) {
    throw new SluiceError(
      'CONFIG_INVALID',
      `${name}: ${bucketCount} buckets; a table has 1 to ${bucketsMax} (each is a log, a split and ` +
        'a file per round)',
      { details: { table: name, buckets: bucketCount, max: bucketsMax } },
    )
  }
  if (!Number.isSafeInteger(freshnessMs) || freshnessMs < 1) {
    throw new SluiceError('CONFIG_INVALID', `${name}: freshness ${freshnessMs} ms is no duration`)
  }
  checkPrimaryKey(definition)
  if (bucketKey === undefined) return
  const field = schema.fields.find((each) => each.name === bucketKey)
  if (field === undefined) {
    throw new SluiceError(
      'SCHEMA_UNSUPPORTED',
      `${name}: the bucket key ${JSON.stringify(bucketKey)} is not one of its columns`,
      { details: { table: name, columns: schema.fields.map((each) => each.name) } },
    )
  }
  requireKeyType(bucketKey, field.type, format)
}

export function requireSame(existing: SourceTable, asked: SourceTable): void {
  const { name } = existing
  const refuse = (message: string, was: unknown, is: unknown): SluiceError =>
    new SluiceError('TABLE_MISMATCH', message, {
      details: { table: name, existing: was, asked: is },
    })
  if (existing.bucketCount !== asked.bucketCount) {
    const [was, is] = [existing.bucketCount, asked.bucketCount]
    throw refuse(`${name} exists with ${was} buckets; ${is} would move its records`, was, is)
  }
  for (const key of ['bucketKey', 'primaryKey', 'freshnessMs', 'schema'] as const) {
    const [was, is] = [existing[key], asked[key]]
    if (!isDeepStrictEqual(was, is)) throw refuse(`${name} exists with another ${key}`, was, is)
  }
}

export function requireBuckets(table: SourceTable, { ends, inputs }: TableResume): void {
  const buckets = [
    ...ends.keys(),
    ...[...inputs.values()].flatMap(({ extra }) => [...extra.keys()]),
  ]
  const largest = buckets.reduce((max, each) => Math.max(max, each), -1)
  if (largest < table.bucketCount) return
  throw new SluiceError(
    'TABLE_MISMATCH',
    `${table.name} has bucket ${largest} in the lake; ${table.bucketCount} buckets would move its records`,
    { details: { table: table.name, bucket: largest, asked: table.bucketCount } },
  )
}

function checkPrimaryKey({ name, schema, primaryKey, bucketKey }: EmbeddedTableDefinition): void {
  if (primaryKey === undefined) return
  for (const column of primaryKey) {
    const field = schema.fields.find((each) => each.name === column)
    const problem =
      primaryKeyProblem(schema.fields, column) ??
      (field?.type.nullable === true ? `primary key "${column}" may be null` : undefined)
    if (problem === undefined) continue
    throw new SluiceError('SCHEMA_UNSUPPORTED', `${name}: ${problem}`, {
      details: { table: name, column },
    })
  }
  if (bucketKey !== undefined && primaryKey.includes(bucketKey)) return
  throw new SluiceError(
    'CONFIG_INVALID',
    bucketKey === undefined
      ? `${name}: a primary-key table needs a bucket key`
      : `${name}: the bucket key "${bucketKey}" is not part of the primary key`,
    { details: { table: name, primaryKey }, fix: `one of ${primaryKey.join(', ')}` },
  )
}
