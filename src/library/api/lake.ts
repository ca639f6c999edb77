import { resolve } from 'node:path'
import type { RecordBatch } from 'apache-arrow'
import { scanRows } from '../../catalog/iceberg/scan-rows.ts'
import { scanTable, type TableScan } from '../../catalog/iceberg/scan.ts'
import { tableFolder } from '../../catalog/iceberg/location.ts'
import { locationOf } from '../../catalog/store/local-store.ts'
import type { LakeTable as CatalogTable } from '../../catalog/ports.ts'
import type { S3Options } from '../../catalog/store/s3-client.ts'
import { toArrow } from '../../core/columns/arrow.ts'
import type { ColumnBatch } from '../../core/columns/column.ts'
import { batchToRows, type Row } from '../../core/columns/rows.ts'
import { SluiceError } from '../../core/errors.ts'
import { millis } from '../../core/ids.ts'
import { formatType } from '../../core/schema/format-type.ts'
import { type Field, systemFields } from '../../core/schema/types.ts'
import { seededChance, systemClock, systemIds } from '../../core/system.ts'
import { formatTableName, parseTableName } from '../../core/table-name.ts'
import { endsOf } from '../../sink/committer/ledger.ts'
import { findOwn, lineage, summaryKeys } from '../../sink/committer/lineage.ts'
import { readVersion } from '../../sink/committer/progress.ts'
import { type OpenedLake, openWarehouse } from '../open-lake.ts'
import { checkMembers } from './check-options.ts'

export type Cancel = { readonly signal?: AbortSignal }

export type LakeOptions = Cancel & {
  /** A folder, `file:///…`, made with the first table if its parent exists; `s3://bucket/prefix`. */
  readonly warehouse: string
  readonly catalog?: 'file'
  /** How the bucket is reached; what is left out is found as AWS tools find it. */
  readonly s3?: S3Options
}

export type ScanOptions = Cancel & {
  readonly snapshotId?: bigint
  readonly asOf?: Date
  /** In this order; by default the columns of the table without those of the system. */
  readonly columns?: readonly string[]
}

/** How far a table is in the lake. */
export type Progress = {
  readonly incarnation: number
  readonly epoch: number
  readonly round: number
  /** End offset (exclusive) of each bucket that has one. */
  readonly ends: ReadonlyMap<number, bigint>
  /** `position` is where to read an input on from; `records` is how many are before it. */
  readonly inputs: ReadonlyMap<string, { readonly position: string; readonly records: bigint }>
}

export type Snapshot = {
  readonly id: bigint
  readonly parentId?: bigint
  readonly committedAt: Date
  readonly operation: string
  readonly summary: Readonly<Record<string, string>>
}

export type TableSummary = {
  readonly name: string
  readonly kind: 'log' | 'primary-key' | 'foreign'
  readonly snapshotId?: bigint
  readonly rows: bigint
  readonly files: number
  readonly bytes: bigint
}

export interface LakeTable {
  readonly name: string
  readonly uuid: string
  readonly location: string
  /** Column name to Fluss type, system columns left out. */
  readonly columns: Readonly<Record<string, string>>
  /** Newest first, along the lineage of the branch. */
  snapshots(): AsyncIterable<Snapshot>
  progress(): Promise<Progress>
  rows(options?: ScanOptions): AsyncIterable<Row>
  batches(options?: ScanOptions): AsyncIterable<RecordBatch>
}

export interface Lake extends AsyncDisposable {
  readonly warehouse: string
  /** @throws SluiceError TABLE_MISSING, NAME_INVALID */
  table(name: string, options?: Cancel): Promise<LakeTable>
  tables(options?: Cancel): AsyncIterable<TableSummary>
  close(): Promise<void>
}

const openedLakes = new WeakMap<Lake, OpenedLake>()

/**
 * Opens a lake for reading and writing. A bucket is asked nothing yet; the first write to it is
 * preceded by a probe of its conditional writes, whose pass is kept for a day.
 * @throws SluiceError LOCATION_REFUSED, STORE_DENIED, CONFIG_INVALID
 */
export async function openLake(options: LakeOptions): Promise<Lake> {
  checkMembers('openLake', options, ['warehouse', 'catalog', 's3', 'signal'])
  const { catalog = 'file' }: { readonly catalog?: unknown } = options
  if (catalog !== 'file') {
    throw new SluiceError('CONFIG_INVALID', 'openLake: the catalog is "file"; others come later', {
      fix: 'leave catalog out',
    })
  }
  if (typeof options.warehouse !== 'string' || options.warehouse === '') {
    throw new SluiceError('CONFIG_INVALID', 'openLake: a warehouse is missing', {
      fix: "{ warehouse: './lake' }",
    })
  }
  options.signal?.throwIfAborted()
  const chance = seededChance(Number.parseInt(systemIds.bits128().slice(0, 7), 16))
  const opened = await openWarehouse(
    warehouseUrl(options.warehouse),
    { clock: systemClock, chance, ids: systemIds },
    options.s3 === undefined ? {} : { s3: options.s3 },
  )
  const { warehouse } = opened
  const lake: Lake = {
    warehouse,
    table: (name) => openTable(opened, name),
    tables: () => summaries(opened),
    close: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
  openedLakes.set(lake, opened)
  return lake
}

/** The parts behind a lake of `openLake`. @throws SluiceError CONFIG_INVALID for any other object. */
export function partsOf(lake: Lake): OpenedLake {
  const opened = openedLakes.get(lake)
  if (opened !== undefined) return opened
  throw new SluiceError('CONFIG_INVALID', 'the lake is not one that openLake returned')
}

function warehouseUrl(text: string): string {
  // The store refuses what is no store of Sluice, and credentials without repeating them.
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return text.replace(/(?<=[^/:])\/+$/, '')
  return locationOf(resolve(text))
}

async function openTable(opened: OpenedLake, name: string): Promise<LakeTable> {
  const parts = parseTableName(name)
  const shown = formatTableName(parts)
  const table = await opened.catalog.open(parts)
  if (table === undefined) {
    throw new SluiceError('TABLE_MISSING', `${shown}: there is no such table in the lake`)
  }
  const loaded = await table.load()
  const user = loaded.fields.filter((field) => !isSystem(field))
  return {
    name: shown,
    uuid: loaded.uuid,
    location: loaded.location,
    columns: Object.fromEntries(user.map((field) => [field.name, formatType(field.type)])),
    snapshots: () => snapshotsOf(table),
    progress: () => progressOf(table, shown),
    async *rows(options = {}) {
      for await (const { fields, batch } of scanBatches(opened, parts, options)) {
        yield* batchToRows(fields, batch)
      }
    },
    async *batches(options = {}) {
      for await (const { fields, batch } of scanBatches(opened, parts, options)) {
        yield toArrow(fields, batch)
      }
    },
  }
}

async function* snapshotsOf(table: CatalogTable): AsyncGenerator<Snapshot> {
  for (const entry of lineage(await table.load())) {
    yield {
      id: entry.id,
      ...(entry.parent === undefined ? {} : { parentId: entry.parent }),
      committedAt: new Date(entry.committedAt),
      operation: entry.operation,
      summary: Object.fromEntries(entry.summary),
    }
  }
}

async function progressOf(table: CatalogTable, name: string): Promise<Progress> {
  const { progress } = await readVersion(table, `embedded:${name}`)
  if (progress.kind === 'lost') throw progress.error
  if (progress.kind === 'fresh') {
    return { incarnation: 0, epoch: 0, round: 0, ends: new Map(), inputs: new Map() }
  }
  const { ledger } = progress
  const inputs = new Map<string, { position: string; records: bigint }>()
  for (const [id, { position, records }] of ledger.inputs) {
    // An input of which no piece is whole yet has no position to read on from.
    if (position !== '') inputs.set(id, { position, records })
  }
  return {
    incarnation: ledger.token.incarnation,
    epoch: ledger.token.epoch,
    round: ledger.round,
    ends: endsOf(ledger),
    inputs,
  }
}

type ScannedBatch = { readonly fields: readonly Field[]; readonly batch: ColumnBatch }

async function* scanBatches(
  opened: OpenedLake,
  name: readonly string[],
  options: ScanOptions,
): AsyncGenerator<ScannedBatch> {
  const scan = await scanTable(opened.store, tableFolder(opened.warehouse, name), {
    ...(options.snapshotId === undefined ? {} : { snapshot: options.snapshotId }),
    ...(options.asOf === undefined ? {} : { asOf: millis(options.asOf.getTime()) }),
  })
  const fields = chosenFields(scan, options.columns)
  for await (const batch of scanRows(opened.store, scan, fields)) {
    options.signal?.throwIfAborted()
    yield { fields, batch }
  }
}

function chosenFields(
  scan: TableScan,
  columns: readonly string[] | undefined,
): TableScan['fields'] {
  if (columns === undefined) return scan.fields.filter((field) => !isSystem(field))
  return columns.map((name) => {
    const found = scan.fields.find((field) => field.name === name)
    if (found !== undefined) return found
    const known = scan.fields.map((field) => field.name).join(', ')
    throw new SluiceError('CONFIG_INVALID', `the table has no column ${JSON.stringify(name)}`, {
      fix: known,
    })
  })
}

async function* summaries(opened: OpenedLake): AsyncGenerator<TableSummary> {
  for (const name of await opened.catalog.list()) {
    const table = await opened.catalog.open(name)
    if (table === undefined) continue
    const loaded = await table.load()
    const shown = formatTableName(name)
    const head = loaded.head === undefined ? undefined : loaded.snapshots.get(loaded.head)
    const total = (key: string): bigint => {
      const text = head?.summary.get(key) ?? ''
      return /^\d{1,18}$/.test(text) ? BigInt(text) : 0n
    }
    const own = findOwn(loaded, `embedded:${shown}`)
    const isOurs = own.kind !== 'other-source' && (head === undefined || own.kind === 'found')
    yield {
      name: shown,
      kind: isOurs || head?.summary.has(summaryKeys.commitId) === true ? 'log' : 'foreign',
      ...(loaded.head === undefined ? {} : { snapshotId: loaded.head }),
      rows: total('total-records'),
      files: Number(total('total-data-files')),
      bytes: total('total-files-size'),
    }
  }
}

function isSystem(field: Field): boolean {
  return systemFields.some((each) => each.name === field.name)
}
