import type { FieldMetrics } from '../src/catalog/ports.ts'
import { batchBytes, type ColumnBatch } from '../src/core/columns/column.ts'
import type { IdField } from '../src/core/schema/types.ts'
import type { ByteSink, FileEncoder, ParquetEncoder } from '../src/sink/parquet/encoder.ts'

/**
 * Stands in for Parquet where the simulation wants speed: one line of JSON per batch, and the bounds
 * that a manifest wants. What it writes can only be read by the oracle.
 */
export const jsonEncoder: ParquetEncoder = {
  name: 'columnar',
  needsNameMapping: false,
  refuses: () => undefined,
  open: (fields, sink) => jsonFile(fields, sink),
}

type Range = { low: bigint; high: bigint }

function jsonFile(fields: readonly IdField[], sink: ByteSink): FileEncoder {
  const names = fields.map((field) => field.name)
  const ranges = new Map<number, Range>()
  let held: string[] = []
  let bufferedBytes = 0
  let writtenBytes = 0
  let rows = 0

  const flush = async (): Promise<void> => {
    if (held.length === 0) return
    const body = Buffer.from(held.join(''))
    held = []
    bufferedBytes = 0
    writtenBytes += body.length
    await sink.write(body)
  }

  return {
    get bufferedBytes() {
      return bufferedBytes
    },
    get writtenBytes() {
      return writtenBytes
    },
    write(batch) {
      held.push(lineOf(names, batch, fields, ranges))
      bufferedBytes += batchBytes(batch)
      rows += batch.length
      return Promise.resolve()
    },
    flush,
    async close() {
      await flush()
      const metrics = fields.map((field) => metricsOf(field, rows, ranges.get(field.id)))
      return { rows, bytes: writtenBytes, metrics, splitOffsets: [0] }
    },
  }
}

function lineOf(
  names: readonly string[],
  batch: ColumnBatch,
  fields: readonly IdField[],
  ranges: Map<number, Range>,
): string {
  const columns = batch.columns.map((column, at) => {
    if (column.layout !== 'int64' && column.layout !== 'int32') {
      throw new Error(`the tables of the simulation have no ${column.layout} columns`)
    }
    const values = Array.from<number | bigint>(column.values)
    widen(ranges, fields[at]?.id ?? -1, values)
    return [names[at], values.map(String)]
  })
  return `${JSON.stringify(columns)}\n`
}

function widen(ranges: Map<number, Range>, id: number, values: readonly (number | bigint)[]): void {
  const [first] = values
  if (first === undefined) return
  let [low, high] = [first, first]
  for (const value of values) {
    if (value < low) low = value
    if (value > high) high = value
  }
  const range = ranges.get(id)
  if (range === undefined) ranges.set(id, { low: BigInt(low), high: BigInt(high) })
  else {
    if (low < range.low) range.low = BigInt(low)
    if (high > range.high) range.high = BigInt(high)
  }
}

function metricsOf(field: IdField, rows: number, range: Range | undefined): FieldMetrics {
  const counts = { fieldId: field.id, columnBytes: rows, valueCount: rows, nullCount: 0 }
  if (range === undefined) return counts
  const width = field.type.kind === 'int' ? 4 : 8
  return {
    ...counts,
    lower: littleEndian(range.low, width),
    upper: littleEndian(range.high, width),
  }
}

function littleEndian(value: bigint, width: number): Uint8Array {
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setBigInt64(0, value, true)
  return bytes.subarray(0, width)
}
