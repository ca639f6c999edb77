import type { TableSchema } from '../core/schema/types.ts'
import { parseType } from '../core/schema/parse-type.ts'

/** One of the three tables of the walkthrough. Times are in seconds of demo time. */
export type DemoTable = {
  readonly name: 'clicks' | 'orders' | 'customers'
  readonly letter: string
  readonly buckets: number
  readonly bucketKey?: string
  readonly freshness: number
  readonly rowsPerMinute: number
  /** Records appear from then on; the tiering job starts at 0. */
  readonly from: number
  /** How long reading one split takes, of the first round and of later ones. */
  readonly splitSeconds: { readonly first: number; readonly later: number }
  readonly schema: TableSchema
}

/** The tables were made long enough before the start that each has waited its first freshness. */
export const createdAt = -300

export const demoTables: readonly DemoTable[] = [
  {
    name: 'clicks',
    letter: 'c',
    buckets: 16,
    freshness: 60,
    rowsPerMinute: 90_000,
    from: -60,
    splitSeconds: { first: 30, later: 30 },
    schema: schema({
      id: 'BIGINT NOT NULL',
      at: 'TIMESTAMP_LTZ(6) NOT NULL',
      user_id: 'BIGINT NOT NULL',
      url: 'STRING NOT NULL',
      country: 'STRING',
      latency_ms: 'INT NOT NULL',
    }),
  },
  {
    name: 'orders',
    letter: 'o',
    buckets: 8,
    bucketKey: 'id',
    freshness: 120,
    rowsPerMinute: 24_000,
    from: -120,
    splitSeconds: { first: 90, later: 90 },
    schema: schema({
      id: 'BIGINT NOT NULL',
      at: 'TIMESTAMP_LTZ(6) NOT NULL',
      customer_id: 'BIGINT NOT NULL',
      amount: 'DECIMAL(12, 2) NOT NULL',
      status: 'STRING NOT NULL',
    }),
  },
  {
    name: 'customers',
    letter: 'u',
    buckets: 12,
    bucketKey: 'id',
    freshness: 300,
    rowsPerMinute: 5000,
    from: -300,
    splitSeconds: { first: 100, later: 20 },
    schema: schema({
      id: 'BIGINT NOT NULL',
      at: 'TIMESTAMP_LTZ(6) NOT NULL',
      name: 'STRING NOT NULL',
      country: 'STRING',
      credit: 'DECIMAL(12, 2) NOT NULL',
    }),
  },
]

/** Records of a table that are there at a time. */
export function rowsUntil(table: DemoTable, seconds: number): number {
  return Math.max(0, Math.floor((table.rowsPerMinute * (seconds - table.from)) / 60))
}

function schema(columns: Readonly<Record<string, string>>): TableSchema {
  return {
    fields: Object.entries(columns).map(([name, type]) => ({ name, type: parseType(type) })),
  }
}
