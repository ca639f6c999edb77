import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  type CompletedPart,
  CreateMultipartUploadCommand,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { SluiceError } from '../../core/errors.ts'
import type { IdSource } from '../../core/ports.ts'
import type { ObjectWriter } from './object-store.ts'
import { failureOf, s3Error } from './s3-errors.ts'
import { type S3Location, s3Location } from './s3-location.ts'
import { request, type S3Access, statObject } from './s3-read.ts'

/** Bytes of a part; an object below this is one PUT. Every part but the last has this size. */
export const partBytes = 8 << 20

/**
 * Writes one new object under a name nobody else uses, so every request may be repeated. One part
 * is under way while the next one is gathered.
 */
export function s3Upload(access: S3Access, place: S3Location, ids: IdSource): ObjectWriter {
  const location = s3Location(place.bucket, place.key)
  const parts = partUploads(access, place, ids.bits128())
  let gathered: Uint8Array[] = []
  let gatheredBytes = 0
  let written = 0

  return {
    async write(bytes): Promise<void> {
      written += bytes.length
      gatheredBytes += bytes.length
      if (gatheredBytes < partBytes) {
        // The encoder reuses its buffers, so what is kept beyond this call must be a copy.
        gathered.push(Uint8Array.prototype.slice.call(bytes))
        return
      }
      const all = Buffer.concat([...gathered, bytes])
      let at = 0
      for (; all.length - at >= partBytes; at += partBytes) {
        await parts.send(all.subarray(at, at + partBytes))
      }
      gathered = at < all.length ? [all.subarray(at)] : []
      gatheredBytes = all.length - at
    },

    async finish(): Promise<number> {
      const rest = Buffer.concat(gathered)
      gathered = []
      if (parts.isBegun()) {
        if (rest.length > 0) await parts.send(rest)
        await parts.complete(written)
      } else {
        const command = { Bucket: place.bucket, Key: place.key, Body: rest }
        await request(
          access,
          location,
          (client, { signal }) =>
            client.send(new PutObjectCommand(command), { abortSignal: signal }),
          rest.length,
        )
      }
      return written
    },

    async abandon(): Promise<void> {
      gathered = []
      await parts.abort()
    },
  }
}

interface PartUploads {
  isBegun(): boolean
  /** Begins to send a part once the one before it is there. @throws what that one failed of */
  send(body: Uint8Array): Promise<void>
  /** Makes the object of all parts. @param bytes Its length. */
  complete(bytes: number): Promise<void>
  abort(): Promise<void>
}

/** @param name Goes into the object's metadata, to know it again when a reply is lost. */
function partUploads(access: S3Access, place: S3Location, name: string): PartUploads {
  const location = s3Location(place.bucket, place.key)
  const object = { Bucket: place.bucket, Key: place.key }
  const done: CompletedPart[] = []
  let begun: Promise<string> | undefined
  let sending: Promise<void> = Promise.resolve()
  let isComplete = false

  const begin = async (): Promise<string> => {
    const command = { ...object, ChecksumAlgorithm: 'CRC32' as const, Metadata: { [key]: name } }
    const reply = await request(access, location, (client, { signal }) =>
      client.send(new CreateMultipartUploadCommand(command), { abortSignal: signal }),
    )
    if (reply.UploadId !== undefined) return reply.UploadId
    throw new SluiceError('STORE_UNSUPPORTED', `${location}: the store begins no upload`)
  }

  const sendPart = async (upload: Promise<string>, number: number, body: Uint8Array) => {
    const part = { ...object, UploadId: await upload, PartNumber: number, Body: body }
    const reply = await request(
      access,
      location,
      (client, { signal }) => client.send(new UploadPartCommand(part), { abortSignal: signal }),
      body.length,
    )
    done.push({
      PartNumber: number,
      ETag: reply.ETag,
      ...(reply.ChecksumCRC32 === undefined ? {} : { ChecksumCRC32: reply.ChecksumCRC32 }),
    })
  }

  /** Whether the object is there and is this very one. */
  const isThere = async (bytes: number): Promise<boolean> => {
    const found = await statObject(access, place)
    return found?.bytes === bytes && found.metadata.get(key) === name
  }

  return {
    isBegun: () => begun !== undefined,

    async send(body): Promise<void> {
      await sending
      const number = done.length + 1
      if (number > partsMax) {
        throw new SluiceError('LIMIT_EXCEEDED', `${location}: more than ${partsMax} parts`)
      }
      begun ??= begin()
      sending = sendPart(begun, number, body)
      // It is awaited by the next call; until then nobody listens.
      sending.catch(() => undefined)
    },

    async complete(bytes): Promise<void> {
      await sending
      const UploadId = await begun
      const command = { ...object, UploadId, MultipartUpload: { Parts: done } }
      const complete = async (): Promise<void> => {
        try {
          await access.connection.call(
            (client, { signal }) =>
              client.send(new CompleteMultipartUploadCommand(command), { abortSignal: signal }),
            partBytes,
          )
        } catch (error) {
          // A lost reply leaves the object, and then the upload is unknown to a second request.
          const failure = failureOf(error)
          if (failure.kind !== 'not-sent' && (await isThere(bytes))) return
          throw error
        }
      }
      try {
        await access.retries.run(complete)
      } catch (error) {
        throw s3Error(failureOf(error), location, 'unknown')
      }
      isComplete = true
    },

    async abort(): Promise<void> {
      if (begun === undefined || isComplete) return
      try {
        // Parts that arrive after the end of their upload would stay.
        await sending.catch(() => undefined)
        const UploadId = await begun
        await access.connection.call((client, { signal }) =>
          client.send(new AbortMultipartUploadCommand({ ...object, UploadId }), {
            abortSignal: signal,
          }),
        )
      } catch {
        // What is left of it is invisible; the store's own rules or the sweeper end it.
      }
    },
  }
}

const key = 'sluice-upload'
const partsMax = 10_000
