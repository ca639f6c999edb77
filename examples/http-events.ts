// Events of an HTTP server into a table, within ten seconds of their arrival.
//
//   node dist/examples/http-events.js [WAREHOUSE] [PORT]
//   curl -i http://127.0.0.1:8080/hello
//   curl -i -H 'x-wait: lake' http://127.0.0.1:8080/hello    # answers once it is in the lake
import { createServer } from 'node:http'
import { isSluiceError, openEmbeddedSource, openLake, startTiering } from 'sluice'

const [warehouse = './lake', port = '8080'] = process.argv.slice(2)
await using lake = await openLake({ warehouse })
await using source = await openEmbeddedSource({ resumeFrom: lake })
const clicks = await source.createTable('web.clicks', {
  columns: { at: 'TIMESTAMP_LTZ(6)', url: 'STRING' },
  freshness: '10s',
})
await using job = startTiering({ source, lake })

const server = createServer((request, response) => {
  const take = async (): Promise<number> => {
    const click = { at: new Date(), url: request.url ?? '/' }
    // A full log is the client's to know: it can send again later.
    const position = await clicks.append(click, { whenFull: 'reject' })
    if (request.headers['x-wait'] === 'lake') {
      await job.committed(position, { signal: AbortSignal.timeout(30_000) })
    }
    return 202
  }
  take()
    .catch((error: unknown) => (isSluiceError(error, 'LOG_FULL') ? 429 : 500))
    .then((status) => response.writeHead(status).end())
    .catch(console.error)
})
server.listen(Number(port), '127.0.0.1', () => {
  console.log('listening on', server.address())
})

await new Promise((resolve) => process.once('SIGTERM', resolve))
server.close()
// Everything that was accepted is in the lake before the process ends.
const receipt = await job.drain()
console.log(`${receipt.rows} clicks in ${receipt.rounds.length} rounds`)
