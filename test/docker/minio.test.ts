import { readFileSync } from 'node:fs'
import { after } from 'node:test'
import { GenericContainer, type StartedTestContainer, Wait } from 'testcontainers'
import { probeConditionalWrites } from '../../src/catalog/store/probe-conditional.ts'
import { systemIds } from '../../src/core/system.ts'
import { describeStore } from '../integration/store/conformance.ts'
import { makeBucket, storeOf } from '../support/s3-server.ts'

const credentials = { accessKeyId: 'sluice-demo', secretAccessKey: 'sluice-demo-only' }
/** The very image that people start with compose. */
const image = /image: (minio\/minio:\S+)/.exec(readFileSync('docker-compose.yml', 'utf8'))?.[1]

let container: StartedTestContainer | undefined
after(async () => {
  await container?.stop()
})

describeStore('MinIO in a container', async () => {
  if (image === undefined) throw new Error('docker-compose.yml names no MinIO')
  container = await new GenericContainer(image)
    .withCommand(['server', '/data'])
    .withUser('1000:1000')
    .withTmpFs({ '/data': 'uid=1000,gid=1000' })
    .withEnvironment({
      MINIO_ROOT_USER: credentials.accessKeyId,
      MINIO_ROOT_PASSWORD: credentials.secretAccessKey,
    })
    .withExposedPorts(9000)
    .withWaitStrategy(Wait.forHttp('/minio/health/ready', 9000))
    .start()
  const endpoint = `http://${container.getHost()}:${container.getMappedPort(9000)}`
  const server = { endpoint, bucket: 'sluice-test', credentials }
  await makeBucket(server)
  const store = storeOf(server)
  await probeConditionalWrites(store, `s3://${server.bucket}/probed`, systemIds)
  return { store, root: `s3://${server.bucket}/lake` }
})
