// A file into a table, then what is in the lake. Run it again: nothing is added.
//
//   node dist/examples/file-then-rows.js [WAREHOUSE] [FILE]
import { isSluiceError, openLake, tier } from 'sluice'

const [warehouse = './lake', file = 'examples/data/flights.ndjson'] = process.argv.slice(2)
const lake = await openLake({ warehouse })
try {
  const receipt = await tier(file, {
    lake,
    table: 'demo.flights',
    buckets: 4,
    signal: AbortSignal.timeout(60_000),
  })
  console.log(`${receipt.rows} new rows in ${receipt.rounds.length} rounds`)

  const flights = await lake.table('demo.flights')
  for await (const snapshot of flights.snapshots()) {
    console.log('snapshot', snapshot.id, 'of', snapshot.committedAt.toISOString())
  }
  let late = 0
  for await (const row of flights.rows({ columns: ['delay'] })) {
    if (typeof row['delay'] === 'bigint' && row['delay'] > 60n) late += 1
  }
  console.log(late, 'flights were over an hour late')
} catch (error) {
  if (!isSluiceError(error)) throw error
  console.error(error.code, error.message, error.fix ?? '')
  // Unknown: run again, it will find out.
  process.exitCode = error.effect === 'unknown' ? 4 : 3
} finally {
  await lake.close()
}
