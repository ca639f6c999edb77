import {
  AbortMultipartUploadCommand,
  ListMultipartUploadsCommand,
  ListPartsCommand,
  type MultipartUpload,
} from '@aws-sdk/client-s3'
import { isSluiceError, SluiceError } from '../../core/errors.ts'
import { type Millis, millis } from '../../core/ids.ts'
import type { UploadEntry } from './object-store.ts'
import { s3Location, type S3Location } from './s3-location.ts'
import { request, type S3Access } from './s3-read.ts'

type Marker = { readonly KeyMarker?: string; readonly UploadIdMarker?: string }

/** Unfinished uploads whose key begins with the prefix, in the store's own order. @throws SluiceError */
export async function listUploads(
  access: S3Access,
  place: S3Location,
): Promise<readonly UploadEntry[]> {
  const location = s3Location(place.bucket, place.key)
  const entries: UploadEntry[] = []
  let marker: Marker | undefined = {}
  while (marker !== undefined) {
    const { uploads, next } = await uploadsAfter(access, place, marker)
    for (let at = 0; at < uploads.length; at += parallelMax) {
      const group = uploads.slice(at, at + parallelMax)
      const known = await Promise.all(group.map((each) => uploadEntry(access, place, each)))
      entries.push(...known.filter((each) => each !== undefined))
    }
    if (entries.length > uploadsMax) {
      throw new SluiceError('LIMIT_EXCEEDED', `${location}: more than ${uploadsMax} uploads`)
    }
    marker = next
  }
  return entries
}

async function uploadsAfter(
  access: S3Access,
  { bucket, key }: S3Location,
  marker: Marker,
): Promise<{ readonly uploads: readonly MultipartUpload[]; readonly next: Marker | undefined }> {
  const location = s3Location(bucket, key)
  const command = { Bucket: bucket, Prefix: key, ...marker }
  const page = await request(access, location, (client, { signal }) =>
    client.send(new ListMultipartUploadsCommand(command), { abortSignal: signal }),
  )
  const uploads = page.Uploads ?? []
  if (page.IsTruncated !== true) return { uploads, next: undefined }
  const { NextKeyMarker, NextUploadIdMarker } = page
  // Some servers go on by the id of an upload alone.
  const next = {
    ...(NextKeyMarker === undefined ? {} : { KeyMarker: NextKeyMarker }),
    ...(NextUploadIdMarker === undefined ? {} : { UploadIdMarker: NextUploadIdMarker }),
  }
  const isSame =
    next.KeyMarker === marker.KeyMarker && next.UploadIdMarker === marker.UploadIdMarker
  if (isSame) throw malformed(location)
  return { uploads, next }
}

/** Ends an upload, whose parts are then gone. @throws SluiceError */
export async function endUpload(access: S3Access, place: S3Location, id: string): Promise<void> {
  const command = { Bucket: place.bucket, Key: place.key, UploadId: id }
  try {
    await request(access, s3Location(place.bucket, place.key), (client, { signal }) =>
      client.send(new AbortMultipartUploadCommand(command), { abortSignal: signal }),
    )
  } catch (error) {
    if (!isGone(error)) throw error
  }
}

/** @returns undefined when it was finished or ended since it was listed */
async function uploadEntry(
  access: S3Access,
  { bucket, key }: S3Location,
  { Key, UploadId, Initiated }: MultipartUpload,
): Promise<UploadEntry | undefined> {
  if (Key?.startsWith(key) !== true || UploadId === undefined) {
    throw malformed(s3Location(bucket, key))
  }
  const parts = await partsOf(access, { bucket, key: Key }, UploadId)
  if (parts === undefined) return undefined
  const { bytes, newest } = parts
  const begun = Initiated === undefined ? undefined : millis(Initiated.getTime())
  const activeAt = begun === undefined || (newest ?? begun) > begun ? newest : begun
  return { location: s3Location(bucket, Key), id: UploadId, bytes, activeAt }
}

async function partsOf(
  access: S3Access,
  { bucket, key }: S3Location,
  id: string,
): Promise<{ readonly bytes: number; readonly newest: Millis | undefined } | undefined> {
  const location = s3Location(bucket, key)
  let bytes = 0
  let newest: Millis | undefined
  let marker: string | undefined
  do {
    const after = marker === undefined ? {} : { PartNumberMarker: marker }
    const command = { Bucket: bucket, Key: key, UploadId: id, ...after }
    try {
      const page = await request(access, location, (client, { signal }) =>
        client.send(new ListPartsCommand(command), { abortSignal: signal }),
      )
      for (const { Size, LastModified } of page.Parts ?? []) {
        if (Size === undefined || LastModified === undefined) throw malformed(location)
        bytes += Size
        const arrived = millis(LastModified.getTime())
        if (newest === undefined || arrived > newest) newest = arrived
      }
      const next = page.IsTruncated === true ? page.NextPartNumberMarker : undefined
      if (page.IsTruncated === true && (next === undefined || next === marker)) {
        throw malformed(location)
      }
      marker = next
    } catch (error) {
      if (isGone(error)) return undefined
      throw error
    }
  } while (marker !== undefined)
  return { bytes, newest }
}

function isGone(error: unknown): boolean {
  return isSluiceError(error) && error.details['reply'] === 'NoSuchUpload'
}

function malformed(location: string): SluiceError {
  return new SluiceError('STORE_UNSUPPORTED', `${location}: the list of uploads is malformed`)
}

const uploadsMax = 100_000
/** Uploads whose parts are asked for at once. */
const parallelMax = 16
