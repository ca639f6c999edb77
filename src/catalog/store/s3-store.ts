import { DeleteObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3'
import { SluiceError } from '../../core/errors.ts'
import type { Chance, Clock, IdSource } from '../../core/ports.ts'
import type { ObjectEntry, ObjectStore, ObjectWriter } from './object-store.ts'
import { s3Connection, type S3Options, type TimeLimits } from './s3-client.ts'
import { createOutcome, failureOf } from './s3-errors.ts'
import { parseS3Location, type S3Location } from './s3-location.ts'
import { listObjects, readObject, readObjectRange, request, statObject } from './s3-read.ts'
import { retrier, type RetryLimits } from './s3-retry.ts'
import { endUpload, listUploads } from './s3-unfinished.ts'
import { s3Upload } from './s3-upload.ts'

export type StorePorts = { readonly clock: Clock; readonly chance: Chance; readonly ids: IdSource }

/** For tests: how long and how often. */
export type S3Limits = { readonly times?: TimeLimits; readonly retries?: RetryLimits }

/**
 * Objects of one bucket, by `s3://bucket/…` locations. A conditional create is one plain PUT with
 * `If-None-Match: *` and is never repeated here. Reads, data files and removals are, with one
 * budget for all. Credentials stay with this bucket and this endpoint.
 * @throws SluiceError CONFIG_INVALID
 */
export function s3Store(
  bucket: string,
  options: S3Options,
  ports: StorePorts,
  limits: S3Limits = {},
): ObjectStore {
  const connection = s3Connection(options, ports.clock, limits.times)
  const access = { connection, retries: retrier(ports, limits.retries) }

  const placeOf = (location: string): S3Location => {
    const place = parseS3Location(location)
    if (place.bucket === bucket) return place
    throw new SluiceError('LOCATION_REFUSED', `${location}: outside the bucket ${bucket}`)
  }
  const objectAt = (location: string): S3Location => {
    const place = placeOf(location)
    if (place.key !== '') return place
    throw new SluiceError('LOCATION_REFUSED', `${location}: names a bucket, not an object`)
  }
  const putOnce = async (place: S3Location, body: Uint8Array, condition: object): Promise<void> => {
    const command = { Bucket: place.bucket, Key: place.key, Body: body, ...condition }
    await connection.call(
      (client, { signal }) => client.send(new PutObjectCommand(command), { abortSignal: signal }),
      body.length,
    )
  }

  return {
    async createIfAbsent(location, body) {
      const place = objectAt(location)
      try {
        await putOnce(place, body, { IfNoneMatch: '*' })
        return { kind: 'applied' }
      } catch (error) {
        return createOutcome(failureOf(error), location, connection.endpoint())
      }
    },

    async putHint(location, body): Promise<void> {
      // Nothing depends on a hint: a failure to write one must not fail a commit that landed.
      await putOnce(objectAt(location), body, {}).catch(() => undefined)
    },

    async open(location): Promise<ObjectWriter> {
      return Promise.resolve(s3Upload(access, objectAt(location), ports.ids))
    },

    async read(location): Promise<Uint8Array | undefined> {
      return readObject(access, objectAt(location))
    },

    async readRange(location, start, end): Promise<Uint8Array | undefined> {
      return readObjectRange(access, objectAt(location), { start, end })
    },

    async size(location): Promise<number | undefined> {
      return (await statObject(access, objectAt(location)))?.bytes
    },

    async list(prefix): Promise<readonly ObjectEntry[]> {
      const entries = await listObjects(access, placeOf(prefix))
      // Servers differ in their order.
      return [...entries].sort((a, b) => (a.location < b.location ? -1 : 1))
    },

    async remove(location): Promise<void> {
      const place = objectAt(location)
      const command = { Bucket: place.bucket, Key: place.key }
      await request(access, location, (client, { signal }) =>
        client.send(new DeleteObjectCommand(command), { abortSignal: signal }),
      )
    },

    uploads: {
      list: async (prefix) => {
        const uploads = await listUploads(access, placeOf(prefix))
        return [...uploads].sort((a, b) => (a.location < b.location ? -1 : 1))
      },
      end: ({ location, id }) => endUpload(access, objectAt(location), id),
    },
  }
}
