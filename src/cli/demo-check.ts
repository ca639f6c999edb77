import { scanTable, type TableScan } from '../catalog/iceberg/scan.ts'
import type { ObjectStore } from '../catalog/store/object-store.ts'
import { isSluiceError, SluiceError } from '../core/errors.ts'
import { systemColumns } from '../core/schema/types.ts'
import { readDataFile } from '../catalog/iceberg/read-data-file.ts'
import { type DuckDb, openDuckDb } from './duckdb.ts'
import { selectOf } from './duckdb-views.ts'
import { type BucketDigest, Digests, digestSql } from './demo-hash.ts'
import type { DemoPart } from './demo-world.ts'

/** What the check found out about one table. */
export type TableCheck = {
  readonly table: string
  readonly produced: bigint
  readonly inLake: bigint
  readonly buckets: number
  /** The first difference; undefined when there is none. */
  readonly difference: string | undefined
}

export type DemoCheck = {
  /** Who read the files: `DuckDB 1.5.6`, or Sluice itself. */
  readonly reader: string
  readonly isIndependent: boolean
  readonly tables: readonly TableCheck[]
}

/** Compares what was produced with what is in the lake, bucket by bucket. */
export async function checkLake(
  store: ObjectStore,
  parts: readonly DemoPart[],
): Promise<DemoCheck> {
  const db = await openDuckDb('the check').catch((error: unknown) => {
    if (isSluiceError(error, 'DEPENDENCY_MISSING')) return undefined
    throw error
  })
  try {
    const tables: TableCheck[] = []
    for (const { table, opened, producer } of parts) {
      const { location } = opened.version.table
      const scan = await scanTable(store, location)
      const digests =
        db === undefined ? await readDigests(store, scan) : await queryDigests(db, scan)
      const produced = producer.digests.buckets()
      tables.push({
        table: table.name,
        produced: BigInt(producer.rows),
        inLake: [...digests.values()].reduce((sum, { rows }) => sum + rows, 0n),
        buckets: digests.size,
        difference: differenceOf(produced, digests),
      })
    }
    const reader = db === undefined ? "Sluice's own reader" : `DuckDB ${db.version}`
    return { reader, isIndependent: db !== undefined, tables }
  } finally {
    db?.close()
  }
}

function userFields(scan: TableScan): TableScan['fields'] {
  const own: readonly string[] = Object.values(systemColumns)
  return scan.fields.filter((field) => !own.includes(field.name))
}

async function queryDigests(db: DuckDb, scan: TableScan): Promise<Map<number, BucketDigest>> {
  const found = new Map<number, BucketDigest>()
  const rows = await db.query(digestSql(`(${selectOf(scan)})`, userFields(scan)))
  for await (const piece of rows.pieces) {
    for (const row of piece) {
      const [bucket, count, first, last, high, low] = row.map((value) => BigInt(String(value)))
      if (bucket === undefined || count === undefined || first === undefined) continue
      if (last === undefined || high === undefined || low === undefined) continue
      found.set(Number(bucket), { rows: count, first, last, high, low })
    }
  }
  return found
}

/** Without DuckDB the files are read by the reader that tiers Parquet inputs. */
async function readDigests(
  store: ObjectStore,
  scan: TableScan,
): Promise<Map<number, BucketDigest>> {
  const digests = new Digests()
  const user = userFields(scan).length
  const at = (name: string): number => scan.fields.findIndex((field) => field.name === name)
  for (const file of scan.files) {
    for await (const batch of readDataFile(store, file.resolved, scan.fields)) {
      const offsets = batch.columns[at(systemColumns.offset)]
      const buckets = batch.columns[at(systemColumns.bucket)]
      if (offsets?.layout !== 'int64' || buckets?.layout !== 'int32') {
        throw new SluiceError('DATA_CORRUPT', `${file.location}: system columns are missing`)
      }
      digests.add(
        { length: batch.length, columns: batch.columns.slice(0, user) },
        {
          bucketAt: (row) => buckets.values[row] ?? -1,
          offsetAt: (row) => Number(offsets.values[row] ?? -1n),
        },
      )
    }
  }
  return new Map(digests.buckets())
}

function differenceOf(
  produced: ReadonlyMap<number, BucketDigest>,
  found: ReadonlyMap<number, BucketDigest>,
): string | undefined {
  for (const bucket of new Set([...produced.keys(), ...found.keys()])) {
    const [want, have] = [produced.get(bucket), found.get(bucket)]
    const place = `bucket ${bucket.toString()}`
    if (want?.rows !== have?.rows) {
      const [expected, is] = [want?.rows ?? 0n, have?.rows ?? 0n]
      return `${place}: ${expected.toString()} rows were produced, ${is.toString()} are there`
    }
    if (want === undefined || have === undefined) continue
    if (want.first !== have.first || want.last !== have.last) {
      const range = `offsets ${have.first.toString()} to ${have.last.toString()}`
      return `${place}: ${range}, not ${want.first.toString()} to ${want.last.toString()}`
    }
    if (want.high !== have.high || want.low !== have.low) {
      return `${place}: the values of some row differ`
    }
  }
  return undefined
}
