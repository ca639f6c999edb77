import { isDeepStrictEqual } from 'node:util'
import { lakeType } from '../catalog/iceberg/format/schema-json.ts'
import type { LoadedTable } from '../catalog/ports.ts'
import { parseDuration } from '../core/duration.ts'
import { SluiceError } from '../core/errors.ts'
import { formatType } from '../core/schema/format-type.ts'
import { parseType } from '../core/schema/parse-type.ts'
import { type Field, type IdField, systemFields } from '../core/schema/types.ts'

export const freshnessKey = 'table.datalake.freshness'
const freshnessDefaultMs = 180_000

/** @throws SluiceError SCHEMA_UNSUPPORTED naming the column whose type cannot be read. */
export function columnsToFields(
  columns: Iterable<readonly [string, string]> | Readonly<Record<string, string>>,
): readonly Field[] {
  const entries = Symbol.iterator in columns ? [...columns] : Object.entries(columns)
  return entries.map(([name, type]) => {
    try {
      return { name, type: parseType(type) }
    } catch (error) {
      if (!(error instanceof SluiceError)) throw error
      throw new SluiceError(error.code, `column ${name}: ${error.message}`, {
        cause: error,
        details: error.details,
        ...(error.fix === undefined ? {} : { fix: error.fix }),
      })
    }
  })
}

/** Columns as the user defined them: those of the system and the field ids left out. */
export function userFields(fields: readonly IdField[]): readonly Field[] {
  return fields
    .filter((field) => !systemFields.some((each) => each.name === field.name))
    .map(({ name, type, comment }) => ({
      name,
      type,
      ...(comment === undefined ? {} : { comment }),
    }))
}

/** What a table's properties say, in milliseconds; 3 minutes unless they do. */
export function freshnessOf(properties: ReadonlyMap<string, string>): number {
  const text = properties.get(`fluss.${freshnessKey}`)
  return text === undefined ? freshnessDefaultMs : parseDuration(text, freshnessKey)
}

export type AskedDefinition = {
  readonly fields?: readonly Field[]
  readonly bucketCount?: number
  /** Null when no bucket key is asked for and none is ruled out. */
  readonly bucketKey?: string | undefined | null
  /** Null when none is asked for and none is ruled out. */
  readonly primaryKey?: readonly string[] | undefined | null
  readonly formatVersion?: 2 | 3
}

/** How a fix speaks of a definition, by where it was written. */
export type DefinitionWords = {
  readonly table: string
  readonly buckets: string
  readonly bucketKey: string
  readonly primaryKey: string
  readonly formatVersion: string
  readonly columns: string
}

export const commandWords: DefinitionWords = {
  table: 'another --table',
  buckets: '--buckets',
  bucketKey: '--bucket-key',
  primaryKey: '--primary-key',
  formatVersion: '--format-version',
  columns: 'leave the schema out',
}

export const libraryWords: DefinitionWords = {
  table: 'name another table',
  buckets: 'buckets',
  bucketKey: 'bucketKey',
  primaryKey: 'primaryKey',
  formatVersion: 'formatVersion',
  columns: 'give the columns it has',
}

/** @throws SluiceError TABLE_MISMATCH naming what differs first. */
export function requireSameDefinition(
  name: string,
  existing: LoadedTable,
  asked: AskedDefinition,
  words: DefinitionWords = commandWords,
): void {
  const { bucketCount, bucketKey, fields } = asked
  if (bucketCount !== undefined && bucketCount !== existing.bucketCount) {
    throw new SluiceError(
      'TABLE_MISMATCH',
      `${name} exists with ${existing.bucketCount} buckets; ${words.buckets} ${bucketCount} would move its records`,
      {
        details: { table: name, existing: existing.bucketCount, asked: bucketCount },
        fix: `leave ${words.buckets} out, or ${words.table}`,
      },
    )
  }
  if (bucketKey !== null && bucketKey !== existing.bucketKey) {
    const has =
      existing.bucketKey === undefined ? 'no bucket key' : `bucket key ${existing.bucketKey}`
    throw new SluiceError(
      'TABLE_MISMATCH',
      `${name} exists with ${has}; another would move its records`,
      {
        details: { table: name, existing: existing.bucketKey, asked: bucketKey },
        fix: `leave ${words.bucketKey} out, or ${words.table}`,
      },
    )
  }
  requireSameKey(name, existing, asked, words)
  if (fields !== undefined) requireSameFields(name, userFields(existing.fields), fields, words)
}

function requireSameKey(
  name: string,
  existing: LoadedTable,
  { primaryKey = null, formatVersion }: AskedDefinition,
  words: DefinitionWords,
): void {
  const [is, wanted] = [existing.primaryKey, primaryKey ?? []]
  const isSame = is.length === wanted.length && is.every((column) => wanted.includes(column))
  if (primaryKey !== null && !isSame) {
    const has = is.length === 0 ? 'no primary key' : `primary key ${is.join(', ')}`
    throw new SluiceError('TABLE_MISMATCH', `${name} exists with ${has}, and keeps it`, {
      details: { table: name, existing: is, asked: primaryKey },
      fix: `leave ${words.primaryKey} out, or ${words.table}`,
    })
  }
  if (formatVersion === undefined || formatVersion === existing.formatVersion) return
  throw new SluiceError(
    'TABLE_MISMATCH',
    `${name} exists in format version ${existing.formatVersion}, and keeps it`,
    {
      details: { table: name, existing: existing.formatVersion, asked: formatVersion },
      fix: `leave ${words.formatVersion} out, or ${words.table}`,
    },
  )
}

function requireSameFields(
  name: string,
  existing: readonly Field[],
  asked: readonly Field[],
  words: DefinitionWords,
): void {
  const refuse = (what: string): SluiceError =>
    new SluiceError('TABLE_MISMATCH', `${name} exists with other columns: ${what}`, {
      details: { table: name },
      fix: `${words.columns}, or ${words.table}`,
    })
  const known = new Map(existing.map((field) => [field.name, field]))
  for (const field of asked) {
    const found = known.get(field.name)
    if (found === undefined) throw refuse(`it has no ${JSON.stringify(field.name)}`)
    const [is, wanted] = [lakeType(found.type), lakeType(field.type)]
    if (!isDeepStrictEqual(is, wanted)) {
      throw refuse(
        `${field.name} is ${formatType(found.type)} there and ${formatType(field.type)} here`,
      )
    }
  }
  if (existing.length > asked.length) {
    const missing = existing.find((field) => !asked.some((each) => each.name === field.name))
    if (missing !== undefined) throw refuse(`${JSON.stringify(missing.name)} is not asked for`)
  }
}
