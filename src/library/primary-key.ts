import { SluiceError } from '../core/errors.ts'
import { bucketKeyProblem, primaryKeyProblem } from '../core/schema/check-schema.ts'
import type { Field } from '../core/schema/types.ts'
import { changelogOptions } from './keyed-tables.ts'

/** What decides the rows and buckets of a table that is to be made. */
export type Keys = {
  readonly primaryKey?: readonly string[]
  readonly bucketKey?: string
}

/**
 * The keys of a new table. The bucket key of a primary-key table is a column of its key: the only one
 * there is, or the one that is named.
 *
 * @param option How the user names the bucket key.
 * @throws SluiceError SCHEMA_UNSUPPORTED, CONFIG_INVALID
 */
export function keysOf(fields: readonly Field[], asked: Keys, option: string): Keys {
  const { primaryKey = [] } = asked
  for (const column of primaryKey) {
    const problem = primaryKeyProblem(fields, column)
    if (problem !== undefined) throw new SluiceError('SCHEMA_UNSUPPORTED', problem)
  }
  const [only, second] = primaryKey
  const bucketKey = asked.bucketKey ?? (second === undefined ? only : undefined)
  if (bucketKey === undefined) {
    if (only === undefined) return {}
    throw new SluiceError(
      'CONFIG_INVALID',
      `primary key ${primaryKey.join(', ')} has ${primaryKey.length} columns; one of them decides the bucket, and ${option} does not say which`,
      { fix: primaryKey.map((column) => `${option} ${column}`).join(', or ') },
    )
  }
  const problem = bucketKeyProblem(fields, bucketKey)
  if (problem !== undefined) throw new SluiceError('SCHEMA_UNSUPPORTED', problem)
  if (only === undefined) return { bucketKey }
  if (primaryKey.includes(bucketKey)) return { primaryKey, bucketKey }
  throw new SluiceError(
    'CONFIG_INVALID',
    `${option} ${bucketKey}: the bucket key must be a column of the primary key ${primaryKey.join(', ')}`,
    { fix: primaryKey.map((column) => `${option} ${column}`).join(', or ') },
  )
}

/** The columns, those of the primary key NOT NULL whether they say so or not. */
export function withKey(
  fields: readonly Field[],
  primaryKey: readonly string[] | undefined,
): readonly Field[] {
  if (primaryKey === undefined) return fields
  return fields.map((field) =>
    primaryKey.includes(field.name)
      ? { ...field, type: { ...field.type, nullable: false } }
      : field,
  )
}

/** Refuses table properties about changes that mean nothing. @throws SluiceError CONFIG_INVALID */
export function checkChangelog(
  properties: ReadonlyMap<string, string>,
  fields: readonly Field[],
): void {
  changelogOptions(new Map([...properties].map(([key, value]) => [`fluss.${key}`, value])), fields)
}
