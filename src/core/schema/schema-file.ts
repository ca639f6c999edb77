import { type ErrorOptions, isSluiceError, SluiceError } from '../errors.ts'
import { didYouMean } from '../suggest.ts'
import { bucketKeyProblem, primaryKeyProblem, schemaProblem } from './check-schema.ts'
import {
  JsonFault,
  parsePlacedJson,
  type PlacedJson,
  type PlacedMember,
  placeOf,
} from './json-places.ts'
import { parseType } from './parse-type.ts'
import type { Field } from './types.ts'

/** What a schema file says (docs/inputs.md). What it does not say is absent. */
export type SchemaFile = {
  readonly fields: readonly Field[]
  readonly primaryKey?: readonly string[]
  readonly bucketKey?: readonly string[]
  readonly bucketCount?: number
  readonly partitionKey?: readonly string[]
  readonly properties: Readonly<Record<string, string>>
}

const fileKeys = [
  'columns',
  'primary_key',
  'bucket_key',
  'bucket_count',
  'partition_key',
  'properties',
] as const
const columnKeys = ['name', 'type', 'comment', 'allow_precision_loss'] as const

/**
 * Reads the text of a schema file. `name` begins every message: `flights.schema.json:7:15: …`.
 * Primary-key columns are NOT NULL whether they say so or not.
 * @throws SluiceError SCHEMA_UNSUPPORTED
 */
export function parseSchemaFile(text: string, name: string): SchemaFile {
  const source: Source = { text: text.replace(/^\ufeff/, ''), name }
  let root: PlacedJson
  try {
    root = parsePlacedJson(source.text)
  } catch (error) {
    if (error instanceof JsonFault) throw problem(source, error.at, error.message)
    throw error
  }
  const members = membersOf(source, root, fileKeys, 'the file')
  const columns = members.get('columns')
  if (columns === undefined) throw problem(source, root.at, '"columns" is missing')
  const declared = elementsOf(source, columns.value, 'columns').map((each) =>
    readColumn(source, each),
  )
  const found = schemaProblem(declared.map(({ field }) => field))
  if (found !== undefined) {
    throw problem(source, declared[found.column]?.at ?? columns.value.at, found.message)
  }
  const plain = declared.map(({ field }) => field)
  const primaryKey = readNames(source, members, 'primary_key')
  const key = new Set(primaryKey?.map((each) => each.text))
  const fields = plain.map((field) =>
    key.has(field.name) ? { ...field, type: { ...field.type, nullable: false } } : field,
  )
  const bucketKey = readNames(source, members, 'bucket_key')
  const partitionKey = readNames(source, members, 'partition_key')
  for (const each of primaryKey ?? []) refuse(source, each.at, primaryKeyProblem(fields, each.text))
  for (const each of bucketKey ?? []) refuse(source, each.at, bucketKeyProblem(fields, each.text))
  for (const each of partitionKey ?? []) {
    if (fields.some((field) => field.name === each.text)) continue
    const near = didYouMean(
      each.text,
      fields.map((field) => field.name),
    )
    throw problem(source, each.at, `partition key "${each.text}" is not a column${near}`)
  }
  const bucketCount = readBucketCount(source, members.get('bucket_count'))
  return {
    fields,
    ...(primaryKey === undefined ? {} : { primaryKey: primaryKey.map((each) => each.text) }),
    ...(bucketKey === undefined ? {} : { bucketKey: bucketKey.map((each) => each.text) }),
    ...(bucketCount === undefined ? {} : { bucketCount }),
    ...(partitionKey === undefined ? {} : { partitionKey: partitionKey.map((each) => each.text) }),
    properties: readProperties(source, members.get('properties')),
  }
}

type Source = { readonly text: string; readonly name: string }
type Members = ReadonlyMap<string, PlacedMember>

function readColumn(source: Source, value: PlacedJson): { field: Field; at: number } {
  const members = membersOf(source, value, columnKeys, 'a column')
  const name = members.get('name')?.value
  const type = members.get('type')?.value
  if (name?.kind !== 'string')
    throw problem(source, name?.at ?? value.at, 'a column needs a "name"')
  if (type?.kind !== 'string') {
    throw problem(
      source,
      type?.at ?? value.at,
      `column "${name.text}" needs a "type" such as "BIGINT"`,
    )
  }
  const comment = members.get('comment')?.value
  if (comment !== undefined && comment.kind !== 'string') {
    throw problem(source, comment.at, '"comment" is a text')
  }
  const loss = members.get('allow_precision_loss')?.value
  if (loss !== undefined && loss.kind !== 'boolean') {
    throw problem(source, loss.at, '"allow_precision_loss" is true or false')
  }
  const field: Field = {
    name: name.text,
    type: typeAt(source, type),
    ...(comment === undefined ? {} : { comment: comment.text }),
    ...(loss === undefined ? {} : { allowPrecisionLoss: loss.value }),
  }
  return { field, at: name.at }
}

function typeAt(source: Source, type: PlacedJson & { readonly kind: 'string' }): Field['type'] {
  try {
    return parseType(type.text)
  } catch (error) {
    if (!isSluiceError(error, 'SCHEMA_UNSUPPORTED')) throw error
    const inside = typeof error.details['at'] === 'number' ? error.details['at'] : 0
    throw problem(source, type.at + 1 + inside, error.message, { cause: error })
  }
}

function readNames(
  source: Source,
  members: Members,
  key: 'primary_key' | 'bucket_key' | 'partition_key',
): readonly { readonly text: string; readonly at: number }[] | undefined {
  const member = members.get(key)
  if (member === undefined) return undefined
  const names = elementsOf(source, member.value, key).map((each) => {
    if (each.kind !== 'string') throw problem(source, each.at, `"${key}" lists column names`)
    return { text: each.text, at: each.at }
  })
  const twice = names.find((each, index) => names.findIndex((o) => o.text === each.text) < index)
  if (twice !== undefined) throw problem(source, twice.at, `"${key}" names "${twice.text}" twice`)
  return names.length === 0 ? undefined : names
}

function readBucketCount(source: Source, member: PlacedMember | undefined): number | undefined {
  if (member === undefined) return undefined
  const { value } = member
  const count = value.kind === 'number' && /^\d{1,9}$/.test(value.text) ? Number(value.text) : 0
  if (count < 1 || count > 4096) {
    throw problem(source, value.at, '"bucket_count" is a number from 1 to 4096')
  }
  return count
}

function readProperties(
  source: Source,
  member: PlacedMember | undefined,
): Readonly<Record<string, string>> {
  if (member === undefined) return {}
  if (member.value.kind !== 'object') {
    throw problem(source, member.value.at, '"properties" is an object of texts')
  }
  const properties = member.value.members.map(({ name, value }): [string, string] => {
    if (value.kind === 'string' || value.kind === 'number') return [name, value.text]
    if (value.kind === 'boolean') return [name, String(value.value)]
    throw problem(source, value.at, `property "${name}" is a text`)
  })
  return Object.fromEntries(properties)
}

function membersOf(
  source: Source,
  value: PlacedJson,
  known: readonly string[],
  what: string,
): Members {
  if (value.kind !== 'object') throw problem(source, value.at, `${what} is an object`)
  for (const { name, at } of value.members) {
    if (known.includes(name)) continue
    const hint = didYouMean(name, known) || `; known are ${known.join(', ')}`
    throw problem(source, at, `"${name}" is not known in ${what}${hint}`)
  }
  return new Map(value.members.map((member) => [member.name, member]))
}

function elementsOf(source: Source, value: PlacedJson, key: string): readonly PlacedJson[] {
  if (value.kind !== 'array') throw problem(source, value.at, `"${key}" is a list`)
  return value.elements
}

function refuse(source: Source, at: number, message: string | undefined): void {
  if (message !== undefined) throw problem(source, at, message)
}

function problem(
  source: Source,
  at: number,
  message: string,
  options: ErrorOptions = {},
): SluiceError {
  const { line, column } = placeOf(source.text, at)
  return new SluiceError('SCHEMA_UNSUPPORTED', `${source.name}:${line}:${column}: ${message}`, {
    ...options,
    details: { file: source.name, line, column },
  })
}
