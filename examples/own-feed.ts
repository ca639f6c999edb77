// A feed of your own, each record once over restarts: its place is committed with the rows.
//
//   node dist/examples/own-feed.js [WAREHOUSE] [LAST]
import { openEmbeddedSource, openLake, type Row, startTiering } from 'sluice'

const [warehouse = './lake', last = '1000'] = process.argv.slice(2)

/** Stands for whatever can be read again behind a place: a topic, a change log, a queue. */
function* readingsAfter(place: number): Generator<{ readonly place: number; readonly row: Row }> {
  for (let next = place + 1; next <= Number(last); next += 1) {
    yield { place: next, row: { reading: next, celsius: 20 + (next % 10) / 2 } }
  }
}

await using lake = await openLake({ warehouse })
await using source = await openEmbeddedSource({ resumeFrom: lake })
const readings = await source.createTable('plant.feed', {
  columns: { reading: 'BIGINT NOT NULL', celsius: 'DOUBLE' },
  freshness: '1s',
})
await using job = startTiering({ source, lake })

const { inputs } = await (await lake.table('plant.feed')).progress()
const done = Number(inputs.get('sensors')?.position ?? 0)
for (const { place, row } of readingsAfter(done)) {
  // Waits when the log is full. What is behind `done` and in the lake already is dropped.
  await readings.append(row, { input: { id: 'sensors', position: String(place) } })
}
const { rows } = await job.drain()
console.log(`${rows} readings after place ${done}`)
