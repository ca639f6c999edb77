import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, openSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3'
import { s3Store, type S3Limits } from '../../src/catalog/store/s3-store.ts'
import type { ObjectStore } from '../../src/catalog/store/object-store.ts'
import { seededChance, systemClock, systemIds } from '../../src/core/system.ts'

/** An S3 server for tests, on this machine's loopback, with throw-away keys. */
export interface S3Server extends AsyncDisposable {
  readonly name: string
  readonly endpoint: string
  readonly bucket: string
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string }
}

const bucket = 'sluice-test'
const credentials = { accessKeyId: 'sluice-test', secretAccessKey: 'sluice-test-only' }
const startMillis = 60_000

/** A store of the server, or of whatever stands in front of it. */
export function storeOf(
  server: Pick<S3Server, 'endpoint' | 'bucket' | 'credentials'>,
  limits: S3Limits = {},
): ObjectStore {
  return s3Store(
    server.bucket,
    { endpoint: server.endpoint, credentials: () => Promise.resolve(server.credentials) },
    { clock: systemClock, chance: seededChance(1), ids: systemIds },
    limits,
  )
}

/** Where `scripts/s3/setup.sh` puts SeaweedFS. */
export function weedProgram(): string {
  return resolve(process.env['SLUICE_ENGINES_HOME'] ?? '.engines', 's3/bin/weed')
}

/** MinIO, where somebody installed it: it is never built or shipped here. */
export function minioProgram(): string | undefined {
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((folder) => join(folder, 'minio'))
    .find((path) => existsSync(path))
}

/** Starts SeaweedFS. Its ten ports are free ones, its data is gone when it is disposed of. */
export async function startWeed(): Promise<S3Server> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-weed-'))
  const identity = {
    name: 'test',
    credentials: [{ accessKey: credentials.accessKeyId, secretKey: credentials.secretAccessKey }],
    actions: ['Admin', 'Read', 'Write', 'List', 'Tagging'],
  }
  await writeFile(join(folder, 's3.json'), JSON.stringify({ identities: [identity] }))
  const ports = await freePorts(10)
  const names = ['master', 'volume', 'filer', 'admin', 's3'].flatMap((part) => [
    `-${part}.port`,
    `-${part}.port.grpc`,
  ])
  const child = spawnServer(folder, weedProgram(), [
    '-logtostderr=true',
    'mini',
    `-dir=${folder}`,
    '-ip=127.0.0.1',
    '-ip.bind=127.0.0.1',
    ...names.map((name, at) => `${name}=${ports[at] ?? 0}`),
    '-master.telemetry=false',
    '-webdav=false',
    '-admin.ui=false',
    '-s3.port.iceberg=0',
    '-s3.port.lance=0',
    `-s3.config=${join(folder, 's3.json')}`,
    '-s3.iam=false',
    '-s3.autoCreateBucket=false',
    `-filer.localSocket=${join(folder, 'filer.sock')}`,
    `-s3.localSocket=${join(folder, 's3.sock')}`,
  ])
  return ready('SeaweedFS', child, folder, ports[8] ?? 0)
}

/** Starts the MinIO found on the PATH. */
export async function startMinio(program: string): Promise<S3Server> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-minio-'))
  const [port = 0, consolePort = 0] = await freePorts(2)
  const child = spawnServer(
    folder,
    program,
    [
      ...['server', '--quiet', '--anonymous', '--address', `127.0.0.1:${port}`],
      ...['--console-address', `127.0.0.1:${consolePort}`, join(folder, 'objects')],
    ],
    {
      MINIO_ROOT_USER: credentials.accessKeyId,
      MINIO_ROOT_PASSWORD: credentials.secretAccessKey,
      MINIO_UPDATE: 'off',
      MINIO_CALLHOME_ENABLE: 'off',
      MINIO_BROWSER: 'off',
    },
  )
  return ready('MinIO', child, folder, port)
}

/** Makes the test bucket, as soon as the server answers. */
export async function makeBucket(
  server: Pick<S3Server, 'endpoint' | 'bucket' | 'credentials'>,
  isAlive: () => boolean = () => true,
): Promise<void> {
  const client = new S3Client({
    endpoint: server.endpoint,
    region: 'us-east-1',
    credentials: server.credentials,
    forcePathStyle: true,
    maxAttempts: 1,
  })
  const until = systemClock.monotonic() + startMillis
  for (;;) {
    try {
      await client.send(new CreateBucketCommand({ Bucket: server.bucket }))
      return
    } catch (error) {
      const { name } = error instanceof Error ? error : { name: '' }
      if (name === 'BucketAlreadyOwnedByYou' || name === 'BucketAlreadyExists') return
      if (!isAlive() || systemClock.monotonic() > until) throw error
      await systemClock.sleep(100)
    }
  }
}

function spawnServer(
  folder: string,
  program: string,
  options: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): ChildProcess {
  const log = openSync(join(folder, 'log'), 'w')
  return spawn(program, options, {
    cwd: folder,
    stdio: ['ignore', log, log],
    env: { ...process.env, ...environment },
  })
}

async function ready(
  name: string,
  child: ChildProcess,
  folder: string,
  port: number,
): Promise<S3Server> {
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => {
      resolve()
    })
    child.once('error', () => {
      resolve()
    })
  })
  const isAlive = (): boolean => child.exitCode === null && child.signalCode === null
  const killAtExit = (): void => {
    child.kill('SIGKILL')
  }
  process.once('exit', killAtExit)
  const stop = async (): Promise<void> => {
    process.off('exit', killAtExit)
    // Its data goes with it, so there is nothing for it to end in peace.
    if (isAlive()) child.kill('SIGKILL')
    await ended
    await rm(folder, { recursive: true, force: true })
  }
  const server: S3Server = {
    name,
    endpoint: `http://127.0.0.1:${port}`,
    bucket,
    credentials,
    [Symbol.asyncDispose]: stop,
  }
  try {
    await makeBucket(server, isAlive)
    return server
  } catch (error) {
    const log = await readFile(join(folder, 'log'), 'utf8').catch(() => '')
    await stop()
    throw new Error(`${name} does not start:\n${log.slice(-2000)}`, { cause: error })
  }
}

async function freePorts(count: number): Promise<readonly number[]> {
  const servers = await Promise.all(Array.from({ length: count }, listenAnywhere))
  const ports = servers.map((server) => {
    const address = server.address()
    return typeof address === 'object' && address !== null ? address.port : 0
  })
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}

function listenAnywhere(): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      resolve(server)
    })
  })
}
