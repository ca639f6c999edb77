import { readFile } from 'node:fs/promises'
import type { LakeTable, LoadedTable } from '../../catalog/ports.ts'
import { folderOfPart } from '../../catalog/iceberg/location.ts'
import { isSluiceError, SluiceError } from '../../core/errors.ts'
import { parseDuration } from '../../core/duration.ts'
import { checkSchema } from '../../core/schema/check-schema.ts'
import { formatType } from '../../core/schema/format-type.ts'
import { parseSchemaFile, type SchemaFile } from '../../core/schema/schema-file.ts'
import { formatTableName } from '../../core/table-name.ts'
import { checkInput, checkShape } from '../../source/ingest/check-input.ts'
import type { InputBytes } from '../../source/ingest/input-bytes.ts'
import { detectFormat, refuseFollowing } from '../../source/ingest/input-format.ts'
import type { Field } from '../../core/schema/types.ts'
import type { SourceTable } from '../../source/ports.ts'
import type { OpenedLake } from '../open-lake.ts'
import { checkChangelog, type Keys, keysOf, withKey } from '../primary-key.ts'
import {
  columnsToFields,
  freshnessKey,
  freshnessOf,
  requireSameDefinition,
} from '../table-definition.ts'
import type { SessionPorts } from '../tiering-session.ts'
import { declaredFields, declaredProperty } from './declared-schema.ts'
import { learnFields } from './learn-fields.ts'
import { csvOptions, isReopenable, openBytes, type WaitingInputs } from './open-source.ts'
import type { TierHooks, TierRequest } from './tier-types.ts'

/** The table a run fills: found, or made. */
export type Target = {
  readonly name: string
  readonly lake: LakeTable
  readonly created: boolean
  readonly definition: Pick<SourceTable, 'schema' | 'bucketCount' | 'bucketKey' | 'primaryKey'>
  readonly freshnessMs: number
  readonly columns: readonly { readonly name: string; readonly type: string }[]
  readonly notes: readonly string[]
  /** The table's name as one folder, for what is kept beside the lake. */
  readonly folder: string
  /** Inputs that were looked at and cannot be opened again. */
  readonly waiting: WaitingInputs
}

const bucketsDefault = 4

/**
 * Opens the table, or makes it from the schema given or learned from the first input. Every input is
 * looked for first, and the columns of the first one are compared with a schema that is given: nothing
 * is written for a run that cannot begin.
 * @throws SluiceError INPUT_UNREADABLE, SCHEMA_UNSUPPORTED, TABLE_MISMATCH and those of the catalog
 */
export async function openTarget(
  request: TierRequest,
  hooks: TierHooks,
  lake: OpenedLake,
  ports: SessionPorts,
): Promise<Target> {
  const declared = await declaredSchema(request)
  const { first, waiting } = await lookAtInputs(request, hooks, ports)
  await lake.requireSafe()
  const existing = await lake.catalog.open(request.table, 'write')
  if (existing !== undefined) {
    await closeFile(first)
    return existingTarget(request, existing, await existing.load(), declared, waiting)
  }
  const name = formatTableName(request.table)
  const asked = keysAsked(request, declared)
  requireKey(name, request, asked.primaryKey)
  const learned =
    declared === undefined
      ? await learnFields(first, request, asked.primaryKey)
      : { fields: withKey(declared.fields, asked.primaryKey), notes: [] }
  checkSchema(learned.fields, name)
  const keys = keysOf(learned.fields, asked, '--bucket-key')
  requireNoOperation(name, request, learned.fields)
  if (first !== undefined && declared !== undefined) {
    await checkInput({
      bytes: first,
      format: await detectFormat(first, request.inputFormat),
      csv: csvOptions(request),
      target: { table: name, fields: learned.fields, ...keys },
      onUnknownField: request.onUnknownField,
    })
  }
  await closeFile(first)
  const properties = new Map([
    ...Object.entries(declared?.properties ?? {}),
    ...request.properties,
    ...declaredProperty(learned.fields),
  ])
  if (keys.primaryKey !== undefined) checkChangelog(properties, learned.fields)
  const { table, created } = await lake.catalog.create({
    name: request.table,
    schema: { fields: learned.fields },
    bucketCount: request.buckets ?? declared?.bucketCount ?? bucketsDefault,
    properties,
    ...keys,
    ...(request.formatVersion === undefined ? {} : { formatVersion: request.formatVersion }),
  })
  const loaded = await table.load()
  const target = existingTarget(request, table, loaded, declared, waiting)
  return { ...target, created, notes: learned.notes }
}

function existingTarget(
  request: TierRequest,
  table: LakeTable,
  loaded: LoadedTable,
  declared: SchemaFile | undefined,
  waiting: WaitingInputs,
): Target {
  const name = formatTableName(request.table)
  const bucketCount = request.buckets ?? declared?.bucketCount
  const { primaryKey, bucketKey } = keysAsked(request, declared)
  const { formatVersion } = request
  requireSameDefinition(name, loaded, {
    ...(declared === undefined ? {} : { fields: withKey(declared.fields, primaryKey) }),
    ...(bucketCount === undefined ? {} : { bucketCount }),
    bucketKey: bucketKey ?? null,
    primaryKey: primaryKey ?? null,
    ...(formatVersion === undefined ? {} : { formatVersion }),
  })
  const fields = declaredFields(loaded)
  const key = loaded.primaryKey.length === 0 ? undefined : loaded.primaryKey
  requireKey(name, request, key)
  requireNoOperation(name, request, fields)
  return {
    name,
    lake: table,
    created: false,
    definition: {
      schema: { fields },
      bucketCount: loaded.bucketCount,
      bucketKey: loaded.bucketKey,
      ...(key === undefined ? {} : { primaryKey: key }),
    },
    freshnessMs: freshnessFor(request, loaded),
    columns: fields.map((field) => ({ name: field.name, type: formatType(field.type) })),
    notes: [],
    folder: request.table.map(folderOfPart).join('.'),
    waiting,
  }
}

function freshnessFor(request: TierRequest, loaded: LoadedTable): number {
  if (request.freshnessMs !== undefined) return request.freshnessMs
  const asked = request.properties.get(freshnessKey)
  return asked === undefined ? freshnessOf(loaded.properties) : parseDuration(asked, freshnessKey)
}

async function declaredSchema(request: TierRequest): Promise<SchemaFile | undefined> {
  if (request.schemaFile !== undefined) {
    return parseSchemaFile(await readSchemaFile(request.schemaFile), request.schemaFile)
  }
  if (request.columns === undefined) return undefined
  return { fields: columnsToFields(request.columns), properties: {} }
}

async function readSchemaFile(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    const reason = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unreadable'
    const what = reason === 'ENOENT' ? 'no such file' : `cannot be read (${reason})`
    throw new SluiceError('INPUT_UNREADABLE', `${path}: ${what}`, { cause })
  }
}

/** The keys that the command names, else those of the schema file. */
function keysAsked(request: TierRequest, declared: SchemaFile | undefined): Keys {
  const bucketKey = request.bucketKey ?? onlyBucketKey(declared)
  const primaryKey = request.primaryKey ?? declared?.primaryKey
  return {
    ...(bucketKey === undefined ? {} : { bucketKey }),
    ...(primaryKey === undefined || primaryKey.length === 0 ? {} : { primaryKey }),
  }
}

/** Changes are of keys. */
function requireKey(
  name: string,
  { changes }: TierRequest,
  primaryKey: readonly string[] | undefined,
): void {
  if (changes === undefined || changes.kind === 'upserts' || primaryKey !== undefined) return
  const option = changes.kind === 'debezium' ? '--cdc debezium' : `--op-column ${changes.column}`
  throw new SluiceError(
    'CONFIG_INVALID',
    `${option}: ${name} has no primary key, and changes need one`,
    { fix: '--primary-key id' },
  )
}

function requireNoOperation(
  name: string,
  { changes }: TierRequest,
  fields: readonly Field[],
): void {
  if (changes?.kind !== 'op-column') return
  if (!fields.some((field) => field.name === changes.column)) return
  throw new SluiceError(
    'CONFIG_INVALID',
    `--op-column ${changes.column}: it is a column of ${name}, and operations are not stored`,
    { fix: 'take it out of the schema' },
  )
}

function onlyBucketKey(declared: SchemaFile | undefined): string | undefined {
  if (declared?.partitionKey !== undefined && declared.partitionKey.length > 0) {
    throw new SluiceError(
      'SCHEMA_UNSUPPORTED',
      'partition_key: partitions come with a later version',
    )
  }
  const [key, second] = declared?.bucketKey ?? []
  if (second === undefined) return key
  throw new SluiceError(
    'SCHEMA_UNSUPPORTED',
    'bucket_key: a lake table in Iceberg has one column as bucket key',
  )
}

/**
 * Opens every input once, so that a wrong path, or a file that cannot be an input, stops the run before
 * anything is written. A pipe is left as it is: looking at it may take for ever.
 */
async function lookAtInputs(
  request: TierRequest,
  hooks: TierHooks,
  ports: SessionPorts,
): Promise<{ readonly first: InputBytes | undefined; readonly waiting: WaitingInputs }> {
  const waiting: WaitingInputs = new Map()
  const context = { request, hooks, clock: ports.clock, signal: hooks.signal }
  let first: InputBytes | undefined
  for (const path of request.inputs) {
    const bytes = await openBytes(context, path)
    const isFirst = first === undefined
    first ??= bytes
    if (!isReopenable(bytes)) {
      waiting.set(path, bytes)
      continue
    }
    try {
      await lookAt(bytes, request)
    } catch (error) {
      await bytes.close()
      // What comes before a damaged input is tiered, as before a bad record.
      if (isFirst || !isSluiceError(error, 'DATA_CORRUPT')) throw error
    }
    if (!isFirst) await bytes.close()
  }
  return { first, waiting }
}

async function lookAt(bytes: InputBytes, request: TierRequest): Promise<void> {
  const format = await detectFormat(bytes, request.inputFormat)
  if (request.follow) refuseFollowing(bytes.name, format)
  await checkShape({ bytes, format, csv: csvOptions(request) })
}

async function closeFile(bytes: InputBytes | undefined): Promise<void> {
  if (bytes !== undefined && isReopenable(bytes)) await bytes.close()
}
