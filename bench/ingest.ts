/**
 * Throughput of reading text into columns, hashing included, on one thread:
 * `node --import tsx bench/ingest.ts [ndjson|csv] [MB]`.
 */
import { parseType } from '../src/core/schema/parse-type.ts'
import { InputBytes } from '../src/source/ingest/input-bytes.ts'
import { openInput } from '../src/source/ingest/open-input.ts'

const format = process.argv[2] === 'csv' ? 'csv' : 'ndjson'
const megabytes = Number(process.argv[3] ?? '200')
const columns = {
  date: 'STRING',
  delay: 'BIGINT',
  distance: 'BIGINT',
  origin: 'STRING',
  destination: 'STRING',
}
const fields = Object.entries(columns).map(([name, type]) => ({ name, type: parseType(type) }))
const airports = ['SAN', 'SJC', 'ORD', 'DFW', 'LAX', 'SMF', 'HOU', 'BWI']

function record(index: number): string {
  const delay = ((index * 37) % 300) - 40
  const origin = airports[index % 8] ?? ''
  const destination = airports[(index * 5 + 3) % 8] ?? ''
  const date = `2001/0${1 + (index % 9)}/1${index % 10} 0${index % 10}:${10 + (index % 50)}`
  const values = [date, delay, 100 + ((index * 13) % 2500), origin, destination]
  if (format === 'csv') return `${values.join(',')}\n`
  const names = Object.keys(columns)
  return `${JSON.stringify(Object.fromEntries(names.map((name, at) => [name, values[at]])))}\n`
}

const block = Buffer.from(Array.from({ length: 12_000 }, (_, index) => record(index)).join(''))

async function* blocks(): AsyncGenerator<Uint8Array> {
  if (format === 'csv') yield Buffer.from(`${Object.keys(columns).join(',')}\n`)
  for (let size = 0; size < megabytes * 1e6; size += block.length) {
    yield await Promise.resolve(block)
  }
}

for (let run = 0; run < 3; run += 1) {
  const bytes = await InputBytes.open({
    name: `bench.${format}`,
    location: { kind: 'stream', bytes: blocks() },
  })
  const reader = await openInput({ bytes, target: { table: 'bench.flights', fields } })
  const start = performance.now()
  const cpuStart = process.cpuUsage()
  let records = 0
  let position = 0n
  for (let batch = await reader.next(); batch !== undefined; batch = await reader.next()) {
    records += batch.records.length
    position = batch.endPosition
  }
  const seconds = (performance.now() - start) / 1000
  const cpu = process.cpuUsage(cpuStart)
  const cpuSeconds = (cpu.user + cpu.system) / 1e6
  const cpuRate = Number(position) / 1e6 / cpuSeconds
  const rate = Number(position) / 1e6 / seconds
  const rows = Math.round(records / seconds).toLocaleString('en-US')
  console.log(
    `${format}  ${records} records  ${rate.toFixed(1)} MB/s  ${rows} rows/s  ${cpuRate.toFixed(1)} MB per CPU second`,
  )
}
