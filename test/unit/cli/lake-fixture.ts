import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileCatalog } from '../../../src/catalog/iceberg/file-catalog.ts'
import { localStore, locationOf, pathOf } from '../../../src/catalog/store/local-store.ts'
import type { LakeTable } from '../../../src/catalog/ports.ts'
import { openDuckDb, quoteName, quoteText } from '../../../src/cli/duckdb.ts'
import { duckType } from '../../../src/cli/duckdb-views.ts'
import { type CliIo, run } from '../../../src/cli/run.ts'
import { bucket, snapshotId } from '../../../src/core/ids.ts'
import { parseType } from '../../../src/core/schema/parse-type.ts'
import type { IdField } from '../../../src/core/schema/types.ts'
import { systemClock, systemIds } from '../../../src/core/system.ts'
import { Readable } from 'node:stream'

/** A warehouse in a temporary folder. */
export async function withWarehouse(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-cli-'))
  try {
    await use(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

export async function createTable(
  warehouse: string,
  name: readonly string[],
  columns: Readonly<Record<string, string>>,
): Promise<LakeTable> {
  const catalog = fileCatalog({
    store: localStore(systemIds),
    warehouse: locationOf(warehouse),
    clock: systemClock,
    ids: systemIds,
  })
  const { table } = await catalog.create({
    name,
    schema: {
      fields: Object.entries(columns).map(([column, type]) => ({
        name: column,
        type: parseType(type),
      })),
    },
    bucketCount: 1,
    properties: new Map(),
  })
  return table
}

/** Adds the rows of a SELECT as one file, written by DuckDB with the table's field ids. */
export async function appendFile(table: LakeTable, id: bigint, select: string): Promise<void> {
  const base = await table.load()
  const location = `${base.location}/data/${id.toString()}.parquet`
  const path = pathOf(location)
  const { mkdir } = await import('node:fs/promises')
  await mkdir(join(path, '..'), { recursive: true })
  const db = await openDuckDb('a test')
  const columns = base.fields.map(
    (field, index) => `cast(c${String(index)} as ${duckType(field)}) as ${quoteName(field.name)}`,
  )
  const names = base.fields.map((_, index) => `c${String(index)}`).join(', ')
  await db.run(
    `copy (select ${columns.join(', ')} from (${select}) t(${names})) to ${quoteText(path)} ` +
      `(format parquet, field_ids {${base.fields.map(idsOf).join(', ')}})`,
  )
  db.close()
  const { size } = await stat(path)
  const outcome = await table.swap(base, {
    snapshot: {
      id: snapshotId(id),
      operation: 'append',
      summary: new Map(),
      files: [
        { location, bucket: bucket(0), rows: 1, bytes: size, metrics: [], splitOffsets: [4] },
      ],
    },
    setProperties: new Map(),
  })
  if (outcome.kind !== 'applied') throw new Error(`the swap was ${outcome.kind}`)
}

function idsOf(field: IdField): string {
  const name = quoteName(field.name)
  if (field.children.length === 0) return `${name}: ${String(field.id)}`
  const labels =
    field.type.kind === 'array' ? ['element'] : field.type.kind === 'map' ? ['key', 'value'] : []
  const children = field.children.map((child, index) =>
    idsOf({ ...child, name: labels[index] ?? child.name }),
  )
  return `${name}: {__duckdb_field_id: ${String(field.id)}, ${children.join(', ')}}`
}

export type CliRun = { readonly exit: number; readonly out: string; readonly err: string }

/** Runs a command line as the program would, without a terminal. */
export async function runCli(
  argv: readonly string[],
  over: Partial<Pick<CliIo, 'environment' | 'folder'>> & {
    readonly stdin?: string
    readonly tty?: boolean
  } = {},
  commands?: Parameters<typeof run>[1],
): Promise<CliRun> {
  const written = { out: '', err: '' }
  const stream = (to: 'out' | 'err'): CliIo['stdout'] => ({
    isTTY: over.tty === true,
    write: (text, done) => {
      written[to] += text
      done?.()
      return true
    },
  })
  const exit = await run(
    {
      argv,
      environment: { LANG: 'C.UTF-8', ...over.environment },
      folder: over.folder ?? '/nowhere',
      stdout: stream('out'),
      stderr: stream('err'),
      stdin: Readable.from(over.stdin === undefined ? [] : [Buffer.from(over.stdin)]),
      stop: { signal: new AbortController().signal, by: () => undefined },
      now: () => performance.now(),
    },
    ...(commands === undefined ? [] : [commands]),
  )
  return { exit, ...written }
}
