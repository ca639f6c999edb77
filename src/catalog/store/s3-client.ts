import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3'
import type { Clock } from '../../core/ports.ts'
import { readReply } from './s3-body.ts'
import { checkEndpoint } from './s3-endpoint.ts'
import { CredentialsError, failureOf, isStaleSignature } from './s3-errors.ts'

export type S3Credentials = {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}

/** How a bucket is reached. What is left out is found as AWS tools find it. */
export type S3Options = {
  /** `http://` or `https://`, without credentials. */
  readonly endpoint?: string
  readonly region?: string
  /** The bucket in the path, not in the host name; the default with an endpoint. */
  readonly pathStyleAccess?: boolean
  readonly credentials?: () => Promise<S3Credentials>
}

/** The time one request may take, until its answer is read to the end. */
export interface Deadline {
  readonly signal: AbortSignal
  /** Adds the time that this many more bytes may take. */
  allow(bytes: number): void
}

/** Sends one request and reads its reply to the end. */
export type S3Use<T> = (client: S3Client, deadline: Deadline) => Promise<T>

export interface S3Connection {
  /**
   * Sends one request, once. Only when the store refused it unseen, because its token had expired
   * or its time of signing was off, it is signed anew and sent a second time.
   * @param bytes Length of the body that is sent.
   */
  call<T>(use: S3Use<T>, bytes?: number): Promise<T>
  /** Where requests go, as far as one was sent: `http://127.0.0.1:9000`. It has many origins. */
  endpoint(): string | undefined
}

export type TimeLimits = {
  /** Milliseconds for a request without a body. */
  readonly request: number
  /** Bytes a millisecond below which a transfer is given up. */
  readonly bytesPerMillisecond: number
  readonly connect: number
}

export const standardTimes: TimeLimits = {
  request: 30_000,
  bytesPerMillisecond: 128,
  connect: 10_000,
}

/** @throws SluiceError CONFIG_INVALID */
export function s3Connection(
  options: S3Options,
  clock: Clock,
  times: TimeLimits = standardTimes,
): S3Connection {
  const config = clientConfig(options, times)
  let endpoint: string | undefined
  const connect = (): S3Client => {
    const made = new S3Client(config)
    made.middlewareStack.add(
      (next) => (sent) => {
        endpoint = originOf(sent.request) ?? endpoint
        return next(sent)
      },
      { step: 'finalizeRequest', name: 'sluiceEndpoint' },
    )
    return made
  }
  let client = connect()

  const once = async <T>(current: S3Client, use: S3Use<T>, bytes: number): Promise<T> => {
    const request = new AbortController()
    const watch = new AbortController()
    let until = clock.monotonic() + times.request + bytes / times.bytesPerMillisecond
    const guard = async (): Promise<void> => {
      for (;;) {
        const left = until - clock.monotonic()
        if (left <= 0) break
        await clock.sleep(left, { signal: watch.signal })
      }
      request.abort()
    }
    const guarding = guard().catch(() => undefined)
    const allow = (more: number): void => {
      until += more / times.bytesPerMillisecond
    }
    try {
      return await use(current, { signal: request.signal, allow })
    } finally {
      watch.abort()
      await guarding
    }
  }

  return {
    endpoint: () => endpoint,

    async call(use, bytes = 0) {
      const used = client
      try {
        return await once(used, use, bytes)
      } catch (error) {
        const stale = isStaleSignature(failureOf(error))
        if (stale === undefined) throw error
        // The client has noted the store's time by now, but it would keep the credentials. The old
        // one is left to its requests that are still under way; idle sockets hold nothing open.
        if (stale === 'token' && client === used) client = connect()
        return await once(client, use, bytes)
      }
    },
  }
}

function originOf(request: unknown): string | undefined {
  if (typeof request !== 'object' || request === null) return undefined
  if (!('protocol' in request) || !('hostname' in request)) return undefined
  const port = 'port' in request && typeof request.port === 'number' ? `:${request.port}` : ''
  return `${String(request.protocol)}//${String(request.hostname)}${port}`
}

function clientConfig(options: S3Options, times: TimeLimits): S3ClientConfig {
  const { endpoint, region, credentials } = options
  if (endpoint !== undefined) checkEndpoint(endpoint)
  return {
    maxAttempts: 1,
    followRegionRedirects: false,
    forcePathStyle: options.pathStyleAccess ?? endpoint !== undefined,
    expectContinueHeader: false,
    streamCollector: readReply,
    requestHandler: {
      connectionTimeout: times.connect,
      httpAgent: { maxSockets: socketsMax },
      httpsAgent: { maxSockets: socketsMax },
      logger: silentLogger,
    },
    ...(endpoint === undefined ? {} : { endpoint }),
    ...regionConfig(region, endpoint),
    ...(credentials === undefined ? {} : { credentials: () => guarded(credentials) }),
  }
}

function regionConfig(region?: string, endpoint?: string): Pick<S3ClientConfig, 'region'> {
  if (region !== undefined) return { region }
  if (endpoint === undefined) return {}
  // Stores other than AWS mostly do not care, but the signature needs some region.
  const environment = new S3Client({})
  return { region: () => environment.config.region().catch(() => 'us-east-1') }
}

async function guarded(credentials: () => Promise<S3Credentials>): Promise<S3Credentials> {
  try {
    return await credentials()
  } catch {
    throw new CredentialsError('the credentials could not be obtained')
  }
}

const socketsMax = 128
const silentLogger = {
  trace: () => undefined,
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
}
