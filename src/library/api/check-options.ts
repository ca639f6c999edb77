import { SluiceError } from '../../core/errors.ts'
import { didYouMean } from '../../core/suggest.ts'
import { quoteValue } from '../../core/text.ts'

/**
 * Refuses what a caller without types may pass: no object, and members that mean nothing here, which
 * would be passed over without a word.
 * @param what Begins the message: `openLake`.
 * @throws SluiceError CONFIG_INVALID
 */
export function checkMembers(what: string, given: unknown, known: readonly string[]): void {
  if (typeof given !== 'object' || given === null) {
    throw new SluiceError('CONFIG_INVALID', `${what} takes an object of options`)
  }
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || known.includes(name)) continue
    throw new SluiceError(
      'CONFIG_INVALID',
      `${what}: ${quoteValue(name)} is not an option${didYouMean(name, known)}`,
      { details: { option: name }, fix: `options are ${known.join(', ')}` },
    )
  }
}

/** Members of a definition that come with primary-key tables or partitions. */
export function refuseLater(table: string, definition: object): void {
  const { primaryKey, partitionedBy, formatVersion }: Readonly<Record<string, unknown>> = {
    ...definition,
  }
  if (primaryKey !== undefined) {
    throw new SluiceError('SCHEMA_UNSUPPORTED', `${table}: primary-key tables come later`, {
      fix: 'leave primaryKey out: a log table keeps every record',
    })
  }
  if (partitionedBy !== undefined) {
    throw new SluiceError('SCHEMA_UNSUPPORTED', `${table}: partitioned tables come later`, {
      fix: 'leave partitionedBy out',
    })
  }
  if (formatVersion !== undefined && formatVersion !== 2) {
    throw new SluiceError('SCHEMA_UNSUPPORTED', `${table}: tables have format version 2`, {
      fix: 'leave formatVersion out',
    })
  }
}

/** Members of a definition that `refuseLater` looks at, or that a table is made from. */
export const definitionMembers = [
  'columns',
  'buckets',
  'bucketKey',
  'freshness',
  'properties',
  'formatVersion',
  'primaryKey',
  'partitionedBy',
] as const
