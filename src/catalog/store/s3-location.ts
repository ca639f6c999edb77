import { SluiceError } from '../../core/errors.ts'
import { quoteValue } from '../../core/text.ts'

export type S3Location = { readonly bucket: string; readonly key: string }

/**
 * Takes `s3://bucket/key` apart. Nothing is percent-decoded: the text behind the bucket is the key,
 * as every other engine reads it. `s3a://` and `s3n://` are other names of the same place.
 * @throws SluiceError LOCATION_REFUSED; never repeats what may be a credential.
 */
export function parseS3Location(location: string): S3Location {
  const match = /^s3[an]?:\/\/([^/]*)(?:\/(.*))?$/s.exec(location)
  const bucket = match?.[1]
  if (bucket === undefined) {
    throw new SluiceError('LOCATION_REFUSED', `${quoteValue(location)}: not an S3 location`)
  }
  if (bucket.includes('@')) {
    throw new SluiceError('LOCATION_REFUSED', 'the S3 location contains credentials', {
      fix: 'put them in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
    })
  }
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]$/.test(bucket)) {
    throw new SluiceError('LOCATION_REFUSED', `${quoteValue(bucket)} is no name of a bucket`)
  }
  const key = match?.[2] ?? ''
  // Some servers and proxies resolve these as folders do, and would leave the prefix by them.
  if (key.includes('\0') || key.split('/').some((part) => part === '.' || part === '..')) {
    throw new SluiceError('LOCATION_REFUSED', `${quoteValue(location)}: a part is "." or ".."`)
  }
  if (Buffer.byteLength(key) > keyBytesMax) {
    throw new SluiceError('LOCATION_REFUSED', `${quoteValue(location)}: longer than 1024 bytes`)
  }
  return { bucket, key }
}

/** The location of a key, in the one form that metadata holds. */
export function s3Location(bucket: string, key: string): string {
  return `s3://${bucket}/${key}`
}

const keyBytesMax = 1024
