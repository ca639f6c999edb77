import { readFile } from 'node:fs/promises'
import type { LakeTable, LoadedTable } from '../../catalog/ports.ts'
import { folderOfPart } from '../../catalog/iceberg/location.ts'
import { SluiceError } from '../../core/errors.ts'
import { parseDuration } from '../../core/duration.ts'
import { bucketKeyProblem, checkSchema } from '../../core/schema/check-schema.ts'
import { formatType } from '../../core/schema/format-type.ts'
import { parseSchemaFile, type SchemaFile } from '../../core/schema/schema-file.ts'
import { formatTableName } from '../../core/table-name.ts'
import { checkInput } from '../../source/ingest/check-input.ts'
import type { InputBytes } from '../../source/ingest/input-bytes.ts'
import { detectFormat } from '../../source/ingest/input-format.ts'
import type { SourceTable } from '../../source/ports.ts'
import type { OpenedLake } from '../open-lake.ts'
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
  readonly definition: Pick<SourceTable, 'schema' | 'bucketCount' | 'bucketKey'>
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
  const learned =
    declared === undefined
      ? await learnFields(first, request)
      : { fields: declared.fields, notes: [] }
  const name = formatTableName(request.table)
  checkSchema(learned.fields, name)
  const bucketKey = request.bucketKey ?? onlyKey(declared)
  if (bucketKey !== undefined) {
    const problem = bucketKeyProblem(learned.fields, bucketKey)
    if (problem !== undefined) throw new SluiceError('SCHEMA_UNSUPPORTED', problem)
  }
  if (first !== undefined && declared !== undefined) {
    const target = { table: name, fields: learned.fields }
    await checkInput({
      bytes: first,
      format: await detectFormat(first, request.inputFormat),
      csv: csvOptions(request),
      target: bucketKey === undefined ? target : { ...target, bucketKey },
    })
  }
  await closeFile(first)
  const properties = new Map([
    ...Object.entries(declared?.properties ?? {}),
    ...request.properties,
    ...declaredProperty(learned.fields),
  ])
  const { table, created } = await lake.catalog.create({
    name: request.table,
    schema: { fields: learned.fields },
    bucketCount: request.buckets ?? declared?.bucketCount ?? bucketsDefault,
    properties,
    ...(bucketKey === undefined ? {} : { bucketKey }),
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
  const bucketKey = request.bucketKey ?? onlyKey(declared)
  requireSameDefinition(name, loaded, {
    ...(declared === undefined ? {} : { fields: declared.fields }),
    ...(bucketCount === undefined ? {} : { bucketCount }),
    bucketKey: bucketKey ?? null,
  })
  const fields = declaredFields(loaded)
  return {
    name,
    lake: table,
    created: false,
    definition: {
      schema: { fields },
      bucketCount: loaded.bucketCount,
      bucketKey: loaded.bucketKey,
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

function onlyKey(declared: SchemaFile | undefined): string | undefined {
  if (declared?.primaryKey !== undefined && declared.primaryKey.length > 0) {
    throw new SluiceError(
      'SCHEMA_UNSUPPORTED',
      'primary_key: primary-key tables come with a later version',
      { fix: 'leave primary_key out: a log table keeps every record' },
    )
  }
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

/** Opens every input once, so that a wrong path stops the run before anything is written. */
async function lookAtInputs(
  request: TierRequest,
  hooks: TierHooks,
  ports: SessionPorts,
): Promise<{ readonly first: InputBytes | undefined; readonly waiting: WaitingInputs }> {
  const waiting: WaitingInputs = new Map()
  let first: InputBytes | undefined
  for (const path of request.inputs) {
    const bytes = await openBytes(
      { request, hooks, clock: ports.clock, signal: hooks.signal },
      path,
    )
    if (!isReopenable(bytes)) waiting.set(path, bytes)
    else if (first !== undefined) await bytes.close()
    first ??= bytes
  }
  return { first, waiting }
}

async function closeFile(bytes: InputBytes | undefined): Promise<void> {
  if (bytes !== undefined && isReopenable(bytes)) await bytes.close()
}
