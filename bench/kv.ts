/**
 * Puts, gets and scans a second of the KV store, and what it takes of memory, through the port that
 * tables use. CPU time of the process, best round. Usage: node dist/bench/kv.js [keys] [rounds]
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentJournal } from '../src/core/ports.ts'
import type { KvEngine } from '../src/source/kv/engine.ts'
import { memoryEngine } from '../src/source/kv/memory/memory-engine.ts'
import type { KvFamily, KvStore } from '../src/source/kv/ports.ts'
import { KvStores, type KvStoresOptions } from '../src/source/kv/stores.ts'

const count = Number(process.argv[2] ?? 1_000_000)
const rounds = Number(process.argv[3] ?? 3)
const mib = 2 ** 20

/** A small linear congruential generator: the same order in every run. */
let state = 7
function below(bound: number): number {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0
  return Math.floor((state / 2 ** 32) * bound)
}

/** Keys of 12 bytes, in random order, each an array of its own as a decoder gives them. */
function makeKeys(): readonly Uint8Array[] {
  const order = Uint32Array.from({ length: count }, (_, at) => at)
  for (let at = count - 1; at > 0; at -= 1) {
    const other = below(at + 1)
    ;[order[at], order[other]] = [order[other] ?? 0, order[at] ?? 0]
  }
  return Array.from(order, (at) => Uint8Array.from(Buffer.from(`key${`${at}`.padStart(9, '0')}`)))
}

type Rates = Map<string, number>

async function timed(
  rates: Rates,
  name: string,
  operations: number,
  run: () => Promise<void>,
): Promise<void> {
  const before = process.cpuUsage()
  await run()
  const { user, system } = process.cpuUsage(before)
  const rate = operations / ((user + system) / 1e6)
  rates.set(name, Math.max(rates.get(name) ?? 0, rate))
}

async function put(store: KvStore, family: KvFamily, entries: Entries): Promise<void> {
  const batch = store.batch()
  for (const [at, key] of entries.keys.entries()) {
    batch.put(family, key, entries.value)
    if (batch.operations < 1_000 && at < entries.keys.length - 1) continue
    const written = store.write(batch)
    if (written instanceof Promise) await written
    batch.clear()
  }
}

type Entries = { readonly keys: readonly Uint8Array[]; readonly value: Uint8Array }

async function measure(store: KvStore, entries: Entries, rates: Rates): Promise<void> {
  const { keys, value } = entries
  const rows = await store.columnFamily('rows')
  await timed(rates, 'puts, 1,000 a batch', count, () => put(store, rows, entries))
  await timed(rates, 'puts again, 1,000 a batch', count, () => put(store, rows, entries))
  await timed(rates, 'gets, 100 at a time', count, async () => {
    for (let from = 0; from < count; from += 100) {
      const found = store.getMany(rows, keys.slice(from, from + 100))
      const values = found instanceof Promise ? await found : found
      if (values.some((each) => each?.length !== value.length))
        throw new Error('a value is missing')
    }
  })
  const singles = Math.min(count, 200_000)
  await timed(rates, 'a get and a put, one by one', singles, async () => {
    for (let at = 0; at < singles; at += 1) {
      const key = keys[(at * 7919) % count] ?? value
      const old = store.get(rows, key)
      if (old instanceof Promise) await old
      const written = store.put(rows, key, value)
      if (written instanceof Promise) await written
    }
  })
  await timed(rates, 'entries of a scan', count, async () => {
    const cursor = store.scan(rows)
    let seen = 0
    for (;;) {
      const next = cursor.next()
      const found = next instanceof Promise ? await next : next
      if (found === undefined) break
      seen += found.keys.length
    }
    await cursor.close()
    if (seen !== count) throw new Error(`${seen} entries`)
  })
}

/** Bytes of the process that `count` entries take, once they are written out of the buffers. */
async function memoryOf(open: () => Promise<KvStore>, entries: Entries): Promise<number> {
  collect()
  const before = process.memoryUsage()
  const store = await open()
  const rows = await store.columnFamily('rows')
  await put(store, rows, entries)
  await store.flush()
  collect()
  const after = process.memoryUsage()
  await store.close()
  return after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers
}

function collect(): void {
  for (let turn = 0; turn < 3; turn += 1) (globalThis as { gc?: () => void }).gc?.()
}

async function rocksdb(): Promise<KvEngine | undefined> {
  try {
    const { rocksDbEngine } = await import('../src/source/kv/rocksdb/rocksdb-engine.ts')
    return rocksDbEngine()
  } catch {
    return undefined
  }
}

const root = mkdtempSync(join(tmpdir(), 'sluice-bench-kv-'))
const keys = makeKeys()
const row = { keys, value: new Uint8Array(100).fill(7) }
const place = { keys, value: new Uint8Array(12).fill(7) }
const subjects: [string, Partial<KvStoresOptions> & { engine: KvEngine }][] = [
  ['memory', { engine: memoryEngine() }],
  ['memory, shared cache', { engine: memoryEngine(), cache: 'shared' }],
]
const disk = await rocksdb()
if (disk !== undefined) subjects.push(['rocksdb', { engine: disk }])

let folders = 0
const openOne = async (
  options: Partial<KvStoresOptions> & { engine: KvEngine },
): Promise<KvStore> => {
  const stores = new KvStores({
    journal: silentJournal,
    ids: { bits128: () => randomBytes(16).toString('hex') },
    memoryBytes: 440 * mib,
    ...options,
  })
  folders += 1
  return stores.open({ folder: join(root, `${folders}`), families: { rows: {} } })
}
const measured = new Map<string, Rates>(subjects.map(([name]) => [name, new Map()]))
for (let round = 0; round < rounds; round += 1) {
  for (const [name, options] of subjects) {
    const store = await openOne(options)
    await measure(store, row, measured.get(name) ?? new Map<string, number>())
    await store.close()
  }
}
console.log(
  `${count} keys of 12 bytes, values of 100; thousands a CPU second, best of ${rounds} rounds`,
)
for (const [name, rates] of measured) {
  for (const [what, rate] of rates) {
    console.log(`  ${name.padEnd(22)} ${what.padEnd(30)} ${(rate / 1_000).toFixed(0).padStart(6)}`)
  }
}
const perMillion = async (entries: Entries): Promise<string> => {
  const bytes = await memoryOf(() => openOne({ engine: memoryEngine() }), entries)
  return ((bytes / count) * (1e6 / mib)).toFixed(1)
}
console.log('memory engine, MiB a million keys of 12 bytes (run with --expose-gc)')
console.log(`  values of 100 bytes            ${await perMillion(row)}`)
console.log(`  values of 12 bytes             ${await perMillion(place)}`)
rmSync(root, { recursive: true, force: true })
