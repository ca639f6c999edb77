import { GetObjectCommand, HeadObjectCommand, ListObjectsV2Command } from '@aws-sdk/client-s3'
import { SluiceError } from '../../core/errors.ts'
import { millis } from '../../core/ids.ts'
import type { ObjectEntry } from './object-store.ts'
import { discardBody, readBody } from './s3-body.ts'
import type { S3Connection, S3Use } from './s3-client.ts'
import { failureOf, s3Error, ShortBodyError } from './s3-errors.ts'
import { s3Location, type S3Location } from './s3-location.ts'
import type { Retrier } from './s3-retry.ts'

/** What every request to one bucket goes through. */
export type S3Access = { readonly connection: S3Connection; readonly retries: Retrier }

export type ObjectFacts = {
  readonly bytes: number
  readonly metadata: ReadonlyMap<string, string>
}

/** The whole object, or undefined. @throws SluiceError */
export async function readObject(
  access: S3Access,
  place: S3Location,
  bytesMax = objectBytesMax,
): Promise<Uint8Array | undefined> {
  const location = s3Location(place.bucket, place.key)
  return unlessMissing(access, location, (client, deadline) =>
    client
      .send(new GetObjectCommand({ Bucket: place.bucket, Key: place.key }), {
        abortSignal: deadline.signal,
      })
      .then((reply) =>
        readBody(reply.Body, { expected: reply.ContentLength, bytesMax, location }, deadline),
      ),
  )
}

/** Bytes `[start, end)` of an object, fewer where it ends before, or undefined. */
export async function readObjectRange(
  access: S3Access,
  place: S3Location,
  range: { readonly start: number; readonly end: number },
): Promise<Uint8Array | undefined> {
  const { start, end } = range
  const location = s3Location(place.bucket, place.key)
  if (end <= start) {
    return (await statObject(access, place)) === undefined ? undefined : new Uint8Array()
  }
  const Range = `bytes=${start}-${end - 1}`
  try {
    return await unlessMissing(access, location, async (client, deadline) => {
      const reply = await client.send(
        new GetObjectCommand({ Bucket: place.bucket, Key: place.key, Range }),
        { abortSignal: deadline.signal },
      )
      const given = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(reply.ContentRange ?? '')
      const expected = rangeLength(given, start, end)
      if (expected === undefined) {
        discardBody(reply.Body)
        throw given === null
          ? new SluiceError('STORE_UNSUPPORTED', `${location}: the store ignores ranges`)
          : new ShortBodyError(`another range came: ${reply.ContentRange ?? ''}`)
      }
      return readBody(reply.Body, { expected, bytesMax: end - start, location }, deadline)
    })
  } catch (error) {
    if (error instanceof SluiceError && error.details['status'] === 416) return new Uint8Array()
    throw error
  }
}

/** Length and own metadata of an object, or undefined. */
export async function statObject(
  access: S3Access,
  place: S3Location,
): Promise<ObjectFacts | undefined> {
  return unlessMissing(access, s3Location(place.bucket, place.key), async (client, deadline) => {
    const reply = await client.send(
      new HeadObjectCommand({ Bucket: place.bucket, Key: place.key }),
      { abortSignal: deadline.signal },
    )
    if (reply.ContentLength === undefined) throw new ShortBodyError('the reply names no length')
    return { bytes: reply.ContentLength, metadata: new Map(Object.entries(reply.Metadata ?? {})) }
  })
}

/** All objects whose key begins with the prefix, in the store's own order. */
export async function listObjects(
  access: S3Access,
  place: S3Location,
): Promise<readonly ObjectEntry[]> {
  const location = s3Location(place.bucket, place.key)
  const entries: ObjectEntry[] = []
  let token: string | undefined
  do {
    const page = await request(access, location, (client, deadline) =>
      client.send(
        new ListObjectsV2Command({
          Bucket: place.bucket,
          Prefix: place.key,
          ...(token === undefined ? {} : { ContinuationToken: token }),
        }),
        { abortSignal: deadline.signal },
      ),
    )
    for (const found of page.Contents ?? []) {
      const { Key, Size, LastModified } = found
      // Folder markers that other tools leave are no objects of a lake.
      if (Key === undefined || Key.endsWith('/')) continue
      if (!Key.startsWith(place.key) || Size === undefined || LastModified === undefined) {
        throw new SluiceError('STORE_UNSUPPORTED', `${location}: the listing is malformed`)
      }
      entries.push({
        location: s3Location(place.bucket, Key),
        bytes: Size,
        modifiedAt: millis(LastModified.getTime()),
      })
    }
    if (entries.length > entriesMax) {
      throw new SluiceError('LIMIT_EXCEEDED', `${location}: more than ${entriesMax} objects`)
    }
    const next = page.IsTruncated === true ? page.NextContinuationToken : undefined
    if (page.IsTruncated === true && (next === undefined || next === token)) {
      throw new SluiceError('STORE_UNSUPPORTED', `${location}: the listing does not go on`)
    }
    token = next
  } while (token !== undefined)
  return entries
}

/** Sends what may be repeated, until it succeeds or must be given up. @throws SluiceError */
export async function request<T>(
  access: S3Access,
  location: string,
  use: S3Use<T>,
  bytes = 0,
): Promise<T> {
  try {
    return await access.retries.run(() => access.connection.call(use, bytes))
  } catch (error) {
    throw s3Error(failureOf(error), location, 'unknown', access.connection.endpoint())
  }
}

async function unlessMissing<T>(
  access: S3Access,
  location: string,
  use: S3Use<T>,
): Promise<T | undefined> {
  try {
    return await access.retries.run(() => access.connection.call(use))
  } catch (error) {
    const failure = failureOf(error)
    // A HEAD has no body to say which: that a bucket is missing shows with the first other request.
    if (failure.kind === 'reply' && failure.status === 404 && failure.code !== 'NoSuchBucket') {
      return undefined
    }
    throw s3Error(failure, location, 'none', access.connection.endpoint())
  }
}

/** How many bytes a range must hold, by what the store says of it; undefined if it is another. */
function rangeLength(
  given: RegExpExecArray | null,
  start: number,
  end: number,
): number | undefined {
  if (given === null) return undefined
  const [first, last, total] = given.slice(1).map((digits) => Number.parseInt(digits, 10))
  if (first === undefined || last === undefined || total === undefined) return undefined
  return first === start && last === Math.min(end, total) - 1 ? last - first + 1 : undefined
}

/** Metadata and manifests are read whole, data files by ranges. */
const objectBytesMax = 1 << 30
const entriesMax = 10_000_000
