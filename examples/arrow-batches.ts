// Arrow data in, Arrow data out: no object per row on the way.
//
//   node dist/examples/arrow-batches.js [WAREHOUSE]
import { tableFromArrays } from 'apache-arrow'
import { openEmbeddedSource, openLake, startTiering } from 'sluice'

const [warehouse = './lake'] = process.argv.slice(2)
await using lake = await openLake({ warehouse })
await using source = await openEmbeddedSource({ resumeFrom: lake })
const readings = await source.createTable('plant.readings', {
  columns: { sensor: 'INT NOT NULL', celsius: 'DOUBLE' },
  buckets: 2,
  bucketKey: 'sensor',
})
await using job = startTiering({ source, lake })

for (let batch = 0; batch < 10; batch += 1) {
  const sensor = Int32Array.from({ length: 1000 }, (_, at) => at % 50)
  const celsius = Float64Array.from(sensor, (each) => 20 + each / 10 + batch)
  // Waits when the log is full, until a round has made room.
  await readings.append(tableFromArrays({ sensor, celsius }))
}
await job.drain()

let rows = 0
let warmest = Number.NEGATIVE_INFINITY
const table = await lake.table('plant.readings')
for await (const batch of table.batches({ columns: ['celsius'] })) {
  rows += batch.numRows
  for (const value of batch.getChild('celsius') ?? []) {
    if (typeof value === 'number') warmest = Math.max(warmest, value)
  }
}
console.log(`${rows} readings, the warmest of ${warmest} °C`)
