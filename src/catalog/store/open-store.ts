import { SluiceError } from '../../core/errors.ts'
import { quoteValue } from '../../core/text.ts'
import { normalizeLocation, schemeOf } from '../iceberg/location.ts'
import { localStore } from './local-store.ts'
import type { ObjectStore } from './object-store.ts'
import { noProbeCache, type ProbeCache, probeUnlessKnown } from './probe-cache.ts'
import type { S3Options } from './s3-client.ts'
import { parseS3Location } from './s3-location.ts'
import type { StorePorts } from './s3-store.ts'

export type OpenStoreOptions = {
  readonly ports: StorePorts
  readonly s3?: S3Options
  /** Where passes of the probe are kept. Absent: each process probes the store once. */
  readonly probe?: ProbeCache
}

/** A store and the location of the warehouse in it, in the one form that metadata holds. */
export type OpenedStore = {
  readonly store: ObjectStore
  readonly warehouse: string
  /**
   * To be called before the first write: finds out whether conditional writes hold what commits
   * depend on. Costs nothing when the store is known, or a local disk.
   * @throws SluiceError STORE_UNSAFE, STORE_UNAVAILABLE, STORE_DENIED
   */
  requireSafe(): Promise<void>
}

/**
 * Opens the store that a warehouse is in: a folder (`file:///…`) or a bucket (`s3://bucket/prefix`).
 * Nothing is sent to it yet.
 * @throws SluiceError LOCATION_REFUSED, CONFIG_INVALID
 */
export async function openStore(
  warehouse: string,
  options: OpenStoreOptions,
): Promise<OpenedStore> {
  const normal = normalizeLocation(warehouse)
  switch (schemeOf(normal)) {
    case 'file':
      return {
        store: localStore(options.ports.ids),
        warehouse: normal,
        requireSafe: () => Promise.resolve(),
      }
    case 's3':
      return openBucket(normal, options)
    default:
      throw new SluiceError('LOCATION_REFUSED', `${quoteValue(warehouse)}: no store of Sluice`, {
        fix: './lake, file:///…, s3://bucket/prefix',
      })
  }
}

async function openBucket(warehouse: string, options: OpenStoreOptions): Promise<OpenedStore> {
  const { ports, s3 = {}, probe = noProbeCache } = options
  const { bucket } = parseS3Location(warehouse)
  // The client's note on versions of Node that later versions of it will need is for those who pin
  // its version, not for those who run this one.
  process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true'
  // It takes long to load, and lakes on this machine do not need it.
  const { s3Store } = await import('./s3-store.ts')
  const store = s3Store(bucket, s3, ports)
  const probed = { endpoint: s3.endpoint ?? usualEndpoint(), bucket, warehouse }
  let safe: Promise<void> | undefined
  const requireSafe = async (): Promise<void> => {
    safe ??= probeUnlessKnown(store, probed, { ...ports, cache: probe })
    try {
      await safe
    } catch (error) {
      // A store that did not answer, or was put right, may be asked again.
      safe = undefined
      throw error
    }
  }
  return { store, warehouse, requireSafe }
}

/** What the client goes by when it is given no endpoint, as far as it tells stores apart. */
function usualEndpoint(): string {
  const { env } = process
  const named = env['AWS_ENDPOINT_URL_S3'] ?? env['AWS_ENDPOINT_URL']
  return named ?? `AWS profile ${env['AWS_PROFILE'] ?? 'default'}`
}
