import type * as duckDb from '@duckdb/node-api'
import type { DuckDBConnection, DuckDBType, DuckDBValue } from '@duckdb/node-api'
import { SluiceError } from '../core/errors.ts'

export type DuckColumn = { readonly name: string; readonly type: DuckDBType }
export type DuckRows = {
  readonly columns: readonly DuckColumn[]
  /** False for a statement that gives no rows, such as CREATE. */
  readonly hasRows: boolean
  /** Rows in pieces of a few thousand; can be read once. */
  readonly pieces: AsyncIterable<readonly (readonly DuckDBValue[])[]>
}

/** A DuckDB in memory that lives as long as one command. */
export interface DuckDb {
  /** `1.5.6`. */
  readonly version: string
  /** Runs statements and throws DuckDB's own error. */
  run(sql: string): Promise<void>
  /** Rows of the last statement. */
  query(sql: string): Promise<DuckRows>
  /** Ends what runs; it then rejects. */
  interrupt(): void
  close(): void
}

/**
 * Opens DuckDB if it is installed. It never fetches an extension: what a query may read does not
 * depend on the network.
 * @param purpose What needs it, for the message: `query`.
 * @throws SluiceError DEPENDENCY_MISSING
 */
export async function openDuckDb(purpose: string): Promise<DuckDb> {
  const module = await load(purpose)
  const instance = await module.DuckDBInstance.create(':memory:', {
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
  })
  const connection = await instance.connect()
  const version = await versionOf(connection)
  return {
    version,
    run: async (sql) => {
      await connection.run(sql)
    },
    query: async (sql) => {
      const result = await connection.stream(sql)
      const types = result.columnTypes()
      const columns = result.columnNames().flatMap((name, index) => {
        const type = types[index]
        return type === undefined ? [] : [{ name, type }]
      })
      const hasRows = result.returnType === module.ResultReturnType.QUERY_RESULT
      return { columns, hasRows, pieces: result.yieldRows() }
    },
    interrupt: () => {
      connection.interrupt()
    },
    close: () => {
      connection.closeSync()
      instance.closeSync()
    },
  }
}

/** Quotes a name, so that upper case, dots and quotes in it are kept. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

export function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

async function load(purpose: string): Promise<typeof duckDb> {
  try {
    return await import('@duckdb/node-api')
  } catch (cause) {
    const isAbsent =
      cause instanceof Error && 'code' in cause && cause.code === 'ERR_MODULE_NOT_FOUND'
    throw new SluiceError(
      'DEPENDENCY_MISSING',
      isAbsent
        ? `${purpose} needs @duckdb/node-api, which is not installed`
        : `${purpose} needs @duckdb/node-api, which does not load here`,
      { fix: 'npm install @duckdb/node-api', cause },
    )
  }
}

async function versionOf(connection: DuckDBConnection): Promise<string> {
  const reader = await connection.runAndReadAll('select version()')
  const [row] = reader.getRows()
  const value = row?.[0]
  return typeof value === 'string' ? value.replace(/^v/, '') : 'unknown'
}
