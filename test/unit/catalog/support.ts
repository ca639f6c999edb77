import { fileCatalog } from '../../../src/catalog/iceberg/file-catalog.ts'
import type {
  DataFile,
  LakeCatalog,
  LoadedTable,
  SwapOutcome,
  TableChange,
  TableDefinition,
} from '../../../src/catalog/ports.ts'
import { memoryStore } from '../../../src/catalog/store/memory-store.ts'
import { bucket, millis, snapshotId } from '../../../src/core/ids.ts'
import type { IdSource } from '../../../src/core/ports.ts'
import type { Field } from '../../../src/core/schema/types.ts'

export const warehouse = 'file:///lake'
export const folder = `${warehouse}/demo/clicks`

/** A snapshot id above 2^53, as every real one is. */
export const bigId = 6204118930415926535n

export type Lake = {
  readonly store: ReturnType<typeof memoryStore>
  readonly catalog: LakeCatalog
  readonly ids: IdSource
  now: number
}

/** A lake in memory with a clock that the test moves and ids that count. */
export function lakeInMemory(at: string = warehouse): Lake {
  let drawn = 0
  const ids = { bits128: (): string => (drawn += 1).toString(16).padStart(32, '0') }
  const clock = { now: () => millis(lake.now) }
  const store = memoryStore(clock)
  const catalog = fileCatalog({ store, warehouse: at, clock, ids })
  const lake: Lake = { store, catalog, ids, now: 1_700_000_000_000 }
  return lake
}

export const userFields: readonly Field[] = [
  { name: 'id', type: { kind: 'bigint', nullable: false } },
  { name: 'note', type: { kind: 'string', nullable: true }, comment: 'what was said' },
]

export function definition(changes: Partial<TableDefinition> = {}): TableDefinition {
  return {
    name: ['demo', 'clicks'],
    schema: { fields: userFields },
    bucketCount: 4,
    properties: new Map(),
    ...changes,
  }
}

export function dataFile(at: number, rows: number, changes: Partial<DataFile> = {}): DataFile {
  return {
    location: `${folder}/data/file-${String(at)}-${String(rows)}.parquet`,
    bucket: bucket(at),
    rows,
    bytes: rows * 10,
    metrics: [{ fieldId: 1, columnBytes: 80, valueCount: rows, nullCount: 0 }],
    splitOffsets: [4],
    ...changes,
  }
}

export function append(
  id: bigint,
  files: readonly DataFile[],
  changes: Partial<NonNullable<TableChange['snapshot']>> = {},
): TableChange {
  return {
    snapshot: {
      id: snapshotId(id),
      operation: 'append',
      summary: new Map([['sluice.round', '1']]),
      files,
      ...changes,
    },
    setProperties: new Map(),
  }
}

/** The table after a swap that had to be applied. */
export function applied(outcome: SwapOutcome): LoadedTable {
  if (outcome.kind !== 'applied') throw new Error(`swap was ${outcome.kind}`)
  return outcome.table
}
