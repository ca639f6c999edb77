/**
 * Rows and bytes a second of the Parquet encoders on a clickstream, interleaved so that a busy
 * machine slows all of them alike. Usage: node dist/bench/encode.js [rows] [rounds]
 */
import { finishBatch, columnBuilder } from '../src/core/columns/builder.ts'
import { batchBytes, type ColumnBatch } from '../src/core/columns/column.ts'
import type { DataType, IdField } from '../src/core/schema/types.ts'
import { loadZstd } from '../src/sink/parquet/codec.ts'
import { columnarEncoder } from '../src/sink/parquet/columnar.ts'
import type { ParquetEncoder } from '../src/sink/parquet/encoder.ts'
import { wasmEncoder } from '../src/sink/parquet/wasm.ts'

const rows = Number(process.argv[2] ?? 1 << 20)
const rounds = Number(process.argv[3] ?? 5)
const batchRows = 1 << 16

const columns: readonly (readonly [string, DataType])[] = [
  ['event_id', { kind: 'bigint', nullable: false }],
  ['user_id', { kind: 'int', nullable: true }],
  ['price', { kind: 'double', nullable: true }],
  ['is_mobile', { kind: 'boolean', nullable: true }],
  ['client_ts', { kind: 'timestamp', precision: 3, nullable: true }],
  ['event_time', { kind: 'timestamp_ltz', precision: 6, nullable: false }],
  ['country', { kind: 'string', nullable: true }],
  ['url', { kind: 'string', nullable: false }],
  ['campaign', { kind: 'string', nullable: true }],
]
const fields: readonly IdField[] = columns.map(([name, type], at) => ({
  id: at + 1,
  name,
  type,
  children: [],
}))

/** A small linear congruential generator: the same data in every run. */
let state = 7
function chance(): number {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0
  return state / 2 ** 32
}

function zipf(most: number): number {
  return Math.floor(most ** chance())
}

function clickstream(): ColumnBatch[] {
  const batches: ColumnBatch[] = []
  for (let from = 0; from < rows; from += batchRows) {
    const builders = columns.map(([, type]) => columnBuilder(type))
    for (let row = from; row < Math.min(rows, from + batchRows); row += 1) {
      const time = 1_760_000_000_000_000 + row * 731 + Math.floor(chance() * 5000)
      const cells = [
        1_000_000_000_000 + row * 3,
        chance() < 0.05 ? null : zipf(500_000),
        chance() < 0.1 ? null : Math.round(2000 * chance() ** 3) / 100,
        chance() < 0.02 ? null : chance() < 0.6,
        chance() < 0.03 ? null : (Math.floor(time / 1000) - Math.floor(chance() * 3000)) * 1000,
        time,
        chance() < 0.01 ? null : `Region-${String(Math.floor(chance() * 50))}`,
        `/shop/item/${hex()}${hex()}?p=${String(Math.floor(chance() * 10_000))}`,
        chance() < 0.5 ? null : `campaign-${String(zipf(2000)).padStart(4, '0')}`,
      ]
      builders.forEach((builder, at) => {
        const cell = cells[at]
        if (cell === null || cell === undefined) builder.appendNull()
        else if (builder.layout === 'int64' && typeof cell === 'number') builder.appendSafe(cell)
        else if (builder.layout === 'bytes') builder.appendText(String(cell))
        else if (builder.layout === 'bit') builder.append(cell === true)
        else if (builder.layout === 'int32' || builder.layout === 'float64') {
          builder.append(Number(cell))
        }
      })
    }
    batches.push(finishBatch(builders))
  }
  return batches
}

function hex(): string {
  return Math.floor(chance() * 2 ** 32)
    .toString(16)
    .padStart(8, '0')
}

async function encode(
  encoder: ParquetEncoder,
  batches: readonly ColumnBatch[],
  compression: 'zstd' | 'none',
): Promise<number> {
  let bytes = 0
  const file = encoder.open(
    fields,
    {
      write(part) {
        bytes += part.length
        return Promise.resolve()
      },
    },
    {
      rowGroupBytes: 128 << 20,
      pageBytes: 1 << 20,
      compression,
      compressionLevel: 1,
      metadata: new Map(),
    },
  )
  for (const batch of batches) await file.write(batch)
  await file.close()
  return bytes
}

const batches = clickstream()
const inMemory = batches.reduce((sum, batch) => sum + batchBytes(batch), 0)
const zstd = await loadZstd()
const candidates = [
  {
    name: `columnar, zstd by ${zstd.implementation}`,
    encoder: columnarEncoder(loadZstd),
    compression: 'zstd',
  },
  { name: 'parquet-wasm, zstd', encoder: wasmEncoder, compression: 'zstd' },
  { name: 'columnar, no compression', encoder: columnarEncoder(loadZstd), compression: 'none' },
] as const

const seconds = candidates.map((): number[] => [])
const sizes: number[] = []
for (let round = 0; round <= rounds; round += 1) {
  for (const [at, { encoder, compression }] of candidates.entries()) {
    const before = process.cpuUsage()
    sizes[at] = await encode(encoder, batches, compression)
    const { user, system } = process.cpuUsage(before)
    if (round > 0) seconds[at]?.push((user + system) / 1e6)
  }
}

console.log(
  `${String(rows)} rows, ${(inMemory / 1e6).toFixed(0)} MB in memory, CPU seconds, median`,
)
for (const [at, { name }] of candidates.entries()) {
  const sorted = (seconds[at] ?? []).sort((a, b) => a - b)
  const median = sorted[sorted.length >> 1] ?? NaN
  console.log(
    [
      name.padEnd(46),
      `${(rows / median / 1e6).toFixed(2)} M rows/s`,
      `${(inMemory / median / 1e6).toFixed(0)} MB/s`,
      `file ${((sizes[at] ?? 0) / 1e6).toFixed(1)} MB`,
      `min ${(sorted[0] ?? NaN).toFixed(2)} s`,
    ].join('  '),
  )
}
