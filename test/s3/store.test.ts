import { describeStore } from '../integration/store/conformance.ts'
import {
  minioProgram,
  type S3Server,
  startMinio,
  startWeed,
  storeOf,
} from '../support/s3-server.ts'

function describeServer(name: string, start: () => Promise<S3Server>): void {
  describeStore(`S3 at ${name}`, async () => {
    const server = await start()
    return {
      store: storeOf(server),
      root: `s3://${server.bucket}/lake`,
      close: async () => {
        await server[Symbol.asyncDispose]()
      },
    }
  })
}

describeServer('SeaweedFS', startWeed)
const minio = minioProgram()
if (minio !== undefined) describeServer('MinIO', () => startMinio(minio))
