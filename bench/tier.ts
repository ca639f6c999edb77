/**
 * NDJSON file into a committed Iceberg table on local disk: `sluice tier` beside pyiceberg appending
 * the same file (pyarrow.json). Runs are interleaved; medians are reported. It fails only on a wrong
 * result, never on a slow one.
 */
import { execFile } from 'node:child_process'
import {
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import { parseArgs, promisify } from 'node:util'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const python = join(process.env['SLUICE_ENGINES_HOME'] ?? join(root, '.engines'), 'fast/bin/python')

type Measured = {
  readonly seconds: number
  readonly cpuSeconds: number
  readonly rows: number
  readonly peakBytes: number
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      buckets: { type: 'string', default: '4' },
    },
  })
  const records = values.quick ? 200_000 : 1_000_000
  const runs = values.quick ? 3 : 5
  const scratch = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  try {
    const file = join(scratch, 'flights.ndjson')
    await writeFlights(file, records)
    const bytes = statSync(file).size
    const contenders = new Map<string, (warehouse: string) => Promise<Measured>>([
      ['sluice', (warehouse) => sluice(file, warehouse, values.buckets)],
    ])
    if (existsSync(python)) {
      contenders.set('pyiceberg', (warehouse) => peer('pyiceberg_append.py', file, warehouse))
    } else {
      say('pyiceberg is not installed (test/engines/setup.sh fast): no peer in this run')
    }
    const results = new Map<string, Measured[]>([...contenders.keys()].map((name) => [name, []]))
    for (let turn = 0; turn < runs; turn += 1) {
      for (const [name, measure] of contenders) {
        const warehouse = join(scratch, `${name}-${String(turn)}`)
        mkdirSync(warehouse)
        const measured = await measure(warehouse)
        if (measured.rows !== records) {
          throw new Error(`${name} holds ${String(measured.rows)} rows of ${String(records)}`)
        }
        results.get(name)?.push(measured)
        rmSync(warehouse, { recursive: true })
      }
    }
    report({ records, bytes, runs, results })
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** The example data again and again, so that the file is as large as asked for. */
async function writeFlights(path: string, records: number): Promise<void> {
  const sample = readFileSync(join(root, 'examples/data/flights.ndjson'), 'utf8')
    .trimEnd()
    .split('\n')
  const stream = createWriteStream(path)
  for (let at = 0; at < records; at += sample.length) {
    const part = sample.slice(0, Math.min(sample.length, records - at))
    if (!stream.write(`${part.join('\n')}\n`)) await once(stream, 'drain')
  }
  stream.end()
  await once(stream, 'finish')
}

/** Written at exit by the measured process itself: nobody else knows its CPU time. */
const usageHook = `data:text/javascript,${encodeURIComponent(
  "import{writeFileSync}from'node:fs';process.on('exit',()=>writeFileSync(process.env.BENCH_USAGE,JSON.stringify(process.cpuUsage())))",
)}`

async function sluice(file: string, warehouse: string, buckets: string): Promise<Measured> {
  const usage = `${warehouse}.usage.json`
  const { stdout } = await run(
    process.execPath,
    [
      '--import',
      usageHook,
      join(root, 'dist/src/cli/main.js'),
      ...['tier', file, '--warehouse', warehouse, '--table', 'bench.flights'],
      ...['--buckets', buckets, '--json'],
    ],
    { maxBuffer: 1 << 26, env: { ...process.env, BENCH_USAGE: usage } },
  )
  const receipt = JSON.parse(stdout) as { seconds: number; rows: number; peak_memory_bytes: number }
  const cpu = JSON.parse(readFileSync(usage, 'utf8')) as { user: number; system: number }
  rmSync(usage)
  return {
    // As for the peer, the start of the process is left out of the time, and not of the CPU time.
    seconds: receipt.seconds,
    cpuSeconds: (cpu.user + cpu.system) / 1e6,
    rows: receipt.rows,
    peakBytes: receipt.peak_memory_bytes,
  }
}

async function peer(script: string, file: string, warehouse: string): Promise<Measured> {
  const { stdout } = await run(
    python,
    [join(root, 'bench/peers', script), '--file', file, '--warehouse', warehouse],
    { maxBuffer: 1 << 26 },
  )
  const measured = JSON.parse(stdout) as {
    seconds: number
    cpu_seconds: number
    rows: number
    peak_rss_bytes: number
  }
  return {
    seconds: measured.seconds,
    cpuSeconds: measured.cpu_seconds,
    rows: measured.rows,
    peakBytes: measured.peak_rss_bytes,
  }
}

function report(at: {
  readonly records: number
  readonly bytes: number
  readonly runs: number
  readonly results: ReadonlyMap<string, readonly Measured[]>
}): void {
  const rows = [...at.results].map(([name, measured]) => ({
    name,
    seconds: median(measured.map((each) => each.seconds)),
    cpuSeconds: median(measured.map((each) => each.cpuSeconds)),
    peakBytes: median(measured.map((each) => each.peakBytes)),
  }))
  const ours = rows[0]
  say(
    `NDJSON file to committed table, local disk, ${String(at.records)} records, ${(at.bytes / 1e6).toFixed(0)} MB, medians of ${String(at.runs)}`,
  )
  say(
    `${cpus()[0]?.model ?? 'unknown'} × ${String(cpus().length)}, node ${process.versions.node}, load ${loadavg()
      .map((each) => each.toFixed(1))
      .join(' ')}`,
  )
  say('')
  say('what        seconds   cpu s   rows/s     MB/s   peak MB')
  for (const row of rows) {
    say(
      [
        row.name.padEnd(10),
        row.seconds.toFixed(2).padStart(8),
        row.cpuSeconds.toFixed(2).padStart(7),
        Math.round(at.records / row.seconds)
          .toLocaleString('en-US')
          .padStart(9),
        (at.bytes / 1e6 / row.seconds).toFixed(1).padStart(8),
        (row.peakBytes / 1e6).toFixed(0).padStart(8),
      ].join(' '),
    )
  }
  const other = rows[1]
  if (ours !== undefined && other !== undefined) {
    say(`\nsluice takes ${(ours.seconds / other.seconds).toFixed(2)} × the time of ${other.name}`)
  }
  const folder = join(root, 'bench/results')
  mkdirSync(folder, { recursive: true })
  writeFileSync(
    join(folder, 'tier.json'),
    `${JSON.stringify({ records: at.records, bytes: at.bytes, runs: at.runs, rows }, undefined, 2)}\n`,
  )
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

await main()
