import { parquetReadObjects } from 'hyparquet'

export type SeenRow = {
  readonly n: number
  readonly bucket: number
  readonly offset: bigint
}

/** Rows of a data file in their order: of the stand-in's JSON lines, or of Parquet by hyparquet. */
export async function readRows(body: Uint8Array): Promise<readonly SeenRow[]> {
  if (Buffer.from(body.subarray(0, 4)).toString('latin1') === 'PAR1') return parquetRows(body)
  const rows: SeenRow[] = []
  for (const line of Buffer.from(body).toString('utf8').trimEnd().split('\n')) {
    const columns = new Map(columnsOf(JSON.parse(line)))
    const numbers = columns.get('n') ?? []
    const buckets = columns.get('__bucket') ?? []
    const offsets = columns.get('__offset') ?? []
    numbers.forEach((n, at) => {
      const [bucket, offset] = [buckets[at], offsets[at]]
      if (bucket === undefined || offset === undefined) throw new Error('columns differ in length')
      rows.push({ n: Number(n), bucket: Number(bucket), offset: BigInt(offset) })
    })
  }
  return rows
}

function columnsOf(value: unknown): readonly [string, readonly string[]][] {
  if (!Array.isArray(value)) throw new Error('a line is no list of columns')
  const columns: readonly unknown[] = value
  return columns.map((column) => {
    if (!Array.isArray(column)) throw new Error('a column is no pair')
    const [name, values] = column as readonly unknown[]
    if (!Array.isArray(values)) throw new Error('a column has no values')
    return [String(name), values.map(String)]
  })
}

async function parquetRows(body: Uint8Array): Promise<readonly SeenRow[]> {
  const copy = new ArrayBuffer(body.length)
  new Uint8Array(copy).set(body)
  const rows = await parquetReadObjects({ file: copy })
  return rows.map((row) => ({
    n: Number(row['n']),
    bucket: Number(row['__bucket']),
    offset: BigInt(String(row['__offset'])),
  }))
}
